import Measurement

/// Work of a server that has a cost of its own, by the words of a report.
package enum ServerItem: String, CaseIterable, Sendable {
    case connect
    case session = "idle session, a second"
    case ping
    /// That the server itself answers.
    case iq = "IQ request"
    /// With its acknowledgements; in XMPP a stanza and its delivery.
    case in0 = "message in, QoS 0"
    case in1 = "message in, QoS 1"
    case in2 = "message in, QoS 2"
    /// Receivers wake up, all at once.
    case passed = "message to any receiver"
    case out0 = "delivery, QoS 0"
    case out1 = "delivery, QoS 1"
    case out2 = "delivery, QoS 2"
    case byte = "byte of payload"
    case base = "process, a second"
    /// Of a loop that sleeps.
    case wakeup = "wake-up"

    /// How often it makes a sleeping loop look at its sockets.
    fileprivate var events: Double {
        switch self {
        case .connect: 3
        case .ping, .iq, .in0, .in1, .out1: 1
        case .in2, .out2: 2
        case .session, .passed, .out0, .byte, .base, .wakeup: 0
        }
    }

    fileprivate var place: Int { Self.allCases.firstIndex(of: self) ?? 0 }
}

/// The demand of clients on a server: sessions and retained messages, and work per second.
package struct ServerDemand: Codable, Hashable, Sendable {
    package var sessions = 0.0
    package var retained = 0.0
    package var retainedBytes = 0.0
    private var rates = Array(repeating: 0.0, count: ServerItem.allCases.count)

    package init() { self[.base] = 1 }

    /// Per second; of a session the number, of a process without clients 1.
    package subscript(item: ServerItem) -> Double {
        get { self.rates[item.place] }
        set { self.rates[item.place] = newValue }
    }

    package mutating func add(_ group: GroupWork) {
        let clients = Double(group.clients)
        self.sessions += clients
        self[.session] += clients
        let sends = group.flows.reduce(0) { $0 + $1.peak }
        if let seconds = group.keepAlive, sends * seconds < clients { self[.ping] += clients / seconds }
        for flow in group.flows {
            let qos = group.speech == .xmpp ? 0 : Int(flow.qos)
            let (incoming, outgoing) = ([ServerItem.in0, .in1, .in2], [ServerItem.out0, .out1, .out2])
            if flow.isPing {
                self[.iq] += flow.peak
                continue
            }
            self[incoming[qos]] += flow.peak
            if group.speech == .mqtt, flow.deliveries > 0 {
                self[.passed] += flow.peak
                self[outgoing[Int(flow.deliveredQoS)]] += flow.peak * flow.deliveries
            }
            self[.byte] += flow.peak * (1 + flow.deliveries) * flow.size
            if flow.retained > 0 {
                self.retained += flow.retained
                self.retainedBytes += flow.retained * flow.size
            }
        }
    }

    /// One of so many nodes that share it.
    func divided(by nodes: Double) -> ServerDemand {
        var part = self
        part.sessions /= nodes
        part.retained /= nodes
        part.retainedBytes /= nodes
        part.rates = self.rates.map { $0 / nodes }
        part[.base] = self[.base]
        return part
    }

    /// Of XMPP the requests too.
    package var messagesIn: Double { self[.iq] + self[.in0] + self[.in1] + self[.in2] }
    package var messages: Double { self.messagesIn + self[.out0] + self[.out1] + self[.out2] }
    fileprivate var events: Double { ServerItem.allCases.reduce(0) { $0 + self[$1] * $1.events } }

    /// The cores that the work takes where the loops are busy to that share.
    func cores(_ costs: [Double], share: Double = 1) -> Double {
        zip(self.factors(share), costs).reduce(0) { $0 + $1.0 * $1.1 }
    }

    /// The share of each of `width` loops; above 1: they cannot do it.
    func share(_ costs: [Double], width: Double) -> Double {
        let most = self.cores(costs) / width
        guard most < 1 else { return most }
        // The busier the loops are, the less the work costs.
        var (low, high) = (0.0, 1.0)
        for _ in 0..<50 {
            let middle = (low + high) / 2
            if self.cores(costs, share: middle) > middle * width { low = middle } else { high = middle }
        }
        return high
    }

    /// The factors of the costs where the loops were busy to that share.
    ///
    /// The exponent is a choice: 1, 2 and 3 predicted twenty loads of mosquitto about alike, with errors of 13, 12 and
    /// 11 %. It was not fitted to another server.
    fileprivate func factors(_ share: Double) -> [Double] {
        let asleep = max(0, 1 - share) * max(0, 1 - share)
        var factors = self.rates
        factors[ServerItem.wakeup.place] = self.events * asleep
        factors[ServerItem.passed.place] *= asleep
        return factors
    }
}

