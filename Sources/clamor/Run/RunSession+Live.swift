import LoadEngine
import Measurement
import Report
import RunResult
import Transport
import Workloads

// The run as others see it, and the servers as the run sees them.
extension RunSession {
    /// The watched servers as they are before the first client; `nil` if none is to be watched.
    func openWatch() async throws(RunRefusal) -> ServerMonitor? {
        guard self.options.live.watches else { return nil }
        return try await ServerMonitor(
            self.options.live,
            self.groups,
            isAlone: self.options.segment.part == nil,
            self.screen
        )
    }

    /// The board and the endpoint; none in a segment, whose parent has them, nor where nothing is shown.
    func openView(_ record: RunRecord) async -> LiveView? {
        let isSilent = self.options.quiet || self.options.json
        guard !self.options.segment.isChild, !isSilent || self.options.live.endpoint != nil else { return nil }
        return LiveView(
            self.screen,
            LiveRun(
                record,
                course: LiveCourse(self.options, self.groups),
                clients: self.clients,
                keepsDurations: self.options.live.endpoint != nil,
                keepsTimeline: self.options.live.endpoint != nil
            ),
            endpoint: await LiveEndpoint.start(self.options.live, self.screen),
            isOfAccounts: self.groups.allSatisfy(\.facts.load.isOfAccounts)
        )
    }

    /// The servers that named themselves; a segment that is not the first leaves them to that one.
    ///
    /// `known`: the server of the first MQTT group, if its `$SYS` was read.
    func servers(known: ServerRecord?) async -> [ServerRecord] {
        guard self.options.part.index == 0, self.options.live.asksServer else { return [] }
        // Groups of one target have one server, which is asked once.
        var answers: [Target?: ServerRecord?] = [:]
        var known = known
        var servers: [ServerRecord] = []
        for group in self.groups {
            let target = group.targets.first
            if answers[target] == nil {
                let own = group is MQTTGroup ? known : nil
                if group is MQTTGroup { known = nil }
                var answer = own
                if answer == nil { answer = await group.server }
                answers.updateValue(answer, forKey: target)
            }
            guard var server = answers[target] ?? nil else { continue }
            server.group = group.name
            servers.append(server)
        }
        return servers
    }
}
