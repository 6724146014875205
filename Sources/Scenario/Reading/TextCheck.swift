import MQTTCodec
import Measurement

/// Checks of texts by the rules of other targets; each returns the problem, or `nil`.
enum TextCheck {
    /// A sentence of `--threshold`; `hasLedger`: whether the run has one.
    static func threshold(_ sentence: String, hasLedger: Bool) -> String? {
        do throws(ThresholdError) {
            let threshold = try Threshold.parse(sentence)
            if let problem = AbsentMetric.problem(ofName: threshold.name) { return problem }
            let needsLedger = ["delivery_", "request"].contains { threshold.name.hasPrefix($0) }
            return needsLedger && !hasLedger ? "\(threshold.name) needs \(AbsentMetric.ledger)" : nil
        } catch {
            // The message already begins with the flag and its value.
            return error.problem
        }
    }

    static func topicFilter(_ filter: String) -> String? {
        Self.problem { () throws(TopicError) in _ = try TopicFilter(validating: filter) }
    }

    static func topicName(_ topic: String) -> String? {
        Self.problem { () throws(TopicError) in try TopicName.validate(topic) }
    }

    private static func problem(_ check: () throws(TopicError) -> Void) -> String? {
        do throws(TopicError) { try check() } catch { return error.words }
        return nil
    }
}
