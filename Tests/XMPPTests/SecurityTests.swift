import DataEncodings
import NIOCore
import SASL
import Testing
import XMPP

/// Endless input from a hostile server or a man in the middle: each form is refused by its own error, before much of it
/// was accepted.
@Suite("Attacks", .timeLimit(.minutes(10)))
struct SecurityTests {
    struct Attack: Sendable, CustomTestStringConvertible {
        let name: String
        /// Said once, and then its second part again and again.
        let first: String
        let again: String
        let end: XMPPConnectionEnd
        /// Whether the client is still in front of its login.
        var isEarly = false

        var testDescription: String { self.name }
    }

    private static let limit = 1 << 20

    static let attacks = [
        Attack(
            name: "[RFC 6120 §13.12] a text without end",
            first: "<message><body>",
            again: "x",
            end: .malformed(.stanzaTooLarge(limit: Self.limit))
        ),
        Attack(
            name: "[RFC 6120 §13.12] children without end",
            first: "<message>",
            again: "<a/>",
            end: .malformed(.stanzaTooLarge(limit: Self.limit))
        ),
        Attack(
            name: "[RFC 6120 §13.12] an attribute without end",
            first: "<message a='",
            again: "x",
            end: .malformed(.stanzaTooLarge(limit: Self.limit))
        ),
        Attack(
            name: "[RFC 6120 §13.12] a stream header without end",
            first: "<stream:stream a='",
            again: "x",
            end: .malformed(.stanzaTooLarge(limit: Self.limit)),
            isEarly: true
        ),
        Attack(
            name: "[RFC 6120 §13.12] features without end",
            first: "\(ConnectionRig.header)a'><stream:features>",
            again: "<a xmlns='b'/>",
            end: .malformed(.stanzaTooLarge(limit: Self.limit)),
            isEarly: true
        ),
        Attack(
            name: "[RFC 6120 §13.12] elements in each other without end",
            first: "",
            again: "<a>",
            end: .malformed(.tooDeep(limit: 256))
        ),
        Attack(
            name: "[RFC 6120 §13.12] a name without end",
            first: "<",
            again: "a",
            end: .malformed(.nameTooLong(limit: 1_024))
        ),
        Attack(
            name: "[RFC 6120 §13.12] a character reference without end",
            first: "<message>&#x",
            again: "0",
            end: .malformed(.nameTooLong(limit: 1_024))
        ),
        Attack(
            name: "[RFC 6120 §11.1] a comment without end",
            first: "<!--",
            again: "x",
            end: .malformed(.comment)
        ),
        Attack(
            name: "[RFC 6120 §11.1] entities that multiply",
            first: "<!DOCTYPE lolz [<!ENTITY lol 'lol'><!ENTITY lol2 '&lol;&lol;&lol;&lol;&lol;&lol;'>",
            again: "<!ENTITY lol3 '&lol2;&lol2;&lol2;&lol2;&lol2;&lol2;'>",
            end: .malformed(.documentType)
        ),
        Attack(
            name: "[RFC 6120 §11.1] entities that multiply, before anything else",
            first: "<?xml version='1.0'?><!DOCTYPE lolz [<!ENTITY lol 'lol'>",
            again: "<!ENTITY lol2 '&lol;&lol;&lol;&lol;&lol;&lol;'>",
            end: .malformed(.documentType),
            isEarly: true
        ),
        Attack(
            name: "[RFC 6120 §11.1] a reference to an undeclared entity",
            first: "<message><body>",
            again: "&lol9;",
            end: .malformed(.entityReference)
        ),
        Attack(
            name: "[RFC 6120 §11.1] a processing instruction without end",
            first: "<?php ",
            again: "x",
            end: .malformed(.processingInstruction)
        ),
        Attack(
            name: "[RFC 6120 §4.9.3.13] text between stanzas without end",
            first: "",
            again: "x",
            end: .malformed(.textInStream)
        ),
        Attack(
            name: "[RFC 6120 §6] challenges without end",
            first: "\(ConnectionRig.header)a'><stream:features><mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>"
                + "<mechanism>PLAIN</mechanism></mechanisms></stream:features>",
            again: "<challenge xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>",
            end: .serverNotAuthentic(.malformed("a challenge comes, and PLAIN has none")),
            isEarly: true
        ),
        Attack(
            name: "[RFC 6120 §4.3] stream headers without end",
            first: "",
            again: "\(ConnectionRig.header)a'>",
            end: .malformed(.tooManyNamespaces(limit: 256)),
            isEarly: true
        ),
    ]

