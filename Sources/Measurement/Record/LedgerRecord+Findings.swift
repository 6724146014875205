package import Ledger

extension LedgerRecord {
    /// Takes what a reconciliation found of one group of receivers; `group`: `nil` in a run without groups.
    ///
    /// `example` puts an example into words; `nil` leaves it out.
    package mutating func take(
        _ delivery: Reconciliation,
        ofReceivers group: String?,
        in places: LedgerPlaces,
        example: (Reconciliation.Example) -> LedgerExample?
    ) {
        let rows = delivery.rows(ofReceivers: group, in: places)
        self.missing = rows.all(\.missing)?.reduce(0, +)
        self.lost = rows.all(\.lost).map { _ in
            rows.reduce(into: [:]) { lost, row in
                for (cause, count) in row.lostBy where count > 0 { lost[cause.rawValue, default: 0] += count }
            }
        }
        let examples = delivery.examples.filter { found in
            group.map { places.group(ofLabel: found.label) == $0 } ?? true
        }
        self.examples = examples.isEmpty ? nil : examples.compactMap(example)
    }
}

extension LedgerExample {
    /// - Parameters:
    ///   - example: of a reconciliation.
    ///   - topic: of the message, where it is known.
    ///   - publisher: its name.
    ///   - subscriber: its name; of a share group, that of the group.
    package init(_ example: Reconciliation.Example, topic: String? = nil, publisher: String?, subscriber: String?) {
        let cause: LossCause?
        let finding: LedgerExample.Finding
        switch example.finding {
        case .lost(let why): (finding, cause) = (.lost, why)
        case .duplicated: (finding, cause) = (.duplicated, nil)
        case .reordered: (finding, cause) = (.reordered, nil)
        }
        self.init(finding: finding, cause: cause?.rawValue, qos: Int(example.qos))
        self.topic = topic
        self.publisher = publisher
        self.subscriber = subscriber
        self.sequence = example.sequence
        guard finding == .lost else { return }
        // A lost message was expected. Of an arrival the ledger does not keep what its publisher knows.
        self.expected = true
        self.sent = example.isResent ? 2 : 1
        // At QoS 0 nothing is acknowledged.
        self.acknowledged = example.qos > 0 ? true : nil
    }
}

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
