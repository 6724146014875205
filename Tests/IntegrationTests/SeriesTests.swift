import Foundation
import Measurement
import Report
import TestSupport
import Testing

extension Integration {
    @Suite("Several runs, by clamor run --repeat and --against")
    struct SeriesTests {
        private static let scenario = """
            name: small
            target: embedded
            duration: 1s
            groups:
              a: { clients: 2, publish: { qos: 1, size: 64, rate: "${RATE:-200/s}" } }
            """

        private static func run(
            _ folder: ScratchFolder,
            _ flags: String,
            _ more: String...,
            scenario: String = Self.scenario
        ) async throws -> RunningProgram.Ending {
            let file = try folder.write(scenario, to: "small.yaml")
            let words = flags.split(separator: " ").map(String.init)
            return try await ClamorBinary.run(["run", file, "--out", folder.path("out")] + words + more)
        }

        private static func record(_ folder: ScratchFolder, _ name: String) throws -> RunRecord {
            try RunJSON.read(directory: folder.path("out/\(name)"))
        }

        @Test("both sides in turn, A B A B, and what compare says of their directories is what is there already")
        func turns() async throws {
            let folder = try ScratchFolder()
            // A busy host may limit the generator, and differs from itself.
            let limits = "publish_acked rate 90%"
            let file = try folder.write(Self.scenario, to: "small.yaml")
            let ending = try await ClamorBinary.run([
                "run", file, "--out", folder.path("out"), "--repeat", "2", "--against", "embedded", "--max-regression",
                limits, "--allow-different", "verdict",
            ])
            #expect(ending.status == 0, "\(ending.errors)")
            #expect(folder.entries() == ["out", "small.yaml"])
            #expect(folder.entries("out") == ["a", "b", "compare.json", "compare.md"])
            let names = ["a/1", "b/1", "a/2", "b/2"]
            let records = try names.map { try Self.record(folder, $0) }
            #expect(records.map(\.startedAt) == records.map(\.startedAt).sorted())
            #expect(records.allSatisfy { $0.count("publish_acked") == 200 })
            for (number, name) in names.enumerated() {
                #expect(ending.output.contains("run \(number + 1) of 4, \(name) · "))
            }
            let words = "NO DIFFERENCE  none of 1 judged figures regressed beyond its limit · 2 runs of base"
            #expect(ending.output.contains(words))
            let again = try await ClamorBinary.run([
                "compare", folder.path("out/a"), folder.path("out/b"), "--max-regression", limits, "--allow-different",
                "verdict", "--json",
            ])
            #expect(again.status == 0)
            #expect(again.output == (try String(contentsOfFile: folder.path("out/compare.json"), encoding: .utf8)))
        }

        @Test("until it is decided: A B B A, and the series ends once one side is worse, 99")
        func decided() async throws {
            let folder = try ScratchFolder()
            let scenario = Self.scenario.replacing(
                "clients: 2, publish: {",
                with: "clients: 2, subscribers: 1, publish: { topic: t,"
            )
            let (ending, _) = try await BrokerProgram.with("--delay 20ms") { broker in
                try await Self.run(
                    folder,
                    "--against 127.0.0.1:\(broker.port) --until-decided --max 5m",
                    "--max-regression",
                    "delivery_duration p50 25%",
                    scenario: scenario
                )
            }
            #expect(ending.status == 99, "\(ending.output)\(ending.errors)")
            #expect(ending.output.contains("\nWORSE  1 of 1 judged figures regressed beyond its limit"))
            let pairs = folder.entries("out/a").count
            // Three pairs that agree show a factor of many; more are made where the host was busy.
            #expect((3...20).contains(pairs) && folder.entries("out/b").count == pairs)
            let again = try await ClamorBinary.run([
                "compare", folder.path("out/a"), folder.path("out/b"), "--paired", "--max-regression",
                "delivery_duration p50 25%", "--json",
            ])
            #expect(again.status == 99)
            #expect(again.output == (try String(contentsOfFile: folder.path("out/compare.json"), encoding: .utf8)))
            let names = ["a/01", "b/01", "b/02", "a/02", "a/03", "b/03"]
            let records = try names.map { try Self.record(folder, $0) }
            #expect(records.map(\.startedAt) == records.map(\.startedAt).sorted())
            #expect(ending.errorLines.last?.hasPrefix("clamor: regression: delivery_duration{") == true)
        }

        @Test("until it is decided: two sides without a difference end with two pairs, 0; limited runs are put aside")
        func noDifference() async throws {
            let folder = try ScratchFolder()
            let ending = try await Self.run(
                folder,
                "--against embedded --until-decided --max 5m",
                "--max-regression",
                "publish_acked rate 90%"
            )
            #expect(ending.status == 0, "\(ending.output)\(ending.errors)")
            #expect(ending.output.contains("\nNO DIFFERENCE  none of 1 judged figures"))
            #expect(folder.entries("out/a") == ["01", "02"] && folder.entries("out/b") == ["01", "02"])
            let states = try ["a/01", "b/01", "b/02", "a/02"].map { try Self.record(folder, $0).verdict?.state }
            #expect(!states.contains(.generatorLimited))
        }

