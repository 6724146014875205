import NIOCore

/// Writes a tree, without recursion: what is read within the limits is written too.
struct ElementWriter {
    /// The allowed ratio of declarations to the rest, if there are more than a few.
    private static let mostTimes = 4

    /// Bytes that declarations may take in any case.
    static func mostDeclared(isSharing: Bool) -> Int { isSharing ? 65_536 : 4_096 }

    private struct Level {
        let name: String
        /// As the end tag has to name it.
        let prefix: Prefix
        /// The default namespace of its content.
        let scope: String
        let children: [XMPPElement.Node]
        var next = 0
    }

    private enum Prefix {
        case none, xml
        /// The prefix of a namespace that is declared on the element itself.
        case shared(Int32)
        /// The prefix of a namespace of attributes that is declared on its element.
        case own(Int32)

        func write(into buffer: inout ByteBuffer) {
            switch self {
            case .none: break
            case .xml: buffer.writeStaticString("xml:")
            case .shared(let number): buffer.writeString("n\(number):")
            case .own(let number): buffer.writeString("ns\(number):")
            }
        }
    }

    private let parent: String
    private let shared: SharedNamespaces
    /// Bytes of the namespaces that were declared below the element itself.
    private var declared = 0
    private var start = 0

    init(parent: String, sharing shared: SharedNamespaces = SharedNamespaces()) {
        self.parent = parent
        self.shared = shared
    }

    /// Whether it was written, or would be declarations more than anything else.
    mutating func write(_ root: XMPPElement, into buffer: inout ByteBuffer) throws(XMPPWriteError) -> Bool {
        self.start = buffer.writerIndex
        guard var level = try self.writeStart(root, self.parent, isRoot: true, into: &buffer) else { return false }
        // Those around the one that is written now: a message has one at most.
        var around: [Level] = []
        while true {
            guard level.next < level.children.count else {
                // An empty element has no end tag.
                if !level.children.isEmpty { Self.writeEnd(level, into: &buffer) }
                guard let parent = around.popLast() else { return true }
                level = parent
                continue
            }
            level.next += 1
            switch level.children[level.next - 1] {
            case .text(let text): try buffer.writeXMLText(text)
            case .element(let child):
                guard let inner = try self.writeStart(child, level.scope, isRoot: false, into: &buffer) else {
                    return false
                }
                if inner.children.isEmpty { continue }
                around.append(level)
                level = inner
            }
        }
    }

    private static func writeEnd(_ level: Level, into buffer: inout ByteBuffer) {
        buffer.writeStaticString("</")
        level.prefix.write(into: &buffer)
        buffer.writeString(level.name)
        buffer.writeStaticString(">")
    }

    /// Notes a declaration.
    ///
    /// - Returns: whether there are not too many.
    private mutating func declare(_ namespace: String, at index: Int) -> Bool {
        self.declared += namespace.utf8.count
        return self.declared <= Self.mostDeclared(isSharing: !self.shared.isEmpty)
            || self.declared <= Self.mostTimes * (index - self.start - self.declared)
    }

    /// The start tag, or the empty tag; nothing where there are too many declarations.
    private mutating func writeStart(
        _ element: XMPPElement,
        _ scope: String,
        isRoot: Bool,
        into buffer: inout ByteBuffer
    ) throws(XMPPWriteError) -> Level? {
        try Self.check(element.name)
        if element.namespace == XMPPNamespace.xmlns { throw .name("xmlns:\(element.name)") }
        var (prefix, scope) = (Prefix.none, scope)
        var isDeclared = false
        // XML-NAMES §3: this one is never the default.
        if element.namespace == XMPPNamespace.xml {
            prefix = .xml
        } else if !element.namespace.isSameXML(scope) {
            if !isRoot, let number = self.shared.number(of: element.namespace) {
                prefix = .shared(number)
            } else {
                scope = element.namespace
                isDeclared = true
            }
        }
        buffer.writeStaticString("<")
        prefix.write(into: &buffer)
        buffer.writeString(element.name)
        if isDeclared {
            if !isRoot, !self.declare(scope, at: buffer.writerIndex) { return nil }
            buffer.writeStaticString(" xmlns")
            try Self.write(value: scope, into: &buffer)
        }
        if isRoot {
            for (number, namespace) in self.shared.namespaces.enumerated() {
                buffer.writeString(" xmlns:n\(number)")
                try Self.write(value: namespace, into: &buffer)
            }
        }
        guard try self.writeAttributes(element, into: &buffer) else { return nil }
        buffer.writeStaticString(element.children.isEmpty ? "/>" : ">")
        return Level(name: element.name, prefix: prefix, scope: scope, children: element.children)
    }

