import Ledger
import TestSupport
import Testing

@Suite("The ledger of one stream")
struct StreamLedgerTests {
    @Test("a stream in order costs at most 64 bytes")
    func size() {
        #expect(MemoryLayout<StreamLedger>.stride <= 64)
    }

    @Test("agrees with sets on every single arrival", arguments: Weather.all, [128, 256, 1024])
    func oracle(_ weather: Weather, _ window: Int) {
        for seed: UInt64 in 1...3 {
            var dice = SeededDice(seed: seed)
            let limits = StreamLedger.Limits(window: window)
            // A stream that the subscriber joined in the middle, and one from its beginning.
            let start = seed == 3 ? UInt64.random(in: 1...10_000, using: &dice) : 0
            var ledger = StreamLedger()
            var oracle = StreamOracle()
            var wrong = 0
            var lowest = UInt64.max
            for sequence in weather.arrivals(from: start, &dice) {
                lowest = min(lowest, sequence)
                if ledger.arrived(sequence, limits: limits) != oracle.arrived(sequence) { wrong += 1 }
            }
            #expect(wrong == 0)
            #expect(!ledger.overflowed)
            #expect(ledger.missing == oracle.missing)
            #expect(ledger.distinct == UInt64(oracle.seen.count))
            #expect(ledger.next == oracle.highest.map { $0 + 1 })
            #expect(ledger.gaps == ledger.next - lowest - ledger.distinct)
        }
    }

    @Test(
        "is either exact or says that it overflowed, whatever its bounds",
        arguments: Weather.all,
        [0, 1, 3, 10, 100]
    )
    func bounds(_ weather: Weather, _ gaps: Int) {
        for seed: UInt64 in 1...2 {
            var dice = SeededDice(seed: seed)
            let limits = StreamLedger.Limits(window: 128, gaps: gaps)
            var ledger = StreamLedger()
            var oracle = StreamOracle()
            var wrong = 0
            for sequence in weather.arrivals(&dice) {
                let arrival = ledger.arrived(sequence, limits: limits)
                let truth = oracle.arrived(sequence)
                if !ledger.overflowed, arrival != truth { wrong += 1 }
                if ledger.gapRuns > gaps { wrong += 1 }
            }
            #expect(wrong == 0)
            if !ledger.overflowed { #expect(ledger.missing == oracle.missing) }
        }
    }

    @Test("overflows with the first gap too many, not before")
    func firstGapTooMany() {
        var ledger = StreamLedger()
        let limits = StreamLedger.Limits(window: 128, gaps: 2)
        // Jumps beyond half the window go to the list at once.
        for sequence: UInt64 in [0, 100, 200] { #expect(ledger.arrived(sequence, limits: limits) == .new) }
        #expect(ledger.gapRuns == 2)
        #expect(!ledger.overflowed)
        #expect(ledger.arrived(300, limits: limits) == .new)
        #expect(ledger.overflowed)
    }

    @Test("splitting a gap in a full list overflows, filling one from its ends does not")
    func splitting() {
        let limits = StreamLedger.Limits(window: 128, gaps: 1)
        var ledger = StreamLedger()
        _ = ledger.arrived(0, limits: limits)
        _ = ledger.arrived(100, limits: limits)
        #expect(ledger.arrived(1, limits: limits) == .newLate)
        #expect(ledger.arrived(99, limits: limits) == .newLate)
        #expect(ledger.missing == [2..<99])
        #expect(!ledger.overflowed)
        #expect(ledger.arrived(50, limits: limits) == .newLate)
        #expect(ledger.overflowed)
    }

    @Test("gaps that were filled make room for others")
    func filledGapsMakeRoom() {
        let limits = StreamLedger.Limits(window: 128, gaps: 2)
        var ledger = StreamLedger()
        _ = ledger.arrived(0, limits: limits)
        for base in stride(from: UInt64(0), to: 100_000, by: 100) {
            #expect(ledger.arrived(base + 100, limits: limits) == .new)
            for late in base + 1..<base + 100 { #expect(ledger.arrived(late, limits: limits) == .newLate) }
        }
        #expect(!ledger.overflowed)
        #expect(ledger.missing.isEmpty)
        #expect(ledger.distinct == 100_001)
    }

    @Test("counts the gaps it keeps, however many are filled again")
    func countsGaps() {
        var ledger = StreamLedger()
        let limits = StreamLedger.Limits(window: 128, gaps: 500)
        // 300 gaps of 99 sequences; then all but every tenth are filled.
        for jump: UInt64 in 0...300 { _ = ledger.arrived(jump * 100, limits: limits) }
        #expect(ledger.gapRuns == 300)
        for gap: UInt64 in 0..<300 where !gap.isMultiple(of: 10) {
            for late in gap * 100 + 1..<gap * 100 + 100 { #expect(ledger.arrived(late, limits: limits) == .newLate) }
        }
        #expect(ledger.gapRuns == 30)
        let tenths = stride(from: UInt64(0), to: 30_000, by: 1000)
        #expect(ledger.missing == tenths.map { (base: UInt64) -> Range<UInt64> in base + 1..<base + 100 })
        for late in UInt64(29_001)..<29_100 { _ = ledger.arrived(late, limits: limits) }
        #expect(ledger.gapRuns == 29)
        // The list ends with a gap that was filled.
        _ = ledger.arrived(30_100, limits: limits)
        #expect(ledger.gapRuns == 30)
        #expect(!ledger.overflowed)
    }

    @Test("what comes from before the join is late, and the gap before it is the subscriber's no more than before")
    func beforeTheJoin() {
        var ledger = StreamLedger()
        #expect(ledger.arrived(5) == .new)
        #expect(ledger.missing == [0..<5])
        #expect(ledger.gaps == 0)
        #expect(ledger.arrived(3) == .newLate)
        #expect(ledger.arrived(3) == .duplicate)
        #expect(ledger.missing == [0..<3, 4..<5])
        #expect(ledger.gaps == 1)
        #expect(ledger.distinct == 2)
    }

    @Test("a sequence that cannot be is no message, and the ledger says so")
    func impossible() {
        for sequence in [UInt64.max, StreamLedger.sequenceLimit] {
            var ledger = StreamLedger()
            _ = ledger.arrived(0)
            #expect(ledger.arrived(sequence) == .duplicate)
            #expect(ledger.overflowed)
            #expect(ledger.arrived(1) == .new)
            #expect(ledger.distinct == 2)
        }
    }

    @Test("the highest possible sequence is one")
    func highest() {
        var ledger = StreamLedger()
        let last = StreamLedger.sequenceLimit - 1
        #expect(ledger.arrived(0) == .new)
        #expect(ledger.arrived(last) == .new)
        #expect(ledger.arrived(last - 1) == .newLate)
        #expect(ledger.missing == [1..<last - 1])
        #expect(!ledger.overflowed)
    }

    @Test("a copy does not see what its original goes through")
    func copies() {
        var ledger = StreamLedger()
        for sequence: UInt64 in [0, 2, 1000, 999] { _ = ledger.arrived(sequence) }
        let copy = ledger
        _ = ledger.arrived(1)
        _ = ledger.arrived(500)
        #expect(copy.missing == [1..<2, 3..<999])
        #expect(ledger.missing == [3..<500, 501..<999])
    }
}
