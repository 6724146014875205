import LoadEngine
import Testing

@Suite("Capacity search")
struct CapacitySearchTests {
    private typealias Settings = CapacitySearch.Settings

    /// Asks until there is an answer.
    private static func run(
        _ settings: Settings,
        _ judge: (Double) -> CapacitySearch.Verdict
    ) -> (answer: CapacityAnswer, steps: [CapacitySearch.Step], isSettled: Bool) {
        var search = CapacitySearch(settings)
        while true {
            switch search.next {
            case .end(let answer): return (answer, search.steps, search.isSettled)
            case .offer(let load, _): search.add(judge(load))
            }
        }
    }

    /// The server's capacity, the first load, and whether loads are whole numbers.
    static let servers: [(capacity: Double, first: Double, isWhole: Bool)] = [
        (20_000, 1_000, false), (20_000, 100_000, false), (1_000, 1_000, false), (999, 1_000, false),
        (37, 1, true), (1, 1, true), (3, 64, true), (60_000, 500, true), (12.5, 1_000, false),
    ]

    @Test("a server that never wavers is found within 5 %, whatever the search begins with", arguments: servers)
    func exact(_ row: (capacity: Double, first: Double, isWhole: Bool)) throws {
        let result = Self.run(Settings(first: row.first, isWhole: row.isWhole)) {
            $0 <= row.capacity ? .held : .broken("p99")
        }
        guard case .found(let found) = result.answer else { Issue.record("\(result.answer)"); return }
        #expect(result.isSettled)
        #expect(found.load <= row.capacity)
        // Whole numbers cannot be nearer than one.
        #expect(found.high - found.load <= max(found.load * 0.05, row.isWhole ? 1 : 0))
        #expect(found.low == found.load && found.high > row.capacity)
        #expect(result.steps.count { $0.load == found.load } >= 2, "each edge is offered again")
        #expect(result.steps.count { $0.load == found.high } >= 2)
        #expect(result.steps.count <= 30)
    }

    @Test("doubling, then halves of the gap, then its edges again")
    func phases() {
        let steps = Self.run(Settings(first: 1_000)) { $0 < 7_000 ? .held : .broken("p99") }.steps
        #expect(steps.prefix(4).map(\.load) == [1_000, 2_000, 4_000, 8_000])
        #expect(steps.prefix(4).allSatisfy { $0.phase == .doubling })
        #expect(steps[4].load == 6_000 && steps[4].phase == .bisection)
        #expect(steps.last?.phase == .edge)
        #expect(steps.first?.verdict == .held && steps[3].verdict == .broken("p99"))
    }

    @Test("a verdict that was a hiccup is outvoted, and widens the interval")
    func hiccup() throws {
        var offers: [Double: Int] = [:]
        let result = Self.run(Settings(first: 1_000)) { load in
            offers[load, default: 0] += 1
            // Once, and below what the server takes.
            if load == 6_000, offers[load] == 1 { return .broken("a hiccup") }
            return load <= 7_000 ? .held : .broken("p99")
        }
        guard case .found(let found) = result.answer else { Issue.record("\(result.answer)"); return }
        #expect(found.load > 6_600 && found.load <= 7_000)
        #expect(found.low < 6_000, "6,000 did not hold each time")
    }

    @Test("two searches of a server that wavers by 2 % give intervals that overlap, at most 20 % wide")
    func wavering() throws {
        var answers: [CapacityAnswer.Estimate] = []
        var state: UInt64 = 42
        func noise() -> Double {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Double(state >> 40) / Double(1 << 24) * 0.04 - 0.02
        }
        for _ in 0..<50 {
            let result = Self.run(Settings(first: 1_000)) { $0 * (1 + noise()) <= 20_000 ? .held : .broken("p99") }
            guard case .found(let found) = result.answer else { Issue.record("\(result.answer)"); return }
            answers.append(found)
        }
        #expect(answers.allSatisfy { abs($0.load / 20_000 - 1) < 0.05 })
        #expect(answers.allSatisfy { $0.width <= 0.2 })
        #expect(zip(answers, answers.dropFirst()).allSatisfy { $0.low <= $1.high && $1.low <= $0.high })
    }

    @Test("when the generator is the limit twice at one load it ends, and names no number for the server")
    func generatorLimited() {
        let result = Self.run(Settings(first: 1_000)) { $0 > 30_000 ? .generatorLimited("loop 0 was busy") : .held }
        #expect(result.answer == .generatorLimited(at: 32_000, held: 16_000, reason: "loop 0 was busy"))
        #expect(result.steps.suffix(2).map(\.load) == [32_000, 32_000])
        let atOnce = Self.run(Settings(first: 1_000)) { _ in .generatorLimited("slow") }
        #expect(atOnce.answer == .generatorLimited(at: 1_000, held: nil, reason: "slow"))
    }

