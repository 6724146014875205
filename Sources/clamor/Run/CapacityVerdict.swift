package import LoadEngine
package import Measurement

extension Verdict {
    /// What keeps a generator from its plan while its loops have CPU time to spare in most seconds; else "generator-cpu"
    /// stands beside it.
    private static let disturbances: Set<String> = ["schedule-lag", "cpu-steal"]

    /// What this says of the load that a step of a search offered.
    ///
    /// A generator that was late but sent everything has sent bursts where the plan was even, and response times count
    /// from when an operation was due: that may break an objective which the server holds, and makes none hold which the
    /// server breaks.
    ///
    /// - Parameter broken: the objectives that did not hold.
    /// - Returns: whether the load held, broke, or nothing is known of it.
    package func ofStep(broken: [String]) -> CapacitySearch.Verdict {
        let words = self.reasons.first?.text ?? self.state.rawValue
        switch self.state {
        case .aborted, .unreconciled: return .broken(words)
        case .generatorLimited:
            guard self.reasons.allSatisfy({ Self.disturbances.contains($0.code) }) else {
                return .generatorLimited(words)
            }
            return broken.isEmpty ? .held : .disturbed(words)
        case .valid: return broken.isEmpty ? .held : .broken(broken.joined(separator: ", "))
        }
    }
}
