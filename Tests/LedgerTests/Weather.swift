import Ledger
import TestSupport
import Testing

/// The effects of a network on messages 0..<count of one publisher, and their order of arrival.
struct Weather: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var count: UInt64 = 4000
    var loss = 0.0
    var duplicates = 0.0
    var delays = 0.0
    /// Messages by which a delayed or repeated one may come later.
    var farthest: UInt64 = 1

    func arrivals(from start: UInt64 = 0, _ dice: inout SeededDice) -> [UInt64] {
        var arrivals: [(at: UInt64, sequence: UInt64)] = []
        for sequence in start..<start + self.count where !dice.hits(self.loss) {
            let delay = dice.hits(self.delays) ? UInt64.random(in: 1...self.farthest, using: &dice) : 0
            arrivals.append((sequence + delay, sequence))
            while dice.hits(self.duplicates) {
                arrivals.append((sequence + UInt64.random(in: 0...self.farthest, using: &dice), sequence))
            }
        }
        // Stable, so that a duplicate without a delay comes right behind.
        return arrivals.enumerated().sorted { ($0.element.at, $0.offset) < ($1.element.at, $1.offset) }
            .map(\.element.sequence)
    }

    static let all = [
        Weather(testDescription: "in order"),
        Weather(testDescription: "one in a thousand lost", loss: 0.001),
        Weather(testDescription: "half lost", loss: 0.5),
        Weather(testDescription: "nearly all lost", count: 50_000, loss: 0.999),
        Weather(testDescription: "repeated at once", duplicates: 0.1, farthest: 1),
        Weather(testDescription: "neighbours swapped", delays: 0.3, farthest: 2),
        Weather(testDescription: "late within the window", delays: 0.05, farthest: 60),
        Weather(testDescription: "late around its edge", delays: 0.1, farthest: 130),
        Weather(testDescription: "late far beyond it", delays: 0.02, farthest: 5000),
        Weather(testDescription: "all at once", loss: 0.05, duplicates: 0.05, delays: 0.2, farthest: 700),
        Weather(testDescription: "chaos", count: 2000, loss: 0.3, duplicates: 0.5, delays: 1, farthest: 5000),
    ]
}

/// The plain truth about one stream, by sets.
struct StreamOracle {
    var seen: Set<UInt64> = []
    var highest: UInt64?

    mutating func arrived(_ sequence: UInt64) -> StreamLedger.Arrival {
        let isLate = self.highest.map { sequence < $0 } ?? false
        self.highest = max(self.highest ?? 0, sequence)
        guard self.seen.insert(sequence).inserted else { return .duplicate }
        return isLate ? .newLate : .new
    }

    var missing: [Range<UInt64>] {
        guard let highest = self.highest else { return [] }
        var ranges: [Range<UInt64>] = []
        var from: UInt64 = 0
        for sequence in self.seen.sorted() {
            if sequence > from { ranges.append(from..<sequence) }
            from = sequence + 1
        }
        precondition(from == highest + 1)
        return ranges
    }
}
