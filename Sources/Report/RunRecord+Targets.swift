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
}
