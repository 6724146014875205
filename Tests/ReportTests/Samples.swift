import Foundation
import Measurement

/// Records as runs of three kinds leave them, small enough to be checked by eye.
enum Samples {
    /// 2026-11-21T01:37:09.123Z.
    static let startedAt: Int64 = 1_795_225_029_123_000_000

    /// The values from 1 to `count` steps of `step` nanoseconds, so that percentiles can be read off.
    static func ramp(_ count: Int64, step: Int64) -> Histogram {
        var histogram = Histogram()
        for number in 1...count { histogram.record(number * step) }
        return histogram
    }

    static func duration(_ name: String, _ labels: Labels = [:], _ histogram: Histogram) -> Metric? {
        DurationReading(histogram, encoded: histogram.encodedV2()).map {
            Metric(duration: name, labels: labels, reading: $0)
        }
    }

    static func counter(
        _ name: String,
        _ labels: Labels = [:],
        _ value: Double,
        rate: Double? = nil,
        unit: String? = nil
    ) -> Metric {
        Metric(name: name, labels: labels, unit: unit, reading: .counter(CounterReading(value: value, rate: rate)))
    }

    /// A lane as the accumulator makes them, for a histogram of one value.
    static func lane(
        _ name: String,
        _ labels: Labels,
        measured: Bool = true,
        max: Double,
        _ encoded: String
    ) -> TimelineInterval.Lane {
        struct Form: Encodable {
            var name: String
            var labels: Labels
            var measured: Bool
            var count = 1
            var max: Double
            var histogram: String
        }
        let form = Form(name: name, labels: labels, measured: measured, max: max, histogram: encoded)
        do {
            return try JSONDecoder().decode(TimelineInterval.Lane.self, from: JSONEncoder().encode(form))
        } catch {
            fatalError("a lane is an object with these fields: \(error)")
        }
    }

    static func begun(_ command: [String]) -> RunRecord {
        var host = HostFacts()
        host.cpuModel = "Example CPU"
        host.cores = 2
        return RunRecord(
            command: command,
            tool: ToolRecord(name: "clamor", version: "0.1.0"),
            host: host,
            plan: ["clients": 1000, "qos": [0, 1, 2]],
            startedAt: WallClock.rfc3339(self.startedAt)
        )
    }
}

extension Samples {
    private static let levels: [(qos: UInt64, legs: [String])] = [
        (0, []), (1, ["puback"]), (2, ["pubrec", "pubcomp"]),
    ]

    /// Pairs at QoS 0, 1 and 2 in equal parts: all well.
    static var pubsub: RunRecord {
        var record = self.begun(["/usr/bin/clamor", "pubsub", "-c", "1000", "-q", "0,1,2", "--rate", "12000/s"])
        record.durationSeconds = 12.345
        record.stages = [
            StageRecord(name: "connect", start: 0, durationSeconds: 2.1, measured: false),
            StageRecord(name: "measure", start: 2.1, durationSeconds: 10, measured: true),
            StageRecord(name: "drain", start: 12.1, durationSeconds: 0.245, measured: false),
        ]
        record.verdict = .valid
        record.metrics = self.connects(2000) + self.publishes + self.deliveries + self.bytes
        record.metrics += [self.duration("schedule_lag", [:], self.ramp(1000, step: 900))].compactMap(\.self)
        record.thresholds = [
            ThresholdResult(expression: "connect_duration p99 < 250ms", ok: true, value: 0.024_752),
            ThresholdResult(expression: "delivery_lost count == 0", ok: true, value: 0),
        ]
        record.books = self.levels.map { self.balanced($0.qos) }
        record.clients = [
            "publishers": self.group(publishes: true, even: true),
            "subscribers": self.group(publishes: false, even: true),
        ]
        record.generator.eventLoops = 1
        record.generator.cpuSeconds = 6.2
        record.generator.loopCPUShares = [0.487]
        record.generator.peakMemoryBytes = 48_300_000
        record.generator.hostSteal = 0.002
        record.ledger = LedgerRecord(on: true)
        return record
    }

