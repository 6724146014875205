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
struct CountingStanzaSink: XMPPReaderSink, DecodeSink {
    typealias Failure = XMPPReadError

    var checksum = DecodeChecksum()

    mutating func element(_ element: borrowing ElementView) -> ReadingGoesOn {
        self.checksum.packets &+= 1
        let kind = element.kind
        let from = element.withAttribute("from") { Self.size($0) } ?? (count: 0, last: 0)
        let id = element.withAttribute("id") { Self.size($0) } ?? (count: 0, last: 0)
        let text =
            switch kind {
            case .message: element.withText(ofChild: "body") { $0.count } ?? 0
            case .presence: element.withText(ofChild: "status") { $0.count } ?? 0
            case .iq: 0
            case .other: element.withAttribute("h") { $0.count } ?? 0
            }
        self.checksum.nameBytes &+= UInt64(from.count)
        self.checksum.nameEnds &+= UInt64(from.last)
        self.checksum.payloadBytes &+= UInt64(text)
        self.checksum.identifiers &+= StanzaSum.number(kind) &+ UInt64(id.last)
        return .goOn
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

/// Copies each text, as an application does that keeps its messages: one allocation per text.
struct CopyingStanzaSink: XMPPReaderSink, DecodeSink {
    typealias Failure = XMPPReadError

    private var counting = CountingStanzaSink()
    /// The last text, kept so that the copy is not optimised away.
    private var kept: [UInt8] = []

    init() {}

    var checksum: DecodeChecksum { self.counting.checksum }

    mutating func element(_ element: borrowing ElementView) -> ReadingGoesOn {
        if let text = element.withText(ofChild: element.kind == .presence ? "status" : "body", { Array($0) }) {
            self.kept = text
        }
        return self.counting.element(element)
    }
}

/// Reads nothing.
struct EmptyStanzaSink: XMPPReaderSink, DecodeSink {
    typealias Failure = XMPPReadError

    var checksum: DecodeChecksum { DecodeChecksum() }

    mutating func element(_ element: borrowing ElementView) -> ReadingGoesOn { .goOn }
}
