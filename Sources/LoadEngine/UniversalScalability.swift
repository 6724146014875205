/// Gunther's Universal Scalability Law, fitted: X(N) = λN ÷ (1 + σ(N − 1) + κN(N − 1)).
///
/// N is the number of operations in flight, X the throughput per second. λ is the throughput of one operation in
/// flight. σ is the share that waits for shared resources (contention), κ the cost of keeping them consistent
/// (coherency).
package struct UniversalScalability: Hashable, Sendable {
    package struct Point: Hashable, Sendable {
        /// Operations in flight: clients in closed loop; by Little's law throughput × mean latency.
        package var concurrency: Double
        /// Per second.
        package var throughput: Double

        package init(concurrency: Double, throughput: Double) {
            self.concurrency = concurrency
            self.throughput = throughput
        }
    }

    package var rateOfOne: Double
    package var contention: Double
    package var coherency: Double
    /// Measured by predicted less 1, of each point in its order; nothing for those that the fit left out.
    package private(set) var residuals: [Double?] = []

    package init(rateOfOne: Double, contention: Double, coherency: Double) {
        self.rateOfOne = rateOfOne
        self.contention = contention
        self.coherency = coherency
    }

    package func throughput(at concurrency: Double) -> Double {
        let others = concurrency - 1
        return self.rateOfOne * concurrency / (1 + self.contention * others + self.coherency * concurrency * others)
    }

    /// The maximum of throughput, at one operation in flight or more; `nil` if throughput only grows.
    package var peak: Point? {
        guard self.coherency > 0 || self.contention > 1 else { return nil }
        let square = (1 - self.contention) / self.coherency
        let concurrency = square > 1 ? square.squareRoot() : 1
        return Point(concurrency: concurrency, throughput: self.throughput(at: concurrency))
    }

    /// The limit of throughput without coherency cost; `nil` if there is a peak, or no bound.
    package var bound: Double? {
        self.peak == nil && self.contention > 0 ? self.rateOfOne / self.contention : nil
    }

    /// The typical residual: the root of their mean square.
    package var deviation: Double {
        let known = self.residuals.compactMap(\.self)
        guard !known.isEmpty else { return 0 }
        return (known.reduce(0) { $0 + $1 * $1 } / Double(known.count)).squareRoot()
    }

    /// Fits the law by least squares of relative errors, neither coefficient below 0.
    ///
    /// N ÷ X = a + b(N − 1) + cN(N − 1) is linear in a = 1 ÷ λ, b = σ ÷ λ and c = κ ÷ λ.
    ///
    /// Points without operations are left out. Nothing for fewer than four points of different concurrency, or where no such law comes near them.
    package init?(fitting points: [Point]) {
        func isUsable(_ point: Point) -> Bool {
            point.concurrency > 0 && point.throughput > 0 && (point.concurrency * point.throughput).isFinite
        }
        let usable = points.filter(isUsable)
        guard Set(usable.map(\.concurrency)).count >= 4 else { return nil }
        // By Little's law, fewer than one slow operation in flight is less than one client's work. There the law
        // divides by 0 or less unless σ + κ ≤ 1. A peak below one, without any contention, is fitted noise.
        let isBelowOne = usable.contains { $0.concurrency < 1 }
        func isLaw(_ slope: [Double]) -> Bool {
            slope[0] > 0 && slope.allSatisfy { $0 >= 0 } && (!isBelowOne || slope[1] + slope[2] <= slope[0])
        }
        // Where the best fit would have a coefficient that may not be, the best without it is the best allowed.
        let fits = [[0, 1, 2], [0, 1], [0, 2], [0]].compactMap { Self.leastSquares(usable, terms: $0) }
        guard
            let best = fits.filter({ isLaw($0.coefficients) }).min(by: { $0.error < $1.error })
        else { return nil }
        let slope = best.coefficients
        self.init(rateOfOne: 1 / slope[0], contention: slope[1] / slope[0], coherency: slope[2] / slope[0])
        self.residuals = points.map { point in
            isUsable(point) ? point.throughput / self.throughput(at: point.concurrency) - 1 : nil
        }
    }

    private struct Fit {
        /// a, b and c, 0 where they were left out.
        var coefficients: [Double]
        var error: Double
    }

    /// Weighted by X ÷ N, so that each point counts by its relative error.
    private static func leastSquares(_ points: [Point], terms: [Int]) -> Fit? {
        func row(_ point: Point) -> [Double] {
            let others = point.concurrency - 1
            let weight = point.throughput / point.concurrency
            return [weight, weight * others, weight * point.concurrency * others]
        }
        let rows = points.map(row)
        // Columns of like size, or squares of thousands would drown the rest.
        let scales = terms.map { term in rows.map { abs($0[term]) }.max() ?? 0 }
        guard scales.allSatisfy({ $0 > 0 }) else { return nil }
        let columns = rows.map { row in zip(terms, scales).map { row[$0] / $1 } }
        guard let solution = OrthogonalSolver.solve(columns, wanted: Array(repeating: 1, count: rows.count)) else {
            return nil
        }
        var coefficients = [0.0, 0, 0]
        for (index, term) in terms.enumerated() { coefficients[term] = solution[index] / scales[index] }
        let error = rows.reduce(0) { sum, row in
            let miss = zip(row, coefficients).reduce(0) { $0 + $1.0 * $1.1 } - 1
            return sum + miss * miss
        }
        return Fit(coefficients: coefficients, error: error)
    }
}

/// Least squares by orthogonal columns (Gram and Schmidt, modified), which loses half the digits that squares would.
enum OrthogonalSolver {
    /// The factors of the columns of `rows` that fit `wanted` best; `nil` if columns depend on each other.
    static func solve(_ rows: [[Double]], wanted: [Double]) -> [Double]? {
        let width = rows.first?.count ?? 0
        var columns = (0..<width).map { column in rows.map { $0[column] } }
        var triangle = Array(repeating: Array(repeating: 0.0, count: width), count: width)
        var rest = wanted
        var target = Array(repeating: 0.0, count: width)
        for column in 0..<width {
            let length = self.product(columns[column], columns[column]).squareRoot()
            guard length > 1e-10 else { return nil }
            triangle[column][column] = length
            columns[column] = columns[column].map { $0 / length }
            for other in (column + 1)..<max(width, column + 1) {
                let share = self.product(columns[column], columns[other])
                triangle[column][other] = share
                columns[other] = zip(columns[other], columns[column]).map { $0 - share * $1 }
            }
            target[column] = self.product(columns[column], rest)
            let share = target[column]
            rest = zip(rest, columns[column]).map { $0 - share * $1 }
        }
        var solution = Array(repeating: 0.0, count: width)
        for column in (0..<width).reversed() {
            let known = ((column + 1)..<max(width, column + 1)).reduce(0) { $0 + triangle[column][$1] * solution[$1] }
            solution[column] = (target[column] - known) / triangle[column][column]
        }
        return solution
    }

    private static func product(_ one: [Double], _ two: [Double]) -> Double {
        zip(one, two).reduce(0) { $0 + $1.0 * $1.1 }
    }
}
