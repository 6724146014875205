package import Ledger
package import Measurement

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
        func sum(_ part: KeyPath<Reconciliation.Row, UInt64?>) -> UInt64? {
            let known = rows.compactMap { $0[keyPath: part] }
            return known.count == rows.count ? known.reduce(0, +) : nil
        }
        self.missing = sum(\.missing)
        self.lost = sum(\.lost).map { _ in
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
