package import MQTTCodec
package import XMPPCodec

package enum DecodeSubject: Hashable, Sendable {
    case mqtt(ProtocolVersion)
    case xmpp(XMPPReader.Framing)
}

/// A client's decoder with a sink.
///
/// Decoder and sink are selected once per pass. The compiler specialises the pass for each of them, so neither protocol
/// slows down the other.
final class DecodeMachine {
    enum Sink {
        /// Reads the fields that a client reads.
        case view
        /// Reads the same, and copies each payload.
        case copy
        /// Reads nothing.
        case none
    }

    private enum Decoder {
        case mqtt(UnsafeMutablePointer<PacketDecoder>)
        case xmpp(UnsafeMutablePointer<XMPPReader>)
    }

    private let decoder: Decoder
    private let sink: Sink

    init(_ subject: DecodeSubject, _ sink: Sink) {
        self.sink = sink
        switch subject {
        case .mqtt(let version):
            self.decoder = .mqtt(.make(PacketDecoder(role: .client(version))))
        case .xmpp(let framing):
            // A body of the largest size and its surrounding markup.
            let limits = XMPPLimits(stanzaBytes: 1 << 25)
            let place = UnsafeMutablePointer<XMPPReader>.make(
                XMPPReader(framing: framing, limits: limits, memory: XMPPReaderMemory())
            )
            if framing == .stream { Self.begin(place) }
            self.decoder = .xmpp(place)
        }
    }

    deinit {
        switch self.decoder {
        case .mqtt(let place):
            place.destroy()
        case .xmpp(let place):
            place.destroy()
        }
    }

    /// Stanzas occur inside a stream, so the stream is opened first.
    private static func begin(_ reader: UnsafeMutablePointer<XMPPReader>) {
        let header: StaticString = """
            <stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' version='1.0' id='1'>
            """
        var sink = EmptyStanzaSink()
        _ = try? reader.pointee.read(
            UnsafeRawBufferPointer(start: header.utf8Start, count: header.utf8CodeUnitCount),
            into: &sink
        )
    }

    /// Decodes a whole stream `times` times, piece by piece as reads of a socket would: `cuts` are the pieces' ends.
    ///
    /// - Returns: the sink's checksum.
    func walk(
        _ bytes: UnsafeRawBufferPointer,
        cuts: UnsafeBufferPointer<Int32>,
        times: Int
    ) throws(DecodeFault) -> DecodeChecksum {
        switch (self.decoder, self.sink) {
        case (.mqtt(let place), .view): try Self.walk(CountingSink<PayloadSize>(), place, bytes, cuts, times)
        case (.mqtt(let place), .copy): try Self.walk(CountingSink<PayloadCopy>(), place, bytes, cuts, times)
        case (.mqtt(let place), .none): try Self.walk(EmptySink(), place, bytes, cuts, times)
        case (.xmpp(let place), .view): try Self.walk(CountingStanzaSink<PayloadSize>(), place, bytes, cuts, times)
        case (.xmpp(let place), .copy): try Self.walk(CountingStanzaSink<PayloadCopy>(), place, bytes, cuts, times)
        case (.xmpp(let place), .none): try Self.walk(EmptyStanzaSink(), place, bytes, cuts, times)
        }
    }

    private static func walk<Sink: DecodeSink>(
        _ empty: Sink,
        _ decoder: Sink.Decoder,
        _ bytes: UnsafeRawBufferPointer,
        _ cuts: UnsafeBufferPointer<Int32>,
        _ times: Int
    ) throws(DecodeFault) -> DecodeChecksum {
        var sink = empty
        guard let base = bytes.baseAddress else { return sink.checksum }
        do throws(Sink.Failure) {
            for _ in 0..<times {
                var from = 0
                for cut in cuts {
                    let end = Int(cut)
                    try sink.take(UnsafeRawBufferPointer(start: base + from, count: end - from), decoder)
                    from = end
                }
            }
        } catch {
            throw .refused("\(error)")
        }
        return sink.checksum
    }

    /// Whether the bytes decoded so far ended with a packet.
    var isBetweenPackets: Bool {
        switch self.decoder {
        case .mqtt(let place): place.pointee.isAtPacketBoundary
        case .xmpp(let place): place.pointee.isBetweenElements
        }
    }

    func take(_ bytes: UnsafeRawBufferPointer) throws(DecodeFault) -> DecodeChecksum {
        var end = Int32(truncatingIfNeeded: bytes.count)
        let result = withUnsafePointer(to: &end) { end in
            Result { () throws(DecodeFault) in
                try self.walk(bytes, cuts: UnsafeBufferPointer(start: end, count: 1), times: 1)
            }
        }
        return try result.get()
    }
}
