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
    /// The times of the slowest QoS; absent where nothing came in this second.
    package var ack: DurationReading?
    package var delivery: DurationReading?
    /// Since the start of the run.
    package var errors: UInt64
    /// The decoder benchmark: packets per second, and the seconds that one packet takes.
    package var decoded: Double?
    package var packetTime: Double?
    /// Whether it is long enough for rates, and not the rest of a second behind the end of a phase.
    private let hasRates: Bool

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
        self.hasRates = figures.hasRates
        self.clientsPlanned = clientsPlanned
        self.clientsUp = figures.clientsUp.map { UInt64(bounded: $0.rounded()) }
        self.levels = figures.rates.compactMap { rates in
            rates.sent.map {
                Level(name: rates.name.group ?? rates.name.stanza ?? "q\(rates.name.qos ?? "?")", sent: $0)
            }
        }
        self.received = figures.total(\.received)
        self.ack = figures.slowest(.publishAck) ?? figures.slowest(.iq)
        self.delivery = figures.slowest(.delivery)
        self.errors = errors
        self.packetTime = interval.metrics.first { $0.isOf(.decodePacketTime) }?.gauge?.value
        if self.packetTime != nil, figures.hasRates {
            self.decoded = interval.metrics.first { $0.isOf(.decodePackets) }?.counter?.rate
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
                Words.count(up) + (self.clientsPlanned.map { "/\(Words.count(UInt64($0)))" } ?? "") + " \(self.unit)"
            )
        }
        if self.errors > 0 { parts.append(self.errors == 1 ? "1 error" : "\(Words.count(self.errors)) errors") }
        if self.seconds < Self.shortestWhole { parts.append("over \(Words.duration(self.seconds))") }
        if !self.levels.isEmpty { parts.append("sent \(Words.rate(self.levels.map(\.sent).reduce(0, +).rounded()))") }
        if let ack = self.ack { parts.append("ack p99 \(Cell.duration(ack, \.p99))") }
        if let decoded = self.decoded { parts.append("decoded \(Words.rate(decoded.rounded()))") }
        if let time = self.packetTime { parts.append("\(Words.duration(time)) each") }
        if let received = self.received { parts.append("received \(Words.rate(received.rounded()))") }
        if let delivery = self.delivery { parts.append("end to end p99 \(Cell.duration(delivery, \.p99))") }
        if self.levels.count > 1 {
            parts.append(self.levels.map { "\($0.name) \(Words.rate($0.sent.rounded()))" }.joined(separator: " "))
        }
        return parts
    }

    /// For a pipe or a file: a complete line; empty for a moment of a load, which has no rate and nothing to tell.
    package var plain: String {
        let tells = self.hasRates || self.unit != "clients" || self.packetTime != nil
        return tells ? self.parts.joined(separator: "  ") + "\n" : ""
    }

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

extension String {
    func paddedLeft(to width: Int) -> String { String(repeating: " ", count: max(0, width - self.count)) + self }

    package func paddedRight(to width: Int) -> String {
        self + String(repeating: " ", count: max(0, width - self.count))
    }
}
