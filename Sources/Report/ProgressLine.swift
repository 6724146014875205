package import Measurement

/// One second of a run in one line, while it goes on.
package struct ProgressLine: Hashable, Sendable {
    package struct Level: Hashable, Sendable {
        package var qos: String
        /// Per second.
        package var sent: Double
    }

    package var second: Int
    package var phase: String
    package var clientsUp: UInt64?
    package var clientsPlanned: Int?
    /// What was sent at each QoS, lowest first.
    package var levels: [Level]
    /// Per second; absent where nobody subscribes.
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
    ///   - clientsPlanned: how many the run wants up.
    ///   - errors: all since the start of the run.
    package init(_ interval: TimelineInterval, clientsPlanned: Int?, errors: UInt64) {
        func metrics(_ name: String) -> [Metric] { interval.metrics.filter { $0.name == name } }
        func slowest(_ name: String) -> Double? {
            metrics(name).filter { $0.labels["leg"] != "pubrec" }.compactMap(\.duration?.p99).max()
        }
        self.second = interval.second
        self.phase = interval.phase
        self.clientsPlanned = clientsPlanned
        self.clientsUp = metrics("clients").first { $0.labels["state"] ?? "connected" == "connected" }?
            .gauge.map { UInt64(max(0, $0.value)) }
        self.levels = metrics("publish_sent").sorted { $0.labels < $1.labels }.compactMap { metric in
            guard let rate = metric.counter?.rate else { return nil }
            return Level(qos: metric.labels["qos"] ?? "?", sent: rate)
        }
        self.received = metrics("received").compactMap(\.counter).sum { $0.rate }
        self.ackP99 = slowest("publish_ack_duration")
        self.deliveryP99 = slowest("delivery_duration")
        self.errors = errors
        self.packetTime = metrics("decode_packet_time").first?.gauge?.value
        if self.packetTime != nil { self.decoded = metrics("decode_packets").first?.counter?.rate }
    }

    /// The parts in the order in which they are wanted where there is no room for all.
    private var parts: [String] {
        var parts = ["\(String(self.second + 1).paddedLeft(to: 4)) s", self.phase.paddedRight(to: 7)]
        if let up = self.clientsUp {
            parts.append(
                Human.count(up) + (self.clientsPlanned.map { "/\(Human.count(UInt64($0)))" } ?? "") + " clients"
            )
        }
        if self.errors > 0 { parts.append(self.errors == 1 ? "1 error" : "\(Human.count(self.errors)) errors") }
        if !self.levels.isEmpty {
            parts.append("sent \(Human.rate(self.levels.map(\.sent).reduce(0, +).rounded()))")
        }
        if let ack = self.ackP99 { parts.append("ack p99 \(Human.duration(ack))") }
        if let decoded = self.decoded { parts.append("decoded \(Human.rate(decoded.rounded()))") }
        if let time = self.packetTime { parts.append("\(Human.duration(time)) each") }
        if let received = self.received { parts.append("received \(Human.rate(received.rounded()))") }
        if let delivery = self.deliveryP99 { parts.append("end to end p99 \(Human.duration(delivery))") }
        if self.levels.count > 1 {
            parts.append(self.levels.map { "q\($0.qos) \(Human.rate($0.sent.rounded()))" }.joined(separator: " "))
        }
        return parts
    }

    /// For a pipe or a file: a line of its own, all of it.
    package var plain: String { self.parts.joined(separator: "  ") + "\n" }

    /// For a terminal: in the place of the line before, as many parts as fit in `width` columns.
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
