import Glibc
import Measurement
import Report
import Testing

@Suite("Statistics")
struct StatisticsTests {
    @Test("the same seed gives the same draws")
    func random() {
        var (one, two) = (SplitMix64(seed: 7), SplitMix64(seed: 7))
        #expect((0..<100).allSatisfy { _ in one.next() == two.next() })
    }

    /// Tables of the distribution; the last row is the normal one.
    static let quantiles: [(degrees: Double, tail: Double, value: Double)] = [
        (1, 0.025, 12.7062), (2, 0.025, 4.30265), (4, 0.01, 3.74695), (8, 0.025, 2.306), (8, 0.005, 3.35539),
        (30, 0.05, 1.69726), (120, 0.0005, 3.37345), (.infinity, 0.025, 1.95996),
    ]

    @Test("Student's quantiles are those of the tables", arguments: quantiles)
    func student(_ row: (degrees: Double, tail: Double, value: Double)) {
        let student = StudentT(degrees: row.degrees)
        #expect(abs(student.quantile(upperTail: row.tail) - row.value) < 1e-4 * row.value)
        #expect(abs(student.upperTail(row.value) - row.tail) < 1e-4 * row.tail * 5)
        #expect(abs(student.upperTail(-row.value) - (1 - row.tail)) < 1e-4)
    }

    @Test("Holm raises the smallest by all, the next by one less, and keeps their order")
    func holm() {
        let adjusted = Holm.adjusted([0.01, 0.04, 0.03, 0.005])
        for (found, wanted) in zip(adjusted, [0.03, 0.06, 0.06, 0.02]) { #expect(abs(found - wanted) < 1e-12) }
        #expect(Holm.adjusted([0.5, 0.9]) == [1, 1])
        #expect(Holm.adjusted([]).isEmpty)
    }
}

@Suite("The difference of two sides")
struct SideDifferenceTests {
    /// Rates of runs: what differs between runs and within one is given.
    private static func rates(
        _ runs: Int,
        centre: Double,
        between: Double,
        within: Double,
        _ synthetic: inout SyntheticRuns
    ) -> [RunSample] {
        (0..<runs).map { _ in
            let own = log(centre) + synthetic.normal() * between
            return RunSample(value: (0..<6).reduce(0) { sum, _ in sum + exp(own + synthetic.normal() * within) } / 6)
        }
    }

    /// Runs of each side, deviation between runs, deviation within one; how often the truth has to be inside.
    static let coverages: [(runs: Int, between: Double, within: Double)] = [
        (5, 0.03, 0.02), (5, 0.0, 0.1), (3, 0.05, 0.01), (10, 0.05, 0.1),
    ]

    @Test("intervals of 95 % hold the real change in 9 of 10 comparisons and more", arguments: coverages)
    func coverage(_ row: (runs: Int, between: Double, within: Double)) {
        var synthetic = SyntheticRuns(seed: UInt64(row.runs) + 11)
        let trials = 150
        var inside = 0
        for _ in 0..<trials {
            let base = Self.rates(row.runs, centre: 1000, between: row.between, within: row.within, &synthetic)
            let new = Self.rates(row.runs, centre: 1100, between: row.between, within: row.within, &synthetic)
            let change = SideDifference.change(base: base, new: new, scale: .ratio, noise: nil)
            if abs(change.shift - log(1.1)) <= change.margin(confidence: 0.95) { inside += 1 }
        }
        let share = Double(inside) / Double(trials)
        #expect(share >= 0.9, "\(inside) of \(trials)")
    }

    /// The most that the host takes from either side, and what a logarithm grows by with it.
    static let thefts: [(base: Double, new: Double, cost: Double)] = [
        (0.1, 0.1, 3), (0.1, 0.1, 0), (0.02, 0.1, 3), (0.1, 0.02, 1),
    ]

