package import Measurement

/// One second of a running run in one line.
package struct ProgressLine: Hashable, Sendable {
    package struct Level: Hashable, Sendable {
        /// `q1`; in a run with several groups the group's name.
        package var name: String
        /// Per second.
        package var sent: Double
    }

    package var second: Int
    package var phase: String
    /// How long the interval is; the end of a phase cuts a second in two.
    package var seconds: Double
    package var clientsUp: UInt64?
    package var clientsPlanned: Int?
    /// The unit of ``clientsUp``.
    package var unit = "clients"
    /// Sent messages at each QoS, lowest first, or by each group.
    package var levels: [Level]
    /// Per second; absent without subscribers.
    package var received: Double?
    /// Seconds, of the slowest QoS; absent where nothing came in this second.
    package var ackP99: Double?
    package var deliveryP99: Double?
    /// Since the start of the run.
    package var errors: UInt64
    /// Of the decoder benchmark: per second, and the seconds that one packet takes.
    package var decoded: Double?
    package var packetTime: Double?

    /// Reads an interval.
    ///
    /// - Parameters:
    ///   - interval: the latest.
    ///   - clientsPlanned: the planned number of connected clients.
    ///   - errors: all since the start of the run.
    package init(_ interval: TimelineInterval, clientsPlanned: Int?, errors: UInt64) {
        let figures = IntervalFigures(interval)
        self.second = figures.second
        self.phase = figures.phase
        self.seconds = figures.seconds
        self.clientsPlanned = clientsPlanned
        self.clientsUp = figures.clientsUp.map { UInt64(bounded: $0.rounded()) }
        self.levels = figures.rates.compactMap { rates in
            rates.sent.map {
                Level(name: rates.name.group ?? rates.name.stanza ?? "q\(rates.name.qos ?? "?")", sent: $0)
            }
        }
        self.received = figures.total(\.received)
        self.ackP99 = figures.slowest("publish_ack_duration") ?? figures.slowest("iq_duration")
        self.deliveryP99 = figures.slowest("delivery_duration")
        self.errors = errors
        self.packetTime = interval.metrics.first { $0.name == "decode_packet_time" }?.gauge?.value
        if self.packetTime != nil, figures.hasRates {
            self.decoded = interval.metrics.first { $0.name == "decode_packets" }?.counter?.rate
        }
    }

    /// The same for accounts that are made or removed, one connection each: ``clientsUp`` is the number completed.
    package func of(accounts: Double) -> ProgressLine {
        var line = self
        line.unit = "accounts"
        line.clientsUp = UInt64(bounded: accounts.rounded())
        return line
    }

    /// Seconds: timers of a busy host are late by some of the rest.
    private static let shortestWhole = 0.9

    /// The parts by importance, for when the line is too narrow for all.
    private var parts: [String] {
        var parts = ["\(String(self.second &+ 1).paddedLeft(to: 4)) s", self.phase.paddedRight(to: 7)]
        if let up = self.clientsUp {
            parts.append(
                Human.count(up) + (self.clientsPlanned.map { "/\(Human.count(UInt64($0)))" } ?? "") + " \(self.unit)"
            )
        }
        if self.errors > 0 { parts.append(self.errors == 1 ? "1 error" : "\(Human.count(self.errors)) errors") }
        if self.seconds < Self.shortestWhole { parts.append("partial (\(Human.duration(self.seconds)))") }
        if !self.levels.isEmpty {
            parts.append("sent \(Human.rate(self.levels.map(\.sent).reduce(0, +).rounded()))")
        }
        if let ack = self.ackP99 { parts.append("ack p99 \(Human.duration(ack))") }
        if let decoded = self.decoded { parts.append("decoded \(Human.rate(decoded.rounded()))") }
        if let time = self.packetTime { parts.append("\(Human.duration(time)) each") }
        if let received = self.received { parts.append("received \(Human.rate(received.rounded()))") }
        if let delivery = self.deliveryP99 { parts.append("end to end p99 \(Human.duration(delivery))") }
        if self.levels.count > 1 {
            parts.append(self.levels.map { "\($0.name) \(Human.rate($0.sent.rounded()))" }.joined(separator: " "))
        }
        return parts
    }

    /// For a pipe or a file: a complete line.
    package var plain: String { self.parts.joined(separator: "  ") + "\n" }

    /// For a terminal: overwrites the previous line, with as many parts as fit in `width` columns.
    package func inPlace(width: Int) -> String {
        // One column stays free: a full line makes some terminals wrap.
        "\r\(self.fitting(width - 1))\(Self.eraseToEnd)"
    }

    /// As many parts as fit in `width` columns.
    func fitting(_ width: Int) -> String {
        var line = ""
        for part in self.parts {
            let longer = line.isEmpty ? part : "\(line)  \(part)"
            if longer.count > width { break }
            line = longer
        }
        return line
    }

    /// Takes the line away, for what is printed next.
    package static let erase = "\r" + eraseToEnd

    private static let eraseToEnd = "\u{1B}[K"
}
