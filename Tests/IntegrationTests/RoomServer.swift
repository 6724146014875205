import Foundation
import NIOCore
import NIOPosix
import TestSupport

/// A server with PLAIN, one resource per user, and rooms; it misbehaves as configured.
///
/// All connections share an event loop. It recognizes stanzas by their text, because its only client is `clamor`.
final class RoomServer: Sendable {
    enum Fault: Sendable {
        case none
        /// Every client is refused.
        case refuses(condition: String)
        /// New rooms cannot be configured.
        case refusesConfiguration
        /// Says nothing to who wants to enter.
        case isSilent
        /// Every so many-th message does not come to the one who entered last.
        case loses(every: Int)
        /// Every message comes twice to the one who entered first.
        case repeats
        /// The one who entered last is put out behind so many messages.
        case putsOut(after: Int)
        /// Every so many-th message comes back.
        case bounces(every: Int)
        /// A returning client is refused this many times: its previous connection still has the nick.
        case holdsNicks(times: Int)
        /// Sends the history to each new occupant, whatever the client requests.
        case remembers
    }

    let port: Int
    private let group: MultiThreadedEventLoopGroup
    private let server: any Channel

    static func with<Result>(_ fault: Fault, _ body: (RoomServer) async throws -> Result) async throws -> Result {
        let server = try await RoomServer(fault)
        do {
            let result = try await body(server)
            try await server.shutdown()
            return result
        } catch {
            try? await server.shutdown()
            throw error
        }
    }

    private init(_ fault: Fault) async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let loop = group.next()
        let rooms = try await loop.submit { NIOLoopBound(Rooms(fault), eventLoop: loop) }.get()
        self.group = group
        self.server = try await ServerBootstrap(group: group)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Speaker(rooms.value))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        guard let port = self.server.localAddress?.port else { throw ChannelError.unknownLocalAddress }
        self.port = port
    }

    private func shutdown() async throws {
        try? await self.server.close()
        try await self.group.shutdownGracefully()
    }
}

private final class Rooms {
    let fault: RoomServer.Fault
    /// By room, in the order of their coming.
    var occupants: [String: [(nick: String, speaker: Speaker)]] = [:]
    var messages = 0
    /// By nick's address: how often it was refused since it was in.
    var refusals: [String: Int] = [:]

    init(_ fault: RoomServer.Fault) { self.fault = fault }
}