    /// Writes the value after an attribute's name.
    private static func write(value: String, into buffer: inout ByteBuffer) throws(XMPPWriteError) {
        buffer.writeStaticString("='")
        try buffer.writeXMLAttribute(value)
        buffer.writeStaticString("'")
    }

    private mutating func writeAttributes(
        _ element: XMPPElement,
        into buffer: inout ByteBuffer
    ) throws(XMPPWriteError) -> Bool {
        var prefixes: [String] = []
        for (index, attribute) in element.attributes.enumerated() {
            try Self.check(attribute.name)
            let isTwice = element.attributes[..<index].contains { $0.isNamed(attribute.name, attribute.namespace) }
            if isTwice { throw .duplicateAttribute(attribute.name) }
            // `xmlns` alone is no name of an attribute.
            if attribute.name == "xmlns", attribute.namespace.isEmpty { throw .name("xmlns") }
            // Nothing is bound to this namespace but what declares others (XML-NAMES §3).
            if attribute.namespace == XMPPNamespace.xmlns { throw .name("xmlns:\(attribute.name)") }
            var prefix = Prefix.none
            if attribute.namespace == XMPPNamespace.xml {
                prefix = .xml
            } else if let number = self.shared.number(of: attribute.namespace) {
                prefix = .shared(number)
            } else if !attribute.namespace.isEmpty {
                let number = prefixes.firstIndex { $0.isSameXML(attribute.namespace) } ?? prefixes.count
                if number == prefixes.count {
                    prefixes.append(attribute.namespace)
                    guard self.declare(attribute.namespace, at: buffer.writerIndex) else { return false }
                    buffer.writeString(" xmlns:ns\(number)")
                    try Self.write(value: attribute.namespace, into: &buffer)
                }
                prefix = .own(Int32(truncatingIfNeeded: number))
            }
            buffer.writeStaticString(" ")
            prefix.write(into: &buffer)
            buffer.writeString(attribute.name)
            try Self.write(value: attribute.value, into: &buffer)
        }
        return true
    }

    /// Refuses what is no name without a prefix.
    private static func check(_ name: String) throws(XMPPWriteError) {
        var isFirst = true
        for scalar in name.unicodeScalars {
            let isFine: Bool
            if scalar.isASCII {
                let byte = UInt8(truncatingIfNeeded: scalar.value)
                isFine = isFirst ? Characters.isNameStart(byte) : Characters.isNameByte(byte)
            } else {
                isFine =
                    isFirst
                    ? Characters.isNameStart(scalar: scalar.value) : Characters.isNameCharacter(scalar: scalar.value)
            }
            guard isFine else { throw .name(name) }
            isFirst = false
        }
        if isFirst { throw .name(name) }
    }
}

/// The namespaces of a tree that are worth a prefix: those that would be declared again and again.
struct SharedNamespaces {
    /// A reader takes 256 declarations and attributes of one element, some others less.
    private static let most = 128

    private(set) var namespaces: [String] = []
    private var numbers: [Key: Int32] = [:]

    /// Strings are equal by their characters, namespaces by their bytes (XML-NAMES §2.3).
    private struct Key: Hashable {
        let text: String
        static func == (left: Key, right: Key) -> Bool { left.text.isSameXML(right.text) }
    }

    /// None.
    init() {}

    init(of root: XMPPElement) {
        var uses: [Key: Int] = [:]
        var order: [Key] = []
        func note(_ namespace: String) {
            let count = uses[Key(text: namespace), default: 0]
            if count == 0 { order.append(Key(text: namespace)) }
            uses[Key(text: namespace)] = count + 1
        }
        var rest = [root]
        while let element = rest.popLast() {
            // The default namespace of the content.
            if !element.namespace.isSameXML(root.namespace) { note(element.namespace) }
            for attribute in element.attributes where !attribute.namespace.isEmpty { note(attribute.namespace) }
            rest += element.elements
        }
        let costs = order.filter { key in
            !key.text.isEmpty && key.text != XMPPNamespace.xml && uses[key, default: 0] > 1
        }
        .map { (key: $0, cost: $0.text.utf8.count * uses[$0, default: 0]) }
        .sorted { $0.cost > $1.cost }
        for (key, _) in costs.prefix(Self.most) {
            self.numbers[key] = Int32(self.namespaces.count)
            self.namespaces.append(key.text)
        }
    }

    var isEmpty: Bool { self.namespaces.isEmpty }

    func number(of namespace: String) -> Int32? {
        self.numbers.isEmpty || namespace.isEmpty ? nil : self.numbers[Key(text: namespace)]
    }
}
