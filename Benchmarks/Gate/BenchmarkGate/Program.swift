import BenchmarkWork
import Foundation
import Synchronization

/// The cost of one operation of a piece of work.
struct Need: Codable, Equatable {
    var instructions: Double
    var bytes: Double
}

/// A build of this program, this one or another, that is started to do the work.
struct Program: Sendable {
    static let childCommand = "work"
    static let this = Program(path: "/proc/self/exe")

    let path: String

    init(path: String) { self.path = URL(filePath: path).resolvingSymlinksInPath().path }

    /// The available pieces of work, by name.
    func list() throws -> [String] {
        try self.output(self.path, ["list"], [:]).split(separator: "\n").map(String.init)
    }

    /// Counts what each piece of work needs, as many at a time as there are cores.
    func needs(_ works: [Work]) throws -> [Need] {
        let processes = min(works.count, ProcessInfo.processInfo.activeProcessorCount)
        let parts = (0..<processes).map { part in works.indices.filter { $0 % processes == part } }
        let counted = Mutex([Result<[Int: Int], any Error>]())
        DispatchQueue.concurrentPerform(iterations: processes) { part in
            let result = Result {
                let counts = try self.instructions(parts[part].map { works[$0] })
                return Dictionary(uniqueKeysWithValues: zip(parts[part], counts))
            }
            counted.withLock { $0.append(result) }
        }
        var instructions: [Int: Int] = [:]
        for result in counted.withLock({ $0 }) { instructions.merge(try result.get()) { $1 } }
        let bytes = try self.numbers(.bytes, works, [self.path], ["LD_PRELOAD": Self.allocator])
        return works.indices.map { index in
            let count = Double(works[index].operations * Child.rounds)
            return Need(
                instructions: Self.rounded(Double(instructions[index] ?? 0) / count),
                bytes: Self.rounded(Double(bytes[index]) / count)
            )
        }
    }

    /// Nanoseconds per operation of each; of this moment, on this machine.
    func times(_ works: [Work]) throws -> [Double] {
        zip(works, try self.numbers(.time, works, [self.path], [:])).map { Double($1) / Double($0.operations) }
    }

    /// The dynamic linker looks a name without a slash up where all libraries are.
    private static let allocator = "libjemalloc.so.2"

    private static func rounded(_ value: Double) -> Double { (value * 100).rounded() / 100 }

    private func instructions(_ works: [Work]) throws -> [Int] {
        let folder = FileManager.default.temporaryDirectory.appending(path: "clamor-gate-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        // Counts between entry and return of the one function, so that start-up and preparations are left out.
        let valgrind = [
            "valgrind", "--tool=callgrind", "-q", "--callgrind-out-file=\(folder.path)/%p",
            "--toggle-collect=*measuredRounds*", self.path,
        ]
        return try self.numbers(.instructions, works, valgrind, [:]).map { process in
            let file = folder.appending(path: String(process))
            guard let lines = try? String(contentsOf: file, encoding: .utf8).split(separator: "\n"),
                let totals = lines.last(where: { $0.hasPrefix("totals:") }),
                let count = Int(totals.dropFirst("totals:".count).trimmingCharacters(in: .whitespaces))
            else { throw GateError("callgrind left no totals") }
            return count
        }
    }

    /// One number for each piece of work.
    private func numbers(
        _ quantity: Quantity,
        _ works: [Work],
        _ command: [String],
        _ extra: [String: String]
    ) throws -> [Int] {
        let arguments = command.dropFirst() + [Self.childCommand, quantity.rawValue] + works.map(\.name)
        let output = try self.output(command[0], Array(arguments), extra)
        let numbers = output.split(separator: "\n").compactMap { Int($0) }
        guard numbers.count == works.count else { throw GateError("not \(works.count) numbers: \(output)") }
        return numbers
    }

    private func output(_ program: String, _ arguments: [String], _ extra: [String: String]) throws -> String {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = [program] + arguments
        process.environment = Self.environment.merging(extra) { $1 }
        let (output, errors) = (Pipe(), Pipe())
        process.standardOutput = output
        process.standardError = errors
        try process.run()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        let complaint = String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            let words = complaint.split(separator: "\n").first.map { ": \($0)" } ?? ""
            let command = ([program] + arguments.prefix { $0 != Self.childCommand }).joined(separator: " ")
            throw GateError("'\(command)' failed\(words); 'make needs-bench' installs what it needs")
        }
        return text
    }

    /// The same for every child on every machine of an architecture, as far as an environment can bring that about.
    private static let environment: [String: String] = {
        var environment = [
            // Otherwise each process hashes with a seed of its own, and dictionaries collide differently.
            "SWIFT_DETERMINISTIC_HASHING": "1",
            // memcpy and its sisters as every x86-64 has them, whatever this one could do in addition.
            "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX_Fast_Unaligned_Load,-AVX2,-AVX512F,-AVX512VL,-ERMS,-FSRM,"
                + "-SSE4_1,-SSSE3",
            "LC_ALL": "C",
        ]
        for name in ["PATH", "LD_LIBRARY_PATH", "TMPDIR"] {
            environment[name] = ProcessInfo.processInfo.environment[name]
        }
        return environment
    }()
}
