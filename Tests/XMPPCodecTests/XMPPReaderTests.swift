import TestSupport
import Testing
import XMPPCodec
import XMPPErrorNames

@Suite("Reading an XMPP stream")
struct XMPPReaderTests {
    @Test("[RFC 6120 §5.4.3.3] a sink that stops leaves the bytes behind its event alone")
    func stops() throws {
        let proceed = "<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"
        let bytes = Array((usualHeader + proceed + "<iq/>").utf8)
        for (head, tail) in bytes.everyCut {
            var reader = XMPPReader()
            var sink = CollectingSink()
            sink.limit = 2
            let first = try reader.read(head, into: &sink)
            var taken = first
            if sink.events.count < 2 { taken += try reader.read(tail, into: &sink) }
            #expect(sink.events.count == 2)
            #expect(taken == bytes.count - "<iq/>".utf8.count)
        }
    }

    @Test("[RFC 6120 §4.3.3] after a restart a new header is wanted, and nothing of the old stream is known")
    func restarts() throws {
        var reader = XMPPReader()
        var sink = CollectingSink()
        let unusual = usualHeader.replacing(">", with: " xmlns:p='urn:p'>", maxReplacements: 2)
            .replacing("?> xmlns:p='urn:p'>", with: "?>").replacing("'1.0'? xmlns:p='urn:p'>", with: "'1.0'?>")
        _ = try reader.read(Array((unusual + "<p:a/><half").utf8), into: &sink)
        #expect(sink.events.last == .element(XMPPElement("a", namespace: "urn:p")))
        let isWhole = reader.isBetweenElements
        #expect(!isWhole)
        reader.restart()
        let isWholeNow = reader.isBetweenElements
        #expect(isWholeNow)
        _ = try reader.read(Array((usualHeader + "<a/>").utf8), into: &sink)
        #expect(sink.events.last == .element(XMPPElement("a", namespace: "jabber:client")))
        #expect(throws: XMPPReadError.unboundPrefix) { try reader.read(Array("<p:a/>".utf8), into: &sink) }
    }

    @Test("[RFC 6120 §11.5] a line end between <success/> and the new stream's declaration is accepted")
    func spaceBehindRestart() throws {
        let bytes = Array((" \r\n" + usualHeader + "<a/>").utf8)
        for (head, tail) in bytes.everyCut {
            var reader = XMPPReader()
            var sink = CollectingSink()
            _ = try reader.read(Array(usualHeader.utf8), into: &sink)
            reader.restart()
            _ = try reader.read(head, into: &sink)
            _ = try reader.read(tail, into: &sink)
            #expect(sink.events.count == 3, "cut at \(head.count)")
        }
        #expect(read([bytes]).error == .misplacedDeclaration)
    }

    @Test("an error is thrown again, and nothing more is taken, until a restart")
    func staysBroken() throws {
        var reader = XMPPReader()
        var sink = CollectingSink()
        #expect(throws: XMPPReadError.comment) { try reader.read(Array((usualHeader + "<!-- ").utf8), into: &sink) }
        #expect(throws: XMPPReadError.comment) { try reader.read(Array("<iq/>".utf8), into: &sink) }
        #expect(sink.events.count == 1)
        reader.restart()
        _ = try reader.read(Array(usualHeader.utf8), into: &sink)
        #expect(sink.events.count == 2)
    }

    @Test("[RFC 7395 §3.3] a message that ends inside an element is refused")
    func messageEnds() throws {
        var reader = XMPPReader(framing: .webSocket)
        var sink = CollectingSink()
        _ = try reader.read(Array("<iq xmlns='jabber:client'/>".utf8), into: &sink)
        try reader.endMessage()
        _ = try reader.read(Array("<iq xmlns='jabber:client'>".utf8), into: &sink)
        #expect(throws: XMPPReadError.incompleteMessage) { try reader.endMessage() }
    }

    @Test("no bytes are no event")
    func empty() throws {
        #expect(read([[], Array(usualHeader.utf8), []]).events.count == 1)
    }

    @Test("stanzas are known by name and namespace")
    func kinds() throws {
        var reader = XMPPReader()
        var sink = CollectingSink()
        let stanzas =
            "<iq/><message/><presence/><iqs/><messages/><r xmlns='urn:xmpp:sm:3'/><iq xmlns='jabber:server'/>"
            + "<c:message xmlns:c='jabber:client'/><stream:iq/>"
        _ = try reader.read(Array((usualHeader + stanzas).utf8), into: &sink)
        let expected: [StanzaKind] = [.iq, .message, .presence, .other, .other, .other, .other, .message, .other]
        #expect(sink.kinds == expected)
    }

    @Test("every error has its clause, its answer and its words")
    func errors() {
        let errors: [XMPPReadError] = [
            .stanzaTooLarge(limit: 1), .tooDeep(limit: 2), .tooManyAttributes(limit: 3), .tooManyNamespaces(limit: 4),
            .nameTooLong(limit: 5), .namespaceTooLong(limit: 7), .streamNamespacesTooLarge(limit: 6), .comment,
            .processingInstruction,
            .documentType, .entityReference, .encoding, .notUTF8, .illegalCharacter(0), .illegalReference(0xFFFE),
            .reference, .declaration, .misplacedDeclaration, .name, .tag, .lessThanInValue, .endTag,
            .endOfSectionInText, .markup, .duplicateAttribute, .unboundPrefix, .namespaceDeclaration, .textInStream,
            .outsideStream, .rootName, .rootNamespace, .incompleteMessage,
        ]
        #expect(Set(errors.map(\.description)).count == errors.count)
        #expect(Set(errors.map(\.name)).count == errors.count)
        // Printing an error prints its description.
        #expect(errors.allSatisfy { "\($0 as any Error)" == $0.description })
        #expect(
            XMPPReadError.illegalReference(0xFFFE).description
                == "a reference to U+FFFE, which XML does not have (XML §4.1); answered with not-well-formed"
        )
    }
}
