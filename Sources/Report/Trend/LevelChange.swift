import Glibc

/// A value from which on a series has another level.
package struct LevelChange: Encodable, Hashable, Sendable {
    /// The first value of the new level.
    package var place: Int
    /// The means of the levels: of logarithms where all values are above 0.
    package var before: Double
    package var after: Double
    /// AFTER by BEFORE with its 95 % interval; absent where a value is not above 0.
    package var factor: Factor?
    /// The chance of such a change at any value of a series that has one level.
    package var probability: Double
    /// From 1 % on: a smaller change may be real, and is none that a user would act on.
    package var isLarge: Bool { self.factor.map { abs($0.value - 1) >= 0.01 } ?? true }

    package struct Factor: Encodable, Hashable, Sendable {
        package var value: Double
        package var low: Double
        package var high: Double
    }
}

/// The search for changes of level, after Matteson and James 2014 (E-divisive).
///
/// A segment is cut where what is left and what is right of the cut are the furthest apart by the energy distance. The
/// right side ends with the segment, or earlier: a level that was left again counts too. A candidate has the larger of
/// two probabilities. That of Student's t is multiplied by the number of cuts that there were to choose from. That of
/// the ranks, after Mann and Whitney, holds for every distribution, such as that of a host with two speeds. It is
/// multiplied by the number of cuts where the right side ends early. Both take the values to be independent.
package struct LevelSearch {
    /// The fewest values of a level.
    package static let fewest = 3

    private struct Candidate {
        var cut: Int
        var probability: Double
    }

    private let places: [Int]
    private let values: [Double]
    private let isRatio: Bool
    /// Sums of distances: of the first so many values to the first so many.
    private let sums: [[Double]]

    package init(_ series: [Double?]) {
        let known = series.enumerated().compactMap { place, value in
            value.flatMap { $0.isFinite ? (place: place, value: $0) : nil }
        }
        let isRatio = known.allSatisfy { $0.value > 0 }
        let values = known.map { isRatio ? log($0.value) : $0.value }
        (self.places, self.values, self.isRatio) = (known.map(\.place), values, isRatio)
        var sums = [Array(repeating: 0.0, count: values.count + 1)]
        for row in values.indices {
            var next = sums[row]
            var sum = 0.0
            for column in values.indices {
                sum += abs(values[row] - values[column])
                next[column + 1] += sum
            }
            sums.append(next)
        }
        self.sums = sums
    }

    /// Whether there is something to find: enough values, which are not all the same.
    package var canChange: Bool { self.values.count >= 2 * Self.fewest && Set(self.values).count > 1 }

    /// The chance of the best candidate of the whole series; 1 without one.
    package var probability: Double { self.candidate(self.values.indices)?.probability ?? 1 }

    /// All changes, the first one found with such a chance or a smaller one, those in its parts with that of `then`.
    package func changes(within level: Double, then: Double = 0.001) -> [LevelChange] {
        var (cuts, parts): ([Candidate], [Range<Int>]) = ([], [self.values.indices])
        while let part = parts.popLast() {
            guard let found = self.candidate(part), found.probability <= (cuts.isEmpty ? level : then) else { continue }
            cuts.append(found)
            parts += [part.lowerBound..<found.cut, found.cut..<part.upperBound]
        }
        cuts.sort { $0.cut < $1.cut }
        let edges = [0] + cuts.map(\.cut) + [self.values.count]
        return cuts.enumerated().map { place, found in
            self.change(found, from: edges[place], to: edges[place + 2])
        }
    }

    private func change(_ found: Candidate, from start: Int, to end: Int) -> LevelChange {
        let test = self.test(start, found.cut, end)
        var change = LevelChange(
            place: self.places[found.cut],
            before: test.left,
            after: test.right,
            probability: found.probability
        )
        guard self.isRatio else { return change }
        let margin = test.error * StudentT(degrees: Double(end - start - 2)).quantile(upperTail: 0.025)
        let shift = test.right - test.left
        let factor = LevelChange.Factor(value: exp(shift), low: exp(shift - margin), high: exp(shift + margin))
        if factor.low > 0, factor.high.isFinite { change.factor = factor }
        (change.before, change.after) = (exp(test.left), exp(test.right))
        return change
    }

    // MARK: - One segment

    private func candidate(_ part: Range<Int>) -> Candidate? {
        let (start, end, few) = (part.lowerBound, part.upperBound, Self.fewest)
        guard part.count >= 2 * few else { return nil }
        // Of right sides that end with the segment, and of those that end before.
        var best = Array(repeating: (distance: 0.0, cut: 0, end: 0), count: 2)
        for cut in (start + few)...(end - few) {
            for last in (cut + few)...end {
                let (distance, kind) = (self.distance(start, cut, last), last == end ? 0 : 1)
                if distance > best[kind].distance { best[kind] = (distance, cut, last) }
            }
        }
        // Half of the chance is for either kind.
        let cuts = Double(part.count - 2 * few + 1)
        return zip(best, [(2 * cuts, 1), (cuts * cuts, cuts)]).filter { $0.0.distance > 0 }.map { best, choices in
            let chance = self.probability(start, best.cut, best.end, of: choices.0, places: choices.1)
            return Candidate(cut: best.cut, probability: chance)
        }.min { $0.probability < $1.probability }
    }

    /// The energy distance of two neighbours, by their sizes.
    private func distance(_ start: Int, _ cut: Int, _ end: Int) -> Double {
        func sum(_ rows: Range<Int>, _ columns: Range<Int>) -> Double {
            self.sums[rows.upperBound][columns.upperBound] - self.sums[rows.lowerBound][columns.upperBound]
                - self.sums[rows.upperBound][columns.lowerBound] + self.sums[rows.lowerBound][columns.lowerBound]
        }
        let (left, right) = (Double(cut - start), Double(end - cut))
        let between = 2 * sum(start..<cut, cut..<end) / (left * right)
        let within =
            sum(start..<cut, start..<cut) / (left * (left - 1)) + sum(cut..<end, cut..<end) / (right * (right - 1))
        return left * right / (left + right) * (between - within)
    }

    /// `choices`: the number of pairs of cut and end; `places`: that of cuts, for the ranks.
    private func probability(_ start: Int, _ cut: Int, _ end: Int, of choices: Double, places: Double) -> Double {
        let test = self.test(start, cut, end)
        let shift = abs(test.right - test.left)
        guard shift > 0 else { return 1 }
        let tail = StudentT(degrees: Double(end - start - 2)).upperTail(shift / test.error)
        return min(1, max(2 * tail * choices, places * self.rankProbability(start, cut, end)))
    }

    /// The means, and the error of their difference with a pooled variance.
    private func test(_ start: Int, _ cut: Int, _ end: Int) -> (left: Double, right: Double, error: Double) {
        var (left, right) = (Moments(), Moments())
        for value in self.values[start..<cut] { left.add(value) }
        for value in self.values[cut..<end] { right.add(value) }
        let squares = left.variance * (left.count - 1) + right.variance * (right.count - 1)
        let variance = squares / (left.count + right.count - 2)
        return (left.mean, right.mean, (variance * (1 / left.count + 1 / right.count)).squareRoot())
    }

    private func rankProbability(_ start: Int, _ cut: Int, _ end: Int) -> Double {
        let (left, right) = (self.values[start..<cut], self.values[cut..<end])
        // Equal values count as out of order.
        let rising = left.reduce(0) { sum, value in sum + right.count { value < $0 } }
        let falling = left.reduce(0) { sum, value in sum + right.count { value > $0 } }
        let wrong = left.count * right.count - max(rising, falling)
        return RankTest.probability(wrong: wrong, min(left.count, right.count), max(left.count, right.count))
    }
}