/// A value with its interval of 95 %.
package struct Estimate: Codable, Hashable, Sendable {
    package var value: Double
    package var low: Double
    package var high: Double

    package init(value: Double, low: Double, high: Double) { (self.value, self.low, self.high) = (value, low, high) }

    /// A value that another measurement would find within such a part of it.
    package init(_ value: Double, within part: Double) {
        self.init(value: value, low: value * (1 - part), high: value * (1 + part))
    }

    /// The first of the draws is the value itself.
    package init(draws: [Double]) {
        let sorted = draws.sorted()
        let last = Double(sorted.count - 1)
        let value = draws.first ?? .nan
        self.init(
            value: value,
            low: min(value, sorted[Int(0.025 * last)]),
            high: max(value, sorted[Int((0.975 * last).rounded(.up))])
        )
    }
}

/// A run of known work, and what the server used for it.
package struct CostSample: Sendable {
    package var demand: ServerDemand
    /// Cores in each second.
    package var cores: [Double]

    package init(_ demand: ServerDemand, cores: [Double]) { (self.demand, self.cores) = (demand, cores) }

    package var mean: Double { self.cores.reduce(0, +) / Double(max(1, self.cores.count)) }
}

/// The costs of a server per connect, session, message and byte, from designed runs on one node.
///
/// A server is taken to be loops that sleep when there is nothing to do: with costs c of the work and w of a wake-up,
/// the cores used are Σ rate × c + events × w × (1 − share of a loop)². The runs are equations in c and w, solved by
/// least squares of relative errors without negative costs. What the equations leave over is the noise: intervals are
/// from runs drawn again with it, and from a server that is as a whole dearer or cheaper by it.
package struct ServerCosts: Codable, Hashable, Sendable {
    package static let schema = "clamor.costs/2"
    /// Two runs of one server on one host differ by so much at least.
    private static let leastNoise = 0.05
    private static let draws = 100

    package var schema = Self.schema
    package var isXMPP: Bool
    package var hasTLS: Bool
    /// Product and version; `nil` if the server did not tell.
    package var server: String?
    package var measuredAt: String
    /// Loops that shared the work, and the cores that the server may use.
    package var width: Double
    package var cores: Double
    /// CPU-seconds, in the order of ``ServerItem``; the first draw is the estimate.
    package private(set) var draws: [[Double]]
    /// The standard deviation of runs about what the costs say of them, as a part.
    package private(set) var noise: Double
    /// Resident bytes without clients, per session, and per retained message beside its payload.
    package var baseBytes: Double
    package var sessionBytes: Estimate
    package var retainedBytes: Estimate?
    /// The largest of what was measured.
    package var sessions: Double
    package var messages: Double
    package var byteRate: Double

    package init(
        _ samples: [CostSample],
        isXMPP: Bool,
        hasTLS: Bool,
        measuredAt: String,
        width: Double,
        cores: Double,
        baseBytes: Double,
        sessionBytes: Estimate
    ) {
        (self.isXMPP, self.hasTLS, self.measuredAt) = (isXMPP, hasTLS, measuredAt)
        (self.width, self.cores, self.baseBytes, self.sessionBytes) = (width, cores, baseBytes, sessionBytes)
        self.sessions = samples.map(\.demand.sessions).max() ?? 0
        self.messages = samples.map(\.demand.messages).max() ?? 0
        self.byteRate = samples.map(\.demand[.byte]).max() ?? 0
        func solved(_ samples: [CostSample]) -> (values: [Double], errors: [Double]) {
            LeastSquares.solve(samples.map { ($0.demand.factors($0.mean / width), $0.mean) })
        }
        let first = solved(samples)
        let free = first.errors.count - first.values.count { $0 > 0 }
        let noise = max(Self.leastNoise, (first.errors.reduce(0) { $0 + $1 * $1 } / Double(max(1, free))).squareRoot())
        var dice = SplitMix64(seed: 1)
        self.noise = noise
        self.draws =
            [first.values]
            + (1..<Self.draws).map { _ in
                let drawn = samples.map { CostSample($0.demand, cores: [$0.drawn(noise: noise, &dice)]) }
                let factor = dice.factor(noise: noise)
                return solved(drawn).values.map { $0 * factor }
            }
    }

    package subscript(item: ServerItem) -> Estimate { Estimate(draws: self.draws.map { $0[item.place] }) }

    /// Whether its numbers can be those of a measurement.
    package var isSound: Bool {
        let count = ServerItem.allCases.count
        let bytes = [self.sessionBytes, self.retainedBytes].compactMap(\.self).flatMap { [$0.value, $0.low, $0.high] }
        let figures =
            self.draws.joined() + bytes
            + [self.noise, self.width, self.cores, self.baseBytes, self.sessions, self.messages, self.byteRate]
        return self.schema == Self.schema && self.draws.count == Self.draws && self.width > 0
            && self.draws.allSatisfy { $0.count == count } && figures.allSatisfy { (0...1e15).contains($0) }
    }
}

