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
        var interval = interval
        // A few events in a moment make any rate.
        if interval.seconds < Self.shortestRated { interval.metrics.removeAll { $0.counter != nil } }
        func metrics(_ name: String) -> [Metric] { interval.metrics.filter { $0.name == name } }
        func slowest(_ name: String) -> Double? {
            metrics(name).filter { $0.labels["leg"] != "pubrec" }.compactMap(\.duration?.p99).max()
        }
        self.second = interval.second
        self.phase = interval.phase
        self.seconds = interval.seconds
        self.clientsPlanned = clientsPlanned
        let up = metrics("clients").filter { $0.labels["state"] ?? "connected" == "connected" }.compactMap(\.gauge)
        self.clientsUp = up.isEmpty ? nil : UInt64(up.reduce(0) { $0 + max(0, $1.value) })
        self.levels = Self.levels((metrics("publish_sent") + metrics("stanza_sent")).sorted { $0.labels < $1.labels })
        // Of XMPP clients, only what they send each other.
        let written = metrics("stanza_offered").map { ($0.labels["group"], $0.labels["stanza"]) }
        self.received = metrics("received")
            .filter { metric in
                guard let stanza = metric.labels["stanza"] else { return true }
                return stanza != "iq" && written.contains { $0 == (metric.labels["group"], stanza) }
            }
            .filter { $0.labels["from"] != "other" }
            .compactMap(\.counter).sum { $0.rate }
        self.ackP99 = slowest("publish_ack_duration") ?? slowest("iq_duration")
        self.deliveryP99 = slowest("delivery_duration")
        self.errors = errors
        self.packetTime = metrics("decode_packet_time").first?.gauge?.value
        if self.packetTime != nil { self.decoded = metrics("decode_packets").first?.counter?.rate }
    }

    /// The same for accounts that are made or removed, one connection each: ``clientsUp`` is the number completed.
    package func of(accounts: Double) -> ProgressLine {
        var line = self
        line.unit = "accounts"
        line.clientsUp = UInt64(max(0, accounts))
        return line
    }

    private static func levels(_ sent: [Metric]) -> [Level] {
        sent.reduce(into: []) { levels, metric in
            guard let rate = metric.counter?.rate else { return }
            let group = metric.labels["group"]
            let name = group ?? "q\(metric.labels["qos"] ?? "?")"
            // The levels of a group are added up.
            if group != nil, let place = levels.firstIndex(where: { $0.name == name }) {
                levels[place].sent += rate
            } else {
                levels.append(Level(name: name, sent: rate))
            }
        }
    }

    /// Seconds: a rate over less is noise.
    private static let shortestRated = 0.1
    /// Seconds: timers of a busy host are late by some of the rest.
    private static let shortestWhole = 0.9

    /// The parts by importance, for when the line is too narrow for all.
    private var parts: [String] {
        var parts = ["\(String(self.second + 1).paddedLeft(to: 4)) s", self.phase.paddedRight(to: 7)]
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
        var line = ""
        for part in self.parts {
            let longer = line.isEmpty ? part : "\(line)  \(part)"
            // One column stays free: a full line makes some terminals wrap.
            if longer.count >= width { break }
            line = longer
        }
        return "\r\(line)\(Self.eraseToEnd)"
    }

    /// Takes the line away, for what is printed next.
    package static let erase = "\r" + eraseToEnd

    private static let eraseToEnd = "\u{1B}[K"
}