    @Test("when the generator is the limit once, the load is offered again")
    func generatorHiccup() {
        var isFirst = true
        let result = Self.run(Settings(first: 1_000)) { load in
            if load == 4_000, isFirst {
                isFirst = false
                return .generatorLimited("steal")
            }
            return load <= 5_000 ? .held : .broken("p99")
        }
        guard case .found(let found) = result.answer else { Issue.record("\(result.answer)"); return }
        #expect(found.load <= 5_000 && found.high > 5_000)
    }

    /// The verdicts of one load, in order, and how often it is offered.
    static let disturbed: [(turns: String, offers: Int, isEnded: Bool)] = [
        // h: held, l: the generator's limit, d: disturbed.
        ("dh", 3, false), ("ddddh", 6, false), ("ddddd", 5, true), ("ll", 2, true), ("dl", 4, false), ("dll", 3, true),
        ("ldl", 3, true), ("ddddl", 5, true), ("lh", 3, false), ("ddddhddddh", 10, false), ("lhl", 4, false),
    ]

    @Test("what disturbs the generator is waited for, five times at most", arguments: disturbed)
    func disturbances(_ row: (turns: String, offers: Int, isEnded: Bool)) {
        var turns = Array(row.turns)
        var offers = 0
        let result = Self.run(Settings(first: 1_000, most: 4_000)) { load in
            guard load == 4_000 else { return .held }
            offers += 1
            switch turns.isEmpty ? "h" : turns.removeFirst() {
            case "l": return .generatorLimited("loop 0 was busy")
            case "d": return .disturbed("sends began too late")
            default: return .held
            }
        }
        #expect(offers == row.offers)
        let reason = row.turns.contains("l") ? "loop 0 was busy" : "sends began too late"
        let ended = CapacityAnswer.generatorLimited(at: 4_000, held: 2_000, reason: reason)
        #expect(result.answer == (row.isEnded ? ended : .atLeast(4_000)))
    }

    @Test("a load that may not be exceeded and holds is an answer of its own, once it held twice")
    func most() {
        let result = Self.run(Settings(first: 1_000, most: 5_000)) { _ in .held }
        #expect(result.answer == .atLeast(5_000))
        #expect(result.steps.map(\.load) == [1_000, 2_000, 4_000, 5_000, 5_000])
        #expect(Self.run(Settings(first: 9_000, most: 5_000)) { _ in .held }.answer == .atLeast(5_000))
    }

    @Test("whole clients stay within bounds that are not whole", arguments: [10.4, 10.5, 10.9])
    func wholeBounds(_ most: Double) {
        let result = Self.run(Settings(first: 2.5, most: most, isWhole: true)) { _ in .held }
        #expect(result.answer == .atLeast(10))
        #expect(result.steps.allSatisfy { $0.load <= 10 && $0.load == $0.load.rounded() })
    }

    @Test("a load that had a verdict since can be offered: the generator's second hiccup there ends nothing")
    func hiccupsApart() {
        var offers = 0
        let result = Self.run(Settings(first: 1_000, most: 4_000)) { load in
            guard load == 4_000 else { return .held }
            offers += 1
            return offers == 1 || offers == 3 ? .generatorLimited("steal") : .held
        }
        #expect(result.answer == .atLeast(4_000))
        #expect(offers == 4)
    }

    @Test("a server that holds nothing is not searched for ever")
    func nothing() {
        let result = Self.run(Settings(first: 1_024)) { _ in .broken("lost") }
        #expect(result.answer == .nothingHolds(1))
        #expect(Self.run(Settings(first: 8, isWhole: true)) { _ in .broken("lost") }.answer == .nothingHolds(1))
    }

    @Test("a server without any order ends the search when its steps are spent")
    func spent() {
        var count = 0
        let result = Self.run(Settings(first: 1_000)) { _ in
            count += 1
            return count % 3 == 0 ? .broken("x") : .held
        }
        #expect(result.steps.count <= 60)
    }

    /// Steps that may be made, and what a search of 7,000 ends with.
    static let budgets: [(steps: Int, load: Double, high: Double?, isSettled: Bool)] = [
        (1, 1_000, nil, false), (3, 4_000, nil, false), (4, 4_000, 8_000, false), (8, 7_000, 7_250, false),
        (10, 7_000, 7_250, true),
    ]

    @Test("a search whose steps are spent says what it knows, and that it is not settled", arguments: budgets)
    func budget(_ row: (steps: Int, load: Double, high: Double?, isSettled: Bool)) {
        var settings = Settings(first: 1_000)
        settings.steps = row.steps
        let result = Self.run(settings) { $0 <= 7_000 ? .held : .broken("p99") }
        if case .found(let found) = result.answer {
            #expect(found.load == row.load && found.low == row.load && found.high == row.high)
        } else {
            #expect(result.answer == .atLeast(row.load) && row.high == nil)
        }
        #expect(result.isSettled == row.isSettled)
        #expect(result.steps.count == row.steps)
        let none = Self.run(settings) { _ in .broken("lost") }
        #expect(none.answer == .nothingHolds(1_000 / Double(1 << (row.steps - 1))))
        #expect(none.isSettled == false)
    }
}
