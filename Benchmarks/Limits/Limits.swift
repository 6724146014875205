import Foundation
import Measurement

/// Clamor's cost compared with a plain C program that does the same work: `make limits`.
///
/// Each pair is one run of the C program and one of `clamor`, in turn, against the same server, which has a core of
/// its own; only the client's process is billed.
@main
struct Limits {
    static let usage = """
        usage: limits [--rows NAME,...] [--pairs N] [--seconds N] [--out DIR] [--clamor FILE] [--climit FILE] [--list]
        """

    static func main() {
        do {
            // Elsewhere `exit` would leave the directory behind.
            if try !Self.run(Array(CommandLine.arguments.dropFirst())) { exit(1) }
        } catch {
            FileHandle.standardError.write(Data("limits: \(error)\n".utf8))
            exit(error is Refusal ? 64 : 1)
        }
    }

    /// At once, also where it goes into a file.
    private static func say(_ text: String) { FileHandle.standardOutput.write(Data((text + "\n").utf8)) }

    /// Whether every row was measured.
    private static func run(_ arguments: [String]) throws -> Bool {
        if arguments.first == "--micro" {
            try Micro.perform(Array(arguments.dropFirst()))
            return true
        }
        let options = try Options(arguments)
        let work = Workload.all(seconds: options.seconds)
        if options.lists {
            for workload in work { print(workload.name) }
            return true
        }
        let known = Set(work.map(\.name))
        if let wrong = options.rows.first(where: { !known.contains($0) }) {
            throw Refusal("--rows \(wrong) is none of \(work.map(\.name).joined(separator: ", "))")
        }
        let chosen = options.rows.isEmpty ? work : work.filter { options.rows.contains($0.name) }
        let laboratory = try Laboratory(options)
        defer { laboratory.close() }
        var host = Host.read(laboratory)
        Self.say(host.text)
        if let warning = host.warning { Self.say("Note: \(warning)") }

        let (began, cpu) = (Date(), CPUSample.read())
        var results: [Outcome] = []
        for workload in chosen {
            let result = Self.measure(workload, pairs: min(options.pairs, workload.mostPairs ?? .max), in: laboratory)
            results.append(result)
            for line in result.table { Self.say(line.progress) }
        }
        host.stolen = cpu.flatMap { CPUSample.read()?.stealShare(since: $0) }
        let report = Report(host: host, results: results, seconds: Date().timeIntervalSince(began))
        Self.say("\n" + report.markdown)
        let isWhole = results.allSatisfy { $0.problem == nil }
        // A run with holes does not replace the reference.
        if let directory = options.directory, isWhole || options.isDirectoryGiven {
            try report.write(to: directory)
            Self.say("Written to \(directory)/limits.md and limits.json.")
        } else if let directory = options.directory {
            Self.say("Not every row was measured, so \(directory) stays as it is.")
        }
        return isWhole
    }

    /// The pairs of one workload; which of the two goes first changes from pair to pair.
    private static func measure(_ workload: Workload, pairs: Int, in laboratory: Laboratory) -> Outcome {
        var result = Outcome(workload: workload)
        do {
            for pair in 0..<pairs {
                for side in pair.isMultiple(of: 2) ? [Side.reference, .clamor] : [.clamor, .reference] {
                    let progress = "\(workload.name) \(pair + 1)/\(pairs) \(side.rawValue)\n"
                    FileHandle.standardError.write(Data(progress.utf8))
                    let (runs, sample) = try laboratory.record { try workload.measure(side, laboratory) }
                    result.add(sample, runs, side: side, pair: pair + 1)
                }
            }
        } catch {
            // The other rows still tell what they tell.
            result.problem = "\(error)"
        }
        return result
    }
}

/// Wrong usage, or a host that cannot do it: one line.
struct Refusal: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

/// A run whose figures are worth nothing, and why.
struct Mismatch: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

struct Options {
    var rows: [String] = []
    var pairs = 5
    /// Of a run in closed loop: the start of a process is under 1 % of it.
    var seconds = 4.0
    var lists = false
    /// Where the table and all single runs go; a part of the table is printed only.
    var directory: String?
    var isDirectoryGiven = false
    var clamor = ".build/release/clamor"
    var climit = ".build/release/climit"

    init(_ arguments: [String]) throws {
        var rest = arguments[...]
        var isWhole = true
        while let flag = rest.popFirst() {
            if flag == "--list" {
                self.lists = true
                continue
            }
            guard let value = rest.popFirst() else { throw Refusal(Limits.usage) }
            switch flag {
            case "--rows": self.rows = value.split(separator: ",").map(String.init)
            case "--pairs": self.pairs = try Self.number(flag, value)
            case "--seconds": self.seconds = try Self.number(flag, value)
            case "--out":
                self.directory = value
                self.isDirectoryGiven = true
            case "--clamor": self.clamor = value
            case "--climit": self.climit = value
            default: throw Refusal(Limits.usage)
            }
            isWhole = isWhole && !["--rows", "--pairs", "--seconds"].contains(flag)
        }
        if self.directory == nil, isWhole { self.directory = "results/reference" }
    }

    private static func number<N: LosslessStringConvertible & Comparable & ExpressibleByIntegerLiteral>(
        _ flag: String,
        _ value: String
    ) throws -> N {
        guard let number = N(value), number > 0 else { throw Refusal("\(flag) \(value) is no number above 0") }
        return number
    }
}
