/// The kinds of elements below the stream's root.
public enum StanzaKind: Hashable, Sendable {
    /// `<iq/>` in jabber:client.
    case iq
    /// `<message/>` in jabber:client.
    case message
    /// `<presence/>` in jabber:client.
    case presence
    /// Everything else.
    case other
}

/// A whole element where its bytes lie: what the hot path looks at, without a tree and without strings.
///
/// Valid during the call that hands it out. Its children are views too.
public struct ElementView: ~Copyable {
    let space: TokenSpace
    let index: Int
    /// The token after the parent's last.
    let parentEnd: Int

    @usableFromInline
    init(_ space: TokenSpace) {
        self.space = space
        self.index = 0
        self.parentEnd = space.tokenCount
    }

    private init(_ other: borrowing ElementView, index: Int, parentEnd: Int) {
        self.space = other.space
        self.index = index
        self.parentEnd = parentEnd
    }

    var token: Token { self.space.tokens[self.index] }
    /// The token after the element's last; a stream header is still open.
    var end: Int { self.isOpen ? self.space.tokenCount : Int(self.token.second) }
    private var isOpen: Bool { self.token.second == Token.none }

    /// The kind of the element, if it is a child of the stream's root.
    public var kind: StanzaKind {
        let token = self.token
        guard token.first == NamespaceReference.client || self.space.isNamespace(token.first, "jabber:client") else {
            return .other
        }
        let local = self.space.local(token)
        switch local.count {
        case 2: return Characters.equal(local, "iq") ? .iq : .other
        case 7: return Characters.equal(local, "message") ? .message : .other
        case 8: return Characters.equal(local, "presence") ? .presence : .other
        default: return .other
        }
    }

    /// Whether it has this local name, in this namespace.
    public func isNamed(_ name: StaticString, _ namespace: StaticString) -> Bool {
        self.isNamed(name) && self.space.isNamespace(self.token.first, namespace)
    }

    /// Whether it has this local name, in any namespace.
    public func isNamed(_ name: StaticString) -> Bool { Characters.equal(self.space.local(self.token), name) }

    /// Whether it is in this namespace.
    public func isIn(_ namespace: StaticString) -> Bool { self.space.isNamespace(self.token.first, namespace) }

    /// The local name.
    public var name: String { String(decoding: self.space.local(self.token), as: UTF8.self) }

    /// The namespace; empty for none.
    public var namespace: String { self.space.namespaceString(self.token.first) }

    /// Bytes of the whole element below the root that this is, or is a part of, from `<` to `>`.
    public var byteCount: Int { self.space.byteCount }

    /// Whether it is complete and its bytes alone define its meaning: only the usual prefixes are bound around it.
    var isBelowUsualHeader: Bool { self.index == 0 && self.space.isInStream && self.space.table == nil }

    /// The bytes of the whole element below the root, as they came.
    public func withBytes<R>(_ body: (UnsafeRawBufferPointer) -> R) -> R {
        body(UnsafeRawBufferPointer(start: self.space.base, count: self.space.byteCount))
    }

    // MARK: Attributes

    /// The attribute of this name without a namespace; `xml:lang` and the like need their prefix.
    private func attributeToken(_ name: StaticString) -> Token? {
        let count = UInt32(truncatingIfNeeded: name.utf8CodeUnitCount)
        let text = UnsafeRawPointer(name.utf8Start)
        var index = self.index &+ 1
        while index < self.space.tokenCount {
            let token = self.space.tokens[index]
            guard token.isAttribute || token.isDeclaration else { return nil }
            if token.size & 0xFFFF == count, Characters.equal(self.space.base + token.offset, text, Int(count)) {
                return token
            }
            index &+= 1
        }
        return nil
    }

    @usableFromInline
    func found(attribute name: StaticString) -> FoundText? {
        self.attributeToken(name).map { FoundText(self.space.value($0), $0) }
    }

