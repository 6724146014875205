extension Tokenizer {
    /// An XML declaration has four short parts; white space is what could make it longer.
    private static var declarationLimit: Int { 256 }

    /// At the very start of a stream: byte order mark, XML declaration, or neither.
    mutating func prolog(_ base: UnsafeRawPointer, _ end: Int) -> Outcome {
        let first = Characters.byte(base, 0)
        if first == 0xEF {
            for (index, byte) in [0xEF, 0xBB, 0xBF].enumerated() {
                guard index < end else { return .more }
                guard Characters.byte(base, index) == byte else { return self.fail(.outsideStream) }
            }
            self.stage = .afterMark
            self.at = 3
            return .whole
        }
        guard end > 1 else { return .more }
        guard Characters.byte(base, 1) == UInt8(ascii: "?") else {
            self.stage = .header
            return self.markup(base, end)
        }
        let outcome = self.declarationBegins(base, 0, end)
        return outcome == .goOn ? self.declaration(base, 0, end) : outcome
    }

    /// Whether `<?` begins an XML declaration; everything else is a processing instruction.
    mutating func declarationBegins(_ base: UnsafeRawPointer, _ start: Int, _ end: Int) -> Outcome {
        for (index, byte) in [UInt8]("xml".utf8).enumerated() {
            guard start + 2 + index < end else { return .more }
            guard Characters.byte(base, start + 2 + index) == byte else { return self.fail(.processingInstruction) }
        }
        guard start + 5 < end else { return .more }
        let next = Characters.byte(base, start + 5)
        return Characters.isSpace(next) || next == UInt8(ascii: "?") ? .goOn : self.fail(.processingInstruction)
    }

    /// At `<?xml`: the declaration is taken as a whole.
    mutating func declaration(_ base: UnsafeRawPointer, _ start: Int, _ end: Int) -> Outcome {
        let last = min(end, start + Self.declarationLimit)
        var at = start + 5
        while at + 1 < last {
            if Characters.byte(base, at) == UInt8(ascii: "?"), Characters.byte(base, at + 1) == UInt8(ascii: ">") {
                var parts = DeclarationParts(UnsafeRawBufferPointer(start: base + start + 5, count: at - start - 5))
                if let error = parts.problem() { return self.fail(error) }
                self.at = at + 2
                if !self.isMessages { self.stage = .header }
                return .whole
            }
            at += 1
        }
        return end >= start + Self.declarationLimit ? self.fail(.declaration) : .more
    }

    /// The start tag of the stream is whole.
    mutating func opened() -> Event {
        let space = self.currentSpace
        let root = self.tokens[0]
        guard space.isNamespace(root.first, "http://etherx.jabber.org/streams") else {
            return self.refused(.rootNamespace)
        }
        guard Characters.equal(space.local(root), "stream") else { return self.refused(.rootName) }
        let table = self.makeTable(space, root)
        if let table {
            guard table.count <= Self.streamTableLimit else {
                return self.refused(.streamNamespacesTooLarge(limit: Self.streamTableLimit))
            }
            let memory = UnsafeMutableRawPointer.allocate(byteCount: table.count, alignment: 1)
            memory.copyMemory(from: table, byteCount: table.count)
            self.table = memory
            let reference = StreamTable.lookUp(memory, prefix: UnsafeRawBufferPointer(start: nil, count: 0))
            // XEP-0114 §3: a component's stanzas are the same in a content namespace of their own.
            let isComponent = currentSpace.isNamespace(reference, "jabber:component:accept")
            self.streamDefault = isComponent ? NamespaceReference.client : reference
        } else {
            let isDeclared = self.tagDeclarations == 2
            self.streamDefault = isDeclared ? NamespaceReference.client : NamespaceReference.none
        }
        self.stage = self.isEmptyTag ? .closing : .open
        return .opened
    }

    private mutating func refused(_ error: XMPPReadError) -> Event {
        _ = self.fail(error)
        return .failed
    }

    /// Nothing if the header is the usual one.
    private func makeTable(_ space: TokenSpace, _ root: Token) -> [UInt8]? {
        var records: [(prefix: [UInt8], namespace: [UInt8])] = []
        var isUsual = Characters.equal(space.prefix(root), "stream") && self.tagDeclarations <= 2
        for index in 1..<1 + self.tagDeclarations {
            let token = self.tokens[index]
            let namespace = Array(References.string(space.value(token), token).utf8)
            let prefix = space.declared(token)
            let isStream = Characters.equal(prefix, "stream")
            // The root's prefix is already known to be bound to the streams' namespace.
            if !isStream { isUsual = isUsual && prefix.isEmpty && namespace.elementsEqual(XMPPNamespace.client.utf8) }
            if !(prefix.isEmpty && namespace.isEmpty) { records.append((Array(prefix), namespace)) }
        }
        return isUsual ? nil : StreamTable.make(name: space.bytes(root.offset, root.nameCount), records: records)
    }

    /// `<open/>` and `<close/>` replace the stream's tags (RFC 7395 §3.3.2, §3.6).
    mutating func messageEvent() -> Event {
        let space = self.currentSpace
        let root = self.tokens[0]
        guard space.isNamespace(root.first, "urn:ietf:params:xml:ns:xmpp-framing") else { return .element }
        if Characters.equal(space.local(root), "open") { return .opened }
        guard Characters.equal(space.local(root), "close") else { return .element }
        // The target of a redirect is reported first.
        for index in 1..<max(1, self.count) {
            let token = self.tokens[index]
            // Of `<close/>` itself, not of what is in it.
            guard token.isAttribute || token.isDeclaration else { break }
            if token.isAttribute, token.prefixCount == 0, Characters.equal(space.local(token), "see-other-uri") {
                self.stage = .closing
                return .element
            }
        }
        self.stage = .closed
        return .closed
    }
}

