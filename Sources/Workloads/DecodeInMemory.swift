import CPosix
package import MQTTCodec
import Measurement

/// Why a lane gave no figure that counts.
package enum DecodeFault: Error, Hashable, Sendable, CustomStringConvertible {
    /// The decoder refused what the encoder wrote.
    case refused(String)
    /// It delivered something else than was encoded.
    case mismatch(encoded: DecodeChecksum, decoded: DecodeChecksum)
    /// The connection did not come up, or broke.
    case connection(String)

    package var description: String {
        switch self {
        case .refused(let words): return "the decoder refused the stream: \(words)"
        case .mismatch(let encoded, let decoded):
            func text(_ sum: DecodeChecksum) -> String {
                "\(sum.packets) packets with \(sum.topicBytes) bytes of topic, \(sum.payloadBytes) of payload and a sum "
                    + "of identifiers of \(sum.identifiers)"
            }
            return "\(text(encoded)) were encoded, but \(text(decoded)) decoded"
        case .connection(let words): return words
        }
    }
}

/// Decodes a stream in memory, over and over, with the decoder and the calls of a client; confined to one thread.
package final class DecodeInMemory {
    /// Nanoseconds: a clock read, about 0.3 µs, is nothing beside it.
    private static let shortestRound: Int64 = 2_000_000
    private static let warmupRounds = 3

    private let stream: DecodeStream
    private let pieces: [Int32]
    private let copies: Bool
    private let meter: DecodeMeter
    /// On the heap, as a connection's is: a field of a class is slower to get at.
    private let decoder: UnsafeMutablePointer<PacketDecoder>
    /// Walks of the whole stream in a round; set by the first.
    private var laps = 1

    /// - Parameters:
    ///   - stream: walked by every round as often as it takes to make one long enough.
    ///   - version: of the stream.
    ///   - metrics: of this lane.
    ///   - seed: of the fragments.
    ///   - copies: the sink copies each payload.
    package init(_ stream: DecodeStream, version: ProtocolVersion, metrics: DecodeMetrics, seed: UInt64, copies: Bool) {
        self.stream = stream
        self.pieces = metrics.lane.form.pieces(of: stream, seed: seed)
        self.copies = copies
        self.meter = DecodeMeter(metrics)
        self.decoder = .allocate(capacity: 1)
        self.decoder.initialize(to: PacketDecoder(role: .client(version)))
    }

    deinit {
        self.decoder.deinitialize(count: 1)
        self.decoder.deallocate()
    }

    /// Rounds that do not count: caches and branch predictors are as they will be.
    ///
    /// - Parameter nanoseconds: how long at least.
    /// - Returns: what they took.
    /// - Throws: when something else came out than went in.
    package func warmUp(_ nanoseconds: Int64) throws(DecodeFault) -> DecodeInterval {
        let start = clamor_monotonic_nanoseconds()
        // The very first walk is a cold one: the second tells how many make a round.
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

    /// Rounds that count, one at least; `isStopped` is asked between two.
    package func measure(_ nanoseconds: Int64, isStopped: () -> Bool) throws(DecodeFault) -> DecodeInterval {
        let start = clamor_monotonic_nanoseconds()
        repeat {
            self.meter.add(try self.round(), measured: true)
        } while !isStopped() && clamor_monotonic_nanoseconds() - start < nanoseconds
        return self.meter.take()
    }

    private func round() throws(DecodeFault) -> DecodeRound {
        self.copies ? try self.round(CopyingSink()) : try self.round(CountingSink())
    }

    private func round(_ empty: some DecodeSink) throws(DecodeFault) -> DecodeRound {
        var sink = empty
        let start = DecodeClock()
        do throws(DecodeError) {
            for _ in 0..<self.laps { try self.walk(&sink) }
        } catch {
            throw .refused("\(error)")
        }
        let times = UInt64(self.laps)
        let round = DecodeClock().round(
            since: start,
            packets: sink.checksum.packets,
            bytes: UInt64(self.stream.bytes.count) * times,
            reads: UInt64(self.pieces.count) * times
        )
        let encoded = self.stream.checksum * times
        if sink.checksum != encoded { throw .mismatch(encoded: encoded, decoded: sink.checksum) }
        return round
    }

    private func walk(_ sink: inout some DecodeSink) throws(DecodeError) {
        var failure: DecodeError?
        self.stream.bytes.withUnsafeBytes { bytes in
            self.pieces.withUnsafeBufferPointer { pieces in
                do throws(DecodeError) {
                    try DecodeWalk.walk(bytes, cuts: pieces, decoder: &self.decoder.pointee, into: &sink)
                } catch {
                    failure = error
                }
            }
        }
        if let failure { throw failure }
    }
}
