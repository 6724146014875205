package import Measurement

extension RunRecord {
    /// The servers of the plan, and of its groups.
    package var targets: [String] {
        func targets(_ plan: [String: JSONValue]) -> [String] {
            guard case .array(let all)? = plan["targets"] else { return [] }
            return all.compactMap { if case .string(let target) = $0 { target } else { nil } }
        }
        var found = targets(self.plan)
        if case .object(let groups)? = self.plan["groups"] {
            for (_, group) in groups.sorted(by: { $0.key < $1.key }) {
                if case .object(let plan) = group { found += targets(plan) }
            }
        }
        var unique: [String] = []
        for target in found where !unique.contains(target) { unique.append(target) }
        return unique
    }
}
