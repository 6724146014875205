import Charts
import Testing

@Suite struct ScaleTests {
    @Test(
        "Ticks are multiples of 1, 2 or 5 times a power of ten",
        arguments: [
            (0, 10, 6, [0, 2, 4, 6, 8, 10]),
            (0, 1000, 3, [0, 500, 1000]),
            (0, 1234, 5, [0, 500, 1000]),
            (-1, 1, 5, [-1, -0.5, 0, 0.5, 1]),
            (3, 3.1, 3, [3, 3.05, 3.1]),
            (0, 7e-9, 3, [0, 5e-9]),
        ] as [(Double, Double, Int, [Double])]
    )
    func linear(low: Double, high: Double, count: Int, wanted: [Double]) {
        let ticks = LinearScale(low, high, begin: 0, end: 1).ticks(count)
        #expect(ticks.count == wanted.count)
        for (tick, value) in zip(ticks, wanted) { #expect(abs(tick - value) <= 1e-9 * (high - low)) }
    }

    @Test("There are two ticks at least, and of more than two never more than wanted", arguments: [2, 3, 5, 8, 13, 21])
    func tickCount(count: Int) {
        for length in stride(from: 0.1, through: 30, by: 0.7) {
            let linear = LinearScale(0, length, begin: 0, end: 1).ticks(count)
            // From 0 to 45 there are 0 and 50, or 0, 20 and 40: one tick alone would be no scale.
            #expect((2...max(count, 3)).contains(linear.count), "\(length)")
            let time = TimeScale(0, length * 500, begin: 0, end: 1).ticks(count).ticks
            #expect((2...max(count, 3)).contains(time.count), "\(length * 500) s")
        }
    }

    @Test(
        "Logarithmic ticks are decades, with steps between them while there is room",
        arguments: [
            (1e-3, 1, 4, [1e-3, 1e-2, 1e-1, 1]),
            (1e-3, 1, 20, [1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 1e-1, 2e-1, 5e-1, 1]),
            (1e-3, 1e-1, 5, [1e-3, 3e-3, 1e-2, 3e-2, 1e-1]),
            (1e-6, 1e3, 5, [1e-6, 1e-4, 1e-2, 1, 1e2]),
            (2e-3, 4e-3, 5, [2e-3, 2.5e-3, 3e-3, 3.5e-3, 4e-3]),
        ] as [(Double, Double, Int, [Double])]
    )
    func log(low: Double, high: Double, count: Int, wanted: [Double]) {
        let ticks = LogScale(low, high, begin: 0, end: 1).ticks(count)
        #expect(ticks.count == wanted.count, "\(ticks)")
        for (tick, value) in zip(ticks, wanted) { #expect(abs(tick / value - 1) < 1e-9) }
    }

    @Test(
        "Time ticks are full seconds, minutes, hours and days",
        arguments: [
            (0, 60, 8, ["0", "10 s", "20 s", "30 s", "40 s", "50 s", "60 s"]),
            (-5, 20, 6, ["−5 s", "0", "5 s", "10 s", "15 s", "20 s"]),
            (0, 0.5, 6, ["0", "0.1 s", "0.2 s", "0.3 s", "0.4 s", "0.5 s"]),
            (0, 200, 8, ["0", "30 s", "60 s", "90 s", "2:00 min", "2:30 min", "3:00 min"]),
            (0, 3600, 4, ["0", "20 min", "40 min", "60 min"]),
            (0, 7300, 6, ["0", "30 min", "60 min", "90 min", "2 h"]),
            (0, 86_400, 5, ["0", "6 h", "12 h", "18 h", "24 h"]),
            (0, 864_000, 6, ["0", "48 h", "96 h", "144 h", "192 h", "240 h"]),
        ] as [(Double, Double, Int, [String])]
    )
    func time(low: Double, high: Double, count: Int, wanted: [String]) {
        let (ticks, step) = TimeScale(low, high, begin: 0, end: 1).ticks(count)
        #expect(ticks.map { TickLabels.time($0, step: step) } == wanted)
    }

    @Test(
        "A domain that is none gets a place to draw in",
        arguments: [
            (Double.nan, 1), (0, Double.infinity), (5, 5), (0, 0), (3, 2), (-1e308, 1e308),
            (0, Double.leastNonzeroMagnitude),
        ] as [(Double, Double)]
    )
    func degenerate(low: Double, high: Double) {
        let linear = LinearScale(low, high, begin: 0, end: 100)
        #expect(linear.low < linear.high)
        #expect((0...100).contains(linear.pixel(low)) && (0...100).contains(linear.pixel(high)))
        #expect(linear.ticks(5).allSatisfy { $0.isFinite })
        let log = LogScale(low, high, begin: 0, end: 100)
        #expect(log.low > 0 && log.low < log.high)
        #expect((0...100).contains(log.pixel(low)) && (0...100).contains(log.pixel(high)))
        #expect(log.ticks(5).allSatisfy { $0.isFinite })
    }

    @Test("A scale runs either way, and holds what lies outside at its end")
    func pixels() {
        let up = LinearScale(0, 10, begin: 100, end: 0)
        #expect([-5, 0, 5, 10, 99].map(up.pixel) == [100, 100, 50, 0, 0])
        let log = LogScale(1, 1000, begin: 0, end: 300)
        #expect(
            [0, 1, 10, 100, 1000, 1e9].map { (log.pixel($0) * 1e6).rounded() / 1e6 } == [0, 0, 100, 200, 300, 300]
        )
    }
}
