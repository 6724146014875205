package import LoadEngine
package import Measurement

extension Verdict {
    /// Reasons that delay a generator whose loops have CPU time left in most seconds.
    ///
    /// Otherwise "generator-cpu" is among the reasons too.
    private static let disturbances: Set<String> = ["schedule-lag", "cpu-steal", "host-full"]

    /// The result of a search step for the load that it offered.
    ///
    /// A late generator that sent everything sent bursts instead of an even load, and response times count from the due
    /// time. The delay can break an objective that the server meets. It cannot make an objective pass that the server
    /// breaks.
    ///
    /// - Parameter broken: the objectives that failed.
    /// - Returns: whether the load held, broke, or gave no result.
    func ofStep(broken: [String]) -> CapacitySearch.Verdict {
        let words = self.reasons.first?.text ?? self.state.rawValue
        switch self.state {
        case .aborted, .unreconciled: return .broken(words)
        case .generatorLimited:
            let disturbances = Self.disturbances.union([Reason.silentCode])
            guard self.reasons.allSatisfy({ disturbances.contains($0.code) }) else {
                return .generatorLimited(words)
            }
            return broken.isEmpty ? .held : .disturbed(words)
        case .valid: return broken.isEmpty ? .held : .broken(broken.joined(separator: ", "))
        }
    }
}

extension RunRecord {
    /// The verdict of a search step, from its own record.
    ///
    /// - Parameter status: the exit status of its process.
    /// - Returns: the verdict on the load, and the reason if it is not "held"; `nil` if the step did not run.
    package func step(status: Int32) -> (verdict: CapacitySearch.Verdict, reason: String?)? {
        guard let verdict = self.verdict else { return nil }
        // Without a server a smaller load would fail too.
        let isAlone = verdict.reasons.contains { $0.code == Verdict.Reason.noConnectionCode }
        if status == ExitStatus.unavailable.rawValue, isAlone { return nil }
        // Messages that were not answered are beyond every objective.
        let unanswered = [self.outstandingWords].compactMap(\.self)
        let step = verdict.ofStep(broken: self.thresholds.filter { !$0.ok }.map(\.expression) + unanswered)
        guard step == .held, let late = verdict.reasons.first?.text else { return (step, step.reason) }
        return (step, "the generator was the limit, and the objectives were met all the same: \(late)")
    }
}
