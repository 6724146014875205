import CPosix

/// The clock that stamped a process's messages, and its relation to the clocks of other segments.
package struct ClockRecord: Codable, Hashable, Sendable {
    /// A hash of the kernel's boot id: processes with the same hash read the same clock.
    package var host: String
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC in nanoseconds; it does not change during a run.
    package var realtimeOffset: Int64
    /// How far the reference clock is ahead, which was added to this clock; absent without a measurement.
    package var correctionSeconds: Double?
    /// The error bound of the correction.
    package var errorSeconds: Double?
    /// Number of echoes in the measurement.
    package var exchanges: Int?
    /// The host of the reference clock, if it is not that of segment 1, such as the coordinator's.
    package var reference: String?

    package init(host: String, realtimeOffset: Int64) {
        self.host = host
        self.realtimeOffset = realtimeOffset
    }

    private enum CodingKeys: String, CodingKey {
        case host
        case realtimeOffset = "realtime_offset_nanoseconds"
        case correctionSeconds = "correction_seconds"
        case errorSeconds = "error_seconds"
        case exchanges, reference
    }
}

package enum HostClock {
    /// The id of this boot of the kernel; `nil` if it is unavailable.
    ///
    /// Every process of one boot has the same CLOCK_REALTIME, in any namespace. `ahead` simulates the clock of another
    /// host that is ahead by this much.
    package static func host(ahead: Int64 = 0) -> String? {
        ProcFile.line("/proc/sys/kernel/random/boot_id").map { id in
            (ahead == 0 ? id : "\(id) \(ahead)").stableHex
        }
    }

    /// CLOCK_REALTIME minus CLOCK_MONOTONIC, to about ten nanoseconds: the best of several readings, without
    /// interruption.
    package static func realtimeOffset() -> Int64 {
        var best = (width: Int64.max, offset: Int64(0))
        for _ in 0..<16 {
            let before = clamor_monotonic_nanoseconds()
            let realtime = clamor_realtime_nanoseconds()
            let after = clamor_monotonic_nanoseconds()
            let width = after - before
            if width < best.width { best = (width, realtime - (before + width / 2)) }
        }
        return best.offset
    }
}

/// How precisely the clocks of several segments agree.
package enum ClockAgreement: Hashable, Sendable {
    /// The time between any two of them is wrong by at most this much.
    case within(seconds: Double)
    /// The difference between this clock and the reference clock was not measured; clocks are counted from 1.
    case unknown(clock: Int)

    /// Repeated readings of the clocks of one process are no closer than this.
    private static let exactness = 1e-6

    /// The key of processes that read one clock and corrected it alike.
    private struct Clock: Hashable {
        var host: String
        var correction: Double?
        var error: Double?
    }

    /// - Parameter clocks: one of each process, in the order of the segments.
    package init(_ clocks: [ClockRecord?]) {
        self = .within(seconds: 0)
        guard let first = clocks.first, clocks.count > 1 else { return }
        // Without a name the reference is the clock of segment 1, which then has no correction itself.
        let own = first?.errorSeconds == nil ? first?.host : nil
        let corrected = clocks.lazy.compactMap { $0 }.first { $0.errorSeconds != nil }
        let reference = corrected.flatMap(\.reference) ?? own
        var offsets: [Clock: (lowest: Int64, highest: Int64)] = [:]
        for (index, clock) in clocks.enumerated() {
            guard let clock, (clock.errorSeconds == nil ? clock.host : clock.reference ?? own) == reference else {
                self = .unknown(clock: index + 1)
                return
            }
            let key = Clock(host: clock.host, correction: clock.correctionSeconds, error: clock.errorSeconds)
            let range = offsets[key] ?? (clock.realtimeOffset, clock.realtimeOffset)
            offsets[key] = (min(range.lowest, clock.realtimeOffset), max(range.highest, clock.realtimeOffset))
        }
        // If a clock was set between the readings of two processes, their times differ by as much.
        let all = offsets.map { clock, range in
            // Two offsets of a file may be farther apart than a signed number holds.
            let apart = Double(UInt64(bitPattern: range.highest &- range.lowest)) / 1e9
            return (error: clock.error ?? 0, apart: apart > Self.exactness ? apart : 0)
        }
        // A correction does not change the time between two readings of one clock. Of several clocks the two largest
        // errors count together.
        let errors = all.count == 1 ? all.map(\.apart) : all.map { $0.error + $0.apart }
        self = .within(seconds: errors.sorted().suffix(2).reduce(0, +))
    }
}

/// One echo: four times in nanoseconds, two from the sender's clock and two from the answering side's clock.
package struct ClockExchange: Hashable, Sendable {
    package var sent: Int64
    package var received: Int64
    package var answered: Int64
    package var arrived: Int64

    package init(sent: Int64, received: Int64, answered: Int64, arrived: Int64) {
        self.sent = sent
        self.received = received
        self.answered = answered
        self.arrived = arrived
    }

    /// How far the other clock is ahead, if both directions took the same time (RFC 5905 §8).
    package var offset: Int64 { ((self.received &- self.sent) &+ (self.answered &- self.arrived)) / 2 }

    /// The round trip without the time for the answer.
    package var roundTrip: Int64 { (self.arrived &- self.sent) &- (self.answered &- self.received) }

    /// Whether it can be one of two clocks: the times come from a peer, which may say anything.
    ///
    /// The bound is 73 years. Sums and differences of two such times fit.
    var isPlausible: Bool { self.roundTrip >= 0 && max(self.offset.magnitude, self.roundTrip.magnitude) < 1 << 61 }
}

/// How far another clock is ahead, from the fastest echo: its short wait leaves the least room for an error.
package struct ClockEstimate: Hashable, Sendable {
    package var offset: Int64
    /// Half of the round trip: one direction may have taken all of it.
    package var error: Int64
    package var exchanges: Int

    /// Nil without an echo.
    ///
    /// An echo with a negative round trip is ignored, since a clock was set in between.
    package init?(_ exchanges: [ClockExchange]) {
        let valid = exchanges.filter(\.isPlausible)
        guard let best = valid.min(by: { $0.roundTrip < $1.roundTrip }) else { return nil }
        self.offset = best.offset
        self.error = (best.roundTrip + 1) / 2
        self.exchanges = valid.count
    }

    /// The error of a clock that this estimate corrected, after another measurement at the end.
    ///
    /// If the error intervals of the two estimates do not overlap, the clocks have drifted apart.
    package func error(with last: ClockEstimate?) -> Int64 {
        guard let last else { return self.error }
        let apart = Int64((last.offset - self.offset).magnitude)
        return apart > self.error + last.error ? apart + last.error : self.error
    }
}
