import XMPP

// Every module and most settings once, by the one import.
var configuration = XMPPClientConfiguration(jid: "juliet@localhost", password: "secret")
configuration.host = "127.0.0.1"
configuration.port = 1
configuration.encryption = .required
configuration.sasl2 = XMPPSASL2Options(userAgent: XMPPUserAgent(software: "package"), tag: "package")
configuration.token = XMPPFastToken(mechanism: "HT-SHA-256-NONE", token: "secret")
configuration.allowsLegacyAuthentication = true
configuration.registrationFields = ["email": "juliet@localhost"]
configuration.keepAliveCharacter = .newline
configuration.automaticReply.echoesContents = true
configuration.customNamespaces = ["urn:example:top"]
configuration.limits.parser.depth = 64
configuration.limits.passwordIterations = 4_096...1_000_000
configuration.tag = "package"

/// An application's own module: it counts the messages, and answers nothing.
final class MessageCounter: XMPPModule {
    let link = XMPPModuleLink()
    private let counts = XMPPEvents<Int>()

    var events: AsyncStream<Int> { self.counts.stream() }

    func makeHandler() -> any XMPPHandler { Handler(self.counts) }
    func clientReleased() { self.counts.finish() }
    func count() async throws(XMPPClientError) -> Int {
        try await self.withHandler { (handler: Handler) in handler.count }
    }

    final class Handler: XMPPHandler {
        let counts: XMPPEvents<Int>
        var count = 0

        init(_ counts: XMPPEvents<Int>) { self.counts = counts }

        func ready(_ session: XMPPSession, in context: XMPPModuleContext) {
            print(session.jid, session.isResumed, session.lost, session.offers.contains(.startTLS), context.now)
        }

        func handle(_ stanza: XMPPElement, in context: XMPPModuleContext) -> Bool {
            guard stanza.name == "message" else { return false }
            self.count += 1
            self.counts.send(self.count)
            return context.isFromOwnAccount(stanza)
        }
    }
}

let counter = MessageCounter()
let (roster, presence, rooms, archive) = (XMPPRoster(), XMPPPresence(), XMPPRooms(), XMPPArchive())
let (pubSub, discovery) = (XMPPPubSub(), XMPPDiscovery())
let responder = XMPPResponder("query", "urn:example:question") { iq in
    iq["type"] == "get" ? .result(nil) : .error(StanzaError(.forbidden))
}
let client = XMPPClient(
    configuration,
    modules: [
        XMPPFilter(sent: { $0 }, received: { $0["id"] == "spam" ? nil : $0 }), XMPPReconnect(), XMPPPing(), counter,
        roster, presence, rooms, archive, pubSub, discovery, responder, XMPPCarbons(), XMPPReceipts(), XMPPActivity(),
        XMPPSoftwareVersion(), XMPPAccountRegistration(),
    ]
)
let contact = try JID("romeo@example.net")
let message = XMPPElement("message", namespace: XMPPNamespace.client, attributes: ["to": contact.description])
do {
    print(try await client.connect())
    print(try await roster.items().count, try await counter.count())
    try await presence.set(show: .away, status: "reading")
    try await client.send(message, until: .acknowledged)
    try await client.inject(message)
    print(try await client.ping(contact), await client.token() as Any)
    for try await found in archive.messages() { print(found.id, found.stanza["from"] ?? "-") }
    print(try await rooms.join(JID("hall@conference.localhost"), as: "juliet").isNew)
    print(try await discovery.info(of: contact).features.count)
} catch {
    // Port 1 is closed.
    print(error)
}
print(await client.byteCounts().sent, client.state)
_ = (rooms.events, counter.events, pubSub.events, roster.events)
