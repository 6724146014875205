package import Measurement

extension RunRecord {
    /// The servers of the plan, and of its groups.
    package var targets: [String] {
        var unique: [String] = []
        for case .array(let all)? in ([self.plan] + self.plans).map({ $0["targets"] }) {
            for case .string(let target) in all where !unique.contains(target) { unique.append(target) }
        }
        return unique
    }

    /// `server broker.example:1883`, and what the servers named themselves.
    package var serverWords: [String] {
        let targets = self.targets
        let names = (targets.count == 1 ? "server " : "servers ") + targets.joined(separator: ", ")
        return (targets.isEmpty ? [] : [names]) + (self.servers ?? []).words
    }
}
