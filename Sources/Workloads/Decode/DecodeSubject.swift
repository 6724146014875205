package import MQTTCodec
package import XMPPCodec

/// Which decoder a stream is for.
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

/// A decoder as a client has it, with a sink.
///
/// Which decoder and which sink is asked once a walk; the walk itself is made for each of them by the compiler, so the
/// one protocol costs the other nothing.
final class DecodeMachine {
    enum Sink {
        /// Looks at what a client looks at.
        case view
        /// Copies each payload too.
        case copy
        /// Looks at nothing.
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
            // A body of the largest size, and what stands around it.
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

    /// Stanzas stand inside a stream, which has begun when they are walked.
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

    /// Walks a whole stream so many times, cut at the same places.
    ///
    /// - Returns: what the sink added up.
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

    /// Whether all that was walked so far ended with a packet.
    var isBetweenPackets: Bool {
        switch self.decoder {
        case .mqtt(let place): place.pointee.isAtPacketBoundary
        case .xmpp(let place): place.pointee.isBetweenElements
        }
    }

    /// Takes in one read.
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