    /// Passes the value of an attribute to `body`: in place if it has no references, else decoded.
    ///
    /// - Parameters:
    ///   - name: without a prefix, or `xml:lang`.
    ///   - body: receives the bytes of the value, valid during the call.
    /// - Returns: the result of `body`; `nil` if the attribute is absent.
    @inlinable
    public func withAttribute<R>(_ name: StaticString, _ body: (UnsafeRawBufferPointer) -> R) -> R? {
        guard let found = self.found(attribute: name) else { return nil }
        return found.give(to: body)
    }

    /// The value of an attribute as a string.
    public func attribute(_ name: StaticString) -> String? {
        guard let token = self.attributeToken(name) else { return nil }
        return References.string(self.space.value(token), token)
    }

    /// Whether the attribute is present.
    public func hasAttribute(_ name: StaticString) -> Bool { self.attributeToken(name) != nil }

    /// Whether the attribute has this value.
    public func attribute(_ name: StaticString, is value: StaticString) -> Bool {
        self.withAttribute(name) { Characters.equal($0, value) } ?? false
    }

    /// `xml:lang`.
    public var language: String? { self.attribute("xml:lang") }

    /// The `xmlns` attribute of this element itself.
    var declaredDefault: String? { self.attribute("xmlns") }

    // MARK: Children

    /// The first child element, optionally with this name and namespace.
    public func firstChild(_ name: StaticString? = nil, _ namespace: StaticString? = nil) -> ElementView? {
        self.element(from: self.index + 1, to: self.end, name, namespace)
    }

    /// The next element in the same parent, optionally with this name and namespace.
    public func nextSibling(_ name: StaticString? = nil, _ namespace: StaticString? = nil) -> ElementView? {
        self.index == 0 ? nil : self.element(from: self.end, to: self.parentEnd, name, namespace)
    }

    private func element(
        from start: Int,
        to end: Int,
        _ name: StaticString?,
        _ namespace: StaticString?
    ) -> ElementView? {
        var index = start
        while index < end {
            let token = self.space.tokens[index]
            guard token.isElement else {
                index += 1
                continue
            }
            let isWanted =
                (name.map { Characters.equal(self.space.local(token), $0) } ?? true)
                && (namespace.map { self.space.isNamespace(token.first, $0) } ?? true)
            if isWanted { return ElementView(self, index: index, parentEnd: end) }
            index = Int(token.second)
        }
        return nil
    }

    /// Passes the first text of the first child of this name to `body`: in place if it has no references, else decoded.
    ///
    /// - Parameters:
    ///   - name: of the child, in any namespace; `body` of a message.
    ///   - body: receives the bytes of the text, valid during the call; none if the child is empty.
    /// - Returns: the result of `body`; `nil` if there is no such child.
    @inlinable
    public func withText<R>(ofChild name: StaticString, _ body: (UnsafeRawBufferPointer) -> R) -> R? {
        guard let found = self.found(textOfChild: name) else { return nil }
        return found.give(to: body)
    }

    /// The same for the first text of this element itself.
    @inlinable
    public func withText<R>(_ body: (UnsafeRawBufferPointer) -> R) -> R { self.foundText.give(to: body) }

    @usableFromInline
    func found(textOfChild name: StaticString) -> FoundText? {
        let end = self.end
        var index = self.index &+ 1
        while index < end {
            let token = self.space.tokens[index]
            if token.isElement {
                if Characters.equal(self.space.local(token), name) {
                    return self.firstText(from: index &+ 1, to: Int(token.second))
                }
                index = Int(token.second)
            } else {
                index &+= 1
            }
        }
        return nil
    }

    @usableFromInline
    var foundText: FoundText { self.firstText(from: self.index + 1, to: self.end) }

    private func firstText(from start: Int, to end: Int) -> FoundText {
        var index = start
        while index < end {
            let token = self.space.tokens[index]
            if token.kind == .text { return FoundText(self.space.bytes(token.offset, Int(token.size)), token) }
            index = token.isElement ? Int(token.second) : index &+ 1
        }
        return .none
    }

    /// The element's own texts, joined.
    public var text: String {
        var text = ""
        var index = self.index + 1
        while index < self.end {
            let token = self.space.tokens[index]
            if token.kind == .text { text += References.string(self.space.bytes(token.offset, Int(token.size)), token) }
            index = token.isElement ? Int(token.second) : index + 1
        }
        return text
    }
}
