package import LoadEngine
package import Measurement

extension Verdict.Reason {
    static let noConnectionCode = "no-connection"
    static let signalCode = "interrupted"
    static let thresholdCode = "threshold"
    static let decodedCode = "decoded"
    private static let lostCode = "connections-lost"
    private static let connectionCode = "connection"
    /// Of runs without a server.
    static let unavailableCodes: Set = [noConnectionCode, lostCode, connectionCode]

    static let signal = Self(code: Self.signalCode, text: "a signal ended the run before its time")

    static func threshold(_ expression: String?) -> Self {
        let words = expression.map { ": \($0)" } ?? ""
        return Self(code: Self.thresholdCode, text: "a threshold that aborts was broken\(words)")
    }

    /// Of a decode.
    static func connection(_ words: String) -> Self { Self(code: Self.connectionCode, text: words) }

    static func decoded(_ words: String) -> Self { Self(code: Self.decodedCode, text: words) }

    /// Why a run, or one of its groups, had no connection left.
    ///
    /// - Parameters:
    ///   - loss: how the connections were lost.
    ///   - nothingCameUp: the words for clients of which none came up.
    ///   - example: of the most frequent error.
    /// - Returns: `nil` if it had connections.
    static func loss(_ loss: StopReason, _ nothingCameUp: String, example: String?) -> Self? {
        let words = example.map { ": \($0)" } ?? ""
        switch loss {
        case .everyConnectFailed: return Self(code: Self.noConnectionCode, text: nothingCameUp + words)
        case .everyConnectionLost:
            return Self(code: Self.lostCode, text: "all connections were lost and none came back\(words)")
        case .planned, .interrupted, .thresholdBroken: return nil
        }
    }

    /// The same with the group's name in front.
    package func of(group: String?) -> Self {
        guard let group else { return self }
        var reason = self
        reason.text = "\(group): \(self.text)"
        return reason
    }
}

extension [ErrorRecord] {
    /// Of the most frequent one.
    var example: String? { self.max { $0.count < $1.count }?.example }
}

extension Books {
    /// The embedded broker's own count against the generator's, where nothing happened that lets them differ.
    ///
    /// A message whose first copy was lost with its connection reaches the broker with DUP alone, and one whose answer
    /// was lost reaches it both ways: received <= sent <= received + received with DUP.
    ///
    /// - Parameters:
    ///   - received: what the broker received without DUP, by QoS.
    ///   - receivedDUP: what it received with DUP, by QoS.
    /// - Returns: `nil` where they agree.
    package func mismatch(
        received: (_ qos: UInt8) -> UInt64,
        receivedDUP: (_ qos: UInt8) -> UInt64
    ) -> Verdict.Reason? {
        guard let qos = self.qos, let sent = self.sent, self.unconfirmed ?? 0 == 0, self.failed ?? 0 == 0,
            self.timedOut ?? 0 == 0, self.inFlight ?? 0 == 0
        else { return nil }
        let (seen, again) = (received(UInt8(qos)), receivedDUP(UInt8(qos)))
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
