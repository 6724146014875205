import NIOCore
import Testing
import Workloads

@Suite("Waits before a reconnect")
struct BackoffTests {
    @Test(
        "grow by their factor up to the longest",
        arguments: [
            (nil, nil, [1, 1, 1, 1]), (nil, 60, [1, 2, 4, 8, 16, 32, 60, 60]), (3, 10, [1, 3, 9, 10]),
            (1.5, nil, [1, 1.5, 2.25]), (1, 60, [1, 1]),
        ] as [(Double?, Int64?, [Double])]
    )
    func growth(factor: Double?, longest: Int64?, seconds: [Double]) {
        var backoff = Backoff()
        (backoff.factor, backoff.to) = (factor, longest.map { $0 * 1_000_000_000 })
        let waits = seconds.indices.map { backoff.delay(after: $0, of: 7, seed: 1).nanoseconds }
        #expect(waits == seconds.map { Int64($0 * 1e9) })
    }

    @Test("jitter spreads the clients evenly, by seed, client and attempt", arguments: [0, 1, 5, 255])
    func jitter(attempt: Int) {
        var backoff = Backoff()
        backoff.jitter = 0.5
        let waits = (0..<10_000).map { backoff.delay(after: attempt, of: $0, seed: 42).nanoseconds }
        #expect(waits == (0..<10_000).map { backoff.delay(after: attempt, of: $0, seed: 42).nanoseconds })
        #expect(waits.allSatisfy { (500_000_000...1_500_000_000).contains($0) })
        // 1,000 in each of ten parts, within five standard deviations.
        let parts = Dictionary(grouping: waits) { min(9, ($0 - 500_000_000) / 100_000_000) }
        #expect(parts.values.allSatisfy { (850...1_150).contains($0.count) })
        #expect(waits != (0..<10_000).map { backoff.delay(after: attempt, of: $0, seed: 43).nanoseconds })
        #expect(waits != (0..<10_000).map { backoff.delay(after: attempt + 1, of: $0, seed: 42).nanoseconds })
    }
}
