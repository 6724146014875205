package import EmbeddedBroker
package import Measurement

extension BrokerCounters {
    /// The embedded broker's own counts against the generator's, where nothing happened that lets them differ.
    ///
    /// A message whose first copy was lost with its connection reaches the broker with DUP alone, and one whose answer
    /// was lost reaches it both ways: received <= sent <= received + received with DUP.
    package func mismatches(with books: [Books]) -> [Verdict.Reason] {
        books.compactMap { books in
            guard let qos = books.qos, let sent = books.sent, books.unconfirmed ?? 0 == 0, books.failed ?? 0 == 0,
                books.timedOut ?? 0 == 0, books.inFlight ?? 0 == 0
            else { return nil }
            let seen = self.received[UInt8(qos)]
            let again = self.receivedDUP[UInt8(qos)]
            guard seen > sent || sent - seen > again else { return nil }
            let words = again > 0 ? ", and \(again) with DUP" : ""
            return Verdict.Reason(
                code: "broker-books",
                text: "QoS \(qos): \(sent) sent, but the broker received \(seen)\(words)",
                measured: Double(seen),
                limit: Double(sent)
            )
        }
    }
}
