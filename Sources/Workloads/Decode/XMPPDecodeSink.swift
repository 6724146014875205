import XMPPCodec

/// Only stanzas are counted, not the stream around them.
extension DecodeSink where Self: XMPPReaderSink, Failure == XMPPReadError {
    mutating func opened(_ header: StreamHeader) -> ReadingGoesOn { .goOn }
    mutating func closed() -> ReadingGoesOn { .goOn }

    @inline(__always)
    mutating func take(
        _ bytes: UnsafeRawBufferPointer,
        _ reader: UnsafeMutablePointer<XMPPReader>
    ) throws(XMPPReadError) {
        _ = try reader.pointee.read(bytes, into: &self)
    }
}

/// Reads the fields that a client reads in each stanza: its kind, sender, id and text.
struct CountingStanzaSink<Use: PayloadUse>: XMPPReaderSink, DecodeSink {
    typealias Failure = XMPPReadError

    var checksum = DecodeChecksum()
    private var use = Use()

    init() {}

    mutating func element(_ element: borrowing ElementView) -> ReadingGoesOn {
        self.checksum.packets &+= 1
        let kind = element.kind
        let from = element.withAttribute("from") { Self.size($0) } ?? (count: 0, last: 0)
        let id = element.withAttribute("id") { Self.size($0) } ?? (count: 0, last: 0)
        let text =
            switch kind {
            case .message: element.withText(ofChild: "body") { self.take($0) } ?? 0
            case .presence: element.withText(ofChild: "status") { self.take($0) } ?? 0
            case .iq: 0
            case .other: element.withAttribute("h") { $0.count } ?? 0
            }
        self.checksum.nameBytes &+= UInt64(from.count)
        self.checksum.nameEnds &+= UInt64(from.last)
        self.checksum.payloadBytes &+= UInt64(text)
        self.checksum.identifiers &+= StanzaSum.number(kind) &+ UInt64(id.last)
        return .goOn
    }

    @inline(__always)
    private mutating func take(_ text: UnsafeRawBufferPointer) -> Int {
        self.use.take(text)
        return text.count
    }

    private static func size(_ bytes: UnsafeRawBufferPointer) -> (count: Int, last: UInt8) {
        (bytes.count, bytes.last ?? 0)
    }
}

/// The value that each kind of stanza adds to the sum.
enum StanzaSum {
    static func number(_ kind: StanzaKind) -> UInt64 {
        switch kind {
        case .message: 1
        case .presence: 256
        case .iq: 65_536
        case .other: 16_777_216
        }
    }
}

struct EmptyStanzaSink: XMPPReaderSink, DecodeSink {
    typealias Failure = XMPPReadError

    var checksum: DecodeChecksum { DecodeChecksum() }
    mutating func element(_ element: borrowing ElementView) -> ReadingGoesOn { .goOn }
}