private final class Speaker: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private static let host = "localhost"
    private let rooms: Rooms
    private var text = ""
    private var user = ""
    /// As it logged in.
    private var name = ""
    private var channel: (any Channel)?

    init(_ rooms: Rooms) { self.rooms = rooms }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        self.channel = context.channel
        self.text += String(buffer: self.unwrapInboundIn(data))
        while let element = self.next() { self.heard(element, context) }
    }

    func channelInactive(context: ChannelHandlerContext) { self.leave() }

    private func say(_ text: String) { self.channel?.writeAndFlush(ByteBuffer(string: text), promise: nil) }

    /// The next whole element; a stream header is one.
    private func next() -> String? {
        let ends = [
            ("<?xml", "?>"), ("<stream:stream", ">"), ("</stream:stream", ">"), ("<auth", "</auth>"),
            ("<iq", "</iq>"), ("<message", "</message>"),
        ]
        if let end = ends.first(where: { self.text.hasPrefix($0.0) })?.1 { return self.take(through: end) }
        guard self.text.hasPrefix("<presence") else { return nil }
        // One without children ends with its own tag.
        guard let tag = self.text.firstRange(of: ">") else { return nil }
        return self.text[..<tag.upperBound].hasSuffix("/>")
            ? self.take(through: "/>") : self.take(through: "</presence>")
    }

    private func take(through end: String) -> String? {
        guard let range = self.text.firstRange(of: end) else { return nil }
        let element = String(self.text[..<range.upperBound])
        self.text = String(self.text[range.upperBound...])
        return element
    }

    private static func value(_ name: String, of element: String) -> String {
        guard let start = element.firstRange(of: " \(name)='")?.upperBound else { return "" }
        return String(element[start...].prefix { $0 != "'" })
    }

    private func heard(_ element: String, _ context: ChannelHandlerContext) {
        if element.contains("<stream:stream") { return self.open() }
        if element.hasPrefix("</stream") {
            self.leave()
            self.say("</stream:stream>")
            return context.close(promise: nil)
        }
        if element.hasPrefix("<auth") {
            self.user = "u\(ObjectIdentifier(self).hashValue.magnitude)"
            // authzid NUL user NUL password (RFC 4616).
            let response = element.drop { $0 != ">" }.dropFirst().prefix { $0 != "<" }
            let words = Data(base64Encoded: String(response))?.split(separator: 0, omittingEmptySubsequences: false)
            self.name = words.map { $0.count == 3 ? String(decoding: $0[1], as: UTF8.self) : "" } ?? ""
            return self.say("<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>")
        }
        if element.hasPrefix("<iq") { return self.asked(element) }
        if element.hasPrefix("<presence") { return self.presence(element) }
        if element.hasPrefix("<message") { self.spoke(element) }
    }

    private func open() {
        let features =
            self.user.isEmpty
            ? "<mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>PLAIN</mechanism></mechanisms>"
            : "<bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/>"
        self.say(
            "<?xml version='1.0'?><stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' "
                + "version='1.0' from='\(Self.host)' id='\(UInt64.random(in: 0...(.max)))'>"
                + "<stream:features>\(features)</stream:features>"
        )
    }

    private func asked(_ iq: String) {
        let (id, to) = (Self.value("id", of: iq), Self.value("to", of: iq))
        if iq.contains("<bind") {
            let resource = iq.firstRange(of: "<resource>").map { iq[$0.upperBound...].prefix { $0 != "<" } } ?? "r"
            self.say(
                "<iq type='result' id='\(id)'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>"
                    + "<jid>\(self.name)@\(Self.host)/\(resource)</jid></bind></iq>"
            )
        } else if iq.contains("muc#owner"), case .refusesConfiguration = self.rooms.fault {
            self.say("<iq type='error' id='\(id)' from='\(to)'>\(Self.error("forbidden"))</iq>")
        } else {
            self.say("<iq type='result' id='\(id)' from='\(to)'/>")
        }
    }

    private static func error(_ condition: String) -> String {
        "<error type='cancel'><\(condition) xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error>"
    }

    private func presence(_ presence: String) {
        let address = Self.value("to", of: presence)
        let parts = address.split(separator: "/").map(String.init)
        guard parts.count == 2 else { return }
        if presence.contains("type='unavailable'") { return self.leave() }
        switch self.rooms.fault {
        case .refuses(let condition):
            return self.say("<presence type='error' from='\(address)'>\(Self.error(condition))</presence>")
        case .isSilent: return
        case .holdsNicks(let times):
            let count = self.rooms.refusals[address]
            if let count, count < times {
                self.rooms.refusals[address] = count + 1
                return self.say("<presence type='error' from='\(address)'>\(Self.error("conflict"))</presence>")
            }
            self.rooms.refusals[address] = 0
        default: break
        }
        let others = self.rooms.occupants[parts[0], default: []]
        for other in others {
            self.say(Self.present("\(parts[0])/\(other.nick)", []))
            other.speaker.say(Self.present(address, []))
        }
        self.rooms.occupants[parts[0], default: []].append((parts[1], self))
        self.say(Self.present(address, others.isEmpty ? ["110", "201"] : ["110"]))
        if case .remembers = self.rooms.fault {
            self.say(
                "<message type='groupchat' from='\(parts[0])/old'><body>then</body>"
                    + "<delay xmlns='urn:xmpp:delay' stamp='2026-01-01T00:00:00Z'/></message>"
            )
        }
        self.say("<message type='groupchat' from='\(parts[0])'><subject/></message>")
    }

    private static func present(_ address: String, _ codes: [String], type: String = "") -> String {
        "<presence from='\(address)'\(type)><x xmlns='http://jabber.org/protocol/muc#user'><item role='participant'/>"
            + codes.map { "<status code='\($0)'/>" }.joined() + "</x></presence>"
    }

    private func leave() {
        for room in self.rooms.occupants.keys { self.rooms.occupants[room]?.removeAll { $0.speaker === self } }
    }

    private func spoke(_ message: String) {
        let room = Self.value("to", of: message)
        let occupants = self.rooms.occupants[room, default: []]
        guard let nick = occupants.first(where: { $0.speaker === self })?.nick,
            let body = message.firstRange(of: "<body>").map({ String(message[$0.lowerBound...]) })
        else { return }
        self.rooms.messages += 1
        let id = Self.value("id", of: message)
        if case .bounces(let every) = self.rooms.fault, self.rooms.messages % every == 0 {
            return self.say(
                "<message type='error' id='\(id)' from='\(room)'>\(Self.error("not-acceptable"))</message>"
            )
        }
        let text = "<message type='groupchat' id='\(id)' from='\(room)/\(nick)'>\(body)"
        for (place, occupant) in occupants.enumerated() {
            switch self.rooms.fault {
            case .loses(let every) where place == occupants.count - 1 && self.rooms.messages % every == 0: continue
            case .repeats where place == 0: occupant.speaker.say(text + text)
            default: occupant.speaker.say(text)
            }
        }
        if case .putsOut(let after) = self.rooms.fault, self.rooms.messages == after, let last = occupants.last {
            last.speaker.leave()
            last.speaker.say(Self.present("\(room)/\(last.nick)", ["110", "307"], type: " type='unavailable'"))
        }
    }
}
