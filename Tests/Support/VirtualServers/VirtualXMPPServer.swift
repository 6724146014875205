package import NIOCore
package import NIOEmbedded
import Testing
package import XMPPCodec

/// A small XMPP server for virtual clients: logins, messages, pings, rooms, contacts and accounts, without a socket.
///
/// It does what RFC 6120, RFC 6121, XEP-0045, XEP-0077, XEP-0198 and XEP-0199 want of the least that a load needs. A
/// script decides, element by element, what it does wrong.
package final class VirtualXMPPServer: VirtualServer {
    /// The server's reaction to an element that a client sends.
    package enum Reaction {
        /// The answer of a correct server.
        case usual
        /// The same, so much later; what comes after it is not held up.
        case late(TimeAmount)
        case silent
        /// This text instead of the usual answer.
        case says(String)
        /// This text, the closing tag and FIN.
        case ends(String)
        /// FIN, without a closing tag.
        case closes
        case resets
    }

    /// One element of a client, as it reached the server; a header is `stream`, a closing tag `/stream`.
    package struct Heard {
        package let client: Int
        /// How many connections the client had before this one.
        package let earlier: Int
        package let at: NIODeadline
        package let element: XMPPElement
    }

    package static let domain = "localhost"
    package static let service = "rooms.localhost"

    let loop: EmbeddedEventLoop
    /// The local part of a client's JID.
    private let user: (Int) -> String
    /// Chooses the reaction to each element, by client and by step of the stream.
    package var script: (VirtualXMPPStream, XMPPElement) -> Reaction = { _, _ in .usual }
    /// The reaction to a stanza for other clients or to a roster push, for each receiver: only ``Reaction/usual``,
    /// ``Reaction/late(_:)``, ``Reaction/silent`` and ``Reaction/says(_:)``, which comes in its place.
    package var delivery: (VirtualXMPPStream, XMPPElement) -> Reaction = { _, _ in .usual }
    /// Users that have an account; `nil`: every user has one, or may make one.
    package var accounts: Set<String>?
    package private(set) var heard: [Heard] = []
    private var streams: [Int: VirtualXMPPStream] = [:]
    private var connections: [Int: Int] = [:]
    private var lastID = 0
    /// By full JID.
    package var bound: [String: VirtualXMPPStream] = [:]
    var rooms: [String: VirtualXMPPRoom] = [:]
    /// By user: its contacts, and the state of the subscription.
    package var rosters: [String: [String: String]] = [:]

    package init(loop: EmbeddedEventLoop, user: @escaping (Int) -> String) {
        self.loop = loop
        self.user = user
    }

    package func books(of client: Int) -> WireOracle.Connection? { nil }

    /// Elements of that name that came, of whichever client.
    package func heard(_ name: String, where isRight: (Heard) -> Bool = { _ in true }) -> [Heard] {
        self.heard.filter { $0.element.name == name && isRight($0) }
    }

    // MARK: - Connections

    package func opened(_ link: VirtualLink) {
        link.id = self.lastID
        self.lastID += 1
        let earlier = self.connections[link.client, default: 0]
        self.connections[link.client] = earlier + 1
        self.streams[link.id] = VirtualXMPPStream(link, user: self.user(link.client), earlier: earlier)
    }

    package func received(_ bytes: ByteBuffer, from link: VirtualLink) {
        guard let stream = self.streams[link.id] else { return }
        var rest = Array(bytes.readableBytesView)[...]
        while !rest.isEmpty, stream.isOpen {
            var sink = Sink()
            do {
                rest = rest.dropFirst(try rest.withUnsafeBytes { try stream.reader.read($0, into: &sink) })
            } catch {
                Issue.record("client \(link.client) broke XML: \(error)")
                return
            }
            if let element = sink.element { self.take(stream, element) }
        }
    }

    package func gone(_ link: VirtualLink) {
        guard let stream = self.streams.removeValue(forKey: link.id) else { return }
        self.leaves(stream)
        if stream.isOpen { link.close() }
        stream.isOpen = false
    }

    private func take(_ stream: VirtualXMPPStream, _ element: XMPPElement) {
        self.heard.append(
            Heard(client: stream.client, earlier: stream.earlier, at: self.loop.now, element: element)
        )
        if ["message", "presence", "iq"].contains(element.name) { stream.handled &+= 1 }
        switch self.script(stream, element) {
        case .usual: self.answer(stream, element)
        case .late(let time):
            self.loop.assumeIsolated().scheduleTask(in: time) {
                if stream.isOpen { self.answer(stream, element) }
            }
        case .silent: break
        case .says(let text): stream.say(text)
        case .ends(let text): self.end(stream, text)
        case .closes: self.close(stream)
        case .resets:
            stream.isOpen = false
            self.leaves(stream)
            stream.link.reset()
        }
    }

    /// The server ends a stream: by its tag, behind these words.
    func end(_ stream: VirtualXMPPStream, _ text: String) {
        stream.say(text + "</stream:stream>")
        self.close(stream)
    }

    /// The same for the open stream of a client.
    func end(_ client: Int, _ text: String) {
        for stream in self.streams.values where stream.client == client && stream.isOpen { self.end(stream, text) }
    }

    private func close(_ stream: VirtualXMPPStream) {
        guard stream.isOpen else { return }
        stream.isOpen = false
        self.leaves(stream)
        stream.link.close()
    }

    /// The client can no longer be reached.
    private func leaves(_ stream: VirtualXMPPStream) {
        guard self.bound[stream.jid] === stream else { return }
        self.bound[stream.jid] = nil
        self.leavesRooms(stream)
        self.says(stream, nil)
    }

    // MARK: - Elements

    private func answer(_ stream: VirtualXMPPStream, _ element: XMPPElement) {
        switch element.name {
        case "stream": self.open(stream)
        case "/stream": self.end(stream, "")
        case "auth": self.authenticate(stream, element)
        case "enable":
            stream.handled = 0
            stream.say("<enabled xmlns='\(XMPPNamespace.streamManagement)'/>")
        case "r": stream.say("<a xmlns='\(XMPPNamespace.streamManagement)' h='\(stream.handled)'/>")
        case "iq": self.answer(stream, iq: element)
        case "message": self.route(stream, message: element)
        case "presence": self.route(stream, presence: element)
        default: break
        }
    }

    private func open(_ stream: VirtualXMPPStream) {
        let features =
            stream.isAuthenticated
            ? "<bind xmlns='\(XMPPNamespace.bind)'/><sm xmlns='\(XMPPNamespace.streamManagement)'/>"
            : "<mechanisms xmlns='\(XMPPNamespace.sasl)'><mechanism>PLAIN</mechanism>"
                + "<mechanism>ANONYMOUS</mechanism></mechanisms><register xmlns='\(XMPPNamespace.registerFeature)'/>"
        stream.say(
            "<stream:stream xmlns='\(XMPPNamespace.client)' xmlns:stream='\(XMPPNamespace.stream)' "
                + "from='\(Self.domain)' version='1.0' id='\(stream.link.id)\(stream.isAuthenticated)'>"
                + "<stream:features>\(features)</stream:features>"
        )
    }

    private func authenticate(_ stream: VirtualXMPPStream, _ auth: XMPPElement) {
        if auth["mechanism"] == "ANONYMOUS" { stream.user = "anonymous\(stream.link.id)" }
        guard auth["mechanism"] == "ANONYMOUS" || self.accounts?.contains(stream.user) ?? true else {
            return stream.say("<failure xmlns='\(XMPPNamespace.sasl)'><not-authorized/></failure>")
        }
        stream.isAuthenticated = true
        stream.reader.restart()
        stream.say("<success xmlns='\(XMPPNamespace.sasl)'/>")
    }

    private func answer(_ stream: VirtualXMPPStream, iq: XMPPElement) {
        guard iq["type"] == "get" || iq["type"] == "set", let request = iq.elements.first else { return }
        var result = ""
        switch request.namespace {
        case XMPPNamespace.bind:
            let resource = request.child("resource")?.text ?? "r\(stream.link.id)"
            stream.jid = "\(stream.user)@\(Self.domain)/\(resource)"
            self.bound[stream.jid] = stream
            result = "<bind xmlns='\(XMPPNamespace.bind)'><jid>\(stream.jid)</jid></bind>"
        case XMPPNamespace.register:
            guard let form = self.register(stream, iq, request) else { return }
            result = form
        case XMPPNamespace.roster:
            stream.wantsRoster = true
            let items = (self.rosters[stream.user] ?? [:]).sorted { $0.key < $1.key }.map(Self.item)
            result = "<query xmlns='\(XMPPNamespace.roster)'>\(items.joined())</query>"
        default: break
        }
        let from = iq["to"].map { " from='\($0)'" } ?? ""
        stream.say("<iq type='result' id='\(iq["id"] ?? "")'\(from)>\(result)</iq>")
    }

    /// - Returns: what the answer holds; `nil` where it is an error, which has been said.
    private func register(_ stream: VirtualXMPPStream, _ iq: XMPPElement, _ query: XMPPElement) -> String? {
        guard iq["type"] == "set" else {
            return "<query xmlns='\(XMPPNamespace.register)'><username/><password/></query>"
        }
        if query.child("remove") != nil {
            self.accounts?.remove(stream.user)
            return ""
        }
        let user = query.child("username")?.text ?? ""
        guard self.accounts?.insert(user).inserted ?? true else {
            stream.say(Self.error(to: iq, "cancel", "conflict"))
            return nil
        }
        return ""
    }

    private func route(_ stream: VirtualXMPPStream, message: XMPPElement) {
        var message = message
        let to = message["to"] ?? ""
        if message["type"] == "groupchat" { return self.speaks(stream, message) }
        message["from"] = stream.jid
        let isBare = !to.contains("/")
        let receivers = self.bound.filter { jid, _ in isBare ? jid.hasPrefix("\(to)/") : jid == to }
        if receivers.isEmpty { return stream.say(Self.error(to: message, "cancel", "service-unavailable")) }
        for receiver in receivers.values { self.deliver(message, to: receiver) }
    }

    func deliver(_ element: XMPPElement, to receiver: VirtualXMPPStream) {
        switch self.delivery(receiver, element) {
        case .late(let time): self.loop.assumeIsolated().scheduleTask(in: time) { receiver.say(element) }
        case .silent: break
        case .says(let text): receiver.say(text)
        case .usual, .ends, .closes, .resets: receiver.say(element)
        }
    }

    /// The error that bounces a stanza with its content.
    package static func error(to stanza: XMPPElement, _ type: String, _ condition: String) -> String {
        "<\(stanza.name) type='error' id='\(stanza["id"] ?? "")' from='\(stanza["to"] ?? Self.domain)'>"
            + "<error type='\(type)'><\(condition) xmlns='\(XMPPNamespace.stanzas)'/></error></\(stanza.name)>"
    }

    package static func streamError(_ condition: String) -> String {
        "<stream:error><\(condition) xmlns='\(XMPPNamespace.streams)'/></stream:error>"
    }

    package static func failure(_ condition: String) -> String {
        "<failure xmlns='\(XMPPNamespace.sasl)'><\(condition)/></failure>"
    }

    /// One event at a time: behind a login the reader begins anew.
    private struct Sink: XMPPReaderSink {
        var element: XMPPElement?

        mutating func opened(_ header: StreamHeader) -> ReadingGoesOn {
            self.element = XMPPElement("stream", namespace: XMPPNamespace.stream)
            return .stop
        }

        mutating func element(_ element: borrowing ElementView) -> ReadingGoesOn {
            self.element = element.element()
            return .stop
        }

        mutating func closed() -> ReadingGoesOn {
            self.element = XMPPElement("/stream", namespace: XMPPNamespace.stream)
            return .stop
        }
    }
}

/// The server's side of one connection.
package final class VirtualXMPPStream {
    let link: VirtualLink
    /// How many connections its client had before.
    package let earlier: Int
    var user: String
    /// Full, once it is bound.
    var jid = ""
    var reader = XMPPReader()
    package var isAuthenticated = false
    var isOpen = true
    var wantsRoster = false
    /// Counts of stream management.
    var handled: UInt32 = 0
    /// The last presence to all contacts; `nil` while it is unavailable.
    var presence: XMPPElement?

    init(_ link: VirtualLink, user: String, earlier: Int) {
        self.link = link
        self.user = user
        self.earlier = earlier
    }

    package var client: Int { self.link.client }
    var bare: String { "\(self.user)@\(VirtualXMPPServer.domain)" }

    package func say(_ text: String) {
        if self.isOpen, !text.isEmpty { self.link.send(ByteBuffer(string: text)) }
    }

    package func say(_ element: XMPPElement) {
        do { self.say(try element.xml()) } catch { Issue.record("the server cannot say \(element.name): \(error)") }
    }
}
