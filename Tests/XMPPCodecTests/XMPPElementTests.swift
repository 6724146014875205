import NIOCore
import TestSupport
import Testing
import XMPPCodec

@Suite("Elements as trees")
struct XMPPElementTests {
    @Test("attributes are set, changed and taken away")
    func attributes() {
        var element = XMPPElement("iq", namespace: "jabber:client", attributes: ["type": "get", "to": nil, "id": "1"])
        #expect(element.attributes.map(\.name) == ["type", "id"])
        element["to"] = "a"
        element["id"] = "2"
        element["type"] = nil
        element.language = "en"
        #expect(element["to"] == "a")
        #expect(element["id"] == "2")
        #expect(element["type"] == nil)
        #expect(element["lang"] == nil)
        #expect(element.language == "en")
        #expect(element.attributes.map(\.name) == ["id", "to", "lang"])
    }

    @Test("children are found by name and namespace")
    func children() {
        var element = XMPPElement("a", namespace: "u")
        element.add(text: "1")
        element.add(text: "")
        element.add(text: "2")
        element.add(XMPPElement("b", namespace: "v"))
        element.add(XMPPElement("b", namespace: "u", text: "x"))
        element.add(text: "3")
        #expect(element.children.count == 4)
        #expect(element.text == "123")
        #expect(element.elements.count == 2)
        #expect(element.child("b")?.namespace == "v")
        #expect(element.child("b", "u")?.text == "x")
        #expect(element.child("c") == nil)
        #expect(element.isNamed("a", "u"))
    }
}

@Suite("Writing XML")
struct XMLWritingTests {
    @Test("[XML-NAMES §2.3] names and namespaces that differ in their composition alone are two, also when written")
    func composition() throws {
        let xml = "<a \u{E9}='1' e\u{301}='2'><b xmlns='\u{E9}'><c xmlns='e\u{301}'/></b></a>"
        let element = try #require(read([Array((usualHeader + xml).utf8)]).elements.first)
        #expect(element["\u{E9}"] == "1")
        #expect(element["e\u{301}"] == "2")
        #expect(element.child("b", "e\u{301}") == nil)
        #expect(element.child("b", "\u{E9}")?.isNamed("b", "\u{E9}") == true)
        // As strings they are equal.
        #expect(Array(try element.xml().utf8) == Array(xml.utf8))
    }

    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let element: XMPPElement
        let xml: String

