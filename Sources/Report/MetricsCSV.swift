package import Measurement

/// `metrics.csv` and `timeline.csv`: one metric a row, what is unknown an empty cell.
package enum MetricsCSV {
    package static let columns = [
        "name", "labels", "type", "unit", "value", "rate", "count", "min", "mean", "stddev", "p50", "p90", "p95", "p99",
        "p999", "p9999", "max", "answered", "failed", "outstanding", "bounds",
    ]
    /// So many of them are in the files of `clamor.run/1`.
    static let firstColumns = 17

    package static func text(_ metrics: [Metric]) -> String {
        metrics.reduce(into: CSV.row(self.columns)) { $0 += CSV.row(self.cells($1)) }
    }

    package static let timelineHeader = CSV.row(["second", "phase"] + columns)

    /// Whether a text begins like `timeline.csv`.
    static func isTimeline(_ text: String) -> Bool {
        text.hasPrefix(self.timelineHeader)
            || text.hasPrefix(CSV.row(["second", "phase"] + self.columns.prefix(self.firstColumns)))
    }

    package static func rows(_ interval: TimelineInterval) -> String {
        let front = [String(interval.second), interval.phase]
        return interval.metrics.reduce(into: "") { $0 += CSV.row(front + self.cells($1)) }
    }

    static func cells(_ metric: Metric) -> [String] {
        var cells = [metric.name, metric.labels.description, metric.type, metric.unit ?? ""]
        switch metric.reading {
        case .duration(let reading):
            cells += ["", "", String(reading.count)]
            cells += DurationReading.named.map { Words.plainSeconds(reading[keyPath: $0.field]) }
            cells += [reading.answered, reading.unanswered?.failed ?? 0, reading.unanswered?.outstanding ?? 0].map {
                String($0)
            }
            cells.append(reading.bounds.joined(separator: " "))
        case .counter(let reading):
            cells += [Words.plain(reading.value), reading.rate.map(Words.plain) ?? ""]
            cells += Array(repeating: "", count: 15)
        case .gauge(let reading):
            cells += [Words.plain(reading.value), "", ""]
            cells += [reading.min, reading.mean, nil, reading.median].map { $0.map(Words.plain) ?? "" }
            cells += Array(repeating: "", count: 5)
            cells.append(reading.max.map(Words.plain) ?? "")
            cells += Array(repeating: "", count: 4)
        }
        return cells
    }
}

package struct ClientRow: Hashable, Sendable {
    /// The group of the client, in a run with several.
    package var group: String?
    package var id: String
    /// The QoS it publishes or subscribes at.
    package var qos: Int?
    package var tally: ClientTally
    /// Whether it publishes; else what it sent and had acknowledged is unknown.
    package var publishes: Bool
    /// Whether it publishes at QoS 1 or 2.
    package var acknowledged: Bool
    package var subscribes: Bool
    /// The time base of its rates; `nil` without rates.
    package var seconds: Double?
    /// Its share of `decode_time`; nothing where nothing was timed.
    package var decodeSeconds: Double?

    package init(
        id: String,
        qos: Int?,
        tally: ClientTally,
        publishes: Bool,
        acknowledged: Bool,
        subscribes: Bool,
        seconds: Double?,
        decodeSeconds: Double? = nil
    ) {
        self.id = id
        self.qos = qos
        self.tally = tally
        self.publishes = publishes
        self.acknowledged = acknowledged
        self.subscribes = subscribes
        self.seconds = seconds
        self.decodeSeconds = decodeSeconds
    }
}

