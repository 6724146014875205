import Foundation
import Measurement
import TestSupport
import Testing
import clamor

extension Integration {
    @Suite("The ready scenarios of clamor init, shortened")
    struct ReadyScenarioTests {
        /// Writes one where it is to be, as a user does.
        private static func file(_ name: String, in folder: borrowing ScratchFolder) async throws -> String {
            let path = folder.path("\(name).yaml")
            let written = try await ClamorBinary.run(["init", name, "--out", path])
            #expect(written.status == 0, "\(written.errors)")
            #expect(written.output == "wrote \(path); what would run: clamor run \(path) --check\n")
            // It is the user's now.
            let again = try await ClamorBinary.run(["init", name, "--out", path])
            #expect(again.status == 73)
            #expect(again.errorLines.count == 1)
            return path
        }

        /// Runs a file with `NAME=VALUE` pairs, separated by blanks.
        private static func run(_ path: String, _ variables: String, _ more: String = "") async throws -> ClamorRun {
            let flags = variables.split(separator: " ").map { "--set \($0)" }.joined(separator: " ")
            return try await ClamorRun.of("run \(path) --threads 2 \(more) \(flags)")
        }

        /// The run has made its accounts by then, and cannot remove them.
        @Test(
            "none of them succeeds with an XMPP server that hangs half-way",
            .enabled(if: Ejabberd.isInstalled, "\(Ejabberd.missing)"),
            arguments: [
                ("door-access", "TARGET", "DOORS=4 RATE=40/s DURATION=6s WARMUP=0s"),
                ("mixed", "XMPP", "USERS=4 SENSORS=5 SETTLE=1s PEAK=6s"),
            ]
        )
        func hangOfXMPP(name: String, target: String, variables: String) async throws {
            let folder = try ScratchFolder()
            let path = try await Self.file(name, in: folder)
            try await XMPPServer.with(.ejabberd) { server in
                let (run, _, _) = try await ProxyProgram.with(before: server.port, "--stall 10m@4s") { proxy in
                    let place = "\(target)=xmpp://127.0.0.1:\(proxy.port) DOMAIN=\(server.domain) TLS=off P99=30s"
                    return try await Self.run(path, "\(variables) \(place)", "--drain 2s")
                }
                #expect([69, 99].contains(run.status), "\(run.ending.errors) \(run.record.thresholds)")
                #expect(run.record.books.allSatisfy { $0.balances && $0.lost ?? 0 == 0 })
                #expect(run.record.books.contains { $0.outstanding ?? 0 > 0 })
            }
        }

        @Test(
            "on mosquitto",
            .enabled(if: Mosquitto.isInstalled, Comment(rawValue: Mosquitto.missing)),
            arguments: [
                ("fleet", "DEVICES=10 RATE=100/s SETTLE=1s PEAK=1s STORM=1s P99=30s"),
                ("fan-out", "LISTENERS=8 STEP=1s P99=30s"),
                ("login-storm", "CLIENTS=12 CALM=1s STORM=1s AFTER=1s P99=30s"),
                ("session-drain", "PAIRS=6 STEADY=1s AWAY=1s AFTER=1s P99=30s"),
                ("overload", "DEVICES=10 RATE=100/s BEFORE=1s OVERLOAD=1s AFTER=1s P99=30s"),
                ("request-response", "CLIENTS=8 SETTLE=1s PEAK=1s P99=30s TIMEOUT=30s"),
            ]
        )
        func mosquitto(name: String, variables: String) async throws {
            let folder = try ScratchFolder()
            let path = try await Self.file(name, in: folder)
            let run = try await Mosquitto.with { broker in
                try await Self.run(path, "\(variables) TARGET=mqtt://127.0.0.1:\(broker.port)")
            }
            #expect(run.status == 0, "\(run.ending.errors) \(run.record.thresholds)")
            #expect(run.record.isSound, "\(run.record.reasonCodes)")
            #expect(run.record.books.allSatisfy { $0.balances && $0.lost ?? 0 == 0 })
        }

        @Test(
            "on ejabberd",
            .enabled(if: Ejabberd.isInstalled, "\(Ejabberd.missing)"),
            arguments: [
                ("door-access", "TARGET", "DOORS=4 RATE=40/s DURATION=1s WARMUP=0s"),
                ("mixed", "XMPP", "USERS=4 SENSORS=5 SETTLE=1s PEAK=1s"),
            ]
        )
        func ejabberd(name: String, target: String, variables: String) async throws {
            let folder = try ScratchFolder()
            let path = try await Self.file(name, in: folder)
            // The run makes the accounts and removes them at its end.
            let run = try await XMPPServer.with(.ejabberd) { server in
                let place = "\(target)=xmpp://127.0.0.1:\(server.port) DOMAIN=\(server.domain)"
                return try await Self.run(path, "\(variables) \(place) TLS=off P99=30s")
            }
            #expect(run.status == 0, "\(run.ending.errors) \(run.record.thresholds)")
            #expect(run.record.isSound, "\(run.record.reasonCodes)")
        }
    }
}
