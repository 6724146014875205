/// Limits of a reader; a stream beyond them is refused before memory grows (RFC 6120 §4.9.3.14).
public struct XMPPLimits: Hashable, Sendable {
    /// Bytes of one element directly below the stream's root, and of the stream header: 256...134,217,728.
    ///
    /// RFC 6120 §13.12 requires at least 10,000. For a cut element a reader keeps at most this many bytes, and up to 13
    /// times as many for the positions of its parts, or 19 times while that memory grows. Only an element of tiny parts
    /// reaches this.
    public var stanzaBytes: Int
    /// Elements inside each other, the one below the root included: 1...1,024.
    public var depth: Int
    /// Attributes of an element, and namespace declarations in scope: 1...4,096.
    public var attributes: Int
    /// Bytes of the name of an element or attribute, its prefix included, of a reference, and of a namespace as it is
    /// declared below the root: 16...65,535.
    ///
    /// A namespace is written once and applies to any number of elements: a long one would be multiplied.
    public var nameBytes: Int

    /// Limits that real servers do not meet.
    public init(stanzaBytes: Int = 1 << 20, depth: Int = 256, attributes: Int = 256, nameBytes: Int = 1024) {
        self.stanzaBytes = stanzaBytes
        self.depth = depth
        self.attributes = attributes
        self.nameBytes = nameBytes
    }
}

/// The same in 12 bytes; what is out of range is taken for the nearest that is not.
@usableFromInline
struct CompactLimits {
    let stanzaBytes: UInt32
    let depth: UInt16
    let attributes: UInt16
    let nameBytes: UInt16

    init(_ limits: XMPPLimits) {
        self.stanzaBytes = UInt32(min(max(limits.stanzaBytes, 256), 1 << 27))
        self.depth = UInt16(min(max(limits.depth, 1), 1_024))
        self.attributes = UInt16(min(max(limits.attributes, 1), 4_096))
        self.nameBytes = UInt16(min(max(limits.nameBytes, 16), 65_535))
    }
}
