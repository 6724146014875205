import Measurement

// Findings of segments that each balanced a ledger of their own.
extension MergedRun {
    static func ledger(_ ledgers: [LedgerRecord]) -> LedgerRecord {
        var ledger = LedgerRecord(on: ledgers.allSatisfy(\.on), reason: ledgers.lazy.compactMap(\.reason).first)
        func sum(_ part: KeyPath<LedgerRecord, Int?>) -> Int? {
            let known = ledgers.compactMap { $0[keyPath: part] }
            return known.count == ledgers.count ? known.reduce(0, +) : nil
        }
        ledger.publishers = sum(\.publishers)
        ledger.subscriptions = sum(\.subscriptions)
        ledger.streams = sum(\.streams)
        ledger.overflowed = sum(\.overflowed)
        let lost = ledgers.compactMap(\.lost)
        if lost.count == ledgers.count { ledger.lost = .joining(lost) }
        let missing = ledgers.compactMap(\.missing)
        if missing.count == ledgers.count { ledger.missing = missing.reduce(0, +) }
        let examples = ledgers.compactMap(\.examples)
        ledger.examples = examples.isEmpty ? nil : examples.flatMap { $0 }.firstOfEachFinding
        return ledger
    }
}

extension [LedgerExample] {
    /// The first one of each finding, cause and QoS.
    fileprivate var firstOfEachFinding: [LedgerExample] {
        var known: Set<LedgerExample> = []
        return self.filter { known.insert(LedgerExample(finding: $0.finding, cause: $0.cause, qos: $0.qos)).inserted }
    }
}

extension [Metric] {
    /// Without the zeros of segments that lost or repeated nothing, where another one did: its rows have a label more.
    var withoutEmptyKinds: [Metric] {
        let kinds = [Labels.cause, Labels.permitted]
        var named: Set<Series> = []
        for metric in self {
            for kind in kinds where metric.labels[kind] != nil {
                named.insert(Series(name: metric.name, labels: metric.labels.removing(kind)))
            }
        }
        return named.isEmpty ? self : self.filter { !named.contains(Series(name: $0.name, labels: $0.labels)) }
    }
}