        @Test("a slower server is a regression, 99")
        func regression() async throws {
            let folder = try ScratchFolder()
            let (ending, _) = try await BrokerProgram.with("--max-rate 50/s") { broker in
                // Alone: what else a busy host made slower would be named first.
                try await Self.run(
                    folder,
                    "--repeat 2 --against 127.0.0.1:\(broker.port) --drain 20s --allow-different verdict",
                    "--max-regression",
                    "publish_ack_duration p50 25%"
                )
            }
            #expect(ending.status == 99, "\(ending.output)\(ending.errors)")
            #expect(ending.errorLines.last?.hasPrefix("clamor: regression: publish_ack_duration{") == true)
        }

        @Test("another plan is refused before anything has run, until it is allowed")
        func plan() async throws {
            let folder = try ScratchFolder()
            let refused = try await Self.run(folder, "--repeat 1 --against RATE=100/s")
            #expect(refused.status == 65)
            #expect(refused.errorLines.count == 1)
            #expect(refused.errors.hasPrefix("clamor: the plans differ: groups.a.rate 200 and 100 in "))
            #expect(folder.entries() == ["small.yaml"])
            let allowed = try await Self.run(folder, "--repeat 1 --against RATE=100/s --allow-different plan,verdict")
            #expect([0, 99].contains(allowed.status), "\(allowed.errors)")
            #expect(try Self.record(folder, "a/1").count("publish_acked") == 200)
            #expect(try Self.record(folder, "b/1").count("publish_acked") == 100)
        }

        @Test("thresholds are judged for each run, and the series goes on")
        func thresholds() async throws {
            let folder = try ScratchFolder()
            let scenario = Self.scenario + "\nthresholds: [\"publish_acked count == 1\"]"
            let ending = try await Self.run(folder, "--repeat 2", scenario: scenario)
            #expect(ending.status == 99)
            #expect(
                ending.errorLines == [
                    "clamor: run 1 of 2, 1: threshold failed: 'publish_acked count == 1'",
                    "clamor: run 2 of 2, 2: threshold failed: 'publish_acked count == 1'",
                ]
            )
            #expect(folder.entries("out") == ["1", "2"])
            #expect(ending.output.hasPrefix("run 1 of 2, 1 · valid · publish_ack_duration p50 "))
        }

        @Test("a threshold that ends each run does not end the series")
        func aborted() async throws {
            let folder = try ScratchFolder()
            let scenario =
                Self.scenario.replacing("duration: 1s", with: "duration: 10m")
                + "\nthresholds: [\"publish_ack_duration p99 < 1ns abort\"]"
            let ending = try await Self.run(folder, "--repeat 2", scenario: scenario)
            #expect(ending.status == 99, "\(ending.errors)")
            #expect(folder.entries("out") == ["1", "2"])
        }

        @Test("a side whose server is not there ends it, 69: what was measured is kept, and nothing is compared")
        func nobody() async throws {
            let folder = try ScratchFolder()
            let ending = try await Self.run(folder, "--repeat 2 --against 127.0.0.1:1")
            #expect(ending.status == 69)
            #expect(ending.errorLines.count == 1)
            #expect(ending.errors.hasPrefix("clamor: run 2 of 4, b/1: "))
            #expect(
                ending.errors.hasSuffix(
                    "; 1 of 4 runs is whole, what was measured is in \(folder.path("out")), and nothing was compared\n"
                )
            )
            #expect(folder.entries("out") == ["a", "b"])
            #expect(try Self.record(folder, "a/1").count("publish_acked") == 200)
        }

        @Test(
            "another product is refused after the first run of each side, 65: both are kept, and nothing is compared",
            .enabled(if: Mosquitto.isInstalled, "\(Mosquitto.missing)")
        )
        func product() async throws {
            let folder = try ScratchFolder()
            let ending = try await Mosquitto.with { broker in
                try await Self.run(folder, "--repeat 3 --server-name on --against 127.0.0.1:\(broker.port)")
            }
            #expect(ending.status == 65)
            #expect(ending.errorLines.count == 1)
            #expect(ending.errors.hasPrefix("clamor: run 2 of 6, b/1: "))
            #expect(ending.errors.contains("mosquitto"))
            #expect(ending.errors.contains("; --allow-different server compares all the same; 2 of 6 runs are whole"))
            #expect(folder.entries("out/a") == ["1"])
            #expect(folder.entries("out/b") == ["1"])
            #expect(folder.entries("out") == ["a", "b"])
        }

        @Test("SIGINT ends the run that goes on in good order, and the series, 105")
        func interrupted() async throws {
            let folder = try ScratchFolder()
            let file = try folder.write(Self.scenario, to: "small.yaml")
            let ending = try await ClamorBinary.with([
                "run", file, "--out", folder.path("out"), "--repeat", "1000",
            ]) { program in
                try await program.line { $0.hasPrefix("run 1 of 1000, 0001 · ") }
                program.send(SIGINT)
                return try await program.ended()
            }
            #expect(ending.status == 105)
            #expect(ending.errorLines.count == 1)
            // How many it is depends on the host.
            let whole = /clamor: run .*; [0-9]+ of 1000 runs (is|are) whole, what was measured is in [^ ]+\n/
            #expect(ending.errors.wholeMatch(of: whole) != nil, "\(ending.errors)")
            #expect(folder.entries() == ["out", "small.yaml"])
            #expect(try Self.record(folder, "0001").count("publish_acked") == 200)
        }
    }
}
