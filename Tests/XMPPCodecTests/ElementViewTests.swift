import TestSupport
import Testing
import XMPPCodec

/// Looks at each element while it lies there.
private struct LookingSink: XMPPReaderSink {
    let look: (borrowing ElementView) -> Void
    var count = 0

    mutating func opened(_ header: StreamHeader) -> ReadingGoesOn { .goOn }
    mutating func element(_ element: borrowing ElementView) -> ReadingGoesOn {
        self.count += 1
        self.look(element)
        return .goOn
    }
    mutating func closed() -> ReadingGoesOn { .goOn }
}

@Suite("Looking at an element where it lies")
struct ElementViewTests {
    /// Whole, and out of single bytes.
    private func look(_ xml: String, _ body: (borrowing ElementView) -> Void) throws {
        try withoutActuallyEscaping(body) { body in
            for size in [1 << 20, 1] {
                var reader = XMPPReader()
                var sink = LookingSink(look: body)
                for piece in Array((usualHeader + xml).utf8).pieces(of: size) {
                    _ = try piece.withUnsafeBytes { bytes in try reader.read(bytes, into: &sink) }
                }
                #expect(sink.count == 1)
            }
        }
    }

    private func text(_ bytes: UnsafeRawBufferPointer) -> String { String(decoding: bytes, as: UTF8.self) }

    @Test("attributes are given in place, or decoded")
    func attributes() throws {
        try self.look("<message to='a@b' id='1&amp;2' empty='' xml:lang='en' xmlns:p='u' p:to='x'/>") { element in
            same(element.withAttribute("to") { self.text($0) }, "a@b")
            same(element.withAttribute("id") { self.text($0) }, "1&2")
            same(element.withAttribute("empty") { $0.count }, 0)
            same(element.withAttribute("none") { self.text($0) }, nil)
            same(element.attribute("id"), "1&2")
            same(element.attribute("id", is: "1&2"), true)
            same(element.attribute("id", is: "1&amp;2"), false)
            same(element.attribute("type", is: "chat"), false)
            same(element.hasAttribute("empty"), true)
            same(element.hasAttribute("lang"), false)
            same(element.language, "en")
        }
    }

    @Test("names and namespaces are compared without strings")
    func names() throws {
        try self.look("<p:a xmlns:p='urn:p'><b xmlns='urn:&#98;'/><c/><p:d/></p:a>") { element in
            same(element.isNamed("a", "urn:p"), true)
            same(element.isNamed("a", "urn:q"), false)
            same(element.isNamed("p:a", "urn:p"), false)
            same(element.isIn("urn:p"), true)
            same(element.name, "a")
            same(element.namespace, "urn:p")
            same(element.kind, .other)
            let child = element.firstChild("b", "urn:b")
            let isNamed = child?.isNamed("b")
            #expect(isNamed == true)
            let isInClient = element.firstChild("c")?.isIn("jabber:client")
            #expect(isInClient == true)
            let namespace = element.firstChild("d")?.namespace
            #expect(namespace == "urn:p")
        }
    }

    @Test("children are found by name and namespace, one behind the other")
    func children() throws {
        try self.look("<a>1<b n='1'><b n='x'/></b>2<c/><b n='2' xmlns='u'/><b n='3'/></a>") { element in
            var numbers: [String] = []
            var names: [String] = []
            var child = element.firstChild()
            while let here = child.take() {
                numbers.append(here.attribute("n") ?? "-")
                names.append(here.name)
                child = here.nextSibling()
            }
            #expect(numbers == ["1", "-", "2", "3"])
            #expect(names == ["b", "c", "b", "b"])
            let second = element.firstChild("b")?.nextSibling("b", "jabber:client")?.attribute("n")
            #expect(second == "3")
            let inner = element.firstChild("b")?.firstChild()?.attribute("n")
            #expect(inner == "x")
            let none = element.firstChild("d") == nil
            #expect(none)
            let sibling = element.nextSibling() == nil
            #expect(sibling)
            same(element.text, "12")
        }
    }

