package import Ledger
package import Measurement

extension LedgerProblem {
    /// The problem as a reason for the verdict `unreconciled`.
    package var reason: Verdict.Reason {
        let (measured, limit) = self.figures
        return Verdict.Reason(code: self.code, text: self.text, measured: measured, limit: limit)
    }

    private var code: String {
        switch self {
        case .tooManyGaps: "ledger-overflow"
        case .outOfMemory: "ledger-memory"
        case .tooManyAudiences: "ledger-audiences"
        case .damagedHeaders: "ledger-foreign"
        case .neverSent: "ledger-beyond-sent"
        case .strayed: "ledger-stray"
        case .mixed: "ledger-mixed"
        case .miscounted: "ledger-count"
        case .unbalanced: "delivery-books"
        case .durationsOfDuplicates: "ledger-duration"
        case .leftBehindDuplicates, .leftEarly: "ledger-left"
        }
    }

    private var figures: (measured: Double, limit: Double) {
        switch self {
        case .tooManyGaps(let count), .neverSent(let count), .strayed(let count), .mixed(let count):
            (Double(count), 0)
        case .damagedHeaders(let count), .durationsOfDuplicates(let count), .leftBehindDuplicates(_, let count):
            (Double(count), 0)
        case .outOfMemory, .tooManyAudiences: (1, 0)
        case .miscounted(_, let arrived, let inStreams): (Double(arrived), Double(inStreams))
        case .unbalanced(_, let expected, let received, let lost, let outstanding):
            (Double(received + lost + outstanding), Double(expected))
        case .leftEarly(_, _, let nanoseconds): (Double(nanoseconds) / 1e9, 0)
        }
    }

    private var text: String {
        switch self {
        case .tooManyGaps(let streams):
            "\(Words.count(streams, "stream")) had more gaps than the ledger keeps, so loss is not exact"
        case .outOfMemory: "all streams together had more gaps than the ledger keeps"
        case .tooManyAudiences:
            "a publisher's topics reached more sets of subscribers than a message's header can name"
        case .damagedHeaders(let messages):
            "\(Words.count(messages, "message")) of this run came with a damaged header"
        case .neverSent(let streams): "on \(Words.count(streams, "stream")) sequences arrived that were never sent"
        case .strayed(let streams):
            "\(Words.count(streams, "subscription")) received from a publisher that does not feed them"
        case .mixed(let streams):
            "\(Words.count(streams, "stream")) \(streams == 1 ? "was" : "were") kept twice, or under another QoS than "
                + "their publisher's"
        case .miscounted(let qos, let arrived, let inStreams):
            "QoS \(qos): counted \(Words.count(arrived, "message")) on arrival, "
                + "but the streams hold \(Words.count(inStreams))"
        case .unbalanced(let qos, let expected, let received, let lost, let outstanding):
            "QoS \(qos): expected \(Words.count(expected)) is not received \(Words.count(received)) + "
                + "lost \(Words.count(lost)) + outstanding \(Words.count(outstanding))"
        case .durationsOfDuplicates(let messages):
            "\(Words.count(messages, "message")) arrived at members of one share group in different segments, "
                + "so delivery_duration holds their duplicates too"
        case .leftBehindDuplicates(let messages, let lost):
            "\(Words.count(messages, "message")) came to members of one share group in different segments, "
                + "so the \(Words.count(lost)) that are lost may have come when their subscribers had gone"
        case .leftEarly(let subscribers, let publishers, let nanoseconds):
            "subscribers of segment \(subscribers) left \(Words.decimal(Double(nanoseconds) / 1e9, digits: 3)) s before "
                + "the last publisher of segment \(publishers) had ended, so what they missed is not known; "
                + "a longer drain keeps them"
        }
    }
}
