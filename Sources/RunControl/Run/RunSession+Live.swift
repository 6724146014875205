import LoadEngine
import Measurement
import Report
package import Scenario
import Transport
import Workloads

// The run as others see it, and the servers as the run sees them.
extension RunSession {
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
        var servers: [ServerRecord] = []
        for group in self.groups {
            let target = group.targets.first
            if answers[target] == nil {
                let isFirst = known != nil && group === self.run.mqtt.first
                let answer = isFirst ? known : await group.server
                answers.updateValue(answer, forKey: target)
            }
            guard var server = answers[target] ?? nil else { continue }
            server.group = group.name
            servers.append(server)
        }
        return servers
    }
}

extension LiveCourse {
    /// The planned course of a run of groups on one timeline.
    ///
    /// Its rate is known only if every group that operates has one.
    package init(_ options: LoadOptions, _ groups: [any RunGroup]) {
        let seconds = { (nanoseconds: Int64) in Double(nanoseconds) / 1e9 }
        var stages = options.stages.map { Stage($0.name, seconds: seconds($0.length), isMeasured: !$0.isWarmup) }
        if stages.isEmpty {
            if options.warmup > 0 {
                stages.append(Stage("warmup", seconds: seconds(options.warmup), isMeasured: false))
            }
            stages.append(Stage("measure", seconds: options.duration.map(seconds)))
        }
        let operating = groups.filter { $0.options.operates }
        let rates = operating.compactMap { group in
            group.messageRate.map { group.options.stretches($0) }
        }
        self.init(
            stages: stages,
            stretches: rates.count == operating.count ? Self.sum(rates) : [],
            drainSeconds: seconds(options.drain)
        )
    }

    /// The stretches of several groups as of one.
    private static func sum(_ rates: [[Stretch]]) -> [Stretch] {
        guard rates.count > 1 else { return rates.first ?? [] }
        let courses = rates.map { LiveCourse(stretches: $0) }
        var cuts: Set<Double> = [0]
        for stretches in rates {
            var time = 0.0
            for stretch in stretches {
                time += stretch.seconds
                cuts.insert(time)
            }
        }
        let times = cuts.sorted()
        return zip(times, times.dropFirst()).map { begin, end in
            Stretch(
                seconds: end - begin,
                from: courses.reduce(0) { $0 + ($1.rate(at: begin) ?? 0) },
                to: courses.reduce(0) { $0 + ($1.rate(at: end.nextDown) ?? 0) }
            )
        }
    }
}
