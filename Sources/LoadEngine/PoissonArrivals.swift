import Measurement

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// The arrivals of a Poisson process of rate 1, each computed from its number alone, in any order.
///
/// If the ends of a stretch with 2n arrivals are known, the n-th arrival splits it by a Beta(n, n) distribution,
/// independent of the rest. So every arrival follows from the ends by halving, with a random number seeded by its own
/// number. The first halvings are kept in a table of at most 1 MiB. Each further one costs about 50 ns: 6 of them up to
/// 8 million arrivals, one more each time that the load doubles.
struct PoissonArrivals: Sendable {
    private let seed: UInt64
    /// Arrivals between two entries of the table, as a power of 2.
    private let step: UInt64
    /// The times of every n-th arrival, from 0, which is the beginning.
    private let table: [Double]

    /// `time`: up to which it must reach.
    init(seed: UInt64, upTo time: Double) {
        // Ten standard deviations above what is to be expected.
        let needed = time + 10 * time.squareRoot() + 100
        var levels: UInt64 = 7
        while Double(1 << levels) < needed, levels < 52 { levels += 1 }
        var step: UInt64 = 6
        while levels - step > 17 { step += 1 }
        self.seed = seed
        self.step = step
        var table = [Double](repeating: 0, count: 1 << (levels - step) + 1)
        table[table.count - 1] = Self.gamma(Double(1 << levels), seed: seed)
        var width = table.count - 1
        while width > 1 {
            for start in stride(from: 0, to: table.count - 1, by: width) {
                let half = width / 2
                let share = Self.split(UInt64(width) << step, at: UInt64(start + half) << step, seed: seed)
                table[start + half] = table[start] + (table[start + width] - table[start]) * share
            }
            width /= 2
        }
        self.table = table
    }

    /// When arrival `index` is, from 0; `nil` beyond the table.
    func time(of index: UInt64) -> Double? {
        let number = index + 1
        let block = number >> self.step
        guard block < UInt64(self.table.count - 1) else { return nil }
        var start = block << self.step
        var lower = self.table[Int(block)]
        var upper = self.table[Int(block) + 1]
        var width: UInt64 = 1 << self.step
        while number > start {
            width /= 2
            let middle = lower + (upper - lower) * Self.split(width * 2, at: start + width, seed: self.seed)
            if number < start + width {
                upper = middle
            } else {
                lower = middle
                start += width
            }
        }
        return lower
    }

    /// The relative position of the middle arrival between its ends, 0 to 1: Beta(n / 2, n / 2), after Ulrich (1984).
    private static func split(_ arrivals: UInt64, at number: UInt64, seed: UInt64) -> Double {
        let key = SplitMix64.mix(seed &+ SplitMix64.mix(number))
        let radius = (-expm1(2 * log(self.uniform(key)) / Double(arrivals - 1))).squareRoot()
        return 0.5 + 0.5 * radius * cos(2 * Double.pi * self.uniform(SplitMix64.mix(key)))
    }

    /// The sum of exponential times, after Marsaglia and Tsang (2000).
    private static func gamma(_ shape: Double, seed: UInt64) -> Double {
        let d = shape - 1.0 / 3
        let c = 1 / (9 * d).squareRoot()
        var key = SplitMix64.mix(seed &+ 1)
        func next() -> Double {
            key = SplitMix64.mix(key)
            return self.uniform(key)
        }
        while true {
            let normal = (-2 * log(next())).squareRoot() * cos(2 * Double.pi * next())
            let cube = 1 + c * normal
            guard cube > 0 else { continue }
            let v = cube * cube * cube
            if log(next()) < 0.5 * normal * normal + d - d * v + d * log(v) { return d * v }
        }
    }

    /// Above 0 and below 1.
    private static func uniform(_ bits: UInt64) -> Double { (Double(bits >> 11) + 0.5) / Double(1 << 53) }
}
