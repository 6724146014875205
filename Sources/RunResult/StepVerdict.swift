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
    func ofStep(broken: [String]) -> CapacitySearch.Verdict {
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

extension RunRecord {
    /// The verdict of a search on a step, by the step's own results.
    ///
    /// - Parameter status: how its process ended.
    /// - Returns: the verdict on the load, and why it is no better; `nil` where the step did not run.
    package func step(status: Int32) -> (verdict: CapacitySearch.Verdict, reason: String?)? {
        guard let verdict = self.verdict else { return nil }
        // Without a server a smaller load fails too.
        let isAlone = verdict.reasons.contains { $0.code == Verdict.Reason.noConnectionCode }
        if status == ExitStatus.unavailable.rawValue, isAlone { return nil }
        let step = verdict.ofStep(broken: self.thresholds.filter { !$0.ok }.map(\.expression))
        // A load that held has a reason too if its run was late.
        return (step, step.reason ?? verdict.reasons.first?.text)
    }
}
