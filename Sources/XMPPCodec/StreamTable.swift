/// The namespaces of a stream header, kept as long as the stream, where they are not the usual ones.
///
/// The usual header is named `stream:stream`, binds `stream` to the streams' namespace, and the default to
/// jabber:client or to nothing: then there is no table. Else one block of memory: the size of the rest, the name of the
/// root, and records of prefix and namespace, each length in two bytes.
enum StreamTable {
    private static let usualName: StaticString = "stream:stream"

    struct Record {
        let prefix: UnsafeRawBufferPointer
        let namespace: UnsafeRawBufferPointer
        let reference: UInt32
    }

    /// Bytes of the block.
    static func size(_ table: UnsafeMutableRawPointer) -> Int { 2 + Self.number(table, 0) }

    static func make(name: UnsafeRawBufferPointer, records: [(prefix: [UInt8], namespace: [UInt8])]) -> [UInt8] {
        var bytes: [UInt8] = []
        func add(_ count: Int) {
            bytes.append(UInt8(truncatingIfNeeded: count))
            bytes.append(UInt8(truncatingIfNeeded: count >> 8))
        }
        add(2 + name.count + records.reduce(0) { $0 + 4 + $1.prefix.count + $1.namespace.count })
        add(name.count)
        bytes += name
        for record in records {
            add(record.prefix.count)
            add(record.namespace.count)
            bytes += record.prefix
            bytes += record.namespace
        }
        return bytes
    }

    private static func number(_ table: UnsafeMutableRawPointer, _ at: Int) -> Int {
        Int(table.load(fromByteOffset: at, as: UInt8.self)) | Int(table.load(fromByteOffset: at + 1, as: UInt8.self))
            << 8
    }

    /// The name that the closing tag has to have.
    static func rootName(_ table: UnsafeMutableRawPointer?) -> UnsafeRawBufferPointer {
        guard let table else {
            return UnsafeRawBufferPointer(start: Self.usualName.utf8Start, count: Self.usualName.utf8CodeUnitCount)
        }
        return UnsafeRawBufferPointer(start: table + 4, count: Self.number(table, 2))
    }

    static func record(_ table: UnsafeMutableRawPointer, at offset: Int) -> Record {
        let (prefix, namespace) = (Self.number(table, offset), Self.number(table, offset + 2))
        return Record(
            prefix: UnsafeRawBufferPointer(start: table + offset + 4, count: prefix),
            namespace: UnsafeRawBufferPointer(start: table + offset + 4 + prefix, count: namespace),
            reference: NamespaceReference.isRecord | UInt32(truncatingIfNeeded: offset)
        )
    }

    /// The namespace that the stream header binds a prefix to; 0 if none.
    static func lookUp(_ table: UnsafeMutableRawPointer?, prefix: UnsafeRawBufferPointer) -> UInt32 {
        guard let table else {
            return Characters.equal(prefix, "stream") ? NamespaceReference.stream : NamespaceReference.none
        }
        let end = Self.size(table)
        var offset = 4 + Self.number(table, 2)
        while offset < end {
            let record = Self.record(table, at: offset)
            if record.prefix.elementsEqual(prefix) { return record.reference }
            offset += 4 + record.prefix.count + record.namespace.count
        }
        return NamespaceReference.none
    }
}

/// Where the tokens of an element lie, what they are offsets into, and the stream's own namespaces.
@usableFromInline
struct TokenSpace {
    let base: UnsafeRawPointer
    let tokens: UnsafeMutablePointer<Token>
    let table: UnsafeMutableRawPointer?
    /// Whether the stream header's namespaces are in scope.
    let isInStream: Bool
    let tokenCount: Int
    /// Bytes of the whole element.
    let byteCount: Int

