public import Measurement
import Scenario

extension RunRecord {
    /// Whether the verdict is "valid": the books balance, and the generator was not the limit.
    public var isValid: Bool { self.verdict?.state == .valid }

    /// The reasons of the verdict against its figures: a sentence each, with figures and units, and its code.
    public var reasons: [String] { (self.verdict?.reasons ?? []).map(\.line) }

    /// The thresholds of its scenario that were not met.
    public var brokenThresholds: [String] { self.thresholds.filter { !$0.ok }.map(\.expression) }

    /// Judges it by a condition in the language of `--threshold`, such as `publish_ack_duration p99 < 50ms`.
    ///
    /// - Returns: whether the condition is met, and the figure: in seconds, events, events per second or as a share;
    ///   `nil` without a sample.
    /// - Throws: why the text is no condition, or why this run has no such metric.
    public func judge(_ threshold: String) throws(ThresholdError) -> (isMet: Bool, value: Double?) {
        let parsed = try Threshold.parse(threshold)
        let problem =
            AbsentMetric.problem(ofName: parsed.name)
            ?? AbsentMetric(parsed.name).problem(in: self)?.text(isFile: true)
        if let problem { throw ThresholdError(threshold, problem) }
        let result = parsed.evaluate(in: self)
        return (result.ok, result.value)
    }
}