    /// The broker was killed in the middle of it.
    static var aborted: RunRecord {
        var record = self.begun(["clamor", "pub", "-c", "3", "-q", "1"])
        record.durationSeconds = 4.5
        record.stages = [StageRecord(name: "measure", start: 0, durationSeconds: 4.5, measured: true)]
        var verdict = Verdict()
        verdict.add(
            .aborted,
            Verdict.Reason(
                code: "connections-lost",
                text: "all 3 connections were lost after 4.50 s and none came back within the 10 s that a run waits "
                    + "for one of them",
                measured: 3,
                limit: 0
            )
        )
        record.verdict = verdict
        record.metrics = self.connects(3)
        record.metrics += [
            self.counter("publish_offered", ["qos": "1"], 1200, rate: 266.7),
            self.counter("publish_sent", ["qos": "1"], 1190, rate: 264.4),
            self.counter("publish_not_sent", ["qos": "1"], 10),
            self.counter("publish_acked", ["qos": "1"], 1100, rate: 244.4),
            self.counter("disconnects", ["reason": "reset"], 3),
        ]
        record.thresholds = [
            ThresholdResult(expression: "publish_ack_duration p99 < 1ms", ok: false, value: nil),
            ThresholdResult(expression: "error_rate < 0.1%", ok: false, value: 0.0025),
        ]
        var books = Books(qos: 1)
        (books.offered, books.sent, books.notSent) = (1200, 1190, 10)
        (books.acked, books.inFlight, books.timedOut, books.failed) = (1100, 0, 0, 80)
        record.books = [books]
        record.clients = ["publishers": self.group(publishes: true, even: false)]
        record.errors = [
            ErrorRecord(
                kind: "refused",
                count: 2,
                firstAt: "2026-11-21T01:37:14.000123Z",
                example: "connect to 127.0.0.1:1883: Connection refused"
            ),
            ErrorRecord(
                kind: "reset",
                count: 1234,
                firstAt: "2026-11-21T01:37:13.623456Z",
                example: "read from 127.0.0.1:1883 as client clamor-0000000000000001: Connection reset by peer, "
                    + "with 16 in flight"
            ),
        ]
        record.ledger = LedgerRecord(on: false, reason: "payloads of 16 bytes have no room for the header of 32")
        return record
    }

    /// The broker answered, and too late for one threshold of two.
    static var failed: RunRecord {
        var record = self.pubsub
        record.thresholds[0] = ThresholdResult(expression: "connect_duration p99 < 20ms", ok: false, value: 0.024_752)
        return record
    }

    /// No server listened.
    static var unconnected: RunRecord {
        var record = self.begun(["clamor", "pub", "-c", "3", "-q", "1"])
        record.durationSeconds = 0.012
        record.stages = [StageRecord(name: "connect", start: 0, durationSeconds: 0.012, measured: false)]
        var verdict = Verdict()
        verdict.add(.aborted, Verdict.Reason(code: "no-connection", text: "every connect attempt failed"))
        record.verdict = verdict
        let zeros = ["publish_offered", "publish_sent", "publish_not_sent", "publish_acked"]
        record.metrics = zeros.map { self.counter($0, ["qos": "1"], 0) }
        record.metrics += [self.duration("connect_lag", [:], self.ramp(3, step: 1000))].compactMap(\.self)
        record.thresholds = [ThresholdResult(expression: "publish_ack_duration p99 < 1ms", ok: false, value: nil)]
        var books = Books(qos: 1)
        (books.offered, books.sent, books.notSent) = (0, 0, 0)
        (books.acked, books.inFlight, books.timedOut, books.failed) = (0, 0, 0, 0)
        record.books = [books]
        record.clients = ["publishers": self.group(publishes: true, even: false)]
        record.errors = [
            ErrorRecord(
                kind: "refused",
                count: 3,
                firstAt: "2026-11-21T01:37:09.125123Z",
                example: "127.0.0.1:1883 refused the connection"
            )
        ]
        record.generator.eventLoops = 1
        return record
    }

