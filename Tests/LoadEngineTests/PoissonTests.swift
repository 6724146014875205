import LoadEngine
import NIOCore
import TestSupport
import Testing

@Suite("Poisson arrivals are those of a Poisson process")
struct PoissonTests {
    /// The times of so many seconds at that rate, in seconds.
    private static func times(_ perSecond: Double, seconds: Int64, seed: UInt64) -> [Double] {
        let curve = RateCurve([RateCurve.Piece(length: .seconds(seconds), from: perSecond, to: perSecond)])
        return self.times(curve, seed: seed)
    }

    private static func times(_ curve: RateCurve, seed: UInt64) -> [Double] {
        let schedule = OperationSchedule(pace: .shaped(ShapedLoad(curve, .poisson(seed: seed))), clients: 5)
        var times: [Double] = []
        while let due = schedule.due(UInt64(times.count)), due < .nanoseconds(.max) {
            times.append(Double(due.nanoseconds) / 1e9)
        }
        return times
    }

    private static func counts(_ times: [Double], width: Double, windows: Int) -> [Double] {
        var counts = [Double](repeating: 0, count: windows)
        for time in times where Int(time / width) < windows { counts[Int(time / width)] += 1 }
        return counts
    }

    @Test(
        "gaps are exponential: chi-square over 50 classes of the same weight",
        arguments: [1, 42, 77_777] as [UInt64]
    )
    func gaps(_ seed: UInt64) {
        let times = Self.times(1_000, seconds: 100, seed: seed)
        let fit = PoissonFit(times: [0] + times, perSecond: 1_000).gaps
        #expect(PoissonFit.gapBounds.contains(fit), "chi-square \(fit)")
        let gaps = zip(times, [0] + times).map { $0 - $1 }
        // A gap says nothing of the next one.
        let mean = gaps.reduce(0, +) / Double(gaps.count)
        let spread = gaps.reduce(0) { $0 + ($1 - mean) * ($1 - mean) }
        let joint = zip(gaps, gaps.dropFirst()).reduce(0) { $0 + ($1.0 - mean) * ($1.1 - mean) }
        #expect(abs(joint / spread) < 4.5 / Double(gaps.count).squareRoot())
    }

    @Test(
        "counts spread as they should, in windows far shorter and far longer than what is drawn at once",
        arguments: [(0.001, 90_000), (0.01, 9_000), (0.1, 900), (1, 90), (4, 22)] as [(Double, Int)]
    )
    func counts(width: Double, windows: Int) {
        for seed in [3, 9, 27] as [UInt64] {
            let times = Self.times(2_000, seconds: 90, seed: seed)
            let chi = PoissonFit(times: [0] + times, perSecond: 2_000).spread(slots: windows, of: width)
            #expect(PoissonFit.bounds(Double(windows)).contains(chi), "chi-square \(chi) with seed \(seed)")
        }
    }

    @Test("where the rate changes, each second has what it asks for, within its spread")
    func ramp() {
        let curve = RateCurve([RateCurve.Piece(length: .seconds(20), from: 0, to: 2_000)])
        let counts = Self.counts(Self.times(curve, seed: 5), width: 1, windows: 20)
        for (second, count) in counts.enumerated() {
            let asked = 50 + 100 * Double(second)
            #expect(abs(count - asked) < 4.5 * asked.squareRoot(), "\(count) in second \(second)")
        }
    }

    @Test("the same seed gives the same times, another one others; none falls")
    func seeds() {
        let times = Self.times(500, seconds: 20, seed: 8)
        #expect(times == Self.times(500, seconds: 20, seed: 8))
        #expect(times != Self.times(500, seconds: 20, seed: 9))
        #expect(zip(times, times.dropFirst()).allSatisfy { $0 <= $1 })
        #expect(times.allSatisfy { $0 >= 0 && $0 < 20 })
        #expect(abs(Double(times.count) - 10_000) < 450)
    }

    @Test("what a shard sends is that schedule")
    func shard() {
        let curve = RateCurve([RateCurve.Piece(length: .seconds(10), from: 300, to: 300)])
        let load = ShapedLoad(curve, .poisson(seed: 4))
        let plan = LoadPlan(operators: 3, connect: .pending(9), pace: .open(.shaped(load)), measure: .seconds(10))
        let rig = ShardRig(plan, window: 1 << 20)
        rig.begin()
        let start = rig.now
        rig.advance(.seconds(11))
        let sent = rig.work.sent.flatMap(\.dues).map { Double(($0 - start).nanoseconds) / 1e9 }
        #expect(sent == Self.times(curve, seed: 4))
    }

    @Test("a load of a billion operations is reached into anywhere, and keeps a table of at most 1 MiB")
    func large() {
        let curve = RateCurve([RateCurve.Piece(length: .seconds(10_000), from: 100_000, to: 100_000)])
        let schedule = OperationSchedule(pace: .shaped(ShapedLoad(curve, .poisson(seed: 1))), clients: 1)
        for index in [0, 1, 1 << 10, 1 << 20, 1 << 29, 999_000_000] as [UInt64] {
            let due = schedule.due(index).map { Double($0.nanoseconds) / 1e9 } ?? -1
            let asked = Double(index + 1) / 100_000
            #expect(abs(due - asked) < 4.5 * Double(index + 1).squareRoot() / 100_000, "operation \(index) at \(due) s")
            #expect(schedule.due(index + 1).map { Double($0.nanoseconds) / 1e9 } ?? -1 >= due)
        }
    }
}
