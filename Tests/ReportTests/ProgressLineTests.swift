import Measurement
import Report
import Testing

@Suite("The progress line")
struct ProgressLineTests {
    static func line(errors: UInt64 = 0, levels: [String] = ["0", "1"]) -> ProgressLine {
        var metrics = levels.map { Samples.counter("publish_sent", ["qos": $0], 4000, rate: 4000) }
        metrics += [
            Samples.duration("publish_ack_duration", ["qos": "1", "leg": "puback"], Samples.ramp(1000, step: 1000)),
            Samples.duration("publish_ack_duration", ["qos": "2", "leg": "pubrec"], Samples.ramp(1000, step: 9000)),
            Samples.duration("publish_ack_duration", ["qos": "2", "leg": "pubcomp"], Samples.ramp(1000, step: 2000)),
            Samples.duration("delivery_duration", ["qos": "1"], Samples.ramp(1000, step: 3000)),
            Samples.counter("received", ["qos": "1", "retained": "false"], 4000, rate: 4000),
            Metric(name: "clients", labels: ["state": "connected"], reading: .gauge(GaugeReading(value: 1000))),
        ].compactMap(\.self)
        let interval = TimelineInterval(second: 11, phase: "measure", seconds: 1, metrics: metrics, lanes: [])
        return ProgressLine(interval, clientsPlanned: 1000, errors: errors)
    }

    @Test("says phase, clients, errors, rates and latencies, the slowest QoS for all")
    func plain() {
        #expect(
            Self.line(errors: 3).plain
                == "  12 s  measure  1,000/1,000 clients  3 errors  sent 8,000/s  ack p99 1.98 ms"
                + "  received 4,000/s  end to end p99 2.97 ms  q0 4,000/s q1 4,000/s\n"
        )
    }

    @Test("names the groups where there are several, and counts the clients of all")
    func groups() {
        var metrics = ["0", "1"].map {
            Samples.counter("publish_sent", ["group": "sensors", "qos": $0], 400, rate: 400)
        }
        metrics += [
            Samples.counter("stanza_sent", ["group": "chat", "stanza": "message"], 50, rate: 50),
            Samples.counter("stanza_offered", ["group": "chat", "stanza": "message"], 50, rate: 50),
            Samples.counter("received", ["group": "chat", "stanza": "message", "delayed": "false"], 50, rate: 50),
            Samples.counter("received", ["group": "logins", "stanza": "message", "delayed": "false"], 7, rate: 7),
        ]
        metrics += [("chat", 2.0), ("sensors", 10)].map { group, up in
            Metric(
                name: "clients",
                labels: ["group": group, "state": "connected"],
                reading: .gauge(GaugeReading(value: up))
            )
        }
        let interval = TimelineInterval(second: 0, phase: "measure", seconds: 1, metrics: metrics, lanes: [])
        #expect(
            ProgressLine(interval, clientsPlanned: 12, errors: 0).plain
                == "   1 s  measure  12/12 clients  sent 850/s  received 50/s  chat 50/s sensors 800/s\n"
        )
    }

    static let lengths: [(seconds: Double, line: String)] = [
        (1.2, "  11 s  measure  4 clients  sent 100/s  received 100/s\n"),
        (1, "  11 s  measure  4 clients  sent 100/s  received 100/s\n"),
        (0.9, "  11 s  measure  4 clients  sent 100/s  received 100/s\n"),
        (0.5, "  11 s  measure  4 clients  over 500 ms  sent 100/s  received 100/s\n"),
        (0.1, "  11 s  measure  4 clients  over 100 ms  sent 100/s  received 100/s\n"), (0.099, ""), (0.02, ""),
    ]

    @Test("a part of a second is marked, and has a line only from 100 ms on", arguments: lengths)
    func partial(_ row: (seconds: Double, line: String)) {
        var catalog = MetricCatalog()
        let sent = catalog.counter("publish_sent", ["qos": "0"])
        let received = catalog.counter("received", ["qos": "0", "retained": "false"])
        let clients = catalog.gauge("clients", ["state": "connected"])
        let meter = LoopMeter(catalog: catalog, loop: 0)
        meter.set(clients, 4)
        var accumulator = RunAccumulator(catalog: catalog, realtimeOffset: 0)
        meter.add(sent, 5000)
        _ = accumulator.add(second: 9, phase: "measure", seconds: 1, samples: [meter.swap()])
        for counter in [sent, received] { meter.add(counter, UInt64(100 * row.seconds)) }
        let samples = [meter.swap()]
        let interval = accumulator.add(second: 10, phase: "measure", seconds: row.seconds, samples: samples)
        #expect(ProgressLine(interval, clientsPlanned: nil, errors: 0).plain == row.line)
    }

    @Test("a pass over accounts has a line however short it is")
    func accounts() {
        let interval = TimelineInterval(second: 0, phase: "create", seconds: 0.02, metrics: [], lanes: [])
        let line = ProgressLine(interval, clientsPlanned: 4, errors: 0).of(accounts: 4)
        #expect(line.plain == "   1 s  create   4/4 accounts  over 20.0 ms\n")
    }

    @Test("leaves out unused parts")
    func empty() {
        let interval = TimelineInterval(second: 0, phase: "connect", seconds: 1, metrics: [], lanes: [])
        let line = ProgressLine(interval, clientsPlanned: nil, errors: 0)
        #expect(line.plain == "   1 s  connect\n")
    }

    @Test("never fills a terminal's line, and drops whole parts", arguments: [1, 10, 40, 80, 120, 200])
    func width(_ width: Int) {
        let line = Self.line(errors: 1).inPlace(width: width)
        #expect(line.hasPrefix("\r") && line.hasSuffix("\u{1B}[K"))
        let text = line.dropFirst().dropLast(3)
        #expect(text.count < width)
        #expect(Self.line(errors: 1).plain.hasPrefix(text))
        #expect(width < 80 || text.contains("1 error "))
        #expect(width < 200 || text.hasSuffix("q1 4,000/s"))
    }
}