    /// Connections alone.
    static var conn: RunRecord {
        var record = self.begun(["clamor", "conn", "-c", "5000", "-R", "1000000"])
        record.durationSeconds = 5
        var verdict = Verdict()
        verdict.add(
            .generatorLimited,
            Verdict.Reason(
                code: "connect-rate",
                text: "connects were begun at 18,200/s, under 95 % of the 1,000,000/s asked for",
                measured: 18200,
                limit: 950_000
            )
        )
        record.verdict = verdict
        record.metrics = self.connects(5000)
        record.metrics += [self.duration("connect_lag", [:], self.ramp(5000, step: 50_000))].compactMap(\.self)
        let tallies = (0..<5000).map { number in
            var tally = ClientTally()
            tally.connectNanoseconds = Int64(number + 1) * 25_000
            return tally
        }
        let group = ClientGroup(tallies, publishes: false, acknowledged: false, subscribes: false) {
            "clamor-\($0 + 1)"
        }
        record.clients = ["clients": group]
        record.generator.eventLoops = 2
        record.generator.loopCPUShares = [0.91, 0.93]
        return record
    }
}

extension Samples {
    private static func connects(_ count: Int64) -> [Metric] {
        [("tcp", 5000), ("session", 20_000), ("total", 25_000)].compactMap { phase, step in
            self.duration("connect_duration", ["phase": phase], self.ramp(count, step: step))
        }
    }

    private static var publishes: [Metric] {
        var metrics: [Metric?] = []
        for (qos, legs) in self.levels {
            let labels: Labels = ["qos": String(qos)]
            metrics += [
                self.counter("publish_offered", labels, 40_000, rate: 4000),
                self.counter("publish_sent", labels, 40_000, rate: 4000),
                self.counter("publish_not_sent", labels, 0),
                qos == 0 ? self.counter("publish_confirmed", labels, 40_000) : nil,
                qos > 0 ? self.counter("publish_acked", labels, 40_000, rate: 4000) : nil,
                self.duration("publish_write_duration", labels, self.ramp(1000, step: 40)),
            ]
            for leg in legs {
                let labels = labels.adding("leg", leg)
                let step: Int64 = leg == "pubcomp" ? 2000 : 1000
                metrics.append(self.duration("publish_ack_duration", labels, self.ramp(1000, step: step)))
                metrics.append(self.duration("publish_service_duration", labels, self.ramp(1000, step: step / 2)))
            }
        }
        return metrics.compactMap(\.self)
    }

    private static var deliveries: [Metric] {
        self.levels.flatMap { qos, _ -> [Metric?] in
            let labels: Labels = ["qos": String(qos)]
            return [
                self.counter("received", labels.adding("retained", "false"), 40_000, rate: 4000),
                self.counter("delivery_expected", labels, 40_000),
                self.counter("delivery_lost", labels, 0),
                self.counter("delivery_duplicated", labels, 0),
                self.counter("delivery_reordered", labels, 0),
                self.duration("delivery_duration", labels, self.ramp(1000, step: 3000)),
            ]
        }.compactMap(\.self)
    }

    private static var bytes: [Metric] {
        [
            self.counter("bytes_sent", [:], 34_560_000, rate: 3_456_000, unit: "bytes"),
            self.counter("bytes_received", [:], 34_800_000, rate: 3_480_000, unit: "bytes"),
            self.counter("payload_bytes_sent", [:], 30_720_000, rate: 3_072_000, unit: "bytes"),
            self.counter("payload_bytes_received", [:], 30_720_000, rate: 3_072_000, unit: "bytes"),
            self.counter("decode_packets", ["protocol": "mqtt"], 320_000, rate: 32_000),
            self.counter("decode_bytes", ["protocol": "mqtt"], 34_800_000, rate: 3_480_000, unit: "bytes"),
            self.counter("reads", ["protocol": "mqtt"], 128_000, rate: 12_800),
            self.counter("decode_time", ["protocol": "mqtt"], 0.0128, rate: 0.00128, unit: "seconds"),
        ]
    }

