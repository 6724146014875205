import Ledger
import TestSupport

/// One plan: a faultless run, some runs with one fault each, and a run in segments.
struct ProofTrial {
    enum Fault: String, CaseIterable {
        case dropped = "a copy dropped"
        case admitted = "a copy dropped and admitted"
        case doubled = "a copy doubled"
        case swapped = "neighbours swapped"
    }

    let run: VirtualRun
    private(set) var failures: [String] = []
    private(set) var faults: [Fault: Int] = [:]
    private(set) var causes: [LossCause: Int] = [:]
    /// Dropped copies that may still come, as far as the harness can know.
    private(set) var undecided = 0
    private(set) var copies = 0
    private(set) var joints = 0
    private let base: NaiveModel
    private var dice: SeededDice

    init(seed: UInt64) {
        self.run = VirtualBroker.run(ProofPlan(seed: seed))
        self.base = NaiveModel(self.run)
        self.dice = SeededDice(seed: seed &+ 99)
    }

    mutating func runAll() {
        let log = self.run.log
        for case .arrived in log { self.copies += 1 }
        _ = self.compare("faultless", self.run, log, self.base)
        for (row, figures) in self.base.rows {
            let wrong = figures.lost.filter { ![.sessionLost, .freshSubscription, .serverAdmitted].contains($0.key) }
            if !wrong.isEmpty { self.fail("faultless: \(row) lost \(wrong)") }
            if figures.expected != figures.received + figures.absent { self.fail("faultless: \(row) is unbalanced") }
            if figures.duplicated != figures.permitted { self.fail("faultless: \(row) duplicated") }
            if figures.reordered > 0 { self.fail("faultless: \(row) reordered") }
        }
        let sample = self.base.promised.sorted { ($0.message, $0.target.place) < ($1.message, $1.target.place) }
            .shuffled(using: &self.dice)
        for pair in sample.prefix(2) { self.drop(pair, isAdmitted: false) }
        for pair in sample.dropFirst(2).prefix(1) { self.drop(pair, isAdmitted: true) }
        for pair in sample.dropFirst(3).prefix(2) { self.double(pair) }
        self.swap()
        self.split()
    }

    private mutating func fail(_ what: String) { self.failures.append("plan \(self.run.plan.seed): \(what)") }

    // MARK: - The books of a run

    private mutating func compare(
        _ what: String,
        _ run: VirtualRun,
        _ log: [VirtualRun.Entry],
        _ naive: NaiveModel
    ) -> (books: ProofBooks, result: Reconciliation) {
        let books = ProofBooks(run, log: log, shards: run.plan.loops)
        let result = books.reconciliation()
        if !result.problems.isEmpty { self.fail("\(what): \(result.problems)") }
        var rows = Self.rows(result)
        for (row, figures) in naive.rows {
            let key = RowKey(label: books.label(row), qos: row.qos)
            let own = rows.removeValue(forKey: key)
            if own != figures { self.fail("\(what): \(row) ledger \(own as Any) model \(figures)") }
        }
        if !rows.isEmpty { self.fail("\(what): rows \(rows.keys)") }
        return (books, result)
    }

    private struct RowKey: Hashable {
        var label: Int
        var qos: UInt8
    }

    private static func rows(_ result: Reconciliation) -> [RowKey: NaiveModel.Figures] {
        var rows: [RowKey: NaiveModel.Figures] = [:]
        for row in result.rows {
            var figures = NaiveModel.Figures()
            figures.expected = Int(row.expected ?? 0)
            figures.received = Int(row.received)
            figures.lost = row.lostBy.mapValues { Int($0) }
            figures.outstanding = Int(row.outstanding ?? 0)
            figures.missing = Int(row.missing ?? 0)
            figures.duplicated = Int(row.duplicated)
            figures.permitted = Int(row.permitted)
            figures.overlapped = Int(row.overlapped)
            figures.reordered = Int(row.reordered)
            figures.gaps = Int(row.gaps)
            rows[RowKey(label: row.label, qos: row.qos)] = figures
        }
        return rows
    }

    // MARK: - Faults

    private func entries(of pair: NaiveModel.Pair) -> [Int] {
        self.run.log.indices.filter {
            guard case .arrived(let arrival, _) = self.run.log[$0] else { return false }
            return arrival.message == pair.message && arrival.target == pair.target
        }
    }

    private func times(_ count: Int, _ entry: VirtualRun.Entry) -> VirtualRun.Entry {
        guard case .arrived(let arrival, _) = entry else { return entry }
        return .arrived(arrival, times: count)
    }

    private mutating func drop(_ pair: NaiveModel.Pair, isAdmitted: Bool) {
        let fault: Fault = isAdmitted ? .admitted : .dropped
        var run = self.run
        if isAdmitted { run.messages[pair.message].isAdmitted = true }
        var log = run.log
        for index in self.entries(of: pair) { log[index] = self.times(0, log[index]) }
        let naive = NaiveModel(run, log: log)
        let what = "\(fault.rawValue) \(pair)"
        let (books, result) = self.compare(what, run, log, naive)
        for (row, figures) in naive.rows {
            let found = naive.lost[row]?.first { $0.value.contains(pair) }
            guard found != nil || naive.outstanding[row]?.contains(pair) ?? false else { continue }
            self.faults[fault, default: 0] += 1
            // It may have been the proof that others were lost, and its lost session may explain others.
            let before = self.base.rows[row]?.absent ?? 0
            if figures.absent != before + 1 { self.fail("\(what): \(figures.absent - before) absent") }
            guard let (cause, pairs) = found else {
                self.undecided += 1
                continue
            }
            self.causes[cause, default: 0] += 1
            let example = result.examples.first { $0.label == books.label(row) && $0.finding == .lost(cause) }
            self.check(example, books, among: pairs, what)
        }
    }

