import Foundation
import Measurement
import TestSupport
import Testing

extension Integration {
    @Suite("Counts agree with the broker's own")
    struct BrokerBooksTests {
        @Test("publish_sent is what the broker received, per QoS and protocol version", arguments: [3, 4, 5])
        func closedLoop(_ version: Int) async throws {
            let (run, broker) = try await BrokerProgram.with { broker in
                try await ClamorRun.of(
                    "pub -p \(broker.port) -V \(version) -c 30 -q 0,1,2 -s 64 -I 0 --duration 2s"
                )
            }
            #expect(run.status == 0)
            #expect(run.record.perQoS("publish_sent") == broker.received.all)
            #expect(broker.received.all.allSatisfy { $0 > 0 })
            #expect(run.record.count("publish_confirmed", qos: 0) == broker.received.qos0)
            #expect(run.record.count("publish_acked", qos: 1) == broker.received.qos1)
            #expect(run.record.count("publish_acked", qos: 2) == broker.received.qos2)
            #expect(run.record.perQoS("publish_not_sent") == [0, 0, 0])
            #expect(run.record.count("payload_bytes_sent") == 64 * broker.received.total)
            #expect(run.record.books.count == 3)
            #expect(run.record.books.allSatisfy { $0.balances })
            // A slow host may limit a closed loop.
            #expect(run.record.isSound, "\(run.record.reasonCodes)")
        }

        @Test(
            "payload_bytes_sent counts each message, whatever the sizes of a write's",
            arguments: [
                // 300 messages of each client, from number 0 on.
                ("-m x%s", 4 * (10 * 2 + 90 * 3 + 200 * 4)...4 * (10 * 2 + 90 * 3 + 200 * 4)),
                ("-s 40..400", 1_200 * 180...1_200 * 260), ("-s 40..41", 1_200 * 40 + 400...1_200 * 41 - 400),
            ],
            ["-q 0 -F 7", "-q 1,2 -F 16"]
        )
        func payload(_ payload: (flags: String, bytes: ClosedRange<Int>), _ flags: String) async throws {
            let run = try await ClamorRun.of("pubsub -h embedded -c 4 -L 1200 --seed 3 \(flags) \(payload.flags)")
            #expect(run.status == 0)
            let sent = run.record.count("payload_bytes_sent")
            #expect(payload.bytes.contains(Int(sent)), "\(sent)")
            #expect(run.record.count("payload_bytes_received") == sent)
        }

        @Test("messages above 1 MiB need no option of the run", arguments: [4, 5])
        func large(_ version: Int) async throws {
            let run = try await ClamorRun.of("pubsub -h embedded -V \(version) -c 2 -q 1 -s 2MiB -L 6")
            #expect(run.status == 0, "\(run.ending.errors)")
            #expect(run.record.count("payload_bytes_received") == 6 * 2_097_152)
            #expect(run.record.errors.isEmpty)
        }

        @Test("the same with the broker that -h embedded starts, whose counts the run compares itself")
        func embedded() async throws {
            let run = try await ClamorRun.of("pub -h embedded -c 30 -q 0,1,2 -s 64 -I 0 --duration 2s")
            #expect(run.status == 0)
            #expect(run.record.perQoS("publish_sent").allSatisfy { $0 > 0 })
            #expect(run.record.isSound, "\(run.record.reasonCodes)")
            #expect(!run.record.reasonCodes.contains("broker-books"))
        }

        /// Of each message, so many copies are delivered.
        static let topologies: [(flags: String, copies: Int)] = [
            ("pair -q 0,1,2", 1), ("fan-in -q 0,1,2", 1), ("shared -q 0,1,2", 1), ("fan-out -q 0", 4),
            ("fan-out -q 1", 4), ("fan-out -q 2", 4),
        ]

        @Test(
            "pubsub receives all that is expected, in every topology and protocol version",
            arguments: topologies,
            [3, 4, 5]
        )
        func topology(_ topology: (flags: String, copies: Int), _ version: Int) async throws {
            let (run, broker) = try await BrokerProgram.with { broker in
                try await ClamorRun.of(
                    """
                    pubsub -p \(broker.port) -V \(version) --topology \(topology.flags) -c 4 -s 64 \
                    --rate 600/s -L 180
                    """
                )
            }
            #expect(run.status == 0)
            #expect(run.record.isSound, "\(run.record.reasonCodes)")
            let expected = run.record.perQoS("delivery_expected")
            #expect(expected.reduce(0, +) == 180 * topology.copies)
            #expect(broker.received.total == 180)
            #expect(expected == broker.delivered.all)
            #expect(run.record.books.map(\.received) == expected.map { UInt64($0) }.filter { $0 > 0 })
            #expect(run.record.perQoS("delivery_lost") == [0, 0, 0])
            #expect(run.record.perQoS("delivery_duplicated") == [0, 0, 0])
            #expect(run.record.count("received") == broker.delivered.total)
            #expect(run.record.ledger.on)
        }

        @Test("sub alone counts what a pub beside it sent, and expects nothing")
        func subscribersAlone() async throws {
            let ((subscribers, publishers), broker) = try await BrokerProgram.with { broker in
                let folder = try ScratchFolder()
                let arguments = ClamorRun.arguments("sub -p \(broker.port) -c 2 -q 2 --duration 0", in: folder)
                return try await ClamorBinary.with(arguments) { program in
                    try await program.line { $0.contains(" measure ") && $0.contains("2/2 clients") }
                    let publishers = try await ClamorRun.of("pub -p \(broker.port) -c 6 -q 0,1,2 -s 64 -L 600")
                    program.send(SIGINT)
                    return (try ClamorRun(try await program.ended(), folder), publishers)
                }
            }
            #expect(publishers.status == 0)
            #expect(subscribers.status == 0)
            #expect(subscribers.record.isSound, "\(subscribers.record.reasonCodes)")
            #expect(publishers.record.count("publish_sent") == 600)
            #expect(subscribers.record.perQoS("received") == publishers.record.perQoS("publish_sent").map { 2 * $0 })
            #expect(subscribers.record.perQoS("received") == broker.delivered.all)
            #expect(subscribers.record.perQoS("delivery_gaps") == [0, 0, 0])
            #expect(!subscribers.record.metrics.contains { $0.name == "delivery_expected" })
        }

        @Test("conn holds its clients, and the broker saw as many at once")
        func connections() async throws {
            let (run, broker) = try await BrokerProgram.with { broker in
                try await ClamorRun.of("conn -p \(broker.port) -c 400 --duration 1s")
            }
            #expect(run.status == 0)
            #expect(run.record.isSound)
            #expect(broker.connects == 400)
            #expect(broker.clientsMaximum == 400)
            for phase in ["tcp", "session", "total"] {
                #expect(run.record.duration("connect_duration", ["phase": phase])?.count == 400)
            }
            // 127.0.0.1 needs no name service.
            #expect(run.record.duration("connect_duration", ["phase": "dns"]) == nil)
            let connected = run.record.metrics.first { $0.name == "clients" && $0.labels == ["state": "connected"] }
            #expect(connected?.gauge?.max == 400)
        }
    }
}
