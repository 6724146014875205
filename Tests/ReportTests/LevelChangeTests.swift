import Measurement
import Report
import Testing

@Suite("Changes of level in a series")
struct LevelChangeTests {
    /// Levels of so many values each, around which no noise moves them far.
    private static func levels(_ parts: (value: Double, count: Int)...) -> [Double] {
        parts.flatMap { part in (0..<part.count).map { part.value * (1 + 0.01 * Double($0 % 3 - 1)) } }
    }

    private static let series: [(name: String, values: [Double], places: [Int])] = [
        ("up", levels((10, 10), (13, 10)), [10]), ("down", levels((13, 10), (10, 10)), [10]),
        ("back again", levels((5, 15), (9, 12), (5, 15)), [15, 27]),
        ("three steps", levels((1, 12), (2, 12), (4, 12)), [12, 24]), ("late", levels((10, 30), (20, 3)), [30]),
        ("early", levels((20, 3), (10, 30)), [3]), ("too late", levels((10, 30), (20, 2)), []),
        ("counts that are 0", levels((0, 12), (7, 12)), [12]),
        ("one outlier", levels((10, 12), (500, 1), (10, 12)), []),
        ("six values", levels((10, 3), (20, 3)), []), ("ten values", levels((10, 5), (20, 5)), [5]),
        ("one level", levels((10, 30)), []), ("one value", levels((0, 30)), []),
        ("two speeds in turn", (0..<40).map { $0 % 2 == 0 ? 10 : 20 }, []), ("nothing", [], []),
    ]

    @Test("a change needs two levels of three values at least, whose order chance does not explain", arguments: series)
    func changes(_ name: String, _ values: [Double], _ places: [Int]) {
        #expect(LevelSearch(values).changes(within: 0.02).map(\.place) == places)
    }

    @Test("values that are absent or no number are passed over, and places are those of the series")
    func gaps() {
        var series: [Double?] = Self.levels((10, 10), (20, 12))
        series.insert(contentsOf: [nil, .nan], at: 10)
        let changes = LevelSearch(series).changes(within: 0.02)
        #expect(changes.map(\.place) == [12])
    }

    @Test(
        "a change is large from 1 % on, or where a level is 0",
        arguments: [(10.05, false), (9.95, false), (10.2, true)]
    )
    func large(_ after: Double, _ isLarge: Bool) throws {
        let values = (0..<40).map { (place: Int) -> Double in
            let level = place < 20 ? 10 : after
            return level * (1 + 0.0001 * Double(place % 3))
        }
        let change = try #require(LevelSearch(values).changes(within: 0.02).first)
        #expect(change.isLarge == isLarge)
        let counts = LevelSearch(Self.levels((0, 12), (7, 12))).changes(within: 0.02)
        #expect(counts.allSatisfy(\.isLarge) && !counts.isEmpty)
    }

    @Test("the factor is that of the means, with an interval that has it inside")
    func factor() throws {
        let change = try #require(LevelSearch(Self.levels((10, 12), (49, 12))).changes(within: 0.02).first)
        let factor = try #require(change.factor)
        #expect(abs(factor.value - 4.9) < 0.01 && factor.low < factor.value && factor.value < factor.high)
        #expect(factor.low > 4.8 && factor.high < 5)
        #expect(abs(change.before - 10) < 0.01 && abs(change.after - 49) < 0.05)
        let counts = LevelSearch(Self.levels((0, 12), (7, 12))).changes(within: 0.02)
        #expect(counts.first?.factor == nil && counts.first?.before == 0 && counts.first?.after == 7)
    }

    @Test(
        "the chance of an order of ranks is that of Mann and Whitney's tables",
        arguments: [
            (0, 3, 3, 0.1), (1, 3, 3, 0.2), (2, 3, 3, 0.4), (4, 3, 3, 1), (0, 4, 4, 0.02857), (0, 3, 30, 0.000_366_6),
            (3, 3, 30, 0.002_566), (5, 5, 5, 0.1508), (23, 10, 10, 0.0433),
        ] as [(Int, Int, Int, Double)]
    )
    func ranks(_ wrong: Int, _ few: Int, _ more: Int, _ known: Double) {
        let found = RankTest.probability(wrong: wrong, few, more)
        #expect(abs(found - known) < (few < 10 ? 0.0001 : 0.003), "\(found)")
    }

    @Test(
        "of several figures that step together each may be less sure",
        arguments: [
            ([0.001], 0.02), ([0.03], 0), ([0.015, 0.5], 0), ([0.009, 0.5], 0.01), ([0.015, 0.016], 0.02),
            ([0.004, 0.009, 0.2, 0.3], 0.01), ([], 0),
        ] as [([Double], Double)]
    )
    func discoveries(_ probabilities: [Double], _ level: Double) {
        #expect(abs(FalseDiscovery.level(probabilities, rate: 0.02) - level) < 1e-12)
    }

    // MARK: - How often

    /// A noise, by its name.
    private static func noise(_ kind: String, _ random: inout SyntheticRuns) -> Double {
        switch kind {
        case "two speeds": random.normal() * 0.2 + (random.normal() > 0 ? 5 : 0)
        case "seldom slow": random.normal() * 0.2 + (random.normal() > 1.3 ? 5 : 0)
        default: random.normal()
        }
    }

    @Test(
        "of histories without a change few have one in any figure, on a host that is fast or slow by turns too",
        arguments: ["normal", "two speeds", "seldom slow"],
        [(12, 12), (20, 12), (33, 12), (60, 12), (60, 1), (100, 1)]
    )
    func falseAlarms(_ kind: String, _ size: (count: Int, figures: Int)) {
        var random = SyntheticRuns(seed: 7)
        let histories = 200
        let alarms = (0..<histories).count { _ in
            let searches = (0..<size.figures).map { _ in
                LevelSearch((0..<size.count).map { _ in 100 + Self.noise(kind, &random) })
            }
            let level = FalseDiscovery.level(searches.map(\.probability), rate: 0.02)
            return searches.contains { !$0.changes(within: level).isEmpty }
        }
        // 2 % of 200 are 4; more than 10 would have a chance of one in 300.
        #expect(alarms <= 10, "\(alarms) of \(histories)")
    }

    @Test(
        "a step at value 31 of 60 is placed within two values, and one of three values behind 30 is seen",
        arguments: [(2.0, 60, 0.85), (3.5, 60, 0.98), (3.5, 33, 0.75)]
    )
    func steps(_ deviations: Double, _ count: Int, _ share: Double) {
        var random = SyntheticRuns(seed: 8)
        let found = (0..<200).count { _ in
            let values = (0..<count).map { 100 + random.normal() + ($0 < 30 ? 0 : deviations) }
            // As of one of twelve figures.
            return LevelSearch(values).changes(within: 0.02 / 12).contains { abs($0.place - 30) <= 2 }
        }
        #expect(Double(found) >= share * 200, "\(found) of 200")
    }
}
