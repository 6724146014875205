import EmbeddedBroker
import FaultInjection
import LoadEngine
import MQTTCodec
import Measurement
import NIOCore
import Testing
import VirtualServers
import Workloads

/// Delay and stall, to the nanosecond: the clock moves by hand, so nothing but the fault takes time.
@Suite("The meter on a virtual clock")
struct VirtualClockTests {
    @Test("every second message is delivered exactly 20 ms later than the others", arguments: QoS.allCases)
    func delay(qos: QoS) throws {
        let latency: Int64 = 300_000
        let run = try MQTTVirtualRun(
            .init(faults: "delay 20ms delay-every 2", qualities: [qos], latency: .nanoseconds(latency))
        )
        run.perform()
        // 100/s for 10 s, each once over the wire to the broker and once from it.
        let planned = Histogram(of: (0..<1_000).map { 2 * latency + ($0 % 2 == 1 ? 20_000_000 : 0) })
        expectSame(run.histogram("delivery_duration", ["qos": "\(qos.rawValue)"]), planned)
        #expect(run.network.server.broker.counters.delayed.total == 500)
        #expect(run.network.server.broker.counters.delayHolds.min == 20_000_000)
        #expect(run.network.server.broker.counters.delayHolds.max == 20_000_000)
        // Each is overtaken by its successor; the last one has none.
        #expect(run.row(qos) == WireOracle.Row(expected: 1_000, received: 1_000, reordered: 499))
        #expect(run.imbalances.isEmpty)
    }

    @Test(
        "what is due in a stall has a response time to its end, what is in flight in it a service time too",
        arguments: [(1, 16), (4, 16), (1, 65_535), (3, 1)]
    )
    func stall(publishers: Int, window: Int) throws {
        let run = try MQTTVirtualRun(
            .init(
                faults: "stall 2s@5s",
                publishers: publishers,
                subscribers: publishers,
                rate: 600,
                window: window
            )
        )
        run.perform()
        let stall = try #require(run.network.stalls.first)
        #expect(stall.upperBound - stall.lowerBound == .seconds(2))
        // Operation k belongs to publisher k mod n and is due at k/600 s.
        let dues = (0..<6_000).map { run.origin + .nanoseconds(Int64($0) * 1_000_000_000 / 600) }
        let inStall = dues.indices.filter { stall.contains(dues[$0]) }
        #expect(inStall.count == 1_200)
        var sent: [Int: Int] = [:]
        var inFlight: Set<Int> = []
        for index in inStall {
            sent[index % publishers, default: 0] += 1
            if sent[index % publishers, default: 0] <= window { inFlight.insert(index) }
        }
        #expect(inFlight.count == min(1_200, publishers * window))
        let responses = dues.map { due in stall.contains(due) ? (stall.upperBound - due).nanoseconds : 0 }
        let services = dues.indices.map { inFlight.contains($0) ? responses[$0] : 0 }
        let labels: Labels = ["qos": "1", "leg": "puback"]
        expectSame(run.histogram("publish_ack_duration", labels), Histogram(of: responses))
        expectSame(run.histogram("publish_service_duration", labels), Histogram(of: services))
        expectSame(run.histogram("delivery_duration", ["qos": "1"]), Histogram(of: responses))
        // The window held the others back, and nothing held the generator back.
        let blocked = dues.indices.map { inFlight.contains($0) ? 0 : responses[$0] }
        expectSame(run.histogram("publish_blocked_duration", ["qos": "1"]), Histogram(of: blocked))
        expectSame(run.histogram("schedule_lag", [:]), Histogram(of: dues.map { _ in 0 }))
        #expect(run.imbalances.isEmpty)
    }

    @Test("at QoS 2 both legs wait for the end of the stall, and the second takes its own way on top")
    func stallExactlyOnce() throws {
        let latency: Int64 = 1_000_000
        let run = try MQTTVirtualRun(
            .init(
                faults: "stall 2s@5s",
                qualities: [.exactlyOnce],
                window: 65_535,
                latency: .nanoseconds(latency)
            )
        )
        run.perform()
        let stall = try #require(run.network.stalls.first)
        // A packet that would reach the broker in the stall is read at its end.
        func read(_ arrival: NIODeadline) -> NIODeadline { stall.contains(arrival) ? stall.upperBound : arrival }
        let dues = (0..<1_000).map { run.origin + .milliseconds(10 * Int64($0)) }
        let recs = dues.map { read($0 + .nanoseconds(latency)) + .nanoseconds(latency) }
        let comps = recs.map { read($0 + .nanoseconds(latency)) + .nanoseconds(latency) }
        func spans(_ ends: [NIODeadline]) -> Histogram { Histogram(of: zip(ends, dues).map { ($0 - $1).nanoseconds }) }
        for name in ["publish_ack_duration", "publish_service_duration"] {
            expectSame(run.histogram(name, ["qos": "2", "leg": "pubrec"]), spans(recs))
            expectSame(run.histogram(name, ["qos": "2", "leg": "pubcomp"]), spans(comps))
        }
        #expect(run.imbalances.isEmpty)
    }
}
