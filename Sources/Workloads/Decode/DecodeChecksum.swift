/// Totals of a stream's content.
///
/// The encoder's and the sink's must be equal.
package struct DecodeChecksum: Hashable, Sendable {
    /// Packets or stanzas.
    package var packets: UInt64 = 0
    /// Bytes of topics or senders.
    package var nameBytes: UInt64 = 0
    /// The sum of their last bytes, which forces the sink to read them as a client would.
    package var nameEnds: UInt64 = 0
    /// Bytes of payloads, or of bodies and other texts.
    package var payloadBytes: UInt64 = 0
    /// The sum of the packet identifiers.
    ///
    /// For stanzas, the sum of their kinds and the last bytes of their ids.
    package var identifiers: UInt64 = 0

    package init() {}

    package static func += (left: inout Self, right: Self) {
        left.packets &+= right.packets
        left.nameBytes &+= right.nameBytes
        left.nameEnds &+= right.nameEnds
        left.payloadBytes &+= right.payloadBytes
        left.identifiers &+= right.identifiers
    }

    package static func * (one: Self, times: UInt64) -> Self {
        var product = one
        product.packets &*= times
        product.nameBytes &*= times
        product.nameEnds &*= times
        product.payloadBytes &*= times
        product.identifiers &*= times
        return product
    }
}

/// The reason why a lane has no valid figure.
package enum DecodeFault: Error, Hashable, Sendable, CustomStringConvertible {
    /// The decoder refused bytes that the encoder wrote.
    case refused(String)
    /// The decoder delivered something other than what was encoded.
    case mismatch(DecodeSubject, encoded: DecodeChecksum, decoded: DecodeChecksum)
    /// The connection did not come up, or it broke.
    case connection(String)

    package var description: String {
        switch self {
        case .refused(let words): return "the decoder refused the stream: \(words)"
        case .mismatch(let subject, let encoded, let decoded):
            return "\(subject.words(encoded)) were encoded, but \(subject.words(decoded)) decoded"
        case .connection(let words): return words
        }
    }
}

extension DecodeSubject {
    /// The sum in the protocol's own terms.
    fileprivate func words(_ sum: DecodeChecksum) -> String {
        switch self {
        case .mqtt:
            "\(sum.packets) packets with \(sum.nameBytes) bytes of topic, \(sum.payloadBytes) of payload and sums of "
                + "\(sum.nameEnds) for the topics' ends and \(sum.identifiers) for the identifiers"
        case .xmpp:
            "\(sum.packets) stanzas with \(sum.nameBytes) bytes of senders, \(sum.payloadBytes) of text and sums of "
                + "\(sum.nameEnds) for the senders' ends and \(sum.identifiers) for kinds and ids"
        }
    }
}