    @Test("where the host took CPU, intervals hold the real change as often, and are no wider", arguments: thefts)
    func theft(_ row: (base: Double, new: Double, cost: Double)) {
        var synthetic = SyntheticRuns(seed: 21)
        let trials = 400
        var (inside, margins, plainMargins) = (0, 0.0, 0.0)
        func runs(_ centre: Double, upTo most: Double) -> [RunSample] {
            (0..<5).map { _ in
                let stolen = Double.random(in: 0...most, using: &synthetic.random)
                return RunSample(value: centre * exp(row.cost * stolen + synthetic.normal() * 0.02), stolen: stolen)
            }
        }
        for _ in 0..<trials {
            let (base, new) = (runs(1000, upTo: row.base), runs(1100, upTo: row.new))
            let change = SideDifference.change(base: base, new: new, scale: .ratio, noise: nil)
            if abs(change.shift - log(1.1)) <= change.margin(confidence: 0.95) { inside += 1 }
            margins += change.margin(confidence: 0.95)
            let plain = SideDifference.change(
                base: base.map { RunSample(value: $0.value) },
                new: new.map { RunSample(value: $0.value) },
                scale: .ratio,
                noise: nil
            )
            plainMargins += plain.margin(confidence: 0.95)
        }
        #expect(inside >= trials * 92 / 100, "\(inside) of \(trials)")
        // A useless covariate costs a degree of freedom, and the slope's own error.
        #expect(margins < plainMargins * (row.cost == 3 ? 0.8 : 1.3), "\(margins / plainMargins)")
    }

    /// The shares of three runs a side, and whether they are reckoned with.
    static let known: [(base: [Double?], new: [Double?], isReckoned: Bool)] = [
        ([0, 0.05, 0.01], [0.01, 0.02, 0.03], true), ([0, 0.05, 0.01], [0.01, 0.02, nil], false),
        ([0, 0.005, 0.01], [0.01, 0.002, 0.003], false), ([0.05, 0.05, 0.05], [0.07, 0.07, 0.07], false),
        ([0, 0.05], [0.01, 0.02, 0.03], false), ([0.05], [0.01, 0.02, 0.03, 0.04, 0.05], false),
        ([0, 0.05, 0.01], [0.01, 0.02, 1e300], false), ([0, 0.05, 0.01], [0.01, 0.02, -0.5], false),
    ]

    @Test(
        "what the host took is reckoned with where all know it, it was more than 1 %, and runs are enough",
        arguments: known
    )
    func isReckoned(_ row: (base: [Double?], new: [Double?], isReckoned: Bool)) {
        func samples(_ shares: [Double?]) -> [RunSample] {
            shares.enumerated().map { RunSample(value: 10 + Double($0.offset), stolen: $0.element) }
        }
        func change(_ scale: SideDifference.Scale) -> SideDifference.Change {
            let (base, new) = (samples(row.base), samples(row.new))
            return SideDifference.change(base: base, new: new, scale: scale, noise: nil)
        }
        #expect((change(.ratio).stolen != nil) == row.isReckoned)
        #expect(change(.difference).stolen == nil)
    }

    @Test("figures that go with what the host took, and with nothing else, are no change")
    func explained() throws {
        func samples(_ shares: [Double]) -> [RunSample] {
            shares.map { RunSample(value: 10 * exp(2 * $0), stolen: $0) }
        }
        let change = SideDifference.change(
            base: samples([0, 0.01, 0.02]),
            new: samples([0.05, 0.06, 0.1]),
            scale: .ratio,
            noise: nil
        )
        #expect(abs(change.shift) < 1e-12)
        #expect(abs(try #require(change.stolen) - 2 * 0.06) < 1e-12)
        #expect(change.probability(above: 0) > 0.4)
    }

