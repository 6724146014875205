/// One part of the current element: its position, counted from the element's first byte.
///
/// An element is followed by its namespace declarations, its other attributes, and its content. 16 bytes.
@usableFromInline
struct Token {
    @usableFromInline
    enum Kind: UInt32 {
        case element = 0
        case declaration = 1
        case attribute = 2
        case text = 3
    }

    /// Kind in two bits, two flags, and the offset: of the name, or of the text.
    @usableFromInline
    var head: UInt32
    /// Bytes of the qualified name, and above them those of its prefix; the bytes of a text.
    @usableFromInline
    var size: UInt32
    /// An element's namespace; the offset of an attribute's value.
    @usableFromInline
    var first: UInt32
    /// For an open element its parent, then the token after its last; for an attribute the length of its value.
    @usableFromInline
    var second: UInt32

    /// References or line ends that have to be replaced before the value is what it means.
    static let needsDecoding: UInt32 = 1 << 29
    /// A CDATA section, in which `&` means itself.
    static let isSection: UInt32 = 1 << 28
    /// No token: the parent of the element below the root.
    static let none = UInt32.max

    @inline(__always)
    init(_ kind: Kind, at offset: Int, size: UInt32, first: UInt32 = 0, second: UInt32 = 0) {
        self.head = kind.rawValue << 30 | UInt32(truncatingIfNeeded: offset)
        self.size = size
        self.first = first
        self.second = second
    }

    @inline(__always)
    var kind: Kind { Kind(rawValue: self.head >> 30) ?? .text }
    @inline(__always)
    var isElement: Bool { self.head >> 30 == Kind.element.rawValue }
    @inline(__always)
    var isDeclaration: Bool { self.head >> 30 == Kind.declaration.rawValue }
    @inline(__always)
    var isAttribute: Bool { self.head >> 30 == Kind.attribute.rawValue }
    @inline(__always)
    var offset: Int { Int(self.head & 0x0FFF_FFFF) }
    @inline(__always)
    var needsDecoding: Bool { self.head & Self.needsDecoding != 0 }
    @inline(__always)
    var isSection: Bool { self.head & Self.isSection != 0 }

    @inline(__always)
    var nameCount: Int { Int(self.size & 0xFFFF) }
    /// 0 if the name has no prefix.
    @inline(__always)
    var prefixCount: Int { Int(self.size >> 16) }
    @inline(__always)
    var localOffset: Int { self.prefixCount == 0 ? self.offset : self.offset &+ self.prefixCount &+ 1 }
    @inline(__always)
    var localCount: Int { self.prefixCount == 0 ? self.nameCount : self.nameCount &- self.prefixCount &- 1 }
}

/// A namespace as tokens have it: one of those that every stream has, a record of the stream's own table, or the
/// declaration in the element that binds it.
enum NamespaceReference {
    static let none: UInt32 = 0
    static let xml: UInt32 = 1
    static let client: UInt32 = 2
    static let stream: UInt32 = 3
    /// The rest is the place in the stream's table.
    static let isRecord: UInt32 = 1 << 30
    /// The rest is the number of the token.
    static let isToken: UInt32 = 1 << 31
}