    private static func balanced(_ qos: UInt64) -> Books {
        var books = Books(qos: Int(qos))
        (books.offered, books.sent, books.notSent) = (40_000, 40_000, 0)
        if qos == 0 {
            (books.confirmed, books.unconfirmed) = (40_000, 0)
        } else {
            (books.acked, books.inFlight, books.timedOut, books.failed) = (40_000, 0, 0, 0)
        }
        (books.expected, books.received, books.lost, books.duplicated) = (40_000, 40_000, 0, 0)
        return books
    }

    private static func group(publishes: Bool, even: Bool) -> ClientGroup {
        let tallies = (0..<10).map { number in
            var tally = ClientTally()
            tally.connectNanoseconds = Int64(number + 1) * 1_000_000
            if publishes {
                tally.sent = even ? 12_000 : number == 0 ? 1190 : 0
                tally.acked = even ? 8000 : number == 0 ? 1100 : 0
                tally.longestAckNanoseconds = even ? 2_000_000 : 0
            } else {
                tally.received = 12_000 + UInt64(number)
            }
            return tally
        }
        return ClientGroup(tallies, publishes: publishes, acknowledged: true, subscribes: !publishes) {
            "clamor-\(publishes ? "pub" : "sub")-\($0 + 1)"
        }
    }
}

extension Samples {
    /// A decode of two forms on both paths.
    static var decode: RunRecord { self.decode(["clamor", "decode"], of: "mqtt") }
    static var decodeXMPP: RunRecord { self.decode(["clamor", "decode", "--protocol", "xmpp"], of: "xmpp") }

    private static func decode(_ command: [String], of protocolName: String) -> RunRecord {
        var record = self.begun(command)
        record.durationSeconds = 8.9
        record.verdict = .valid
        for (number, path) in ["memory", "socket"].enumerated() {
            for (place, form) in ["pipelined", "fragments"].enumerated() {
                let cost = Double(1 + 9 * number) * Double(1 + 99 * place)
                record.stages.append(
                    StageRecord(
                        name: "\(path)-\(form)",
                        start: Double(4 * number + 2 * place),
                        durationSeconds: 2,
                        measured: true
                    )
                )
                record.metrics += self.lane(form, path, protocolName, packetTime: 2.5e-9 * cost)
            }
        }
        record.generator.eventLoops = 1
        record.generator.cpuSeconds = 8.1
        return record
    }

    private static func lane(
        _ form: String,
        _ path: String,
        _ protocolName: String,
        packetTime: Double
    ) -> [Metric] {
        let labels: Labels = ["form": form, "path": path, "protocol": protocolName]
        let packets = (2.2 / packetTime).rounded()
        let rate = 1 / packetTime
        let reads = form == "pipelined" ? (packets / 745).rounded() : packets * 22
        let time = GaugeReading(
            value: packetTime * 1.01,
            min: packetTime * 0.98,
            mean: packetTime * 1.02,
            median: packetTime,
            max: packetTime * 1.5
        )
        let metrics = [
            self.counter("decode_packets", labels, packets, rate: rate),
            self.counter("decode_bytes", labels, packets * 88, rate: rate * 88, unit: "bytes"),
            self.counter("reads", labels, reads, rate: reads / 2.2),
            self.counter("decode_time", labels, 2.2, rate: 0.99, unit: "seconds"),
            Metric(name: "decode_packet_time", labels: labels, unit: "seconds", reading: .gauge(time)),
        ]
        let thousand = Histogram.of([Int64((packetTime * 1.001e12).rounded())])
        return metrics + [self.duration("decode_thousand_duration", labels, thousand)].compactMap(\.self)
    }
}

extension Histogram {
    fileprivate static func of(_ values: [Int64]) -> Histogram {
        values.reduce(into: Histogram()) { $0.record($1) }
    }
}