    @Test("a single pair whose noise between runs is known holds the real change as often")
    func singlePair() {
        var synthetic = SyntheticRuns(seed: 5)
        let trials = 150
        var inside = 0
        for _ in 0..<trials {
            let base = Self.rates(1, centre: 1000, between: 0.05, within: 0.02, &synthetic)
            let new = Self.rates(1, centre: 1000, between: 0.05, within: 0.02, &synthetic)
            let change = SideDifference.change(
                base: base,
                new: new,
                scale: .ratio,
                noise: 0.05
            )
            if abs(change.shift) <= change.margin(confidence: 0.95) { inside += 1 }
        }
        #expect(inside >= 135 && inside <= 150, "\(inside) of \(trials)")
    }

    @Test("the same figures in all runs are no change, and certain")
    func identical() {
        let runs = Array(repeating: RunSample(value: 12.5), count: 4)
        let change = SideDifference.change(base: runs, new: runs, scale: .ratio, noise: nil)
        #expect(change.shift == 0)
        #expect(change.error == 0)
        #expect(change.probability(above: 0) == 1)
        #expect(change.probability(above: -0.1) == 0)
    }

    @Test("a dozen losses where there were none are no chance; one may be")
    func counts() {
        func probability(_ base: Double, _ new: Double) -> Double {
            SideDifference.change(
                base: [RunSample(value: base)],
                new: [RunSample(value: new)],
                scale: .difference,
                noise: nil
            ).probability(above: 0)
        }
        #expect(probability(0, 12) < 0.001)
        #expect(probability(0, 1) > 0.1)
        #expect(probability(100, 101) > 0.4)
        #expect(probability(0, 0) == 1)
    }

    // MARK: - Pairs

    @Test("what a host does for a while is in both runs of a pair, and not in their difference")
    func pairs() {
        let pairs = [1.0, 2, 4, 3, 1.5].map { (base: $0, new: $0 * 1.1) }
        let change = SideDifference.change(pairs: pairs, scale: .ratio)
        #expect(abs(change.shift - log(1.1)) < 1e-12 && change.error < 0.0005 && change.degrees == 4)
        let counts = SideDifference.change(pairs: [(2, 5), (0, 3), (1, 1)], scale: .difference)
        // Twelve events in three pairs.
        #expect(counts.shift == 2 && abs(counts.error - (4.0 / 3).squareRoot()) < 1e-12)
        // Pairs that agree by chance are no proof.
        let few = SideDifference.change(pairs: [(3, 4), (5, 6)], scale: .difference)
        #expect(few.shift - few.margin(confidence: 0.95) < 0)
        #expect(SideDifference.change(pairs: [(0, 0), (0, 0)], scale: .difference).error == 0)
    }

    @Test(
        "of jobs that compare a build with itself at most 5 % are wrong over all looks, for one figure and for ten",
        arguments: [(1, 400), (10, 100)]
    )
    func looks(_ figures: Int, _ jobs: Int) {
        var random = SyntheticRuns(seed: 21)
        let tail = (1 - Comparison.pairedConfidence(figures: figures)) / 2
        let quantiles = (0..<Comparison.mostPairs).map {
            StudentT(degrees: Double(max(1, $0))).quantile(upperTail: tail)
        }
        let wrong = (0..<jobs).count { _ in
            var pairs = Array(repeating: [(base: Double, new: Double)](), count: figures)
            for count in 1...Comparison.mostPairs {
                for figure in pairs.indices { pairs[figure].append((exp(random.normal()), exp(random.normal()))) }
                guard count > 1 else { continue }
                let isWrong = pairs.contains { pairs in
                    let change = SideDifference.change(pairs: pairs, scale: .ratio)
                    return abs(change.shift) > change.error * quantiles[count - 1]
                }
                if isWrong { return true }
            }
            return false
        }
        // Twice the deviation of such a count beyond 5 %.
        let most = 0.05 * Double(jobs) + 2 * (0.0475 * Double(jobs)).squareRoot()
        #expect(Double(wrong) <= most, "\(wrong) of \(jobs)")
    }
}