    /// The example is one of the messages of the finding.
    private mutating func check(
        _ example: Reconciliation.Example?,
        _ books: ProofBooks,
        among pairs: [NaiveModel.Pair],
        _ what: String
    ) {
        guard let example else { return self.fail("\(what): no example") }
        let isRight = pairs.contains { pair in
            books.message(of: example) == pair.message && books.receiver(pair.target) == example.key.subscription
        }
        if !isRight { self.fail("\(what): example \(example)") }
    }

    private mutating func double(_ pair: NaiveModel.Pair) {
        guard self.base.isPermitted[pair] == false else { return }
        let entries = self.entries(of: pair)
        guard let last = entries.last, let reach = self.reach(pair) else { return }
        let facts = self.run.messages[pair.message]
        let isShared = if case .share = pair.target { true } else { false }
        let copies = isShared ? 1 : self.run.plan.filters(of: reach, from: facts.client).count
        var log = self.run.log
        log[last] = self.times(max(0, copies - entries.count) + 2, log[last])
        let naive = NaiveModel(self.run, log: log)
        let (books, result) = self.compare("doubled \(pair)", self.run, log, naive)
        self.faults[.doubled, default: 0] += 1
        let wrong = naive.rows.filter { $0.value.duplicated != $0.value.permitted }
        guard let row = wrong.first?.key, wrong.count == 1 else { return self.fail("doubled \(pair): \(wrong)") }
        let example = result.examples.first { $0.label == books.label(row) && $0.finding == .duplicated }
        self.check(example, books, among: [pair], "doubled \(pair)")
    }

    private func reach(_ pair: NaiveModel.Pair) -> ProofPlan.Reach? {
        self.run.plan.reach[self.run.messages[pair.message].topic].first { $0.target == pair.target }
    }

    // MARK: - Order

    private mutating func swap() {
        guard let (first, second) = self.neighbours() else { return }
        var log = self.run.log
        log.swapAt(first, second)
        let naive = NaiveModel(self.run, log: log)
        let (books, result) = self.compare("swapped \(first)", self.run, log, naive)
        self.faults[.swapped, default: 0] += 1
        let wrong = naive.rows.filter { $0.value.reordered > 0 }
        guard let row = wrong.first, wrong.count == 1, row.value.reordered == 1 else {
            return self.fail("swapped \(first): \(wrong)")
        }
        guard case .arrived(let late, _) = self.run.log[first] else { return }
        let example = result.examples.first { $0.label == books.label(row.key) && $0.finding == .reordered }
        let pair = NaiveModel.Pair(message: late.message, target: late.target)
        self.check(example, books, among: [pair], "swapped \(first)")
    }

    /// Two first arrivals of one topic and QoS on one connection, with none of the same stream between them.
    private mutating func neighbours() -> (Int, Int)? {
        var last: [[Int]: Int] = [:]
        var seen: Set<NaiveModel.Pair> = []
        var found: [(Int, Int)] = []
        for (index, entry) in self.run.log.enumerated() {
            if case .left(let client, _) = entry { last = last.filter { $0.key[0] != client } }
            guard case .arrived(let arrival, _) = entry, case .client(let client) = arrival.target else { continue }
            let facts = self.run.messages[arrival.message]
            let key = [client, facts.client, facts.stream]
            let isFirst = seen.insert(NaiveModel.Pair(message: arrival.message, target: arrival.target)).inserted
            let stream = self.run.plan.group(of: facts.client).streams[facts.stream]
            if isFirst, !arrival.isRedelivery, !facts.isResent, Set(stream.topics).count == 1 {
                // The later one must have been sent by the time of the earlier arrival.
                if let other = last[key], case .arrived(let before, _) = self.run.log[other],
                    before.qos == arrival.qos, facts.sent < other
                {
                    found.append((other, index))
                }
                last[key] = index
            } else {
                last[key] = nil
            }
        }
        return found.randomElement(using: &self.dice)
    }

    // MARK: - Segments

    /// In segments, only the receivers' view is used: less is expected, and nobody is accused wrongly.
    private mutating func split() {
        let count = Int.random(in: 2...4, using: &self.dice)
        let books = ProofBooks(self.run, shards: count, isJoint: true)
        let result = books.joint()
        self.joints += 1
        for problem in result.problems {
            if case .durationsOfDuplicates = problem { continue }
            self.fail("\(count) segments: \(problem)")
        }
        var rows = Self.rows(result)
        for (row, figures) in self.base.rows {
            let own = rows.removeValue(forKey: RowKey(label: books.label(row), qos: row.qos)) ?? .init()
            var rest = figures
            rest.expected = own.expected
            rest.lost = own.lost
            rest.outstanding = own.outstanding
            if own != rest { self.fail("\(count) segments: \(row) ledger \(own) model \(figures)") }
            // Between a subscription and the news of it a message is excused; without the news it is outstanding.
            let most = figures.expected + (self.base.excused[row] ?? 0)
            if own.expected > most || own.expected < figures.received {
                self.fail("\(count) segments: \(row) expects \(own.expected), model \(figures.expected)")
            }
            if own.lost.contains(where: { $0.key != .serverAdmitted }) || own.absent != own.expected - own.received {
                self.fail("\(count) segments: \(row) lost \(own.lost), outstanding \(own.outstanding)")
            }
        }
    }
}
