/// Maps seconds to pixels, with ticks at full seconds, minutes, hours and days.
package struct TimeScale: Sendable {
    package let linear: LinearScale

    package init(_ low: Double, _ high: Double, begin: Double, end: Double) {
        self.linear = LinearScale(low, high, begin: begin, end: end)
    }

    package func pixel(_ second: Double) -> Double { self.linear.pixel(second) }

    private static let steps: [Double] = [
        1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600, 7200, 10800, 21600, 43200, 86400,
    ]

    /// At most `count` ticks, but two at least where the domain has them, and their distance.
    package func ticks(_ count: Int) -> (ticks: [Double], step: Double) {
        for finer in max(count, 2)...max(count, 2) + 8 {
            let found = self.candidates(finer)
            if found.ticks.count > 1 { return found }
        }
        return self.candidates(count)
    }

    private func candidates(_ count: Int) -> (ticks: [Double], step: Double) {
        let length = self.linear.high - self.linear.low
        var step = self.linear.step(count)
        if step >= 1 {
            let wanted = Double(max(count, 2))
            // Days are counted in tens again.
            step =
                Self.steps.first { length / $0 + 1e-9 < wanted }
                ?? LinearScale.step(length / 86400, count) * 86400
        }
        return (LinearScale.ticks(self.linear.low, self.linear.high, step: step), step)
    }
}