extension CostSample {
    /// The mean of seconds drawn again, as another run might have it.
    fileprivate func drawn(noise: Double, _ dice: inout SplitMix64) -> Double {
        let mean = self.cores.indices.reduce(0) { sum, _ in
            sum + self.cores[Int.random(in: self.cores.indices, using: &dice)]
        }
        return mean / Double(max(1, self.cores.count)) * dice.factor(noise: noise)
    }
}

extension SplitMix64 {
    fileprivate mutating func factor(noise: Double) -> Double {
        // Twelve uniform numbers make a normal one.
        max(0, 1 + noise * (0..<12).reduce(-6.0) { sum, _ in sum + Double.random(in: 0..<1, using: &self) })
    }
}

/// Least squares of relative errors with unknowns that are not negative, by one unknown after the other.
enum LeastSquares {
    private static let sweeps = 3_000

    /// The unknowns, and by equation with cores what is left over, as a part of those.
    static func solve(_ equations: [(factors: [Double], cores: Double)]) -> (values: [Double], errors: [Double]) {
        let count = equations.first?.factors.count ?? 0
        let rows = equations.filter { $0.cores > 0 }.map { row in row.factors.map { $0 / row.cores } }
        let squares = (0..<count).map { place in rows.reduce(0) { $0 + $1[place] * $1[place] } }
        var values = Array(repeating: 0.0, count: count)
        var errors = rows.map { _ in 1.0 }
        for _ in 0..<Self.sweeps {
            for place in 0..<count where squares[place] > 0 {
                let slope = zip(rows, errors).reduce(0) { $0 + $1.0[place] * $1.1 }
                let value = max(0, values[place] + slope / squares[place])
                let change = value - values[place]
                values[place] = value
                for row in rows.indices { errors[row] -= rows[row][place] * change }
            }
        }
        return (values, errors)
    }
}
