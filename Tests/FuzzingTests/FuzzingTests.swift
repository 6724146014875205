import Foundation
import Fuzzing
import TestSupport
import Testing

/// Each fuzzer has a process of its own: it looks at its memory, and an input that traps ends that process alone.
@Suite("Mutated inputs")
struct FuzzingTests {
    /// Inputs of one run: a few seconds altogether.
    private static func count(_ target: Seeds.Target) -> Int {
        switch target {
        case .decoder: 40_000
        case .session, .broker, .tokenizer: 15_000
        // Each a whole conversation.
        case .stream: 4_000
        // Each a directory of results.
        case .results: 2_000
        }
    }

    /// Runs the program that is built beside the test bundle, with the same order of dictionaries each time.
    private static func run(_ arguments: String...) async throws -> RunningProgram.Ending {
        let bundle = URL(filePath: CommandLine.arguments[0]).resolvingSymlinksInPath()
        let program = bundle.deletingLastPathComponent().appending(path: "clamor-fuzz")
        let command = ["SWIFT_DETERMINISTIC_HASHING=1", program.path] + arguments
        return try await RunningProgram("/usr/bin/env", command).ended()
    }

    /// The states that the seeds and `count` mutated inputs reach.
    private static func reached(_ target: Seeds.Target, _ count: Int, _ seed: UInt64) async throws -> Reached? {
        let fuzzer = try await self.run("reached", target.rawValue, "\(count)", "\(seed)")
        guard fuzzer.status == 0 else {
            Issue.record("\(target.rawValue), seed \(seed), status \(fuzzer.status): \(fuzzer.output)\(fuzzer.errors)")
            return nil
        }
        return try JSONDecoder().decode(Reached.self, from: Data(fuzzer.output.utf8))
    }

    @Test("break no rule", arguments: Seeds.Target.allCases, [1, 2, 3] as [UInt64])
    func mutated(_ target: Seeds.Target, _ seed: UInt64) async throws {
        guard let reached = try await Self.reached(target, Self.count(target), seed) else { return }
        #expect(reached.inputs > Self.count(target))
        // A fuzzer whose inputs are refused at the door finds nothing.
        #expect(reached.withPacket * 3 > reached.inputs)
        guard seed == 1 else { return }
        switch target {
        case .decoder:
            #expect(reached.packetTypesMissing == [])
            #expect(reached.errorsMissing == [])
        case .tokenizer: #expect(TokenizerTarget.errorsMissing(in: reached) == [])
        case .session, .broker, .stream, .results: break
        }
    }

    @Test("found these once", arguments: Seeds.crashes)
    func found(_ crash: Seeds.Crash) async throws {
        let fuzzer = try await Self.run("replay", crash.target, crash.bytes)
        #expect(fuzzer.status == 0, "\(fuzzer.output)\(fuzzer.errors)")
    }

    @Test("are the same from the same seed", arguments: Seeds.Target.allCases)
    func repeatable(_ target: Seeds.Target) async throws {
        let first = try await Self.reached(target, 500, 7)
        #expect(try await Self.reached(target, 500, 7) == first)
    }
}
