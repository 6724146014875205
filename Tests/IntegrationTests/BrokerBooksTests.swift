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

        @Test("the same with the broker that -h embedded starts, whose counts the run compares itself")
        func embedded() async throws {
            let run = try await ClamorRun.of("pub -h embedded -c 30 -q 0,1,2 -s 64 -I 0 --duration 2s")
            #expect(run.status == 0)
            #expect(run.record.perQoS("publish_sent").allSatisfy { $0 > 0 })
            #expect(run.record.isSound, "\(run.record.reasonCodes)")
            #expect(!run.record.reasonCodes.contains("broker-books"))
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
