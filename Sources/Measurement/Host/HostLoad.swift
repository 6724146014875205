/// The host's idle CPU and its steal, second by second and over a run.
///
/// Shares over less than half a second are not reported: the kernel counts in ticks of 10 ms.
package struct HostLoad: Sendable {
    /// The kernel's counters at one moment.
    package struct Look: Hashable, Sendable {
        package var cpu: CPUSample?
        package var pressure: CPUPressure?
        /// Monotonic nanoseconds.
        package var time: Int64

        package init(cpu: CPUSample? = .read(), pressure: CPUPressure? = .read(), time: Int64) {
            self.cpu = cpu
            self.pressure = pressure
            self.time = time
        }
    }

    private static let shortest: Int64 = 500_000_000

    private let first: Look
    private var last: Look
    private var idle = GaugeLevel()
    private var pressure = GaugeLevel()
    /// Over the last interval, however short; `nil` if unknown.
    package private(set) var steal: Double?

    package init(_ first: Look) {
        self.first = first
        self.last = first
    }

    /// Ends an interval.
    package mutating func take(_ now: Look) -> [Metric] {
        let before = self.last
        self.last = now
        self.steal = before.cpu.flatMap { now.cpu?.stealShare(since: $0) }
        guard now.time - before.time >= Self.shortest else { return [] }
        let shares = Self.shares(before, now)
        if let share = shares.idle { self.idle.add(share) }
        if let share = shares.pressure { self.pressure.add(share) }
        func reading(_ share: Double?) -> GaugeReading? { share.map { GaugeReading(value: $0) } }
        return Self.metrics(reading(shares.idle), reading(shares.pressure))
    }

    /// Over the whole run, from the first reading to the last; the lowest and the highest are those of single seconds.
    package var metrics: [Metric] {
        let shares = Self.shares(self.first, self.last)
        func reading(_ mean: Double?, _ level: GaugeLevel) -> GaugeReading? {
            mean.map { mean in
                let seconds = level.reading
                return GaugeReading(value: seconds?.value ?? mean, min: seconds?.min, mean: mean, max: seconds?.max)
            }
        }
        return Self.metrics(reading(shares.idle, self.idle), reading(shares.pressure, self.pressure))
    }

    private static func shares(_ before: Look, _ now: Look) -> (idle: Double?, pressure: Double?) {
        let idle = before.cpu.flatMap { now.cpu?.idleShare(since: $0) }
        let pressure = before.pressure.flatMap {
            now.pressure?.share(since: $0, nanoseconds: now.time - before.time)
        }
        return (idle, pressure)
    }

    private static func metrics(_ idle: GaugeReading?, _ pressure: GaugeReading?) -> [Metric] {
        [
            idle.map { Metric(.hostCPUIdle, reading: .gauge($0)) },
            pressure.map { Metric(.hostCPUPressure, reading: .gauge($0)) },
        ].compactMap(\.self)
    }
}
