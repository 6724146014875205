package import Measurement

/// Makes metrics and books of the `$SYS` messages that one client receives.
package struct SysValues: Sendable {
    /// The broker's PUBLISH packets, without the packets to this client.
    package struct Count: Hashable, Sendable {
        package var received: Int64?
        package var sent: Int64?

        package init(received: Int64? = nil, sent: Int64? = nil) {
            self.received = received
            self.sent = sent
        }
    }

    private struct Number {
        let topic: SysTopic
        var value: Double
        /// The value of a counter of packets sent, without the packets to this client.
        var others: Int64
        /// The time at which the value was last known to be right.
        var time: Int64
        /// The value of `time` before the interval.
        var since: Int64
        var increase = 0.0
        /// Whether the value came in this interval; a retained value is of an earlier time.
        var isFresh = false
    }

    /// The numbers of a round follow its first message at once.
    private static let roundLength: Int64 = 200_000_000

    private var numbers: [String: Number] = [:]
    private var order: [String] = []
    /// PUBLISH packets that this client received.
    private var own: Int64 = 0
    /// The begin of the round that is under way.
    private var round: Int64?
    /// Whether a round ended in this interval.
    private var hasRound = false
    /// The counts at the end of each round.
    package private(set) var rounds: [Count] = []
    package private(set) var record: ServerRecord?

    package init() {}

    var messages: Int { Int(clamping: self.own) }
    package var isEmpty: Bool { self.numbers.isEmpty }
    package var count: Count { Count(received: self.sum(of: .received), sent: self.sum(of: .sent)) }

    private func sum(of role: SysTopic.Role) -> Int64? {
        // It is not known whether another broker counts the packets of `$SYS`.
        if role == .sent, self.sentIncludesSys == nil { return nil }
        let all = self.numbers.values.filter { $0.topic.role == role }
        return all.isEmpty ? nil : all.reduce(0) { $0 &+ $1.others }
    }

    /// Whether the broker's count of PUBLISH packets sent includes those of `$SYS`; `nil` if that is not known.
    private var sentIncludesSys: Bool? {
        switch self.record?.product {
        case "mosquitto": true
        // EMQX, and the embedded broker.
        case "emqx", "clamor": false
        default: nil
        }
    }

    /// Takes a message.
    ///
    /// - Parameters:
    ///   - topic: begins with `$SYS/`.
    ///   - payload: any bytes.
    ///   - retained: whether it is of a time before the subscription.
    ///   - nanoseconds: monotonic.
    package mutating func take(topic: String, payload: [UInt8], retained: Bool, at nanoseconds: Int64) {
        // A value of packets sent includes the packets to this client before it: a connection keeps the order.
        let before = retained ? 0 : self.own
        self.own += 1
        if let record = ServerIdentity.record(topic: topic, payload: payload) { self.record = record }
        guard topic.hasPrefix("$SYS/") else { return }
        let name = String(topic.dropFirst(5))
        if SysTopic.isClock(name) {
            self.closeRound(at: nanoseconds, now: true)
            if !retained { self.round = nanoseconds }
            return
        }
        guard let topic = SysTopic.of(name), let value = Self.number(payload) else { return }
        let others = Int64(value) - (topic.role == .sent && self.sentIncludesSys == true ? before : 0)
        guard var number = self.numbers[name] else {
            guard self.order.count < PrometheusText.mostKept else { return }
            self.order.append(name)
            self.numbers[name] = Number(
                topic: topic,
                value: value,
                others: others,
                time: nanoseconds,
                since: nanoseconds,
                isFresh: !retained
            )
            return
        }
        // A counter falls only when its broker was started again, and then counts from 0.
        number.increase += value >= number.value ? value - number.value : value
        number.value = value
        number.others = others
        number.time = nanoseconds
        number.isFresh = true
        self.numbers[name] = number
    }

    /// Ends the round whose messages have all come.
    package mutating func closeRound(at nanoseconds: Int64) { self.closeRound(at: nanoseconds, now: false) }

    private mutating func closeRound(at nanoseconds: Int64, now: Bool) {
        guard let began = self.round, now || nanoseconds - began >= Self.roundLength else { return }
        self.round = nil
        self.hasRound = true
        if self.rounds.count == 8 { self.rounds.removeFirst() }
        self.rounds.append(self.count)
        self.roundCount += 1
        // A number without a message in the round has not changed.
        for name in self.order where name.hasPrefix("broker/") {
            if let time = self.numbers[name]?.time, time < began { self.numbers[name]?.time = began }
        }
    }

    package private(set) var roundCount = 0

    /// Ends an interval.
    ///
    /// - Returns: counters that the broker reported in the interval, and the last value of gauges. Counters have no
    ///   rate: they arrive at the broker's interval, which is not that of the time line.
    package mutating func look(at nanoseconds: Int64) -> [Metric] {
        self.closeRound(at: nanoseconds)
        var metrics: [Metric] = []
        for name in self.order {
            guard var number = self.numbers[name] else { continue }
            switch number.topic.kind {
            case .gauge:
                metrics.append(Self.metric(name, number, .gauge(GaugeReading(value: number.value))))
            case .counter:
                let isKnown = number.isFresh || self.hasRound && name.hasPrefix("broker/")
                guard isKnown, number.time > number.since else { continue }
                let reading = CounterReading(value: number.increase, rate: nil)
                metrics.append(Self.metric(name, number, .counter(reading)))
            }
            number.increase = 0
            number.since = number.time
            number.isFresh = false
            self.numbers[name] = number
        }
        self.hasRound = false
        return metrics
    }

    private static func metric(_ name: String, _ number: Number, _ reading: Metric.Reading) -> Metric {
        let labels: Labels = ["topic": LabelText.safe(name)]
        return Metric(name: MetricDefinition.serverSys.name, labels: labels, unit: number.topic.unit, reading: reading)
    }

    /// A whole number that a counter of 2^53 can hold.
    private static func number(_ payload: [UInt8]) -> Double? {
        guard payload.count <= 20, let value = UInt64(String(decoding: payload, as: UTF8.self)), value < 1 << 53 else {
            return nil
        }
        return Double(value)
    }
}

/// The broker's own count of PUBLISH packets over a run, without the packets to the client that watches.
///
/// There are books of mosquitto and of the embedded broker. EMQX publishes `$SYS` once a minute, not retained. So no
/// update of EMQX marks the begin of a run, and two more would take two minutes at its end.
package struct SysBooks: Hashable, Sendable {
    /// Messages from clients to the broker.
    package var received: UInt64?
    /// Messages from the broker to clients.
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
    package static func exist(for server: ServerRecord?) -> Bool { ["mosquitto", "clamor"].contains(server?.product) }

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
