import CPosix

/// Decodes a stream in memory repeatedly, with a client's decoder and calls.
///
/// Confined to one thread.
package final class DecodeInMemory {
    /// Nanoseconds.
    ///
    /// A clock read, about 0.3 µs, is negligible beside it.
    private static let shortestRound: Int64 = 2_000_000
    private static let warmupRounds = 3

    private let stream: DecodeStream
    private let pieces: [Int32]
    private let machine: DecodeMachine
    private let meter: DecodeMeter
    /// Passes over the stream per round; set by the first round.
    private var laps = 1

    /// - Parameters:
    ///   - stream: the stream; each round repeats it until the round is long enough.
    ///   - metrics: the lane's metrics.
    ///   - seed: seed of the fragments.
    ///   - copies: whether the sink copies each payload.
    package init(_ stream: DecodeStream, metrics: DecodeMetrics, seed: UInt64, copies: Bool) {
        self.stream = stream
        self.pieces = metrics.lane.form.pieces(of: stream, seed: seed)
        self.machine = DecodeMachine(stream.subject, copies ? .copy : .view)
        self.meter = DecodeMeter(metrics)
    }

    /// Runs rounds that are not counted, to warm up caches and branch predictors.
    ///
    /// - Parameter nanoseconds: minimum duration.
    /// - Returns: the interval of these rounds.
    /// - Throws: if the decoded content differs from the encoded content.
    package func warmUp(_ nanoseconds: Int64) throws(DecodeFault) -> DecodeInterval {
        let start = clamor_monotonic_nanoseconds()
        // The very first pass is cold; the second one sets the number of passes per round.
        self.meter.add(try self.round(), measured: false)
        let walk = try self.round()
        self.meter.add(walk, measured: false)
        self.laps = Int(max(1, (Self.shortestRound + walk.wall - 1) / max(1, walk.wall)))
        var rounds = 0
        while rounds < Self.warmupRounds || clamor_monotonic_nanoseconds() - start < nanoseconds {
            self.meter.add(try self.round(), measured: false)
            rounds += 1
        }
        return self.meter.take()
    }

    /// Runs counted rounds, at least one.
    ///
    /// `isStopped` is called between rounds.
    package func measure(_ nanoseconds: Int64, isStopped: () -> Bool) throws(DecodeFault) -> DecodeInterval {
        let start = clamor_monotonic_nanoseconds()
        repeat {
            self.meter.add(try self.round(), measured: true)
        } while !isStopped() && clamor_monotonic_nanoseconds() - start < nanoseconds
        return self.meter.take()
    }

    private func round() throws(DecodeFault) -> DecodeRound {
        let start = DecodeClock()
        let decoded = try self.walk()
        let times = UInt64(self.laps)
        let round = DecodeClock().round(
            since: start,
            packets: decoded.packets,
            bytes: UInt64(self.stream.bytes.count) * times,
            reads: UInt64(self.pieces.count) * times
        )
        let encoded = self.stream.checksum * times
        if decoded != encoded { throw .mismatch(self.stream.subject, encoded: encoded, decoded: decoded) }
        return round
    }

    private func walk() throws(DecodeFault) -> DecodeChecksum {
        let result = self.stream.bytes.withUnsafeBytes { bytes in
            self.pieces.withUnsafeBufferPointer { pieces in
                Result { () throws(DecodeFault) in try self.machine.walk(bytes, cuts: pieces, times: self.laps) }
            }
        }
        return try result.get()
    }
}
