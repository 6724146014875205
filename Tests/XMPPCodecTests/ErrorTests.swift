import Testing
import XMPPCodec

@Suite("Errors of streams and stanzas")
struct ErrorTests {
    @Test(
        "[RFC 6120 §4.9.3] every condition of a stream error is written and read",
        arguments: StreamErrorCondition.allCases
    )
    func streamConditions(_ condition: StreamErrorCondition) throws {
        let error = StreamError(
            condition,
            text: "why",
            language: "en",
            otherHost: condition == .seeOtherHost ? "[::1]:5222" : nil,
            application: XMPPElement("own", namespace: "urn:x")
        )
        #expect(StreamError(error.element) == error)
        let reading = read([Array((usualHeader + (try error.element.xml())).utf8)])
        #expect(reading.elements.map { StreamError($0) } == [error])
        #expect(StreamError(StreamError(condition).element) == StreamError(condition))
        #expect(error.description.contains(condition.rawValue))
    }

    @Test("[RFC 6120 §4.9.3] there are 25 of them")
    func count() {
        #expect(StreamErrorCondition.allCases.count == 25)
        #expect(StanzaErrorCondition.allCases.count == 22)
    }

    @Test("[RFC 6120 §4.9.2] an unknown condition is undefined-condition, and what is no stream error is none")
    func unknownStreamError() {
        let condition = XMPPElement("new-one", namespace: XMPPNamespace.streams)
        let error = XMPPElement("error", namespace: XMPPNamespace.stream, children: [.element(condition)])
        #expect(StreamError(error) == StreamError(.undefinedCondition))
        #expect(StreamError(XMPPElement("error", namespace: XMPPNamespace.stream)) == StreamError(.undefinedCondition))
        #expect(StreamError(XMPPElement("error", namespace: "jabber:client")) == nil)
        #expect(StreamError(XMPPElement("features", namespace: XMPPNamespace.stream)) == nil)
    }

    @Test(
        "[RFC 6120 §8.3.3] every condition of a stanza error is written and read",
        arguments: StanzaErrorCondition.allCases
    )
    func stanzaConditions(_ condition: StanzaErrorCondition) throws {
        for type in StanzaError.ErrorType.allCases {
            let error = StanzaError(
                condition,
                type: type,
                text: "why",
                by: "a",
                address: condition == .gone || condition == .redirect ? "xmpp:b@c" : nil,
                application: XMPPElement("own", namespace: "urn:x")
            )
            #expect(StanzaError(error.element()) == error)
            let request = XMPPElement(
                "iq",
                namespace: "jabber:client",
                attributes: ["type": "get", "from": "x", "to": "y", "id": "7"]
            )
            let reply = try #require(error.reply(to: request))
            #expect(StanzaError(reply) == error)
            #expect(reply["from"] == "y")
            #expect(reply["to"] == "x")
            #expect(reply["id"] == "7")
            #expect(reply["type"] == "error")
        }
        #expect(StanzaError(StanzaError(condition).element()) == StanzaError(condition))
    }

    @Test("[RFC 6120 §8.3.1] neither an error nor a result is answered")
    func noReply() {
        let error = StanzaError(.serviceUnavailable)
        for type in ["error", "result"] {
            let stanza = XMPPElement("iq", namespace: "jabber:client", attributes: ["type": type])
            #expect(error.reply(to: stanza) == nil)
        }
        let message = XMPPElement("message", namespace: "jabber:client", attributes: ["type": "result"])
        #expect(error.reply(to: message) != nil)
    }

    @Test("[RFC 6120 §8.3.2] what is not known, or missing, is an error all the same")
    func unknownStanzaError() {
        var stanza = XMPPElement("iq", namespace: "jabber:client", attributes: ["type": "error"])
        #expect(StanzaError(stanza) == StanzaError(.undefinedCondition, type: .cancel))
        var error = XMPPElement("error", namespace: "jabber:client", attributes: ["type": "fancy"])
        error.add(XMPPElement("new-one", namespace: XMPPNamespace.stanzas))
        stanza.add(error)
        #expect(StanzaError(stanza) == StanzaError(.undefinedCondition, type: .cancel))
        var usual = XMPPElement("error", namespace: "jabber:client")
        usual.add(XMPPElement("bad-request", namespace: XMPPNamespace.stanzas))
        #expect(StanzaError(usual) == StanzaError(.badRequest, type: .modify))
        #expect(StanzaError(XMPPElement("iq", namespace: "jabber:client", attributes: ["type": "get"])) == nil)
    }

    @Test(
        "[RFC 6120 §4.7.5] versions are numbers with a point",
        arguments: [
            ("1.0", 1), ("0.9", 0), ("2.10", 2), ("1", nil), ("", nil), ("1.", nil), ("a.0", nil), ("1.0.0", nil),
        ] as [(String, Int?)]
    )
    func versions(_ text: String, _ major: Int?) {
        #expect(StreamHeader(version: text).majorVersion == major)
        #expect(StreamHeader().majorVersion == nil)
    }
}
