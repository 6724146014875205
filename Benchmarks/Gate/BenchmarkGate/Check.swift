import BenchmarkWork
import Foundation

/// The gate itself.
enum Check {
    /// Holds each gated piece of work to the expected figures.
    ///
    /// - Returns: 0 if all hold, 1 if not, and ``BenchmarkGate/notChecked`` where nothing is expected.
    static func perform(_ file: ThresholdFile) throws -> Int32 {
        guard let contents = try file.read() else {
            print(
                "gate: NOT CHECKED: no expected figures for Swift \(file.swift.minor) on \(file.architecture); "
                    + "'make bench-update' writes \(file.path)"
            )
            return BenchmarkGate.notChecked
        }
        let gated = Work.all.filter(\.isGated)
        let needs = try self.measure(gated)
        var failures: [String] = []
        print(self.row("per operation", "instructions", "expected", "bytes", "expected", ""))
        for (work, need) in zip(gated, needs) {
            let expected = contents.expected[work.suite.rawValue]?[work.name]
            let problems = expected.map { self.problems(need, $0, contents.tolerancePercent) }
            let verdict = problems.map { $0.isEmpty ? "ok" : "FAILED" } ?? "NOT EXPECTED"
            print(
                self.row(
                    work.name,
                    self.text(need.instructions),
                    expected.map { self.text($0.instructions) } ?? "",
                    self.text(need.bytes),
                    expected.map { self.text($0.bytes) } ?? "",
                    verdict
                )
            )
            failures += (problems ?? ["no expected figure"]).map { "\(work.suite.rawValue): \(work.name): \($0)" }
        }
        let names = Set(gated.map(\.name))
        for (suite, expected) in contents.expected.sorted(by: { $0.key < $1.key }) {
            for name in expected.keys.sorted() where !names.contains(name) {
                failures.append("\(suite): \(name): expected, but there is no such work")
            }
        }
        return self.conclude(failures, of: gated.count, file, contents)
    }

    private static func conclude(
        _ failures: [String],
        of count: Int,
        _ file: ThresholdFile,
        _ contents: ThresholdFile.Contents
    ) -> Int32 {
        guard !failures.isEmpty else {
            print("gate: passed: \(count) pieces of work are within \(contents.tolerancePercent) % of \(file.path)")
            return 0
        }
        for failure in failures { print("gate: \(failure)") }
        for (name, version) in file.makers.sorted(by: { $0.key < $1.key }) {
            guard let made = contents.madeWith[name], made != version else { continue }
            print("gate: note: the expected figures were made with \(name) \(made), this is \(version)")
        }
        print("gate: FAILED: \(failures.count) of the figures in \(file.path) do not hold")
        print("gate: if that is meant, 'make bench-update' makes them the expected ones")
        return 1
    }

    /// Writes the figures of now.
    static func update(_ file: ThresholdFile) throws -> Int32 {
        let gated = Work.all.filter(\.isGated)
        let before = try file.read()
        var expected: [String: [String: Need]] = [:]
        print(self.row("per operation", "instructions", "before", "bytes", "before", ""))
        for (work, need) in zip(gated, try self.measure(gated)) {
            expected[work.suite.rawValue, default: [:]][work.name] = need
            let old = before?.expected[work.suite.rawValue]?[work.name]
            print(
                self.row(
                    work.name,
                    self.text(need.instructions),
                    old.map { self.text($0.instructions) } ?? "",
                    self.text(need.bytes),
                    old.map { self.text($0.bytes) } ?? "",
                    old.map { self.ratio(need.instructions, $0.instructions) } ?? "new"
                )
            )
        }
        let tolerance = before?.tolerancePercent ?? ThresholdFile.defaultTolerance
        try file.write(.init(madeWith: file.makers, tolerancePercent: tolerance, expected: expected))
        print("gate: wrote \(file.path)")
        return 0
    }

    // MARK: Figures

    /// The problems of a figure: too much, and also too little.
    ///
    /// A smaller figure is either an improvement, or work that the optimizer has removed. A limit above it would not
    /// notice if the gain were lost again.
    private static func problems(_ need: Need, _ expected: Need, _ tolerance: Double) -> [String] {
        [
            ("instructions", need.instructions, expected.instructions, 0.5),
            ("bytes allocated", need.bytes, expected.bytes, 0.05),
        ].compactMap { name, value, wanted, least in
            guard abs(value - wanted) > max(wanted * tolerance / 100, least) else { return nil }
            let change = wanted == 0 ? "" : " (\(self.ratio(value, wanted)))"
            return "\(self.text(value)) \(name) where \(self.text(wanted)) are expected\(change)"
        }
    }

    /// Counts each piece of work, once the meters have shown that they see.
    ///
    /// A gate whose meters read 0 would pass everything, so work of a known need is counted with the others.
    private static func measure(_ works: [Work]) throws -> [Need] {
        let needs = try Program.this.needs(Work.proofs + works)
        for (work, need) in zip(Work.proofs, needs) {
            // A loop's step and a call are a handful of instructions, an allocation and its end a few dozen.
            let known: (bytes: Double, instructions: ClosedRange<Double>) =
                work.name == Work.allocationProof ? (64, 20...1_000) : (0, 2...20)
            guard need.bytes == known.bytes else {
                throw GateError("the meter of bytes is broken: it reads \(need.bytes) for '\(work.name)'")
            }
            guard known.instructions.contains(need.instructions) else {
                throw GateError("the meter of instructions is broken: it reads \(need.instructions) for '\(work.name)'")
            }
        }
        return Array(needs.dropFirst(Work.proofs.count))
    }

    // MARK: Words

    static func row(_ cells: String...) -> String {
        zip(cells, [62, 13, 13, 11, 11, 0]).enumerated().map { index, cell in
            let padding = String(repeating: " ", count: max(0, cell.1 - cell.0.count))
            return index == 0 ? cell.0 + padding : padding + cell.0
        }.joined(separator: " ")
    }

    static func text(_ value: Double) -> String { String(format: value < 1_000 ? "%.2f" : "%.0f", value) }

    static func ratio(_ value: Double, _ base: Double) -> String {
        base == 0 ? (value == 0 ? "x 1.000" : "from 0") : String(format: "x %.3f", value / base)
    }
}