package enum ClientsCSV {
    package static let columns = [
        "id", "qos", "connect_seconds", "sent", "acked", "sent_rate", "received", "received_rate", "decode_packets",
        "decode_bytes", "reads", "packets_per_read", "reads_per_packet", "decode_bytes_per_second",
        "longest_ack_seconds",
    ]

    package static func text(_ clients: [ClientRow]) -> String {
        // Two groups may have clients of the same name, at different servers.
        let isGrouped = clients.contains { $0.group != nil }
        let header = CSV.row((isGrouped ? ["group"] : []) + self.columns)
        return clients.reduce(into: header) { text, client in
            text += CSV.row((isGrouped ? [client.group ?? ""] : []) + self.cells(client))
        }
    }

    /// The clients of a whole file; `nil` for one that was cut, or is another.
    static func read(_ text: String) -> [ClientRow]? {
        guard text.utf8.last == 0x0A else { return nil }
        var lines = text.wholeLines.map { CSV.cells(of: $0) ?? [] }
        guard !lines.isEmpty else { return nil }
        let header = lines.removeFirst()
        guard header == self.columns || header == ["group"] + self.columns else { return nil }
        var rows: [ClientRow] = []
        for cells in lines {
            guard cells.count == header.count else { return nil }
            rows.append(ClientRow(Dictionary(zip(header, cells), uniquingKeysWith: { $1 })))
        }
        // All clients of a process have the same time; an idle one does not show it.
        let seconds = rows.lazy.compactMap(\.seconds).first
        for place in rows.indices { rows[place].seconds = rows[place].seconds ?? seconds }
        return rows
    }

    private static func cells(_ client: ClientRow) -> [String] {
        let tally = client.tally
        let sent = client.publishes ? tally.sent : nil
        let received = client.subscribes ? tally.received : nil
        let (bytes, packets, reads) = (Double(tally.bytes), Double(tally.packets), Double(tally.reads))
        func count(_ value: UInt64?) -> String { value.map { String($0) } ?? "" }
        func number(_ value: Double?) -> String { value.map(Words.plain) ?? "" }
        // 0 means "never happened" in a tally.
        func seconds(_ nanoseconds: Int64) -> String {
            nanoseconds > 0 ? Words.plainSeconds(Double(nanoseconds) / 1e9) : ""
        }
        return [
            client.id, client.qos.map { String($0) } ?? "", seconds(tally.connectNanoseconds), count(sent),
            count(client.publishes && client.acknowledged ? tally.acked : nil),
            number(ratio(sent.map { Double($0) }, client.seconds)), count(received),
            number(ratio(received.map { Double($0) }, client.seconds)), count(tally.packets), count(tally.bytes),
            count(tally.reads), number(ratio(packets, reads)), number(ratio(reads, packets)),
            number(ratio(bytes, client.decodeSeconds)), seconds(tally.longestAckNanoseconds),
        ]
    }
}

extension ClientRow {
    /// Reads a client from its cells, by the names of their columns.
    fileprivate init(_ cells: [String: String]) {
        func number(_ name: String) -> Double? { cells[name].flatMap(Double.init) }
        func count(_ name: String) -> UInt64? { cells[name].flatMap { UInt64($0) }.map { min($0, 1 << 53) } }
        func nanoseconds(_ name: String) -> Int64 { number(name).map { Int64(bounded: ($0 * 1e9).rounded()) } ?? 0 }
        /// The time over which a count has that rate.
        func time(_ count: UInt64?, _ rate: String) -> Double? {
            guard let count, count > 0, let rate = number(rate), rate > 0 else { return nil }
            return Double(count) / rate
        }
        let (sent, received) = (count("sent"), count("received"))
        var tally = ClientTally()
        tally.connectNanoseconds = nanoseconds("connect_seconds")
        tally.sent = sent ?? 0
        tally.acked = count("acked") ?? 0
        tally.received = received ?? 0
        tally.bytes = count("decode_bytes") ?? 0
        tally.packets = count("decode_packets") ?? 0
        tally.reads = count("reads") ?? 0
        tally.longestAckNanoseconds = nanoseconds("longest_ack_seconds")
        self.init(
            id: cells["id"] ?? "",
            qos: cells["qos"].flatMap { Int($0) },
            tally: tally,
            publishes: sent != nil,
            acknowledged: count("acked") != nil,
            subscribes: received != nil,
            seconds: time(sent, "sent_rate") ?? time(received, "received_rate"),
            decodeSeconds: time(tally.bytes, "decode_bytes_per_second")
        )
        if let group = cells["group"], !group.isEmpty { self.group = group }
    }
}
