import EmbeddedBroker
import Measurement
import Report
import RunControl
import TestSupport
import Testing

@Suite("One run in several segments")
struct SegmentRunTests {
    struct Shape: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// Deliveries of a message.
        let copies: Int
    }

    static let shapes = [
        Shape(testDescription: "--topology fan-in -c 3 --subscribers 4 -q 0,1,2", copies: 4),
        Shape(testDescription: "--topology shared -c 4 --subscribers 4 -q 0,1,2", copies: 1),
    ]

    private static let load = "--rate 600/s --duration 2s --processes 2 --seed 3"

    @Test("publishers are heard in other segments, and every message is accounted for", arguments: shapes)
    func spanning(_ shape: Shape) throws {
        let host = VirtualClamor.Host()
        let run = try VirtualClamor.of(
            "pubsub -p 1883 \(shape.testDescription) \(Self.load)",
            "--threshold",
            "delivery_lost == 0",
            on: host
        )
        let counters = host.broker
        #expect(run.status == 0, "\(run.errors)")
        #expect(run.record.isSound, "\(run.record.verdict?.reasons ?? [])")
        #expect(run.record.count("publish_offered") == 1_200)
        #expect(run.record.count("delivery_expected") == 1_200 * shape.copies)
        #expect(run.record.count("received") == 1_200 * shape.copies)
        #expect(run.record.count("delivery_lost") == 0 && run.record.count("delivery_duplicated") == 0)
        #expect(counters.delivered.total == 1_200 * shape.copies)
        for books in run.record.books { #expect(books.expected == books.received && books.lost == 0) }
        // Loads that begin together have one measured phase, to the first message.
        let measured = run.record.metrics.filter { $0.name == "delivery_duration" }.compactMap(\.duration?.count)
        #expect(measured.reduce(0, +) == UInt64(1_200 * shape.copies))
        #expect(run.record.metrics.allSatisfy { $0.duration?.clockError == nil })
        #expect(run.record.thresholds.map(\.ok) == [true])
        #expect(run.record.ledger.pending == nil && run.record.ledger.on)
        // All had gone before the drain was over.
        #expect(run.record.durationSeconds ?? 60 < 10)
        // A segment alone knows of what came, and of nothing that was expected.
        let segments = try ["1", "2"].map { try RunJSON.read(directory: run.folder.path("out/segments/\($0)")) }
        #expect(segments.allSatisfy { $0.ledger.pending == true && $0.books.allSatisfy { $0.expected == nil } })
        #expect(segments.allSatisfy { !$0.metrics.contains { $0.name == "delivery_expected" } })
    }

    @Test("what a broker loses, repeats and swaps is found to the message", arguments: shapes)
    func faults(_ shape: Shape) throws {
        let host = VirtualClamor.Host("--drop 1.5% --duplicate 40 --reorder 30")
        let run = try VirtualClamor.of("pubsub -p 1883 \(shape.testDescription) \(Self.load) --drain 5s", on: host)
        let counters = host.broker
        #expect(run.status == 0, "\(run.errors)")
        #expect(run.record.isSound, "\(run.record.verdict?.reasons ?? [])")
        #expect(counters.dropped.total > 0 && counters.duplicated.total > 0)
        #expect(run.record.perQoS("delivery_lost") == counters.dropped.all)
        #expect(run.record.perQoS("delivery_duplicated") == counters.duplicated.all)
        // The server keeps no order for shared subscriptions (MQTT 5.0 §4.6).
        let isOrdered = !shape.testDescription.contains("shared")
        #expect(run.record.perQoS("delivery_reordered") == (isOrdered ? counters.reordered.all : [0, 0, 0]))
        #expect(run.record.count("delivery_expected") == 1_200 * shape.copies)
    }

    @Test("a segment without requests of its own stays until those of others are answered")
    func requests() throws {
        // At the end of the load 15 requests are on their way, each to one of two responders.
        let run = try VirtualClamor.of(
            "pubsub -p 1883 --topology request -c 1 --subscribers 2 -q 1 --rate 50/s --duration 2s"
                + " --processes 2",
            "--threshold",
            "requests_lost == 0",
            on: VirtualClamor.Host("--delay 300ms")
        )
        #expect(run.status == 0, "\(run.errors)")
        #expect(run.record.state != .unreconciled, "\(run.record.verdict?.reasons ?? [])")
        for name in ["publish_acked", "requests_answered", "delivery_expected"] {
            #expect(run.record.count(name) == 100, "\(name)")
        }
        let answers = run.record.metrics.filter { $0.name == "request_duration" }
        #expect(answers.compactMap(\.duration?.count) == [100])
        let segments = try ["1", "2"].map { try RunJSON.read(directory: run.folder.path("out/segments/\($0)")) }
        #expect(segments.map { $0.count("publish_sent") } == [100, 0])
        #expect(segments.allSatisfy { $0.count("requests_answered") > 0 })
    }

    @Test("a scenario is divided group by group")
    func scenario() throws {
        let run = try VirtualClamor.of(
            scenario: """
                name: divided
                target: mqtt://127.0.0.1:1883
                duration: 2s
                groups:
                  sensors:
                    clients: 4
                    subscribers: 2
                    topology: fan-in
                    publish: { topic: "a/%i", qos: 1, size: 64, rate: 100/s }
                  doors:
                    clients: 4
                    subscribers: 4
                    publish: { topic: "b/%i", qos: 0, size: 64, rate: 80/s }
                thresholds:
                  - "delivery_lost == 0"
                  - "publish_offered{group=doors} count == 160"
                """,
            "--processes 2"
        )
        #expect(run.status == 0, "\(run.errors)")
        #expect(run.record.isSound, "\(run.record.verdict?.reasons ?? [])")
        #expect(run.record.segment.merged == 2 && run.record.thresholds.map(\.ok) == [true, true])
        #expect(run.record.count("delivery_expected", ["group": "sensors"]) == 400)
        #expect(run.record.count("delivery_expected", ["group": "doors"]) == 160)
        #expect(run.record.count("received") == 560)
        #expect(run.record.groups?.map(\.ledger.pending) == [nil, nil])
        let one = try RunJSON.read(directory: run.folder.path("out/segments/1"))
        // One ledger covers all groups, so that of a group waits for the others'.
        #expect(one.groups?.map(\.ledger.pending) == [true, true])
    }
}
