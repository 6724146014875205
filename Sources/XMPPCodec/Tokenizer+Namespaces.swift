extension Tokenizer {
    func space(_ base: UnsafeRawPointer) -> TokenSpace {
        TokenSpace(
            base: base,
            tokens: self.tokens,
            table: self.table,
            isInStream: self.stage == .open,
            tokenCount: self.count,
            byteCount: self.at
        )
    }

    /// The element that is whole.
    @usableFromInline
    var currentSpace: TokenSpace { self.space(self.base) }

    /// After the value of `xmlns`, or of an attribute with a prefix.
    @inline(never)
    mutating func qualifiedValueEnded(_ base: UnsafeRawPointer, _ token: Token, _ index: Int) -> Outcome {
        let space = self.space(base)
        if token.prefixCount == 0 {
            return Characters.equal(space.local(token), "xmlns") ? self.declare(space, token, index) : .goOn
        }
        let prefix = space.prefix(token)
        if Characters.equal(prefix, "xmlns") { return self.declare(space, token, index) }
        if !Characters.equal(prefix, "xml") { self.tagPrefixes += 1 }
        return .goOn
    }

    /// A namespace declaration: it moves in front of the element's other attributes, where it is found again.
    private mutating func declare(_ space: TokenSpace, _ token: Token, _ index: Int) -> Outcome {
        guard self.scope < Int(self.limits.attributes) else {
            return self.fail(.tooManyNamespaces(limit: Int(self.limits.attributes)))
        }
        // The header's have a limit together, ``streamTableLimit``.
        guard self.stage == .header || token.second <= UInt32(self.limits.nameBytes) else {
            return self.fail(.namespaceTooLong(limit: Int(self.limits.nameBytes)))
        }
        guard Self.isAllowed(space, token) else { return self.fail(.namespaceDeclaration) }
        self.scope += 1
        let place = Int(self.open) + 1 + self.tagDeclarations
        self.tagDeclarations += 1
        var declaration = token
        declaration.head = declaration.head & 0x3FFF_FFFF | Token.Kind.declaration.rawValue << 30
        // The order of the others stays.
        for other in stride(from: index, to: place, by: -1) { self.tokens[other] = self.tokens[other - 1] }
        self.tokens[place] = declaration
        if token.prefixCount == 0 {
            self.defaultNamespace =
                token.second == 0
                ? NamespaceReference.none : NamespaceReference.isToken | UInt32(truncatingIfNeeded: place)
        }
        return .goOn
    }

    /// XML-NAMES §3: `xml` and `xmlns` keep their namespaces, and have them alone; §2.2: no prefix is undeclared.
    private static func isAllowed(_ space: TokenSpace, _ token: Token) -> Bool {
        let value = space.value(token)
        let isXML = space.isValue(token, "http://www.w3.org/XML/1998/namespace")
        let isXMLNS = space.isValue(token, "http://www.w3.org/2000/xmlns/")
        let prefix = space.declared(token)
        if Characters.equal(prefix, "xml") { return isXML }
        if isXML || isXMLNS { return false }
        return prefix.isEmpty || !value.isEmpty && !Characters.equal(prefix, "xmlns")
    }

    /// The namespace of a prefix in the innermost open element.
    private func lookUp(_ space: TokenSpace, _ prefix: UnsafeRawBufferPointer) -> UInt32 {
        var element = self.open
        while element != Token.none {
            let found = space.lookUp(prefix, in: Int(element))
            if found != NamespaceReference.none { return found }
            element = self.tokens[Int(element)].second
        }
        return space.lookUpOutside(prefix)
    }

    /// At the end of a start tag with prefixes in it.
    @inline(never)
    mutating func resolvePrefixes(_ base: UnsafeRawPointer) -> Outcome {
        let space = self.space(base)
        let element = self.tokens[Int(self.open)]
        var namespace = self.defaultNamespace
        if element.prefixCount > 0 {
            namespace = self.lookUp(space, space.prefix(element))
            if namespace == NamespaceReference.none { return self.fail(.unboundPrefix) }
        }
        self.tokens[Int(self.open)].first = namespace
        return self.tagPrefixes > 0 ? self.resolveAttributes(space) : .goOn
    }

    /// Resolves the prefixes of attributes: within a namespace, names must be unique (XML-NAMES §6.3).
    private mutating func resolveAttributes(_ space: TokenSpace) -> Outcome {
        // Two prefixes in one tag are rare enough for an array.
        var before: [(token: Token, namespace: UInt32)] = []
        var hasSameNames = false
        for index in Int(self.open) + 1 + self.tagDeclarations..<self.count {
            let token = self.tokens[index]
            if token.prefixCount == 0 { continue }
            let namespace = self.lookUp(space, space.prefix(token))
            if namespace == NamespaceReference.none { return self.fail(.unboundPrefix) }
            if self.tagPrefixes == 1 { continue }
            hasSameNames = hasSameNames || before.contains { space.hasSameLocal($0.token, token) }
            before.append((token, namespace))
        }
        guard hasSameNames else { return .goOn }
        // Rarer still. Each namespace is looked at once, however many attributes are compared.
        var numbers: [NamespaceBytes: Int] = [:]
        var seen: [(token: Token, number: Int)] = []
        for (token, reference) in before {
            let bytes = NamespaceBytes(space, reference)
            let number = numbers[bytes] ?? numbers.count
            if number == numbers.count { numbers[bytes] = number }
            if seen.contains(where: { $0.number == number && space.hasSameLocal($0.token, token) }) {
                return self.fail(.duplicateAttribute)
            }
            seen.append((token, number))
        }
        return .goOn
    }

    /// After an element with declarations: restores the earlier bindings.
    @inline(never)
    mutating func leaveScope(_ index: Int, _ parent: UInt32) {
        var declaration = index + 1
        var hadDefault = false
        while declaration < self.count, self.tokens[declaration].isDeclaration {
            if self.tokens[declaration].prefixCount == 0 { hadDefault = true }
            self.scope -= 1
            declaration += 1
        }
        guard hadDefault else { return }
        var element = parent
        while element != Token.none {
            var index = Int(element) + 1
            while index < self.count, self.tokens[index].isDeclaration {
                if self.tokens[index].prefixCount == 0 {
                    self.defaultNamespace =
                        self.tokens[index].second == 0
                        ? NamespaceReference.none : NamespaceReference.isToken | UInt32(truncatingIfNeeded: index)
                    return
                }
                index += 1
            }
            element = self.tokens[Int(element)].second
        }
        self.defaultNamespace = self.streamDefault
    }
}

/// A namespace in decoded form, compared byte by byte (XML-NAMES §2.3).
private struct NamespaceBytes: Hashable {
    private let bytes: [UInt8]

    init(_ space: TokenSpace, _ reference: UInt32) {
        let (bytes, token) = space.namespace(reference)
        self.bytes = token.map { FoundText(bytes, $0).give { Array($0) } } ?? Array(bytes)
    }

    func hash(into hasher: inout Hasher) { self.bytes.withUnsafeBytes { hasher.combine(bytes: $0) } }
}
