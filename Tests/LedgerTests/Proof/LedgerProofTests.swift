import Foundation
import Ledger
import Testing

/// The ledger against a list of every message, over random plans on a virtual server.
///
/// `CLAMOR_LEDGER_PLANS` sets the number of plans; above the usual one, the pairs of features are counted and printed.
@Suite("The ledger's proof")
struct LedgerProofTests {
    static let usual = 500

    static var plans: Int {
        ProcessInfo.processInfo.environment["CLAMOR_LEDGER_PLANS"].flatMap { Int($0) } ?? Self.usual
    }

    @Test("agrees with the naive model, and finds each fault with its cause and example")
    func proof() {
        var coverage = Coverage()
        var failures: [String] = []
        for seed in 1...max(1, Self.plans) {
            var trial = ProofTrial(seed: UInt64(seed))
            trial.runAll()
            coverage.add(trial)
            failures += trial.failures.prefix(3)
            if failures.count > 20 { break }
        }
        for failure in failures { Issue.record("\(failure)") }
        // Each kind of fault was tried.
        #expect(coverage.faults.values.allSatisfy { $0 > 0 }, "\(coverage.faults)")
        let causes = LossCause.allCases.filter { $0 != .unknown && coverage.causes[$0] == nil }
        #expect(causes.isEmpty, "never found: \(causes)")
        #expect(coverage.undecided > 0)
        guard Self.plans > Self.usual else { return }
        print(coverage.table(plans: Self.plans))
        for (pair, count) in coverage.pairs where count < 50 { Issue.record("\(pair): \(count) plans only") }
    }
}

/// How many plans had each pair of features, and how many faults of each kind were tried.
struct Coverage {
    private(set) var pairs: [String: Int] = [:]
    private(set) var single: [Feature: Int] = [:]
    private(set) var faults: [ProofTrial.Fault: Int] = [:]
    private(set) var causes: [LossCause: Int] = [:]
    private(set) var undecided = 0
    private(set) var messages = 0
    private(set) var copies = 0
    private(set) var joints = 0

    init() {
        for fault in ProofTrial.Fault.allCases { self.faults[fault] = 0 }
        for (one, other) in Self.allPairs { self.pairs[Self.name(one, other)] = 0 }
    }

    private static var allPairs: [(Feature, Feature)] {
        Feature.allCases.flatMap { one in Feature.allCases.filter { one < $0 }.map { (one, $0) } }
    }

    private static func name(_ one: Feature, _ other: Feature) -> String { "\(one.rawValue) × \(other.rawValue)" }

    mutating func add(_ trial: ProofTrial) {
        let features = trial.run.features
        for feature in features { self.single[feature, default: 0] += 1 }
        for (one, other) in Self.allPairs where features.contains(one) && features.contains(other) {
            self.pairs[Self.name(one, other), default: 0] += 1
        }
        for (fault, count) in trial.faults { self.faults[fault, default: 0] += count }
        for (cause, count) in trial.causes { self.causes[cause, default: 0] += count }
        self.undecided += trial.undecided
        self.messages += trial.run.messages.count
        self.copies += trial.copies
        self.joints += trial.joints
    }

    /// The pairs as a table of Markdown; the diagonal counts single features.
    func table(plans: Int) -> String {
        let all = Feature.allCases
        var lines = [
            "\(plans) plans, \(self.messages) messages, \(self.copies) copies that arrived, \(self.joints) splits into "
                + "segments",
            "",
            "| fault | tried |", "| --- | ---: |",
        ]
        lines += ProofTrial.Fault.allCases.map { "| \($0.rawValue) | \(self.faults[$0] ?? 0) |" }
        lines += ["", "| cause of a dropped copy | found |", "| --- | ---: |"]
        lines += LossCause.allCases.filter { self.causes[$0] != nil }.map {
            "| \($0.rawValue) | \(self.causes[$0] ?? 0) |"
        }
        lines.append("| none: outstanding | \(self.undecided) |")
        lines += [
            "", "| | feature | " + all.indices.map { "\($0 + 1)" }.joined(separator: " | ") + " |",
            "| ---: | --- |" + String(repeating: " ---: |", count: all.count),
        ]
        for (row, one) in all.enumerated() {
            let cells = all.enumerated().map { column, other in
                if column > row { return "" }
                if column == row { return "\(self.single[one] ?? 0)" }
                return "\(self.pairs[one < other ? Self.name(one, other) : Self.name(other, one)] ?? 0)"
            }
            lines.append("| \(row + 1) | \(one.rawValue) | " + cells.joined(separator: " | ") + " |")
        }
        return lines.joined(separator: "\n")
    }
}
