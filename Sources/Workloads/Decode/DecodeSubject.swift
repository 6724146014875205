package import MQTTCodec
package import XMPPCodec

/// The decoder that a stream is for.
package enum DecodeSubject: Hashable, Sendable {
    case mqtt(ProtocolVersion)
    case xmpp(XMPPReader.Framing)

    package var protocolName: String {
        switch self {
        case .mqtt: "mqtt"
        case .xmpp: "xmpp"
        }
    }
}

/// A client's decoder with a sink.
///
/// Decoder and sink are selected once per pass. The compiler specialises the pass for each of them, so neither protocol
/// slows down the other.
final class DecodeMachine {
    enum Sink {
        /// Reads the fields that a client reads.
        case view
        /// Also copies each payload.
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
            let place = UnsafeMutablePointer<PacketDecoder>.allocate(capacity: 1)
            place.initialize(to: PacketDecoder(role: .client(version)))
            self.decoder = .mqtt(place)
        case .xmpp(let framing):
            let place = UnsafeMutablePointer<XMPPReader>.allocate(capacity: 1)
            // A body of the largest size and its surrounding markup.
            let limits = XMPPLimits(stanzaBytes: 1 << 25)
            place.initialize(to: XMPPReader(framing: framing, limits: limits, memory: XMPPReaderMemory()))
            if framing == .stream { Self.begin(place) }
            self.decoder = .xmpp(place)
        }
    }

    deinit {
        switch self.decoder {
        case .mqtt(let place):
            place.deinitialize(count: 1)
            place.deallocate()
        case .xmpp(let place):
            place.deinitialize(count: 1)
            place.deallocate()
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

    /// Decodes a whole stream `times` times with the same cuts.
    ///
    /// - Returns: the sink's checksum.
    func walk(
        _ bytes: UnsafeRawBufferPointer,
        cuts: UnsafeBufferPointer<Int32>,
        times: Int
    ) throws(DecodeFault) -> DecodeChecksum {
        switch (self.decoder, self.sink) {
        case (.mqtt(let place), .view): try Self.walk(CountingSink(), place, bytes, cuts, times)
        case (.mqtt(let place), .copy): try Self.walk(CopyingSink(), place, bytes, cuts, times)
        case (.mqtt(let place), .none): try Self.walk(EmptySink(), place, bytes, cuts, times)
        case (.xmpp(let place), .view): try Self.walk(CountingStanzaSink(), place, bytes, cuts, times)
        case (.xmpp(let place), .copy): try Self.walk(CopyingStanzaSink(), place, bytes, cuts, times)
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
        do throws(Sink.Failure) {
            for _ in 0..<times { try DecodeWalk.walk(bytes, cuts: cuts, decoder: decoder, into: &sink) }
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

    /// Decodes one read.
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