    @inline(__always)
    func bytes(_ offset: Int, _ count: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: self.base + offset, count: count)
    }

    func prefix(_ token: Token) -> UnsafeRawBufferPointer { self.bytes(token.offset, token.prefixCount) }
    func local(_ token: Token) -> UnsafeRawBufferPointer { self.bytes(token.localOffset, token.localCount) }
    /// The value as written in the document.
    func value(_ token: Token) -> UnsafeRawBufferPointer { self.bytes(Int(token.first), Int(token.second)) }

    /// The prefix that a declaration declares; none for the default namespace.
    func declared(_ token: Token) -> UnsafeRawBufferPointer {
        token.prefixCount == 0 ? self.bytes(token.offset, 0) : self.local(token)
    }

    /// The namespace as written in the document, and whether it needs decoding.
    func namespace(_ reference: UInt32) -> (bytes: UnsafeRawBufferPointer, token: Token?) {
        func literal(_ text: StaticString) -> UnsafeRawBufferPointer {
            UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
        }
        switch reference {
        case NamespaceReference.none: return (UnsafeRawBufferPointer(start: nil, count: 0), nil)
        case NamespaceReference.xml: return (literal("http://www.w3.org/XML/1998/namespace"), nil)
        case NamespaceReference.client: return (literal("jabber:client"), nil)
        case NamespaceReference.stream: return (literal("http://etherx.jabber.org/streams"), nil)
        default:
            if reference & NamespaceReference.isToken != 0 {
                let token = self.tokens[Int(reference & ~NamespaceReference.isToken)]
                return (self.value(token), token.needsDecoding ? token : nil)
            }
            guard let table = self.table else { return (UnsafeRawBufferPointer(start: nil, count: 0), nil) }
            return (StreamTable.record(table, at: Int(reference & ~NamespaceReference.isRecord)).namespace, nil)
        }
    }

    func isNamespace(_ reference: UInt32, _ expected: StaticString) -> Bool {
        let (bytes, token) = self.namespace(reference)
        guard let token else { return Characters.equal(bytes, expected) }
        return self.isMeant(bytes, token, expected)
    }

    /// Whether the value of an attribute or declaration means this.
    func isValue(_ token: Token, _ expected: StaticString) -> Bool {
        let value = self.value(token)
        return token.needsDecoding ? self.isMeant(value, token, expected) : Characters.equal(value, expected)
    }

    /// The encoded form is never shorter than the decoded one.
    private func isMeant(_ bytes: UnsafeRawBufferPointer, _ token: Token, _ expected: StaticString) -> Bool {
        bytes.count >= expected.utf8CodeUnitCount
            && FoundText(bytes, token).give { Characters.equal($0, expected) }
    }

    func hasSameLocal(_ left: Token, _ right: Token) -> Bool {
        left.localCount == right.localCount
            && Characters.equal(self.base + left.localOffset, self.base + right.localOffset, left.localCount)
    }

    func namespaceString(_ reference: UInt32) -> String {
        let (bytes, token) = self.namespace(reference)
        return token.map { References.string(bytes, $0) } ?? String(decoding: bytes, as: UTF8.self)
    }

    /// The namespace that an element's own declarations bind a prefix to; none if it is undeclared.
    func lookUp(_ prefix: UnsafeRawBufferPointer, in element: Int) -> UInt32 {
        var index = element + 1
        while index < self.tokenCount, self.tokens[index].isDeclaration {
            let declared = self.declared(self.tokens[index])
            if declared.count == prefix.count, declared.elementsEqual(prefix) {
                return NamespaceReference.isToken | UInt32(truncatingIfNeeded: index)
            }
            index += 1
        }
        return NamespaceReference.none
    }

    /// The namespace of a prefix that no element declares.
    func lookUpOutside(_ prefix: UnsafeRawBufferPointer) -> UInt32 {
        if Characters.equal(prefix, "xml") { return NamespaceReference.xml }
        return self.isInStream ? StreamTable.lookUp(self.table, prefix: prefix) : NamespaceReference.none
    }
}
