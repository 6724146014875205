import Foundation
import Measurement
import TestSupport
import Testing

extension Integration {
    @Suite("Signals")
    struct SignalTests {
        /// SIGHUP only where `nohup` has not taken it from this process, and so from its children.
        private static let ends: [Int32] = {
            let hangup = signal(SIGHUP, SIG_DFL)
            signal(SIGHUP, hangup)
            let isIgnored = unsafeBitCast(hangup, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
            return [SIGINT, SIGTERM] + (isIgnored ? [] : [SIGHUP])
        }()

        @Test("SIGINT, SIGTERM and SIGHUP in mid-run end it in good order: 105, all counted", arguments: ends)
        func interrupted(_ signal: Int32) async throws {
            let (run, broker) = try await BrokerProgram.with { broker in
                try await ClamorRun.of("pub -p \(broker.port) -c 3 -q 0,1,2 -s 64 --rate 300/s --duration 1h") {
                    // Of the first second it is known that the load had begun, not that something had been sent.
                    try await $0.lines { $0.count { $0.contains(" measure ") } >= 2 }
                    $0.send(signal)
                    // The shell repeats it.
                    if signal == SIGHUP { $0.send(signal) }
                }
            }
            #expect(run.status == 105)
            #expect(run.ending.errorLines.count == 1)
            #expect(run.record.state == .aborted)
            #expect(run.record.reasonCodes.first == "interrupted")
            #expect(run.record.hasReasonsOfBusyHost(or: ["interrupted"]), "\(run.record.reasonCodes)")
            #expect(run.record.perQoS("publish_sent") == broker.received.all)
            #expect(broker.received.all.allSatisfy { $0 > 0 })
            #expect(run.record.books.allSatisfy { $0.balances })
        }

        @Test("SIGINT before every client is up ends it as well")
        func whileConnecting() async throws {
            let run = try await ClamorRun.of("pub -h embedded -c 1000 -R 1/s --duration 1h") {
                try await $0.line { $0.contains(" connect ") }
                $0.send(SIGINT)
            }
            #expect(run.status == 105)
            #expect(run.record.state == .aborted)
        }

        @Test("a second signal does not wait for the drain")
        func twice() async throws {
            // The broker takes next to nothing, so that the drain has something to wait for.
            let (run, _) = try await BrokerProgram.with("--max-rate 0.1/s") { broker in
                try await ClamorRun.of("pub -p \(broker.port) -c 2 -q 1 -s 64 --duration 1h --drain 1h") {
                    try await $0.line { $0.contains(" measure ") }
                    $0.send(SIGINT)
                    try await $0.line { $0.contains(" drain ") }
                    $0.send(SIGINT)
                }
            }
            #expect(run.status == 105)
            #expect(run.record.state == .aborted)
            #expect(run.record.books.allSatisfy { $0.balances })
        }

        @Test("SIGINT in the drain of a planned run ends it: 105, and what is in flight is not lost")
        func inDrain() async throws {
            let (run, _) = try await BrokerProgram.with("--max-rate 10/s") { broker in
                try await ClamorRun.of("pubsub -p \(broker.port) -c 4 -q 1 --rate 100/s --duration 1s --drain 1h") {
                    try await $0.line { $0.contains(" drain ") }
                    $0.send(SIGINT)
                }
            }
            #expect(run.status == 105)
            #expect(run.record.state == .aborted)
            #expect(run.record.books.allSatisfy { $0.balances })
            #expect(run.record.books.allSatisfy { $0.lost == 0 && $0.deliveryOutstanding ?? 0 > 0 })
        }

        @Test("SIGINT is the regular end of a run without one", arguments: ["conn -c 3", "pub -c 3 -q 1 --rate 100/s"])
        func endless(_ line: String) async throws {
            let run = try await ClamorRun.of("\(line) -h embedded --duration 0") {
                try await $0.line { $0.contains(" measure ") }
                $0.send(SIGINT)
            }
            #expect(run.status == 0)
            #expect(run.ending.errors.isEmpty)
            #expect(run.record.isSound, "\(run.record.reasonCodes)")
        }
    }
}
