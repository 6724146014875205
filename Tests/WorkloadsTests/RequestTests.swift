import LoadEngine
import MQTTCodec
import Measurement
import NIOCore
import Testing
import VirtualServers
import Workloads

/// Requests and answers over the broker core on a virtual clock, so that each takes exactly what the wire takes.
@Suite("Requests and their answers (MQTT 5.0 §4.10)")
struct RequestTests {
    private func setup(_ qos: QoS, publishers: Int = 3, subscribers: Int = 2) -> MQTTVirtualRun.Setup {
        MQTTVirtualRun.Setup(
            publishers: publishers,
            subscribers: subscribers,
            topology: .request,
            qualities: [qos],
            rate: 300,
            duration: .seconds(2),
            latency: .milliseconds(5)
        )
    }

    private func count(_ run: MQTTVirtualRun, _ name: String, _ labels: Labels = [:]) -> Int {
        Int(run.all.first { $0.name == name && $0.labels == labels }?.counter?.value ?? -1)
    }

    @Test(
        "each request is answered once, to who asked, four ways of the wire after it was due",
        arguments: [1, 3],
        [1, 2]
    )
    func answered(publishers: Int, subscribers: Int) throws {
        let run = try MQTTVirtualRun(self.setup(.atLeastOnce, publishers: publishers, subscribers: subscribers))
        run.perform()
        let durations = run.histogram("request_duration", ["qos": "1"])
        #expect(durations.count == 600)
        #expect(durations.min == 20_000_000)
        #expect(durations.max == 20_000_000)
        #expect(run.row(.atLeastOnce) == WireOracle.Row(expected: 600, received: 600))
        #expect(run.row(.atLeastOnce) == run.oracleRow(.atLeastOnce))
        #expect(self.count(run, "requests_answered") == 600)
        #expect(self.count(run, "requests_late", ["qos": "1"]) == 0)
        #expect(self.count(run, "publish_acked", ["qos": "1"]) == 600)
        // Requests came to those who answer, and the answers at QoS 0 to those who asked.
        #expect(self.count(run, "received", ["qos": "1", "retained": "false"]) == 600)
        #expect(self.count(run, "received", ["qos": "0", "retained": "false"]) == 600)
        #expect(run.errors.isEmpty)
        #expect(run.imbalances.isEmpty)
    }

    @Test("at QoS 2 each request is answered once as well")
    func exactlyOnce() throws {
        let run = try MQTTVirtualRun(self.setup(.exactlyOnce))
        run.perform()
        let durations = run.histogram("request_duration", ["qos": "2"])
        #expect(durations.count == 600)
        #expect(run.row(.exactlyOnce) == WireOracle.Row(expected: 600, received: 600))
        #expect(self.count(run, "requests_answered") == 600)
        #expect(run.errors.isEmpty)
        #expect(run.imbalances.isEmpty)
    }

    @Test("an answer behind its time is late, and not lost")
    func late() throws {
        var setup = self.setup(.atLeastOnce)
        setup.faults = "delay 200ms delay-every 1"
        setup.ackTimeout = .milliseconds(300)
        let run = try MQTTVirtualRun(setup)
        run.perform()
        // Both ways from the broker are held: 400 ms and the wire.
        let durations = run.histogram("request_duration", ["qos": "1"])
        #expect(durations.count == 600)
        #expect((durations.min ?? 0) > 400_000_000)
        #expect(self.count(run, "requests_late", ["qos": "1"]) == 600)
        #expect(run.row(.atLeastOnce).lost == 0)
        #expect(run.imbalances.isEmpty)
    }

    @Test("an answer that is another's is not taken, and its request is lost")
    func wrongAnswers() throws {
        let run = try MQTTVirtualRun(self.setup(.atLeastOnce, publishers: 1, subscribers: 1))
        // The last byte of the correlation data of an answer, behind its length, two bytes 0 and 8.
        run.network.rewrite = { bytes in
            var bytes = bytes
            guard bytes.first == 0x30, let place = bytes.indices.first(where: { bytes[$0...].starts(with: [9, 0, 8]) })
            else { return bytes }
            bytes[place + 10] ^= 0xFF
            return bytes
        }
        run.perform()
        #expect(run.histogram("request_duration", ["qos": "1"]).count == 0)
        #expect(run.row(.atLeastOnce) == WireOracle.Row(expected: 600, lost: 600))
        #expect(run.errors.map(\.kind) == ["correlation"])
        #expect(run.errors.first?.count == 600)
    }
}
