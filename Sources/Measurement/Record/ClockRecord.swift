import CPosix

/// By which clock a process stamped its messages, and how that goes together with the clocks of other segments.
package struct ClockRecord: Codable, Hashable, Sendable {
    /// A hash of the kernel's boot id: processes that have the same one read one clock.
    package var host: String
    /// CLOCK_REALTIME less CLOCK_MONOTONIC, which never changes in a run: nanoseconds.
    package var realtimeOffset: Int64
    /// What the clock of segment 1 is ahead of this one, and was added to it; absent where nothing was measured.
    package var correctionSeconds: Double?
    /// How far that may be wrong.
    package var errorSeconds: Double?
    /// Echoes that it was measured by.
    package var exchanges: Int?

    package init(host: String, realtimeOffset: Int64) {
        self.host = host
        self.realtimeOffset = realtimeOffset
    }

    private enum CodingKeys: String, CodingKey {
        case host
        case realtimeOffset = "realtime_offset_nanoseconds"
        case correctionSeconds = "correction_seconds"
        case errorSeconds = "error_seconds"
        case exchanges
    }
}

/// The clock of this host.
package enum HostClock {
    /// Of this boot of the kernel; `nil` where it does not say.
    ///
    /// Every process of one boot has the same CLOCK_REALTIME, in whatever namespace it is. `ahead` is what it is taken
    /// to be ahead of itself, as the clock of another host might be.
    package static func host(ahead: Int64 = 0) -> String? {
        ProcFile.line("/proc/sys/kernel/random/boot_id").map { id in
            let hash = String((ahead == 0 ? id : "\(id) \(ahead)").stableHash, radix: 16)
            return String(repeating: "0", count: 16 - hash.count) + hash
        }
    }

    /// CLOCK_REALTIME less CLOCK_MONOTONIC, to some ten nanoseconds: of several looks the one that nothing interrupted.
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

/// How exactly the clocks of several segments go together.
package enum ClockAgreement: Hashable, Sendable {
    /// The time between two of them is wrong by at most so much.
    case within(seconds: Double)
    /// Nobody measured how far this segment's clock, from 1, is from that of segment 1.
    case unknown(segment: Int)

    /// Looks at the clocks of one process each, twice, are not closer.
    private static let exactness = 1e-6

    /// - Parameter clocks: in the order of the segments.
    package init(_ clocks: [ClockRecord?]) {
        var errors: [Double] = []
        for (index, clock) in clocks.enumerated().dropFirst() {
            guard let clock, let first = clocks[0] else {
                self = .unknown(segment: index + 1)
                return
            }
            if let error = clock.errorSeconds {
                errors.append(error)
            } else if clock.host == first.host {
                // One clock; if it was set between the two looks at it, their times are so far apart.
                let apart = Double((clock.realtimeOffset - first.realtimeOffset).magnitude) / 1e9
                errors.append(apart > Self.exactness ? apart : 0)
            } else {
                self = .unknown(segment: index + 1)
                return
            }
        }
        // Between the two that are worst.
        self = .within(seconds: errors.sorted().suffix(2).reduce(0, +))
    }
}

/// One echo: four times, those of the sender by its clock, those of the one who answers by his; nanoseconds.
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

    /// What the other clock is ahead, if both ways took the same time (RFC 5905 §8).
    package var offset: Int64 { ((self.received - self.sent) + (self.answered - self.arrived)) / 2 }

    /// Without the time that the answer took.
    package var roundTrip: Int64 { (self.arrived - self.sent) - (self.answered - self.received) }
}

/// How far another clock is ahead, by the echo that was the fastest: the less it waited, the less it can mislead.
package struct ClockEstimate: Hashable, Sendable {
    package var offset: Int64
    /// Half of the round trip: one way may have taken all of it.
    package var error: Int64
    package var exchanges: Int

    /// Nothing without an echo; one that came before it was sent, by a clock that was set in between, is none.
    package init?(_ exchanges: [ClockExchange]) {
        let valid = exchanges.filter { $0.roundTrip >= 0 }
        guard let best = valid.min(by: { $0.roundTrip < $1.roundTrip }) else { return nil }
        self.offset = best.offset
        self.error = (best.roundTrip + 1) / 2
        self.exchanges = valid.count
    }

    /// What a clock that was corrected by this may be wrong by, when it was measured again at the end.
    ///
    /// Two estimates whose errors do not reach each other say that the clocks went apart.
    package func error(with last: ClockEstimate?) -> Int64 {
        guard let last else { return self.error }
        let apart = Int64((last.offset - self.offset).magnitude)
        return apart > self.error + last.error ? apart + last.error : self.error
    }
}
