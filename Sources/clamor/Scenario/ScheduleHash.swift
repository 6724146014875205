import Crypto
import Foundation
import Workloads

extension ScenarioGroup {
    /// The hash of a schedule that has no other group; empty where nobody asks for it.
    var schedule: String {
        guard self.options.segment.part != nil else { return "" }
        return ScenarioOptions(name: "", common: self.options, groups: [self]).scheduleHash
    }
}

extension StageOption {
    fileprivate var ofEverybody: StageOption {
        var stage = self
        (stage.clients, stage.turnouts) = (.share(1), [])
        return stage
    }
}

extension ScenarioOptions {
    /// SHA-256 of what decides who does what when, but for the seed.
    ///
    /// Files that mean the same have the same, however they are written, and whatever servers they name.
    package var scheduleHash: String {
        var parts = ["\(self.common.warmup)", "\(self.common.drain)", "\(self.common.duration ?? 0)"]
        // Who takes part stands with each group.
        parts.append("\(self.common.stages.map(\.ofEverybody))")
        for group in self.groups.sorted(by: { $0.name < $1.name }) {
            parts.append(group.name)
            switch group.work {
            case .mqtt(var options):
                Self.leaveOut(&options.common)
                options.password = nil
                options.store = nil
                // Drawn by chance or by the seed; a given one has its part in the topics and ids of the schedule.
                options.replaceDrawnPrefix(with: "")
                parts.append("\(options)")
            case .xmpp(var options):
                Self.leaveOut(&options.common)
                options.password = ""
                for index in options.users.indices { options.users[index].password = "" }
                parts.append("\(options)")
            }
        }
        let bytes = Data(parts.joined(separator: "\n").utf8)
        return SHA256.hash(data: bytes).hex
    }

    /// What is of the file, the servers or the generator, and not of the schedule.
    private static func leaveOut(_ options: inout LoadOptions) {
        options.name = ""
        options.redactedCommand = []
        options.target = .servers([])
        options.sourceAddresses = []
        options.transport = TransportOptions()
        options.connectTimeout = 0
        options.threads = nil
        options.readSize = 0
        options.seed = nil
        options.thresholds = []
        options.outputDirectory = nil
        options.files = ReportFileOptions()
        options.segment = SegmentOptions()
        (options.perClient, options.json, options.quiet, options.strict) = (false, false, false, false)
        // The same due times.
        if case .ramp(let from, let to, nil) = options.shape, let length = options.loadLength {
            options.shape = .ramp(from: from, to: to, over: length)
        }
        if case .interval(let nanoseconds) = options.pacing {
            options.pacing = .rate(Double(options.operators) * 1e9 / Double(nanoseconds))
        }
    }
}
