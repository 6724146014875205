import Ledger
import TestSupport
import Testing

@Suite("Sets of sequences as runs")
struct SequenceRangesTests {
    @Test(
        "runs that touch or overlap become one",
        arguments: [
            ([0..<3, 3..<5], [0..<5]),
            ([3..<5, 0..<3], [0..<5]),
            ([0..<1, 2..<3, 4..<5, 1..<4], [0..<5]),
            ([0..<10, 2..<3], [0..<10]),
            ([5..<6, 1..<2, 3..<4], [1..<2, 3..<4, 5..<6]),
            ([5..<6, 5..<6], [5..<6]),
            ([4..<4], []),
            ([10..<20, 0..<1, 0..<30], [0..<30]),
        ] as [([Range<UInt64>], [Range<UInt64>])]
    )
    func merging(_ ranges: [Range<UInt64>], _ runs: [Range<UInt64>]) {
        #expect(SequenceRanges(ranges).runs == runs)
    }

    @Test("agrees with sets in any order", arguments: 1...20 as ClosedRange<UInt64>)
    func oracle(_ seed: UInt64) {
        var dice = SeededDice(seed: seed)
        let (one, oneSet) = self.random(&dice)
        let (two, twoSet) = self.random(&dice)
        #expect(one.count == UInt64(oneSet.count))
        #expect(one.runs.flatMap { Array($0) } == oneSet.sorted())
        #expect(zip(one.runs, one.runs.dropFirst()).allSatisfy { $0.upperBound < $1.lowerBound })
        #expect((0..<320).allSatisfy { one.contains($0) == oneSet.contains($0) })
        #expect(one.intersectionCount(two) == UInt64(oneSet.intersection(twoSet).count))
        let bounds = UInt64.random(in: 0..<150, using: &dice)..<UInt64.random(in: 150..<320, using: &dice)
        #expect(one.clamped(to: bounds).runs.flatMap { Array($0) } == oneSet.filter(bounds.contains).sorted())
    }

    private func random(_ dice: inout SeededDice) -> (SequenceRanges, Set<UInt64>) {
        var ranges = SequenceRanges()
        var set: Set<UInt64> = []
        for _ in 0..<Int.random(in: 0...40, using: &dice) {
            let lower = UInt64.random(in: 0..<300, using: &dice)
            let range = lower..<lower + UInt64.random(in: 0...8, using: &dice)
            if dice.hits(0.5) { ranges.insert(range) } else { range.forEach { ranges.insert($0) } }
            set.formUnion(range)
        }
        return (ranges, set)
    }
}