    @Test("are refused in bounded time and memory, each with its own error", arguments: Self.attacks)
    func refused(_ attack: Attack) throws {
        let rig: ConnectionRig
        if attack.isEarly {
            rig = try ConnectionRig(ConnectionRig.options(), account: ConnectionRig.account)
            rig.start(within: .seconds(30))
        } else {
            rig = try ConnectionRig.ready()
        }
        let before = rig.bytesReceived
        try rig.receive(attack.first)
        let piece = String(repeating: attack.again, count: max(1, 4_096 / attack.again.utf8.count))
        for _ in 0..<10_000 {
            if rig.end != nil { break }
            try rig.receive(piece)
        }
        #expect(rig.end == attack.end)
        // A limit, a read, and what was said first.
        #expect(rig.bytesReceived - before <= UInt64(Self.limit + piece.utf8.count + attack.first.utf8.count))
        #expect(try rig.sent().utf8.count < 1_000)
        // The reason is one line, however much was said.
        #expect((rig.end?.description.utf8.count ?? 0) < 600)
        #expect(rig.end?.description.contains("\n") == false)
    }

    @Test("[RFC 6120 §4.6.1] white space without end costs nothing")
    func whitespace() throws {
        let rig = try ConnectionRig.ready()
        let spaces = String(repeating: " \n\t\r", count: 4_096)
        for _ in 0..<1_000 { try rig.receive(spaces) }
        #expect(rig.end == nil)
        try rig.receive("<message/>")
        #expect(rig.observer.calls.last == .received(XMPPElement("message", namespace: XMPPNamespace.client)))
    }

    @Test("[RFC 6120 §6.4.6] a success with a wrong proof ends the connection without a closing tag")
    func wrongProof() throws {
        func base64(_ text: String) -> String { Base64.encode(Array(text.utf8)) }
        let rig = try ConnectionRig(
            ConnectionRig.options { $0.mechanisms = ["SCRAM-SHA-1"] },
            account: ConnectionRig.account
        )
        rig.start()
        let sasl = "xmlns='urn:ietf:params:xml:ns:xmpp-sasl'"
        let mechanisms = "<mechanisms \(sasl)><mechanism>SCRAM-SHA-1</mechanism></mechanisms>"
        try rig.receive("\(ConnectionRig.header)a'><stream:features>\(mechanisms)</stream:features>")
        let first = "r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096"
        try rig.receive("<challenge \(sasl)>\(base64(first))</challenge>")
        #expect(try rig.sent().contains("<response "))
        try rig.receive("<success \(sasl)>\(base64("v=AAAAAAAAAAAAAAAAAAAAAAAAAAA="))</success>")
        #expect(rig.end == .serverNotAuthentic(.serverNotVerified))
        #expect(try rig.sent() == "")
    }

    @Test("[XEP-0077 §3.1] a new account's password is not sent in clear if STARTTLS was stripped from the offer")
    func registrationStripped() throws {
        for policy in [XMPPTLSPolicy.allowed, .preferred, .required] {
            let options = ConnectionRig.options {
                $0.tlsPolicy = policy
                $0.allowsPlainWithoutTLS = false
                $0.registration = .create
            }
            let rig = try ConnectionRig(options, account: ConnectionRig.account)
            rig.start()
            let mechanisms =
                "<mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>SCRAM-SHA-1</mechanism></mechanisms>"
            try rig.receive("\(ConnectionRig.header)a'><stream:features>\(mechanisms)</stream:features>")
            if policy != .required {
                try rig.receive(
                    """
                    <iq type='result' id='00000000000000001'><query xmlns='jabber:iq:register'><username/><password/>\
                    </query></iq>
                    """
                )
            }
            #expect(rig.end == (policy == .required ? .tlsNotOffered : .passwordInClear))
            #expect(try !rig.sent().contains("r0m30"))
        }
    }

