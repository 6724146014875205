import LoadEngine
package import Measurement

extension Verdict.Reason {
    static let noConnectionCode = "no-connection"
    static let decodedCode = "decoded"
    static let connectionsLostCode = "connections-lost"
    private static let connectionCode = "connection"
    /// Codes of runs without a server.
    static let unavailableCodes: Set = [noConnectionCode, connectionsLostCode, connectionCode]

    /// The server answered and delivered nothing more.
    static func silent(from second: Int) -> Self {
        Self(code: self.silentCode, text: "the server stopped answering at \(second) s")
    }

    static let signal = Self(code: Self.signalCode, text: "a signal ended the run before its time")

    /// A segment was ended by its leader; it has the code of a signal, which the leader may have got.
    static let ordered = Self(code: Self.signalCode, text: "the coordinator ended the run before its time")

    /// The reason for a decode whose connection was lost.
    static func connection(_ words: String) -> Self { Self(code: Self.connectionCode, text: words) }
    static func decoded(_ words: String) -> Self { Self(code: Self.decodedCode, text: words) }

    /// The reason why a run, or one of its groups, had no connection left.
    ///
    /// - Parameters:
    ///   - loss: how the connections were lost.
    ///   - nothingCameUp: the reason to print if no client connected.
    ///   - example: an example of the most frequent error.
    /// - Returns: `nil` if there were connections.
    static func loss(_ loss: StopReason, _ nothingCameUp: String, example: String?) -> Self? {
        let words = example.map { ": \($0)" } ?? ""
        switch loss {
        case .everyConnectFailed: return Self(code: Self.noConnectionCode, text: nothingCameUp + words)
        case .everyOperatorFailed:
            return Self(code: Self.noConnectionCode, text: "no client that sends could take part in the load\(words)")
        case .everyListenerFailed:
            let text = "no client that receives could take part in the load\(words)"
            return Self(code: Self.noConnectionCode, text: text)
        case .everyConnectionLost:
            return Self(code: Self.connectionsLostCode, text: "all connections were lost and none came back\(words)")
        case .planned, .interrupted, .ordered, .thresholdBroken: return nil
        }
    }
}

extension [ErrorRecord] {
    /// An example of the most frequent error.
    var example: String? { self.max { $0.count < $1.count }?.example }
}

extension Books {
    /// Compares the embedded broker's count with the generator's; applies if no fault could make them differ.
    ///
    /// If a connection is lost, its message may reach the broker only with DUP. If only the answer is lost, the message
    /// reaches the broker without and with DUP. So: received <= sent <= received + received with DUP.
    ///
    /// - Parameters:
    ///   - received: messages without DUP that the broker received, by QoS.
    ///   - receivedDUP: messages with DUP that it received, by QoS.
    /// - Returns: `nil` if the counts agree.
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

/// Messages that servers hold for a slow client, besides those in flight to it; they drop the others.
///
/// By default: mosquitto.conf(5); EMQX, "In-flight and Message Queue"; VerneMQ, "Options".
private let queueLimits: [(server: String, waiting: Int, inFlight: Int, settings: String)] = [
    ("mosquitto", 1_000, 20, "max_queued_messages 1000 + max_inflight_messages 20"),
    ("EMQX", 1_000, 32, "max_mqueue_len 1000 + max_inflight 32"),
    ("VerneMQ", 1_000, 20, "max_online_messages 1000 + max_inflight_messages 20"),
]

extension Verdict.Reason {
    package static let retainedLimitCode = "retained-limit"

    /// Copies of further topics are in no count.
    package static let retainedTopics = Self(
        code: "retained-topics",
        text: "the run retained more than \(Words.count(65_536)) topics; copies of the others are not followed"
    )

    /// The limit that clients met which lost stored copies, if each of them got as many as a server holds by default.
    ///
    /// `counts`: how many copies they got. `receiveMaximum`: the most messages in flight that the clients allow.
    package static func retainedLimit(_ counts: Set<Int>, receiveMaximum: Int) -> Self? {
        guard counts.count == 1, let count = counts.first else { return nil }
        let found = queueLimits.filter { $0.waiting + min($0.inFlight, receiveMaximum) == count }
        guard !found.isEmpty else { return nil }
        let servers = found.map { "\($0.server) (\($0.settings))" }.joined(separator: ", or of ")
        return Self(
            code: self.retainedLimitCode,
            text: "each client that missed some got \(Words.count(UInt64(count))): the default limit of \(servers)"
        )
    }
}