    @Test("the text of a child is given in place, or decoded")
    func texts() throws {
        try self.look(
            "<message><subject/><body a='1'>Hi &lt;you&gt;\r\n</body><body>2</body><x><thread>t</thread></x></message>"
        ) {
            element in
            same(element.withText(ofChild: "body") { self.text($0) }, "Hi <you>\n")
            same(element.withText(ofChild: "subject") { $0.count }, 0)
            same(element.withText(ofChild: "thread") { $0.count }, nil)
            let thread = element.firstChild("x")?.withText(ofChild: "thread") { self.text($0) }
            #expect(thread == "t")
            same(element.withText { $0.count }, 0)
        }
    }

    @Test("a child makes a tree of its own, with prefixes from its parents")
    func childTree() throws {
        try self.look("<a xmlns:p='urn:p'><z/><b xmlns:q='urn:q'><c p:d='1' q:e='2' xml:f='3'>t</c></b></a>") {
            element in
            let tree = element.firstChild("b")?.firstChild("c")?.element().canonical
            #expect(
                tree
                    == "{jabber:client}c {urn:p}d=\"1\" {urn:q}e=\"2\" {http://www.w3.org/XML/1998/namespace}f=\"3\" [\"t\"]"
            )
        }
    }

    @Test("[RFC 6120 §13.12] a tree has one string for all elements of one declared namespace")
    func sharedNamespaces() throws {
        let (one, two) = (String(repeating: "u", count: 1_000), String(repeating: "v", count: 1_000))
        let children = String(repeating: "<p:b/><q:b q:c=''/>", count: 100)
        try self.look("<a xmlns:p='\(one)' xmlns:q='\(two)'>\(children)</a>") { element in
            let elements = element.element().elements
            var places: Set<UnsafeRawPointer?> = []
            for child in elements {
                for text in [child.namespace] + child.attributes.map(\.namespace) {
                    var text = text
                    places.insert(text.withUTF8 { UnsafeRawPointer($0.baseAddress) })
                }
            }
            #expect(places.count == 2)
            #expect(elements.map(\.namespace) == Array(repeating: [one, two], count: 100).flatMap { $0 })
        }
    }

    @Test("[RFC 6120 §13.12] a namespace that a tree would multiply is refused")
    func longNamespace() {
        let namespace = String(repeating: "u", count: 1_025)
        let features = "<stream:features xmlns:p='\(namespace)'>" + String(repeating: "<p:x/>", count: 1_000)
        let reading = read([Array((usualHeader + features + "</stream:features>").utf8)])
        #expect(reading.error == .namespaceTooLong(limit: 1_024))
        #expect(reading.elements.isEmpty)
    }

    @Test("texts and sections that follow each other are one text of a tree")
    func runs() throws {
        let run = String(repeating: "a<![CDATA[b]]>&amp;", count: 1_000)
        try self.look("<a>\(run)<b/>\(run)<c>x<![CDATA[]]></c></a>") { element in
            let text = String(repeating: "ab&", count: 1_000)
            let tree = element.element()
            #expect(tree.children.count == 4)
            #expect(tree.children.first == .text(text))
            #expect(tree.text == text + text)
            #expect(tree.child("c")?.children == [.text("x")])
        }
    }

    @Test("the bytes are those that came")
    func bytes() throws {
        let xml = "<a b='&amp;'>\r\n</a>"
        try self.look(xml) { element in
            same(element.byteCount, xml.utf8.count)
            same(element.withBytes { self.text($0) }, xml)
        }
    }
}

/// A view cannot go into `#expect`; what it says can.
private func same<Value: Equatable>(
    _ value: Value,
    _ expected: Value,
    sourceLocation: SourceLocation = #_sourceLocation
) {
    #expect(value == expected, sourceLocation: sourceLocation)
}
