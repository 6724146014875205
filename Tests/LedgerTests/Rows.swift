import Ledger

extension Reconciliation.Row {
    /// A row whose losses were passed over; unless given, all that is missing is lost or outstanding.
    static func of(
        qos: UInt8,
        expected: UInt64?,
        received: UInt64,
        lost: UInt64?,
        outstanding: UInt64 = 0,
        lostBy: [LossCause: UInt64]? = nil,
        missing: UInt64? = nil,
        duplicated: UInt64 = 0,
        permitted: UInt64 = 0,
        overlapped: UInt64 = 0,
        reordered: UInt64 = 0,
        gaps: UInt64 = 0
    ) -> Reconciliation.Row {
        let usual: LossCause = qos == 0 ? .dropped : .violated
        return Reconciliation.Row(
            qos: qos,
            expected: expected,
            received: received,
            lost: lost,
            outstanding: lost.map { _ in outstanding },
            lostBy: lostBy ?? (lost ?? 0 > 0 ? [usual: lost ?? 0] : [:]),
            missing: missing ?? lost.map { $0 + outstanding },
            duplicated: duplicated,
            permitted: permitted,
            overlapped: overlapped,
            reordered: reordered,
            gaps: gaps
        )
    }
}

extension DeliveryEnd {
    /// The server had been quiet for two seconds when it was probed, and every receiver answered.
    static var quiet: DeliveryEnd {
        var end = DeliveryEnd()
        (end.lastArrival, end.lastPublish, end.probed) = (0, 0, 2_000_000_000)
        return end
    }
}

extension LedgerExport {
    /// The messages that subscriptions received from publishers, in this order.
    static func of(
        _ arrivals: [(subscription: UInt32, publisher: UInt32, qos: UInt8, sequences: [UInt64])]
    ) -> LedgerExport {
        var ledger = SubscriberLedger()
        var indices: [UInt32: Int] = [:]
        for arrival in arrivals {
            if indices[arrival.subscription] == nil {
                indices[arrival.subscription] = ledger.addSubscription(arrival.subscription)
            }
            for sequence in arrival.sequences {
                _ = ledger.arrived(
                    subscription: indices[arrival.subscription] ?? 0,
                    publisher: arrival.publisher,
                    qos: arrival.qos,
                    sequence: sequence
                )
            }
        }
        return ledger.export()
    }
}
