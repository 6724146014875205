/// A node of XML with its names resolved: a tree, for what is built, kept or looked at closely.
public struct XMPPElement: Hashable, Sendable {
    /// An attribute; its namespace is empty unless it has a prefix.
    public struct Attribute: Hashable, Sendable {
        /// Without a prefix.
        public var name: String
        /// Empty for none: the default namespace is not for attributes (XML-NAMES §6.2).
        public var namespace: String
        /// The value without references.
        public var value: String

        /// An attribute, without a namespace unless one is given.
        public init(name: String, namespace: String = "", value: String) {
            self.name = name
            self.namespace = namespace
            self.value = value
        }

        func isNamed(_ name: String, _ namespace: String) -> Bool {
            self.name.isSameXML(name) && self.namespace.isSameXML(namespace)
        }
    }

    /// The content of an element.
    public enum Node: Hashable, Sendable {
        /// An element.
        case element(XMPPElement)
        /// Text, without references.
        case text(String)
    }

    /// Without a prefix.
    public var name: String
    /// Empty for none.
    public var namespace: String
    /// The attributes in their order; namespace declarations are none.
    public var attributes: [Attribute]
    /// Elements and texts in their order; texts do not follow each other.
    public var children: [Node]

    /// Makes an element; attributes whose value is `nil` are left out.
    public init(
        _ name: String,
        namespace: String,
        attributes: KeyValuePairs<String, String?> = [:],
        children: [Node] = []
    ) {
        self.name = name
        self.namespace = namespace
        self.attributes = attributes.compactMap { name, value in value.map { Attribute(name: name, value: $0) } }
        self.children = children
    }

    /// An element that holds a text.
    public init(_ name: String, namespace: String, attributes: KeyValuePairs<String, String?> = [:], text: String) {
        self.init(name, namespace: namespace, attributes: attributes)
        self.add(text: text)
    }

    /// The value of an attribute without a namespace; `nil` takes it away.
    public subscript(attribute: String) -> String? {
        get { self.value(of: attribute, namespace: "") }
        set { self.set(attribute, namespace: "", to: newValue) }
    }

    /// `xml:lang`.
    public var language: String? {
        get { self.value(of: "lang", namespace: XMPPNamespace.xml) }
        set { self.set("lang", namespace: XMPPNamespace.xml, to: newValue) }
    }

    private func value(of name: String, namespace: String) -> String? {
        self.attributes.first { $0.isNamed(name, namespace) }?.value
    }

    private mutating func set(_ name: String, namespace: String, to value: String?) {
        let index = self.attributes.firstIndex { $0.isNamed(name, namespace) }
        switch (index, value) {
        case (let index?, let value?): self.attributes[index].value = value
        case (let index?, nil): self.attributes.remove(at: index)
        case (nil, let value?): self.attributes.append(Attribute(name: name, namespace: namespace, value: value))
        case (nil, nil): break
        }
    }

    /// Whether it has this name in this namespace.
    public func isNamed(_ name: String, _ namespace: String) -> Bool {
        self.name.isSameXML(name) && self.namespace.isSameXML(namespace)
    }

    /// The first child of this name, in any namespace if none is given.
    public func child(_ name: String, _ namespace: String? = nil) -> XMPPElement? {
        for case .element(let child) in self.children
        where child.name.isSameXML(name) && namespace.map({ child.namespace.isSameXML($0) }) ?? true {
            return child
        }
        return nil
    }

    /// The child elements.
    public var elements: [XMPPElement] {
        self.children.compactMap { if case .element(let child) = $0 { child } else { nil } }
    }

    /// Its own texts, joined.
    public var text: String { self.children.reduce(into: "") { if case .text(let text) = $1 { $0 += text } } }

    /// Appends an element.
    public mutating func add(_ child: XMPPElement) { self.children.append(.element(child)) }

    /// Appends text; an empty text is ignored.
    public mutating func add(text: String) {
        if text.isEmpty { return }
        guard case .text(var before)? = self.children.last else { return self.children.append(.text(text)) }
        // Taken out it has one owner, and grows where it is.
        self.children.removeLast()
        before += text
        self.children.append(.text(before))
    }
}

extension String {
    /// Whether the characters are the same: for XML two ways to compose a letter are two (XML §1.2, XML-NAMES §2.3).
    func isSameXML(_ other: String) -> Bool {
        self.utf8.withContiguousStorageIfAvailable { left in
            other.utf8.withContiguousStorageIfAvailable { right in
                guard left.count == right.count else { return false }
                guard let one = left.baseAddress, let two = right.baseAddress, one != two else { return true }
                return Characters.equal(UnsafeRawPointer(one), UnsafeRawPointer(two), left.count)
            }
        }
        .flatMap(\.self) ?? self.utf8.elementsEqual(other.utf8)
    }
}