/// The parts of an XML declaration between `<?xml` and `?>`.
///
/// Spec: XML §2.8, §4.3.3.
private struct DeclarationParts {
    private var rest: Slice<UnsafeRawBufferPointer>

    init(_ bytes: UnsafeRawBufferPointer) { self.rest = bytes[...] }

    mutating func problem() -> XMPPReadError? {
        guard let (name, version) = self.next(), name == "version", version.hasPrefix("1."), version.utf8.count > 2,
            version.utf8.dropFirst(2).allSatisfy({ $0 &- UInt8(ascii: "0") < 10 })
        else { return .declaration }
        var part = self.next()
        if let (name, encoding) = part, name == "encoding" {
            guard encoding.lowercased() == "utf-8" else { return .encoding }
            part = self.next()
        }
        if let (name, value) = part {
            guard name == "standalone", value == "yes" || value == "no" else { return .declaration }
        }
        self.skipSpace()
        return self.rest.isEmpty ? nil : .declaration
    }

    @discardableResult
    private mutating func skipSpace() -> Bool {
        let before = self.rest.count
        self.rest = self.rest.drop { Characters.isSpace($0) }
        return self.rest.count < before
    }

    /// Reads a space, a name, `=`, and a value in quotes; returns `nil` and reads nothing if something else follows.
    private mutating func next() -> (name: String, value: String)? {
        let before = self.rest
        guard self.skipSpace() else { return nil }
        let name = self.rest.prefix { $0 >= UInt8(ascii: "a") && $0 <= UInt8(ascii: "z") }
        self.rest = self.rest[name.endIndex...]
        self.skipSpace()
        if self.rest.first == UInt8(ascii: "=") {
            self.rest = self.rest.dropFirst()
            self.skipSpace()
            if let quote = self.rest.first, quote == UInt8(ascii: "'") || quote == UInt8(ascii: "\"") {
                let value = self.rest.dropFirst().prefix { $0 != quote }
                if value.endIndex < self.rest.endIndex {
                    self.rest = self.rest[(value.endIndex + 1)...]
                    return (String(decoding: name, as: UTF8.self), String(decoding: value, as: UTF8.self))
                }
            }
        }
        self.rest = before
        return nil
    }
}
