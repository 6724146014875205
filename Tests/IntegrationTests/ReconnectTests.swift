import Foundation
import Measurement
import TestSupport
import Testing

extension Integration {
    @Suite("Clients that come back")
    struct ReconnectTests {
        @Test("a first connect that fails is tried again, --num-retry-connect times")
        func firstConnect() async throws {
            let reserved = try ReservedPort()
            let failed = try await ClamorRun.of(
                "conn -p \(reserved.port) -c 2 --num-retry-connect 3 --reconnect-period 10 --duration 1s"
            )
            #expect(failed.status == 69)
            #expect(failed.record.errors.map { $0.count } == [8])

            // The port is closed until the run has tried it.
            let port = reserved.port
            let run = try await ClamorRun.of(
                "conn -p \(port) -c 2 --num-retry-connect 100000 --reconnect-period 20 --duration 0"
            ) { program in
                try await program.line { $0.contains("0/2 clients") && $0.contains("error") }
                reserved.release()
                try await ClamorBinary.with(["broker", "-p", "\(port)"]) { broker in
                    try await broker.line()
                    try await program.line { $0.contains("2/2 clients") }
                    program.send(SIGINT)
                    _ = try await program.ended()
                }
            }
            #expect(run.status == 0)
            #expect(run.record.errors.map { $0.kind } == ["refused"])
            #expect(run.record.duration("connect_duration", ["phase": "total"])?.count == 2)
        }

        @Test("clients find a broker that was restarted, and all that was sent is accounted for")
        func restart() async throws {
            try await ClamorBinary.with(["broker", "-p", "0"]) { first in
                let port = try await first.line().split(separator: ":").last ?? ""
                let run = try await ClamorRun.of(
                    """
                    pub -p \(port) -c 3 -q 0,1,2 -s 64 --rate 300/s --duration 0 --reconnect 100000 \
                    --reconnect-period 20
                    """
                ) { program in
                    try await program.line { $0.contains(" measure ") && $0.contains("3/3 clients") }
                    first.send(SIGKILL)
                    _ = try await first.ended()
                    func shown(_ clients: String, after line: Int) async throws -> Int {
                        try await program.lines { $0.dropFirst(line).contains { $0.contains(clients) } }.count
                    }
                    let before = try await program.lines { !$0.isEmpty }.count
                    let gone = try await shown("0/3 clients", after: before)
                    try await ClamorBinary.with(["broker", "-p", String(port)]) { second in
                        try await second.line()
                        _ = try await shown("3/3 clients", after: gone)
                        program.send(SIGINT)
                        _ = try await program.ended()
                    }
                }
                #expect(run.status == 0)
                #expect(run.record.count("reconnects") == 3)
                let downtime = run.record.duration("downtime_duration")
                #expect(downtime?.count == 3 && downtime?.unanswered == nil)
                #expect(run.record.books.count == 3)
                #expect(run.record.books.allSatisfy { $0.balances })
                #expect(run.record.isSound, "\(run.record.reasonCodes)")
                #expect(run.record.count("disconnects") == 3)
            }
        }

        @Test("SIGKILL takes the embedded broker along")
        func killedWithBroker() async throws {
            let folder = try ScratchFolder()
            let arguments = ClamorRun.arguments("pub -h embedded -c 1 --rate 10/s --duration 1h", in: folder)
            try await ClamorBinary.with(arguments) { program in
                try await program.line { $0.contains(" measure ") }
                program.send(SIGKILL)
                // The broker writes its errors where the run does, so the stream ends when both are gone.
                let ending = try await program.ended()
                #expect(ending.status == -SIGKILL)
                #expect(ending.errors.isEmpty)
            }
        }
    }
}
