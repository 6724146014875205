import Foundation
import Measurement
import TestSupport
import Testing

/// Durations as runs make them.
struct Distribution: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let draw: @Sendable (inout SeededDice) -> Int64

    func values(_ count: Int, seed: UInt64 = 42) -> [Int64] {
        var dice = SeededDice(seed: seed)
        return (0..<count).map { _ in self.draw(&dice) }
    }

    static let all = [
        Distribution(testDescription: "uniform over the whole range") { .random(in: 1...600_000_000_000, using: &$0) },
        Distribution(testDescription: "uniform below 3 µs") { .random(in: 1...3000, using: &$0) },
        Distribution(testDescription: "exponential, mean 3 ms") {
            Int64(-3e6 * log(.random(in: .leastNonzeroMagnitude..<1, using: &$0))) + 1
        },
        Distribution(testDescription: "log-normal, median 200 µs") {
            let first = Double.random(in: .leastNonzeroMagnitude..<1, using: &$0)
            let normal = (-2 * log(first)).squareRoot() * cos(2 * .pi * .random(in: 0..<1, using: &$0))
            return Int64(2e5 * exp(1.5 * normal)) + 1
        },
        Distribution(testDescription: "bimodal, 50 µs and now and then 2 s") {
            $0.hits(0.003)
                ? .random(in: 1_900_000_000...2_100_000_000, using: &$0) : .random(in: 45_000...55_000, using: &$0)
        },
        Distribution(testDescription: "constant") { _ in 1_234_567 },
    ]
}

extension Histogram {
    init(of values: some Sequence<Int64>) {
        self.init()
        for value in values { self.record(value) }
    }
}
