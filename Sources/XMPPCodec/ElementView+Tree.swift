extension ElementView {
    /// The element as a tree, which can be kept.
    public func element() -> XMPPElement {
        var builder = TreeBuilder(self.space, from: self.index)
        return builder.build(to: self.end)
    }
}

/// Makes a tree of tokens, without recursion.
private struct TreeBuilder {
    private struct Level {
        var element: XMPPElement
        let index: Int
        let end: Int
    }

    private let space: TokenSpace
    /// The open elements, the outermost first.
    private var levels: [Level] = []
    /// The elements around the root of the tree, the outermost first; computed on demand.
    private lazy var parents = Self.parents(of: self.start, self.space)

    private let start: Int
    /// The namespace used last, and those before it.
    private var lastReference = NamespaceReference.none
    private var lastNamespace = ""
    private var namespaces: [UInt32: String] = [:]

    init(_ space: TokenSpace, from start: Int) {
        self.space = space
        self.start = start
    }

    private static func parents(of target: Int, _ space: TokenSpace) -> [Int] {
        var parents: [Int] = []
        var index = 0
        while index < target {
            let token = space.tokens[index]
            if token.isElement, Int(token.second) <= target {
                index = Int(token.second)
            } else {
                if token.isElement { parents.append(index) }
                index += 1
            }
        }
        return parents
    }

    mutating func build(to end: Int) -> XMPPElement {
        self.levels.append(self.level(self.start, end: end))
        var index = self.behindAttributes(self.start)
        while true {
            while let last = self.levels.last, index >= last.end {
                self.levels.removeLast()
                guard let parent = self.levels.indices.last else { return last.element }
                self.levels[parent].element.children.append(.element(last.element))
            }
            let token = self.space.tokens[index]
            if token.isElement {
                self.levels.append(self.level(index, end: Int(token.second)))
                index = self.behindAttributes(index)
            } else {
                self.levels[self.levels.count - 1].element.add(text: self.text(&index))
            }
        }
    }

    /// Joins adjacent texts and sections into one text; `index` moves past them.
    private func text(_ index: inout Int) -> String {
        let end = self.levels.last?.end ?? index
        var text = ""
        repeat {
            let token = self.space.tokens[index]
            guard token.kind == .text else { break }
            let part = References.string(self.space.bytes(token.offset, Int(token.size)), token)
            if text.isEmpty { text = part } else { text += part }
            index += 1
        } while index < end
        return text
    }

    /// One string for all that refer to one declaration.
    private mutating func namespace(_ reference: UInt32) -> String {
        if reference == self.lastReference { return self.lastNamespace }
        let namespace = self.namespaces[reference] ?? self.space.namespaceString(reference)
        // Strings of up to 15 bytes take no memory.
        if self.lastNamespace.utf8.count > 15 { self.namespaces[self.lastReference] = self.lastNamespace }
        (self.lastReference, self.lastNamespace) = (reference, namespace)
        return namespace
    }

    private func behindAttributes(_ element: Int) -> Int {
        var index = element + 1
        while index < self.space.tokenCount {
            let token = self.space.tokens[index]
            guard token.isAttribute || token.isDeclaration else { break }
            index += 1
        }
        return index
    }

    private mutating func level(_ index: Int, end: Int) -> Level {
        let token = self.space.tokens[index]
        var element = XMPPElement(
            String(decoding: self.space.local(token), as: UTF8.self),
            namespace: self.namespace(token.first)
        )
        for place in index + 1..<max(index + 1, self.behindAttributes(index)) {
            let attribute = self.space.tokens[place]
            if attribute.isDeclaration { continue }
            var namespace = ""
            if attribute.prefixCount > 0 {
                namespace = self.namespace(self.lookUp(self.space.prefix(attribute), index))
            }
            element.attributes.append(
                XMPPElement.Attribute(
                    name: String(decoding: self.space.local(attribute), as: UTF8.self),
                    namespace: namespace,
                    value: References.string(self.space.value(attribute), attribute)
                )
            )
        }
        return Level(element: element, index: index, end: end)
    }

    /// Prefixes of attributes are looked up again: they are too rare to keep what was found.
    private mutating func lookUp(_ prefix: UnsafeRawBufferPointer, _ element: Int) -> UInt32 {
        let own = self.space.lookUp(prefix, in: element)
        if own != NamespaceReference.none { return own }
        for level in self.levels.reversed() {
            let found = self.space.lookUp(prefix, in: level.index)
            if found != NamespaceReference.none { return found }
        }
        for parent in self.parents.reversed() {
            let found = self.space.lookUp(prefix, in: parent)
            if found != NamespaceReference.none { return found }
        }
        return self.space.lookUpOutside(prefix)
    }
}