        init(_ name: String, _ element: XMPPElement, _ xml: String) {
            (self.testDescription, self.element, self.xml) = (name, element, xml)
        }
    }

    static let cases: [Case] = {
        let lang = XMPPElement.Attribute(name: "lang", namespace: XMPPNamespace.xml, value: "en")
        var spaced = XMPPElement("a", namespace: "jabber:client")
        spaced.attributes = [
            lang, .init(name: "b", namespace: "u:1", value: "1"), .init(name: "c", namespace: "u:2", value: "2"),
            .init(name: "d", namespace: "u:1", value: "3"),
        ]
        var query = XMPPElement("iq", namespace: "jabber:client", attributes: ["type": "get"])
        query.add(
            XMPPElement(
                "query",
                namespace: "jabber:iq:roster",
                children: [.element(XMPPElement("item", namespace: "jabber:iq:roster"))]
            )
        )
        query.add(XMPPElement("x", namespace: "jabber:client"))
        return [
            Case("an empty element", XMPPElement("iq", namespace: "jabber:client"), "<iq/>"),
            Case("no namespace", XMPPElement("a", namespace: ""), "<a xmlns=''/>"),
            Case(
                "namespaces where they change",
                query,
                "<iq type='get'><query xmlns='jabber:iq:roster'><item/></query><x/></iq>"
            ),
            Case(
                "attributes with namespaces",
                spaced,
                "<a xml:lang='en' xmlns:ns0='u:1' ns0:b='1' xmlns:ns1='u:2' ns1:c='2' ns0:d='3'/>"
            ),
            Case(
                "[XML-NAMES §3] what is in xml's own namespace, which is never the default",
                XMPPElement(
                    "a",
                    namespace: "u",
                    children: [
                        .element(
                            XMPPElement(
                                "b",
                                namespace: XMPPNamespace.xml,
                                attributes: ["c": "1"],
                                children: [
                                    .element(XMPPElement("d", namespace: "u")),
                                    .element(XMPPElement("e", namespace: XMPPNamespace.xml)),
                                ]
                            )
                        )
                    ]
                ),
                "<a xmlns='u'><xml:b c='1'><d/><xml:e/></xml:b></a>"
            ),
            Case("an element in xml's namespace", XMPPElement("a", namespace: XMPPNamespace.xml), "<xml:a/>"),
            Case(
                "[XML §2.4] text is escaped",
                XMPPElement("a", namespace: "jabber:client", text: "<&>]]>'\"\r\n\té\u{10FFFF}"),
                "<a>&lt;&amp;&gt;]]&gt;'\"&#13;\n\té\u{10FFFF}</a>"
            ),
            Case(
                "[XML §3.3.3] values are escaped",
                XMPPElement("a", namespace: "jabber:client", attributes: ["b": "<&>'\"\r\n\t é0123456789'"]),
                "<a b='&lt;&amp;>&apos;&quot;&#13;&#10;&#9; é0123456789&apos;'/>"
            ),
        ]
    }()

    @Test("says it in the right form, and reads back the same", arguments: cases)
    func writes(_ example: Case) throws {
        #expect(try example.element.xml() == example.xml)
        let reading = read([Array((usualHeader + example.xml).utf8)])
        #expect(reading.elements == [example.element])
    }

    @Test("declares no namespace that is there already")
    func parent() throws {
        let element = XMPPElement("a", namespace: "u")
        #expect(try element.xml(parent: "u") == "<a/>")
        #expect(try element.xml(parent: "") == "<a xmlns='u'/>")
    }

    @Test(
        "[XML §2.2] refuses characters that XML does not have, and writes nothing",
        arguments: [0x00, 0x01, 0x0B, 0x1F, 0xFFFE, 0xFFFF] as [UInt32]
    )
    func illegal(_ value: UInt32) throws {
        let text = "0123456789" + String(try #require(Unicode.Scalar(value)))
        var buffer = ByteBuffer(string: "before")
        var deep = XMPPElement("a", namespace: "u")
        deep.add(XMPPElement("b", namespace: "u", text: text))
        #expect(throws: XMPPWriteError.illegalCharacter(value)) { try deep.write(into: &buffer) }
        let valued = XMPPElement("a", namespace: "u", attributes: ["b": text])
        #expect(throws: XMPPWriteError.illegalCharacter(value)) { try valued.write(into: &buffer) }
        #expect(throws: XMPPWriteError.illegalCharacter(value)) { try buffer.writeXMLText(text) }
        #expect(String(buffer: buffer) == "before")
    }

    @Test("refuses bytes that are no UTF-8")
    func notUTF8() throws {
        var buffer = ByteBuffer()
        for bytes in [[0x61, 0xC0, 0xAF], [0xED, 0xA0, 0x80], [0xE2, 0x82]] as [[UInt8]] {
            bytes.withUnsafeBytes { bytes in
                #expect(throws: XMPPWriteError.self) { try buffer.writeXMLText(bytes) }
                #expect(throws: XMPPWriteError.self) { try buffer.writeXMLAttribute(bytes) }
            }
        }
        #expect(buffer.readableBytes == 0)
    }

    @Test("[XML-NAMES §4] refuses what is no name", arguments: ["", "1", "a b", "a:b", "-a", "a>", "é×", "a\u{0}"])
    func names(_ name: String) {
        #expect(throws: XMPPWriteError.name(name)) { try XMPPElement(name, namespace: "").xml() }
        #expect(throws: XMPPWriteError.name(name)) {
            try XMPPElement("a", namespace: "", attributes: [name: "1"]).xml()
        }
    }

    @Test("[XML-NAMES §3] refuses the namespace of declarations, which no reader takes")
    func declarations() {
        var element = XMPPElement("a", namespace: "")
        element.attributes = [.init(name: "b", namespace: XMPPNamespace.xmlns, value: "urn:b")]
        #expect(throws: XMPPWriteError.name("xmlns:b")) { try element.xml() }
        #expect(throws: XMPPWriteError.name("xmlns:a")) { try XMPPElement("a", namespace: XMPPNamespace.xmlns).xml() }
    }

    @Test("[XML §3.1] refuses an attribute that occurs twice, and xmlns")
    func attributes() {
        let twice = XMPPElement("a", namespace: "", attributes: ["b": "1", "c": "2", "b": "3"])
        #expect(throws: XMPPWriteError.duplicateAttribute("b")) { try twice.xml() }
        #expect(throws: XMPPWriteError.name("xmlns")) {
            try XMPPElement("a", namespace: "", attributes: ["xmlns": "1"]).xml()
        }
    }

    /// Children that take two long namespaces in turn, elements and attributes.
    private static func turning(_ namespaces: [String], count: Int) -> XMPPElement {
        var root = XMPPElement("iq", namespace: XMPPNamespace.client)
        var query = XMPPElement("query", namespace: "urn:q")
        for index in 0..<count {
            var child = XMPPElement("b", namespace: namespaces[index % namespaces.count])
            let other = namespaces[(index + 1) % namespaces.count]
            child.attributes = [.init(name: "c", namespace: other, value: "")]
            query.add(child)
        }
        root.add(query)
        return root
    }

    @Test("namespaces that take turns are declared once, so that little text stays little", arguments: [2, 100])
    func sharing(_ count: Int) throws {
        let namespaces = (0..<count).map { String(repeating: "u", count: 1_000) + "\($0)" }
        let element = Self.turning(namespaces, count: 4_000)
        let xml = try element.xml()
        #expect(xml.utf8.count < 4_000 * 30 + count * 1_100)
        #expect(xml.hasPrefix("<iq xmlns:n0='"))
        let reading = read([Array((usualHeader + xml).utf8)])
        #expect(reading.error == nil)
        #expect(reading.elements == [element])
    }

    @Test("more namespaces in turn than a reader takes are refused, and nothing is written")
    func tooManyNamespaces() throws {
        let element = Self.turning((0..<400).map { String(repeating: "u", count: 1_000) + "\($0)" }, count: 4_000)
        var buffer = ByteBuffer(string: "before")
        #expect(throws: XMPPWriteError.namespaces(limit: 65_536)) { try element.write(into: &buffer) }
        #expect(String(buffer: buffer) == "before")
        #expect(buffer.storageCapacity < 4_000_000)
    }

    @Test("stanzas as people send them are written in the usual way, whatever their namespaces")
    func usual() throws {
        var element = XMPPElement("iq", namespace: XMPPNamespace.client)
        for number in 0..<200 {
            var item = XMPPElement("item", namespace: "urn:xmpp:items", attributes: ["id": "\(number)"])
            item.add(
                XMPPElement("x", namespace: XMPPNamespace.dataForms, text: "some words, which are worth a namespace")
            )
            element.add(item)
        }
        let xml = try element.xml()
        #expect(xml.contains("<item xmlns='urn:xmpp:items' id='199'><x xmlns='jabber:x:data'>"))
    }
}