/// The test of Mann and Whitney: whether the values of one side are above those of the other.
package enum RankTest {
    /// Where both sides have as many values the normal distribution is exact enough.
    private static let many = 10

    /// The fewest values of both sides with which a perfect order can be so improbable.
    package static func fewest(within probability: Double) -> Int {
        var count = 2 * LevelSearch.fewest
        while self.probability(wrong: 0, count / 2, count - count / 2) > probability, count < 1_000 { count += 1 }
        return count
    }

    /// The chance of so few pairs in the wrong order by chance alone, two-sided.
    package static func probability(wrong: Int, _ few: Int, _ more: Int) -> Double {
        let pairs = Double(few * more)
        guard few < self.many else {
            let deviation = (pairs * Double(few + more + 1) / 12).squareRoot()
            return min(1, 2 * StudentT(degrees: .infinity).upperTail((pairs / 2 - Double(wrong) - 0.5) / deviation))
        }
        // The ways to have each number of wrong pairs: a Gaussian binomial coefficient.
        var ways = [1.0] + Array(repeating: 0.0, count: wrong)
        var all = 1.0
        for part in 1...few {
            all *= Double(more + part) / Double(part)
            for count in stride(from: wrong, through: more + part, by: -1) { ways[count] -= ways[count - more - part] }
            for count in stride(from: part, through: wrong, by: 1) { ways[count] += ways[count - part] }
        }
        return min(1, 2 * ways.reduce(0, +) / all)
    }
}

/// The control of false discoveries over many tests, after Benjamini and Hochberg.
package enum FalseDiscovery {
    /// The largest probability that counts, where of those that count a share `rate` may be chance.
    package static func level(_ probabilities: [Double], rate: Double) -> Double {
        let count = Double(max(1, probabilities.count))
        let ranked = probabilities.sorted().enumerated()
        let last = ranked.last { $0.element <= rate * Double($0.offset + 1) / count }
        return last.map { rate * Double($0.offset + 1) / count } ?? 0
    }
}
