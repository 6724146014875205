import Ledger
import LoadEngine
import MQTTCodec
import Measurement
import NIOCore
import RunResult
import Testing
import VirtualServers
import Workloads

/// The samples of every duration are as many as the events that it is defined over, by the bytes on the wire.
@Suite("As many samples as events")
struct CountLawTests {
    static let shapes = LoadShape.all + [.request]

    static let weathers = [
        "", "duplicate 7", "drop 3%", "reorder 10", "disconnect-every 50ms",
        "drop 2% duplicate 5 reorder 9 disconnect-every 90ms",
    ]

    private typealias Stage = (name: String, length: TimeAmount, isMeasured: Bool)

    private static let stages: [Stage] = [
        ("settle", .milliseconds(500), false), ("peak", .milliseconds(700), true), ("rest", .milliseconds(800), true),
    ]

    private func run(_ shape: LoadShape, _ weather: String, stages: [Stage]) throws -> MQTTVirtualRun {
        // One publisher has one QoS.
        let qualities: [QoS] = shape.publishers == 1 ? [.exactlyOnce] : [.atMostOnce, .atLeastOnce, .exactlyOnce]
        let run = try MQTTVirtualRun(
            .init(
                faults: weather,
                publishers: shape.publishers,
                subscribers: shape.subscribers,
                topology: shape.topology,
                qualities: qualities,
                rate: 601,
                duration: .milliseconds(1_500),
                reconnects: 1_000,
                latency: .microseconds(400),
                warmup: stages.isEmpty ? .milliseconds(500) : .zero,
                stages: stages
            )
        )
        run.perform()
        return run
    }

    /// Messages that were due in a part of the load, since it began.
    private func count(
        _ messages: some Sequence<WireOracle.Message>,
        _ run: MQTTVirtualRun,
        _ part: Range<Int64>
    ) -> UInt64 {
        let origin = Int64(run.origin.uptimeNanoseconds) + run.load.realtimeOffset
        return UInt64(messages.count { part.contains($0.due - origin) })
    }

    /// Each duration of a QoS with the messages that it has a sample of.
    private func events(
        _ run: MQTTVirtualRun,
        _ qos: QoS
    ) -> [(name: String, labels: Labels, messages: [WireOracle.Message])] {
        let level: Labels = ["qos": "\(qos.rawValue)"]
        let oracle = run.network.oracle
        let written = oracle.written.filter { $0.qos == qos.rawValue }
        let known = oracle.known.filter { $0.qos == qos.rawValue }
        let came = oracle.firstArrivals(qos.rawValue, run.subscriptions)
        var events = [
            (run.setup.topology == .request ? "request_duration" : "delivery_duration", level, came),
            ("publish_write_duration", level, Array(written)), ("publish_blocked_duration", level, Array(written)),
        ]
        if qos != .atMostOnce {
            let leg = level.adding("leg", qos == .atLeastOnce ? "puback" : "pubcomp")
            events += [("publish_ack_duration", leg, Array(known)), ("publish_service_duration", leg, Array(known))]
        }
        return events
    }

    private func check(_ run: MQTTVirtualRun, measured: Range<Int64>, _ why: String) {
        for qos in run.setup.qualities {
            for (name, labels, messages) in self.events(run, qos) {
                let expected = self.count(messages, run, measured)
                #expect(expected > 0)
                #expect(run.histogram(name, labels).count == expected, "\(name) \(labels), \(why)")
                var start: Int64 = 0
                for stage in run.setup.stages {
                    let part = start..<start + stage.length.nanoseconds
                    let samples = run.histogram(name, labels.adding(Labels.stage, stage.name)).count
                    #expect(samples == self.count(messages, run, part), "\(name) \(labels) in \(stage.name), \(why)")
                    start = part.upperBound
                }
            }
        }
        self.checkAbsent(run, measured: measured, why)
        let written = self.count(run.network.oracle.written, run, measured)
        #expect(run.histogram("schedule_lag", [:]).count == written)
        #expect(run.reconciliation.problems.isEmpty)
    }

    /// Deliveries that did not come have samples as well: as many as the ledger has, in the part in which each was due.
    private func checkAbsent(_ run: MQTTVirtualRun, measured: Range<Int64>, _ why: String) {
        let absent = run.delivery.account.absent
        for qos in run.setup.qualities {
            let own = absent.filter { $0.labels == ["qos": "\(qos.rawValue)"] }.map(\.values)
            let row = run.reconciliation.rows.first { $0.qos == qos.rawValue }
            #expect(own.reduce(0) { $0 + $1.failed } == row?.lost, "\(why)")
            #expect(own.reduce(0) { $0 + $1.outstanding } == row?.outstanding, "\(why)")
        }
        // Nothing excuses what did not come over connections that hold.
        guard !why.contains("disconnect") else { return }
        for qos in run.setup.qualities {
            let oracle = run.network.oracle
            let known = oracle.known.filter { $0.qos == qos.rawValue }
            let due = run.subscriptions.flatMap { subscription in known.filter { subscription.hears($0.publisher) } }
            let came = oracle.firstArrivals(qos.rawValue, run.subscriptions)
            func expect(_ labels: Labels, _ part: Range<Int64>) {
                let name = run.setup.topology == .request ? "request_duration" : "delivery_duration"
                let reading = run.record.metrics.first { $0.name == name && $0.labels == labels }?.duration
                #expect((reading?.count ?? 0) == self.count(due, run, part), "\(name) \(labels), \(why)")
                #expect((reading?.answered ?? 0) == self.count(came, run, part), "\(name) \(labels), \(why)")
            }
            let labels: Labels = ["qos": "\(qos.rawValue)"]
            expect(labels, measured)
            var start: Int64 = 0
            for stage in run.setup.stages {
                expect(labels.adding(Labels.stage, stage.name), start..<start + stage.length.nanoseconds)
                start += stage.length.nanoseconds
            }
        }
    }

