import TestSupport

/// Writes streams by a seed: right ones, and such with a few bytes changed.
struct DocumentWriter {
    private var random: SeededGenerator

    init(seed: UInt64) { self.random = SeededGenerator(seed: seed) }

    private static let names = ["a", "message", "body", "x-y.z_1", "größe", "名", "presences", "qqqqqqqqqqqqqqqqq", "_"]
    private static let prefixes = ["p", "q", "stream"]
    private static let texts = [
        "hi", " ", "\n", "\r\n", "\r", "é", "€uro", "😀", "&lt;", "&amp;", "&#65;", "&#x20ac;", "&apos;&quot;", "]",
        "]]",
        ">", "\t", "some longer text without anything", "\u{7F}", "&#10;", "&#13;",
    ]
    /// Without carriage returns: there the other parser leaves them, against XML §2.11.
    private static let sections = ["<![CDATA[<&>]]>", "<![CDATA[]]>", "<![CDATA[ ]] \n é]]>"]
    private static let namespaces = ["urn:1", "urn:2", "jabber:client", "urn:x?u&amp;v"]

    private mutating func below(_ count: Int) -> Int { Int.random(in: 0..<count, using: &self.random) }
    private mutating func one<Element>(of elements: [Element]) -> Element { elements[self.below(elements.count)] }
    private mutating func chance(_ percent: Int) -> Bool { self.below(100) < percent }

    mutating func document() -> [UInt8] {
        var text = self.chance(50) ? "<?xml version='1.0'?>" : ""
        text += "<stream:stream xmlns:stream='http://etherx.jabber.org/streams' version='1.0'"
        if self.chance(80) { text += " xmlns='jabber:client'" }
        text += ">"
        for _ in 0..<1 + self.below(4) {
            text += self.element(depth: 0, prefixes: ["stream"])
            if self.chance(30) { text += self.one(of: [" ", "\n", "\r\n\t"]) }
        }
        return Array((text + "</stream:stream>").utf8)
    }

    private mutating func space() -> String { self.chance(90) ? " " : self.one(of: ["  ", "\n", "\t", "\r\n "]) }

    private mutating func element(depth: Int, prefixes inScope: [String]) -> String {
        var inScope = inScope
        var attributes: [String] = []
        if self.chance(20) { attributes.append("xmlns=" + self.quoted(self.one(of: Self.namespaces + [""]))) }
        for prefix in Self.prefixes where self.chance(10) {
            attributes.append("xmlns:\(prefix)=" + self.quoted("urn:" + prefix))
            if !inScope.contains(prefix) { inScope.append(prefix) }
        }
        // Prefixes stand for different namespaces, so a name is used once for each.
        for name in Self.names where self.chance(15) {
            attributes.append(name + self.one(of: ["=", "=", "=", " = ", "\n="]) + self.quoted(self.value()))
            if self.chance(20) {
                attributes.append("\(self.one(of: inScope)):\(name)=" + self.quoted(self.value()))
            }
        }
        if self.chance(10) { attributes.append("xml:lang='en'") }
        attributes.shuffle(using: &self.random)
        let name = (self.chance(20) ? self.one(of: inScope) + ":" : "") + self.one(of: Self.names)
        var text = "<" + name
        for attribute in attributes { text += self.space() + attribute }
        if self.chance(10) { text += self.space() }
        if self.chance(25) { return text + "/>" }
        text += ">"
        for _ in 0..<self.below(4) {
            if depth < 5, self.chance(45) {
                text += self.element(depth: depth + 1, prefixes: inScope)
            } else {
                text += self.chance(90) ? self.one(of: Self.texts) : self.one(of: Self.sections)
                // Brackets would end a section with what may follow.
                if text.hasSuffix("]") { text += "." }
            }
        }
        return text + "</" + name + (self.chance(90) ? ">" : " >")
    }

    private mutating func value() -> String {
        (0..<self.below(4)).map { _ in self.one(of: Self.texts) }.joined()
    }

    private mutating func quoted(_ value: String) -> String { self.chance(50) ? "'\(value)'" : "\"\(value)\"" }

    private static let splinters = [
        "<", ">", "/", "=", "'", "\"", "&", ";", ":", " ", "x", "]]>", "<!--x-->", "<![CDATA[", "&lt;", "&#0;",
        "&nbsp;",
        "<a/>", "</a>", "\u{1}", "é", "xmlns='u'", " a='1' a='2'", "<?x y?>", "\u{FFFE}", "&#xD800;",
    ]

    /// A document with one to three places changed.
    mutating func mutated() -> [UInt8] {
        var bytes = self.document()
        for _ in 0..<1 + self.below(3) {
            let place = self.below(bytes.count)
            switch self.below(6) {
            case 0: bytes.remove(at: place)
            case 1: bytes[place] = UInt8(self.below(256))
            case 2: bytes.insert(contentsOf: Array(self.one(of: Self.splinters).utf8), at: place)
            case 3: bytes.swapAt(place, self.below(bytes.count))
            case 4:
                let end = min(bytes.count, place + self.below(12))
                bytes.insert(contentsOf: Array(bytes[place..<end]), at: self.below(bytes.count))
            default: bytes[place] ^= 1 << UInt8(self.below(7))
            }
        }
        return bytes
    }
}
