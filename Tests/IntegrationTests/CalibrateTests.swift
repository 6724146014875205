import Foundation
import Report
import TestSupport
import Testing

extension Integration {
    @Suite("clamor calibrate", .takes(6))
    struct CalibrateTests {
        /// The checks that a busy host may fail, and then must report: times, and checks that need a punctual
        /// generator.
        private static let ofTime: Set = [
            "delay", "delayed messages", "stall, response time", "stall, service time", "pacing error, p50",
            "pacing error, p99", "own CPU, QoS 0", "own CPU, QoS 1", "largest rate", "largest clients",
        ]

        @Test("the quick form proves what is counted to the message, says all it found, and leaves its file")
        func quick() async throws {
            let folder = try ScratchFolder()
            let path = folder.path("calibration.json")
            let ending = try await ClamorBinary.run(["calibrate", "--quick", "--out", path])
            let text = try String(contentsOfFile: path, encoding: .utf8)
            let calibration = try JSONDecoder().decode(Calibration.self, from: Data(text.utf8))
            #expect(calibration.schema == "clamor.calibration/1" && calibration.quick)
            let wrong = calibration.checks.filter { !$0.ok }
            #expect(Set(wrong.map(\.name)).isSubset(of: Self.ofTime), "\(wrong)")
            #expect(ending.status == (wrong.isEmpty ? 0 : 99), "\(ending.errors)")
            #expect(calibration.ok == wrong.isEmpty)
            #expect(ending.errorLines.count == (wrong.isEmpty ? 0 : 1), "\(ending.errors)")
            #expect(calibration.checks.count == 16)
            for check in calibration.checks {
                #expect(ending.output.contains("\(check.ok ? "ok    " : "not ok") \(check.name) "), "\(check.name)")
            }
            #expect(calibration.costs.map(\.qos) == [0, 1])
            #expect(calibration.costs.allSatisfy { $0.cpuSecondsPerMessage > 0 && $0.cpuSecondsPerMessage < 0.01 })
            #expect(calibration.limits.map(\.varies) == ["rate", "clients"])
            #expect(folder.entries() == ["calibration.json"])
            if try await OtherReader.has("jsonschema") {
                try await OtherReader.check(text, against: "calibration")
            }
        }

        @Test("a file that cannot be written is refused before anything has run, 73")
        func nowhere() async throws {
            let ending = try await ClamorBinary.run(["calibrate", "--quick", "--out", "/proc/nowhere/c.json"])
            #expect(ending.status == 73)
            #expect(ending.errorLines.count == 1)
            #expect(ending.errors.hasPrefix("clamor: --out /proc/nowhere/c.json: "))
            #expect(ending.output.isEmpty)
        }

        @Test("SIGINT ends it, 105, and an earlier file stays as it was")
        func interrupted() async throws {
            let folder = try ScratchFolder()
            let path = try folder.write("earlier", to: "calibration.json")
            let ending = try await ClamorBinary.with(["calibrate", "--quick", "--out", path]) { program in
                try await program.line { $0.hasPrefix("Faults ") }
                program.send(SIGINT)
                return try await program.ended()
            }
            #expect(ending.status == 105)
            #expect(
                ending.errors
                    == "clamor: a signal ended the calibration before its time; what was measured until then is "
                    + "in \(path).partial\n"
            )
            #expect(try String(contentsOfFile: path, encoding: .utf8) == "earlier")
        }
    }
}