    @Test("[C9 0313] an archive without end is cut at what was asked for")
    func endlessArchive() throws {
        let archive = ArchiveHandler()
        let rig = try ConnectionRig.ready(modules: [archive])
        var pages: [XMPPArchive.Page] = []
        archive.ask(.init(max: 3), in: rig.module) { if case .success(let page) = $0 { pages.append(page) } }
        let result = """
            <message><result xmlns='urn:xmpp:mam:2' queryid='00000000000000002' id='i'><forwarded \
            xmlns='urn:xmpp:forward:0'><message xmlns='jabber:client'/></forwarded></result></message>
            """
        for _ in 0..<1_000 { try rig.receive(result) }
        try rig.receive("<iq type='result' id='00000000000000003'><fin xmlns='urn:xmpp:mam:2'/></iq>")
        #expect(pages.map(\.messages.count) == [3])
    }

    @Test("[C9 0313] a page of large messages fails before it fills the memory")
    func largeArchive() throws {
        let archive = ArchiveHandler()
        let rig = try ConnectionRig.ready(modules: [archive])
        var errors: [XMPPRequestError] = []
        archive.ask(.init(max: 1_000), in: rig.module) { if case .failure(let error) = $0 { errors.append(error) } }
        let text = String(repeating: "x", count: 900_000)
        for _ in 0..<20 {
            try rig.receive(
                """
                <message><result xmlns='urn:xmpp:mam:2' queryid='00000000000000002' id='i'><forwarded \
                xmlns='urn:xmpp:forward:0'><message xmlns='jabber:client'><body>\(text)</body></message></forwarded>\
                </result></message>
                """
            )
        }
        try rig.receive("<iq type='result' id='00000000000000003'><fin xmlns='urn:xmpp:mam:2'/></iq>")
        #expect(errors == [.invalid("the page has more than 16777216 bytes; ask for fewer messages")])
    }

    private static let long = String(repeating: "é", count: 200_000)

    @Test(
        "[C2] of what a server says in leaving little is kept",
        arguments: [
            "<stream:error><conflict xmlns='urn:ietf:params:xml:ns:xmpp-streams'/><text "
                + "xmlns='urn:ietf:params:xml:ns:xmpp-streams'>{}</text><x xmlns='y'>{}</x></stream:error>",
            "<stream:error><see-other-host xmlns='urn:ietf:params:xml:ns:xmpp-streams'>{}</see-other-host>"
                + "</stream:error>",
            "<e{} xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>",
            "<failure xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><not-authorized/><text>{}</text></failure>",
            "<challenge xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>{}</challenge>",
        ]
    )
    func longEnds(_ text: String) throws {
        let options = ConnectionRig.options {
            $0.mechanisms = ["SCRAM-SHA-1"]
            $0.limits.nameBytes = 65_535
        }
        let rig = try ConnectionRig(options, account: ConnectionRig.account)
        rig.start()
        let mechanisms =
            "<mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>SCRAM-SHA-1</mechanism></mechanisms>"
        try rig.receive("\(ConnectionRig.header)a'><stream:features>\(mechanisms)</stream:features>")
        let isName = text.hasPrefix("<e{}")
        try rig.receive(text.replacing("{}", with: isName ? String(Self.long.prefix(30_000)) : Self.long))
        let end = try #require(rig.end)
        #expect(String(reflecting: end).utf8.count < 4_000)
        #expect(end.description.utf8.count < 2_000)
    }

    @Test("[XEP-0174 §7] a peer that does not say who it is counts only where it was called by name")
    func namelessPeer() throws {
        let header = "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>"
        let romeo = try JID("romeo@forza")
        let options = ConnectionRig.options { $0.peerRole = .initiator }
        let nobody = try ConnectionRig(options, account: XMPPAccount(romeo))
        nobody.start()
        try nobody.receive(header)
        #expect(nobody.end == .header("it does not say who it is from"))
        let known = try ConnectionRig(options, account: XMPPAccount(romeo, peer: try JID("juliet@pronto")))
        known.start()
        try known.receive(header)
        #expect(known.end == nil)
        try known.receive("<message from='tybalt@pronto'/>")
        #expect(known.strays.foreign == 1)
    }
}
