package import NIOCore

/// The offered rate over the time since the load began: consecutive linear pieces.
package struct RateCurve: Hashable, Sendable {
    package struct Piece: Hashable, Sendable {
        package var length: TimeAmount
        /// Operations a second where it begins, and where it ends; the same for a level piece.
        package var from: Double
        package var to: Double

        package init(length: TimeAmount, from: Double, to: Double) {
            self.length = length
            self.from = from
            self.to = to
        }
    }

    /// A piece with what lies before it, in nanoseconds.
    private struct Span: Hashable, Sendable {
        var start: Double
        var end: Double
        /// Operations before it.
        var before: Double
        /// Operations a nanosecond, and how that grows in one.
        var rate: Double
        var slope: Double
    }

    private let spans: [Span]
    /// Operations from the beginning to the end.
    package let total: Double

    package init(_ pieces: [Piece]) {
        var spans: [Span] = []
        var start = 0.0
        var before = 0.0
        for piece in pieces where piece.length > .zero {
            precondition(piece.from >= 0 && piece.to >= 0, "no rate is below 0")
            let length = Double(piece.length.nanoseconds)
            spans.append(
                Span(
                    start: start,
                    end: start + length,
                    before: before,
                    rate: piece.from / 1e9,
                    slope: (piece.to - piece.from) / 1e9 / length
                )
            )
            start += length
            before += (piece.from + piece.to) / 2e9 * length
        }
        self.spans = spans
        self.total = before
    }

    /// The time at which this many operations have been offered, in nanoseconds since the beginning; `nil` if never.
    ///
    /// It does not decrease with the number of operations.
    func time(of operations: Double) -> Double? {
        guard operations < self.total else { return nil }
        // The last piece that begins at no more than that; after pieces of rate 0, the piece that follows them.
        var range = 0..<self.spans.count
        while range.count > 1 {
            let middle = range.lowerBound + range.count / 2
            range =
                self.spans[middle].before <= operations ? middle..<range.upperBound : range.lowerBound..<middle
        }
        guard let first = range.first else { return nil }
        let span = self.spans[first]
        let rest = operations - span.before
        guard rest > 0 else { return span.start }
        // n = rate·t + slope·t²/2, solved without a difference of what is nearly the same.
        let root = (span.rate * span.rate + 2 * span.slope * rest)
        let time = 2 * rest / (span.rate + max(0, root).squareRoot())
        return min(span.start + time, span.end)
    }
}

/// An open load with a changing rate or uneven arrivals.
///
/// A due time follows from the operation's number, as in ``OperationSchedule``: number k is due when the curve has
/// reached the number of operations that the arrivals give for k.
package final class ShapedLoad: Sendable {
    package enum Arrivals: Hashable, Sendable {
        /// Evenly spaced at the rate.
        case even
        /// Independent arrivals: a Poisson process with the curve's rate.
        case poisson(seed: UInt64)
        /// Bursts of this size, spaced to keep the rate.
        case bursts(of: Int)
    }

    package let curve: RateCurve
    package let arrivals: Arrivals
    private let poisson: PoissonArrivals?

    package init(_ curve: RateCurve, _ arrivals: Arrivals = .even) {
        self.curve = curve
        self.arrivals = arrivals
        if case .poisson(let seed) = arrivals {
            self.poisson = PoissonArrivals(seed: seed, upTo: curve.total)
        } else {
            self.poisson = nil
        }
    }

    /// When operation `index` is due; ``OperationSchedule/never`` past the end of the curve.
    func time(of index: UInt64) -> TimeAmount {
        let operations: Double? =
            switch self.arrivals {
            case .even: Double(index)
            case .bursts(let size): Double(index - index % UInt64(max(1, size)))
            case .poisson: self.poisson?.time(of: index)
            }
        guard let time = operations.flatMap(self.curve.time) else { return OperationSchedule.never }
        // Rounding keeps a due time from slipping into the previous piece by a floating-point error.
        return .nanoseconds(Int64(time.rounded()))
    }
}

extension ShapedLoad: Hashable {
    package static func == (one: ShapedLoad, other: ShapedLoad) -> Bool {
        one === other || one.curve == other.curve && one.arrivals == other.arrivals
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(self.curve)
        hasher.combine(self.arrivals)
    }
}