    @Test("a warm-up has none, the measured phase has all", arguments: shapes, weathers)
    func phases(_ shape: LoadShape, _ weather: String) throws {
        let run = try self.run(shape, weather, stages: [])
        self.check(run, measured: 500_000_000..<2_000_000_000, weather)
    }

    @Test("each stage has its own, and the run those of the measured ones", arguments: shapes, weathers)
    func stages(_ shape: LoadShape, _ weather: String) throws {
        let run = try self.run(shape, weather, stages: Self.stages)
        self.check(run, measured: 500_000_000..<2_000_000_000, weather)
    }

    @Test("each connect and each subscription is one sample", arguments: shapes)
    func connects(_ shape: LoadShape) throws {
        let run = try self.run(shape, "disconnect-every 50ms", stages: [])
        let clients = UInt64(shape.publishers + shape.subscribers)
        let connected = run.network.oracle.connacks
        #expect(connected > clients)
        #expect(run.histogram("connect_duration", ["phase": "total"]).count == clients)
        #expect(run.histogram("reconnect_duration", ["phase": "total"]).count == connected - clients)
        #expect(run.histogram("subscribe_duration", [:]).count == run.network.oracle.subacks)
    }

    // MARK: Closed loop

    /// How a load in closed loop ends.
    struct ClosedLoad: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var limit: UInt64?
        var hasStages = false

        static let all = [
            ClosedLoad(testDescription: "by its duration"), ClosedLoad(testDescription: "by its limit", limit: 99),
            ClosedLoad(testDescription: "in stages", hasStages: true),
        ]
    }

    private func closed(
        _ load: ClosedLoad,
        _ weather: String,
        _ qos: QoS,
        topology: MQTTLoad.Topology = .pair
    ) throws -> MQTTVirtualRun {
        let stages: [Stage] = [("peak", .milliseconds(200), true), ("rest", .milliseconds(300), true)]
        let run = try MQTTVirtualRun(
            .init(
                faults: weather == "falls silent" ? "" : weather,
                publishers: 3,
                subscribers: 3,
                topology: topology,
                qualities: [qos],
                duration: .milliseconds(500),
                window: 4,
                reconnects: 1_000,
                latency: .milliseconds(5),
                pace: .closed,
                limit: load.limit,
                // At QoS 0 no answer ends a turn.
                think: qos == .atMostOnce ? .milliseconds(10) : .zero,
                stages: load.hasStages ? stages : []
            )
        )
        if weather == "falls silent" {
            run.at(.milliseconds(55)) { [unowned run] in run.network.rewrite = { _ in [] } }
        }
        // The last operation under a limit begins at the moment at which the run orders the end.
        run.perform(step: .milliseconds(10))
        return run
    }

    @Test(
        "in closed loop each operation that was offered has one end and one sample",
        arguments: ClosedLoad.all,
        ["", "drop 3%", "disconnect-every 50ms", "falls silent"]
    )
    func closedLoop(_ load: ClosedLoad, _ weather: String) throws {
        for qos in [QoS.atMostOnce, .atLeastOnce, .exactlyOnce] {
            let run = try self.closed(load, weather, qos)
            #expect(run.imbalances == [], "\(qos)")
            let level: Labels = ["qos": "\(qos.rawValue)"]
            let offered = run.counter("publish_offered", qos)
            #expect(offered > 0 && load.limit.map { offered <= $0 } ?? true, "\(qos)")
            #expect(run.histogram("schedule_lag").count == offered, "\(qos)")
            #expect(run.histogram("publish_write_duration", level).count == offered, "\(qos)")
            guard qos != .atMostOnce else { continue }
            let leg = level.adding("leg", qos == .atLeastOnce ? "puback" : "pubcomp")
            let response = run.values("publish_ack_duration", leg)
            let book = try #require(run.result.books[qos])
            #expect(response.count == offered, "\(qos)")
            #expect(response.answered.count == run.counter("publish_acked", qos), "\(qos)")
            #expect(response.unanswered.failed == book.failed + book.timedOut, "\(qos)")
            let notSent = run.counter("publish_not_sent", qos)
            #expect(response.unanswered.outstanding == notSent + book.inFlight, "\(qos)")
            guard load.hasStages else { continue }
            let parts = run.setup.stages.map { run.values("publish_ack_duration", leg.adding(Labels.stage, $0.name)) }
            #expect(parts.reduce(0) { $0 + $1.count } == offered, "\(qos)")
        }
    }

    @Test("in closed loop each request that was offered has one sample", arguments: ["", "drop 3%"])
    func closedRequests(_ weather: String) throws {
        for load in ClosedLoad.all where !load.hasStages {
            let run = try self.closed(load, weather, .atLeastOnce, topology: .request)
            let offered = run.counter("publish_offered", .atLeastOnce)
            #expect(offered > 0 && run.imbalances == [], "\(load)")
            let labels: Labels = ["qos": "1"]
            let reading = run.record.metrics.first { $0.name == "request_duration" && $0.labels == labels }?.duration
            #expect(reading?.count == offered, "\(load)")
        }
    }
}
