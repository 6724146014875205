import Measurement
import Pages
import Report
import Testing

/// One run as a page gets it.
struct Fixture: Sendable {
    var name: String
    var record: RunRecord
    var timeline: Timeline
    /// The text of `latency.hlog`.
    var log: String

    /// The record of a run that has begun, with its time line.
    init(_ name: String, _ run: FixtureRun? = nil, command: [String] = ["clamor", "pubsub"]) {
        self.name = name
        var host = HostFacts()
        (host.cpuModel, host.cores, host.kernel) = ("Example CPU", 4, "Linux 6.12.0")
        (host.machine, host.operatingSystem, host.memoryBytes) = ("x86_64", "Debian GNU/Linux 13", 16_000_000_000)
        self.record = RunRecord(
            command: command,
            tool: ToolRecord(name: "clamor", version: "0.1.0"),
            host: host,
            plan: ["clients": 100, "duration_seconds": 60, "qos": [1], "targets": ["mqtt://broker.example:1883"]],
            startedAt: "2026-11-21T01:37:09.123Z"
        )
        self.timeline = run?.timeline ?? Timeline()
        self.log = run?.log ?? ""
        guard let run else { return }
        self.record.durationSeconds = Double(run.seconds + 1) + FixtureRun.drainSeconds
        self.record.stages = run.stages
        self.record.metrics = run.metrics
        self.record.books = run.books
        self.record.verdict = .valid
        self.record.plan["clients"] = .integer(Int64(run.clients))
        self.record.plan["duration_seconds"] = .integer(Int64(run.seconds))
        self.record.generator.eventLoops = run.loops
        self.record.generator.cpuSeconds = 0.2 * Double(run.seconds * run.loops)
        self.record.generator.loopCPUShares = [Double](repeating: 0.2 / run.sentShare, count: run.loops)
        self.record.generator.peakMemoryBytes = 56_000_000
        self.record.generator.hostSteal = 0.001
        self.record.ledger = LedgerRecord(on: true)
        self.record.ledger.publishers = run.clients
        self.record.ledger.subscriptions = run.clients
        self.record.ledger.lost = [:]
        self.record.clients = ["publishers": Self.spread(of: run.clients)]
    }

    static func spread(of count: Int, prefix: String = "client-") -> ClientGroup {
        let tallies = (0..<count).map { client in
            var tally = ClientTally()
            tally.connectNanoseconds = 900_000 + Int64(client) * 3000
            (tally.sent, tally.acked) = (600 + UInt64(client % 7), 600 + UInt64(client % 7))
            (tally.bytes, tally.packets, tally.reads) = (2400, 601, 590)
            tally.longestAckNanoseconds = 5_000_000 + Int64(client % 13) * 700_000
            return tally
        }
        return ClientGroup(tallies, publishes: true, acknowledged: true, subscribes: false) { "\(prefix)\($0)" }
    }

    mutating func addSlowest(_ count: Int, around second: Double, of names: [String]) {
        self.record.slowest = (0..<count).map { rank in
            let seconds = 1.02 - Double(rank) * 0.004
            var message = SlowMessage(
                metric: rank % 2 == 0 ? "delivery_duration" : "publish_ack_duration",
                seconds: seconds,
                due: second + 0.01 * Double(rank % 10),
                client: names[rank % names.count]
            )
            message.written = message.due + 0.0001
            (message.qos, message.loopLag) = (1, 0.0002)
            if rank % 2 == 0 {
                message.received = message.due + seconds
                message.receiver = "subscriber-\(rank)"
            } else {
                message.acknowledged = message.due + seconds
            }
            return message
        }
    }
}

extension Fixture {
    /// The page of the run.
    func html() throws -> String {
        let latencies = self.log.isEmpty ? nil : LatencyMap(text: self.log, metrics: RunPage.latencyMetrics)
        return try RunPage(self.record, timeline: self.timeline, latencies: latencies).text()
    }

    /// Texts that the page has to show: what came of the messages, and the p99 of what has samples enough for one.
    var figures: [String] {
        let counts = self.record.books.flatMap { [$0.offered, $0.acked, $0.received, $0.lost] }
        let latencies: Set = ["publish_ack_duration", "delivery_duration", "iq_duration"]
        let p99s = self.record.metrics.filter { latencies.contains($0.name) }.compactMap(\.duration)
            .filter { $0.count >= 1000 }.map { Words.duration($0.p99) }
        return counts.compactMap { $0 }.filter { $0 > 0 }.map(Words.count) + p99s
    }
}

extension Fixture: CustomTestStringConvertible {
    var testDescription: String { self.name }
}
