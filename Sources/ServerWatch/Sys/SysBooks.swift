package import Measurement

/// The broker's own count of PUBLISH packets over a run, without the packets to the client that watches.
///
/// There are books of mosquitto and of the embedded broker. EMQX publishes `$SYS` once a minute, not retained. So no
/// update of EMQX marks the begin of a run, and two more would take two minutes at its end.
package struct SysBooks: Hashable, Sendable {
    /// From clients to the broker.
    package var received: UInt64?
    /// From the broker to clients.
    package var sent: UInt64?
    /// Whether two updates after the load agreed; otherwise the broker may not have reported all of it.
    package var isSettled: Bool
    /// Whether the count starts at an update before the run, up to the broker's interval earlier.
    package var startsEarlier: Bool
    package var server: ServerRecord?

    package init(
        received: UInt64?,
        sent: UInt64?,
        isSettled: Bool = true,
        startsEarlier: Bool = false,
        server: ServerRecord? = nil
    ) {
        self.received = received
        self.sent = sent
        self.isSettled = isSettled
        self.startsEarlier = startsEarlier
        self.server = server
    }

    /// Whether there are books of a broker; `nil` stands for a broker of unknown name.
    package static func exist(for server: ServerRecord?) -> Bool {
        ["mosquitto", "clamor"].contains(server?.product)
    }

    /// `nil` if nothing is known, the broker has no books, or it was started again in between.
    package init?(from first: SysValues.Count, to last: SysValues.Count, isSettled: Bool, _ server: ServerRecord?) {
        guard Self.exist(for: server) else { return nil }
        func difference(_ first: Int64?, _ last: Int64?) -> UInt64? {
            guard let first, let last else { return nil }
            return UInt64(exactly: last - first)
        }
        self.init(
            received: difference(first.received, last.received),
            sent: difference(first.sent, last.sent),
            isSettled: isSettled,
            startsEarlier: true,
            server: server
        )
        if self.received == nil && self.sent == nil { return nil }
    }

    /// Whether the broker's count of packets received is without PUBLISH at QoS 2: mosquitto up to 2.0.
    package var leavesOutQoS2: Bool {
        guard let server = self.server, server.product == "mosquitto", let version = server.version else {
            return false
        }
        let parts = version.split(separator: ".").prefix(2).map { UInt($0) }
        guard parts.count == 2, let major = parts[0], let minor = parts[1] else { return false }
        return (major, minor) <= (2, 0)
    }

    /// Lines about differences between the broker's count and the run's books.
    ///
    /// - Parameters:
    ///   - sent: PUBLISH packets that the run sent at QoS 0, 1 and 2, repeated ones included.
    ///   - received: PUBLISH packets that the run received, copies included.
    /// - Returns: warnings; none if both agree.
    package func differences(sent: [UInt64], received: UInt64) -> [String] {
        var lines: [String] = []
        let name = self.server?.product ?? "the broker"
        let counted = self.leavesOutQoS2 ? Array(sent.prefix(2)) : sent
        let expected = counted.reduce(0, &+)
        if let figure = self.received, figure != expected {
            let without = self.leavesOutQoS2 ? " without QoS 2, which mosquitto up to 2.0 leaves out" : ""
            lines.append("$SYS: \(name) received \(figure) PUBLISH, the run sent \(expected)\(without)")
        }
        if let figure = self.sent, figure != received {
            lines.append("$SYS: \(name) sent \(figure) PUBLISH, the run received \(received)")
        }
        guard !lines.isEmpty else { return [] }
        var remark = ""
        if self.startsEarlier { remark += "; its count starts at its last update before the run" }
        if !self.isSettled { remark += "; its count was still changing, or not reported in time" }
        return lines.map { $0 + remark }
    }
}
