import Ledger
import LoadEngine
import MQTTCodec
import Measurement
import NIOCore
import RunResult
import Testing
import Workloads

@Suite("Publishers with several streams")
struct StreamRunTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// One for each stream; messages below 32 bytes have no header.
        let sizes: [Int]
        let hasLedger: Bool
    }

    static let cases = [
        Case(testDescription: "all with headers", sizes: [48, 64], hasLedger: true),
        Case(testDescription: "one without headers", sizes: [48, 16], hasLedger: true),
        Case(testDescription: "no ledger", sizes: [16, 8], hasLedger: false),
    ]

    @Test("The ledger expects the messages that carry its header, and no others", arguments: Self.cases)
    func expectations(of own: Case) throws {
        // The second topic is drawn per message, among those of the publishers.
        let topics = ["t/%i", "t/%rand_3"]
        let streams = zip(topics, own.sizes).enumerated().map { number, stream in
            var made = MQTTLoad.Stream(
                topic: Template(parsing: stream.0),
                payload: .generated(size: stream.1),
                qualities: [.atLeastOnce]
            )
            made.name = "stream \(number)"
            made.carrier = stream.1 >= PayloadHeader.size ? .front : nil
            return (stream: made, rate: Double(30 * (number + 1)))
        }
        let run = try MQTTVirtualRun(
            .init(
                publishers: 3,
                subscribers: 2,
                topology: .fanIn,
                duration: .seconds(2),
                streams: streams,
                hasLedger: own.hasLedger
            )
        )
        run.perform()
        let received = run.all.filter { $0.name == "received" }.reduce(0) { $0 + ($1.counter?.value ?? 0) }
        #expect(received == 2 * (60 + 120))
        let followed = zip(own.sizes, [60, 120]).filter { $0.0 >= PayloadHeader.size }.map(\.1).reduce(0, +)
        let rows = run.reconciliation.rows
        #expect(rows.reduce(0) { $0 + ($1.expected ?? 0) } == (own.hasLedger ? 2 * UInt64(followed) : 0))
        #expect(rows.reduce(0) { $0 + ($1.lost ?? 0) } == 0)
        // The drain waits for the messages that the ledger expects.
        #expect(run.work.balance.expected == rows.reduce(0) { $0 + Int64($1.expected ?? 0) })
    }

    @Test(
        "a client's acknowledged messages are those of all its streams that are acknowledged",
        arguments: [
            ([.atMostOnce, .atLeastOnce], 20), ([.atLeastOnce, .atMostOnce], 20), ([.atLeastOnce, .exactlyOnce], 40),
        ] as [([QoS], UInt64)]
    )
    func acknowledged(_ qualities: [QoS], _ acked: UInt64) throws {
        let streams = qualities.map { qos in
            var stream = MQTTLoad.Stream(
                topic: Template(parsing: "t/\(qos.rawValue)-%i"),
                payload: .generated(size: 48),
                qualities: [qos]
            )
            stream.name = "level \(qos.rawValue)"
            return (stream: stream, rate: 10.0)
        }
        let run = try MQTTVirtualRun(.init(topology: .fanIn, duration: .seconds(2), streams: streams))
        run.perform()
        let clients = run.workload.account([run.result], delivery: run.delivery, record: run.record).clients
        let publisher = try #require(clients.first { $0.sends })
        #expect(publisher.tally.sent == 40 && publisher.tally.acked == acked)
        #expect(publisher.acknowledged)
    }
}
