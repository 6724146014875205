import Measurement

/// How many nodes a fleet needs, by the costs of a server measured on one node.
package struct FleetPlan: Codable, Hashable, Sendable {
    package struct Node: Codable, Hashable, Sendable {
        package var cores: Double
        package var memoryBytes: Double

        package init(cores: Double, memoryBytes: Double) { (self.cores, self.memoryBytes) = (cores, memoryBytes) }
    }

    package enum Bound: String, Codable, Sendable {
        /// The threads of the server, which use no more cores; or all cores of a node.
        case thread, cpu
        case memory

        package var words: String {
            switch self {
            case .thread: "the threads of the server, which use no more cores"
            case .cpu: "the cores of a node"
            case .memory: "the memory of a node"
            }
        }
    }

    /// No load is planned for beyond so many times what was measured.
    package static let reach = 3.0
    /// The most nodes that are looked at.
    private static let most = 10_000
    /// A connection's two buffers and its socket in the kernel; no process has them.
    private static let socketBytes = 4_096.0

    package var schema = "clamor.plan/1"
    package var nodes: Estimate
    /// The resource of which one node fewer would not have enough.
    package var bound: Bound
    /// Of one node, with those that may fail away.
    package var cores: Estimate
    package var share: Estimate
    /// The server's process, and the kernel's sockets beside it.
    package var memoryBytes: Estimate
    package var socketBytes: Double
    /// Until all clients are back after a full reconnect to all nodes, if they come as fast as the nodes take them.
    package var recoverySeconds: Estimate
    /// Messages in per second that one node takes at most, in the fleet's mixture; absent without messages.
    package var topRate: Estimate?

    /// The reason why costs do not say anything about a fleet.
    package struct Refusal: Error {
        package let words: String
    }

    /// - Parameters:
    ///   - fleet: all of it.
    ///   - costs: of the server.
    ///   - node: each of them.
    ///   - headroom: the share of CPU and memory that stays free.
    ///   - losses: nodes that may be away.
    /// - Throws: a node would have more than three times what was measured, or no number of nodes suffices.
    package init(
        _ fleet: ServerDemand,
        _ costs: ServerCosts,
        on node: Node,
        headroom: Double,
        losses: Int
    ) throws(Refusal) {
        // A server that leaves cores unused where it was measured does not use more of them elsewhere, and one that had
        // a single core may have a single thread.
        let isWide = costs.width > 1 && costs.width >= costs.cores
        let width = isWide ? node.cores : min(costs.width, node.cores)
        func memory(_ part: ServerDemand) -> Double {
            costs.baseBytes + part.sessions * costs.sessionBytes.value + part.retainedBytes
                + part.retained * (costs.retainedBytes?.value ?? 0)
        }
        func isEnough(_ nodes: Int, _ draw: [Double]) -> (cpu: Bool, memory: Bool) {
            let part = fleet.divided(by: Double(nodes))
            return (
                part.share(draw, width: width) <= 1 - headroom,
                memory(part) + part.sessions * Self.socketBytes <= node.memoryBytes * (1 - headroom)
            )
        }
        func least(_ draw: [Double]) -> Int? {
            var (low, high) = (0, Self.most)
            guard isEnough(high, draw) == (true, true) else { return nil }
            while high - low > 1 {
                let middle = (low + high) / 2
                if isEnough(middle, draw) == (true, true) { high = middle } else { low = middle }
            }
            return high
        }
        guard let first = costs.draws.first, let alive = least(first) else {
            throw Refusal(
                words: "\(Words.count(Self.most)) nodes are not enough: a process without clients leaves no room"
            )
        }
        let part = fleet.divided(by: Double(alive))
        if let words = Self.beyond(part, costs) { throw Refusal(words: words) }
        self.nodes = Estimate(draws: costs.draws.map { Double((least($0) ?? Self.most) + losses) })
        let fewer = alive > 1 ? isEnough(alive - 1, first) : (cpu: true, memory: true)
        let isTighter =
            (memory(part) + part.sessions * Self.socketBytes) / node.memoryBytes > part.share(first, width: width)
        self.bound = !fewer.cpu ? .cpu : !fewer.memory || isTighter ? .memory : .cpu
        if self.bound == .cpu, !isWide, width < node.cores || costs.cores <= 1 { self.bound = .thread }
        self.cores = Estimate(draws: costs.draws.map { part.share($0, width: width) * width })
        self.share = Estimate(draws: costs.draws.map { part.share($0, width: width) })
        self.memoryBytes = Estimate(
            value: memory(part),
            low: memory(part) - part.sessions * (costs.sessionBytes.value - costs.sessionBytes.low),
            high: memory(part) + part.sessions * (costs.sessionBytes.high - costs.sessionBytes.value)
        )
        self.socketBytes = part.sessions * Self.socketBytes
        var connect = ServerDemand()
        connect[.base] = 0
        connect[.connect] = 1
        let all = Double(alive + losses)
        self.recoverySeconds = Estimate(draws: costs.draws.map { fleet.sessions / all * connect.cores($0) / width })
        guard fleet.messages > 0 else { return }
        var quiet = fleet
        for item in [ServerItem.iq, .in0, .in1, .in2, .passed, .out0, .out1, .out2, .byte] { quiet[item] = 0 }
        self.topRate = Estimate(
            draws: costs.draws.map { draw in
                let own = quiet.divided(by: Double(alive)).cores(draw)
                let messages = fleet.cores(draw) - quiet.cores(draw)
                return messages > 0 ? max(0, width - own) / messages * fleet.messagesIn : 0
            }
        )
    }

    /// The words for a demand of which a node would have more than three times what was measured.
    private static func beyond(_ part: ServerDemand, _ costs: ServerCosts) -> String? {
        let pairs: [(name: String, planned: Double, measured: Double)] = [
            ("sessions", part.sessions, costs.sessions), ("messages a second", part.messages, costs.messages),
            ("payload bytes a second", part[.byte], costs.byteRate),
        ]
        return pairs.first { $0.planned > self.reach * $0.measured }.map { name, planned, measured in
            "a node would have \(Words.significant(planned)) \(name), more than three times the "
                + "\(Words.significant(measured)) that were measured; \(Words.significant((planned / self.reach).rounded(.up))) would do"
        }
    }
}
