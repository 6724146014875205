/// The totals of one client: 64 bytes, in one array per loop.
package struct ClientTally: Hashable, Sendable {
    /// From due to ready; 0: the client was never ready.
    package var connectNanoseconds: Int64 = 0
    package var sent: UInt64 = 0
    package var acked: UInt64 = 0
    package var received: UInt64 = 0
    /// Read from the socket, as for the packets.
    package var bytes: UInt64 = 0
    package var packets: UInt64 = 0
    package var reads: UInt64 = 0
    /// 0: there was no acknowledgement.
    package var longestAckNanoseconds: Int64 = 0

    package init() {}
}

package struct ClientSpread: Codable, Hashable, Sendable {
    package struct Client: Codable, Hashable, Sendable {
        package var id: String
        package var value: Double
    }

    /// The number of clients with a value.
    package var clients: Int
    package var min: Double
    package var p5: Double
    package var p50: Double
    package var p95: Double
    package var max: Double
    package var mean: Double
    /// Jain's fairness index, (Σx)² ÷ (n·Σx²): 1 means an even spread, 1/n means that one client has everything.
    ///
    /// Absent if all values are 0.
    package var jain: Double?
    /// The five worst, worst first.
    package var worst: [Client]
}

extension ClientSpread {
    /// The spread of some clients' values; nil without any.
    ///
    /// - `values`: with the client's number.
    /// - `worstIsHighest`: whether the highest value is the worst, as with durations.
    /// - `id`: a client's id by its number; called for the five worst.
    package init?(_ values: [(client: Int, value: Double)], worstIsHighest: Bool, id: (Int) -> String) {
        // Equal values are in client order, so that the same run lists the same five.
        let sorted = values.sorted { ($0.value, $0.client) < ($1.value, $1.client) }
        guard let first = sorted.first, let last = sorted.last else { return nil }
        // Nearest rank: the smallest value that `percent` of the clients do not exceed.
        func percentile(_ percent: Int) -> Double {
            sorted[Swift.max((sorted.count * percent + 99) / 100, 1) - 1].value
        }
        let count = Double(sorted.count)
        let sum = sorted.reduce(0) { $0 + $1.value }
        let squares = sorted.reduce(0) { $0 + $1.value * $1.value }
        let worst =
            worstIsHighest
            ? Array(values.sorted { ($1.value, $0.client) < ($0.value, $1.client) }.prefix(5))
            : Array(sorted.prefix(5))
        self.init(
            clients: sorted.count,
            min: first.value,
            p5: percentile(5),
            p50: percentile(50),
            p95: percentile(95),
            max: last.value,
            mean: sum / count,
            jain: squares > 0 ? Swift.min(sum * sum / (count * squares), 1) : nil,
            worst: worst.map { Client(id: id($0.client), value: $0.value) }
        )
    }
}

/// The spreads of one group of clients: publishers, or subscribers.
package struct ClientGroup: Codable, Hashable, Sendable {
    package var count: Int
    package var connectSeconds: ClientSpread?
    package var sent: ClientSpread?
    package var acked: ClientSpread?
    package var received: ClientSpread?
    package var bytes: ClientSpread?
    package var packets: ClientSpread?
    package var reads: ClientSpread?
    package var longestAckSeconds: ClientSpread?

    private enum CodingKeys: String, CodingKey {
        case count
        case connectSeconds = "connect_seconds"
        case sent, acked, received, bytes, packets, reads
        case longestAckSeconds = "longest_ack_seconds"
    }
}

extension ClientGroup {
    /// - `tallies`: one per client.
    /// - `publishes`: whether these clients publish; otherwise sent and acknowledged counts are absent.
    /// - `acknowledged`: whether they publish at QoS 1 or 2.
    /// - `subscribes`: whether they subscribe; otherwise received counts are absent.
    /// - `id`: a client's id by its index in `tallies`.
    package init(_ tallies: [ClientTally], publishes: Bool, acknowledged: Bool, subscribes: Bool, id: (Int) -> String) {
        func counts(_ of: KeyPath<ClientTally, UInt64>) -> ClientSpread? {
            let values = tallies.enumerated().map { (client: $0, value: Double($1[keyPath: of])) }
            return ClientSpread(values, worstIsHighest: false, id: id)
        }
        func durations(_ of: KeyPath<ClientTally, Int64>) -> ClientSpread? {
            let values = tallies.enumerated().compactMap { index, tally in
                tally[keyPath: of] > 0 ? (client: index, value: Double(tally[keyPath: of]) / 1e9) : nil
            }
            return ClientSpread(values, worstIsHighest: true, id: id)
        }
        self.init(
            count: tallies.count,
            connectSeconds: durations(\.connectNanoseconds),
            sent: publishes ? counts(\.sent) : nil,
            acked: publishes && acknowledged ? counts(\.acked) : nil,
            received: subscribes ? counts(\.received) : nil,
            bytes: counts(\.bytes),
            packets: counts(\.packets),
            reads: counts(\.reads),
            longestAckSeconds: publishes && acknowledged ? durations(\.longestAckNanoseconds) : nil
        )
    }
}
