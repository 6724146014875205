import BenchmarkWork
import Foundation

/// Counts what each piece of work needs, and compares it with what it should.
///
/// Only counts: instructions by callgrind, bytes by jemalloc. They are the same on a busy machine and on an idle one,
/// so a difference is a difference of the program.
@main
struct BenchmarkGate {
    static let usage = """
        usage: BenchmarkGate check THRESHOLDS     holds the work to the expected figures
               BenchmarkGate update THRESHOLDS    writes the figures of now as the expected ones
               BenchmarkGate compare BASE         the work of another build of this program against that of this one
               BenchmarkGate list                 what there is to measure
        """

    /// sysexits.h's, as the product has it.
    static let wrongUsage: Int32 = 64
    /// The exit status that test drivers treat as "skipped".
    static let notChecked: Int32 = 77

    static func main() {
        let arguments = Array(CommandLine.arguments.dropFirst())
        do {
            exit(try self.run(arguments))
        } catch {
            FileHandle.standardError.write(Data("gate: \(error)\n".utf8))
            exit(1)
        }
    }

    private static func run(_ arguments: [String]) throws -> Int32 {
        switch (arguments.first, arguments.count) {
        case ("list", 1):
            for work in Work.all { print(work.name) }
            return 0
        case ("check", 2): return try Check.perform(ThresholdFile(folder: arguments[1]))
        case ("update", 2): return try Check.update(ThresholdFile(folder: arguments[1]))
        case ("compare", 2): return try Comparison.perform(base: arguments[1])
        case (Program.childCommand, 3...):
            let works = arguments.dropFirst(2).compactMap(Work.named)
            guard let quantity = Quantity(rawValue: arguments[1]), works.count == arguments.count - 2 else { break }
            try Child.perform(works, quantity)
            return 0
        default: break
        }
        FileHandle.standardError.write(Data((self.usage + "\n").utf8))
        return self.wrongUsage
    }
}

/// Why nothing can be measured.
struct GateError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
