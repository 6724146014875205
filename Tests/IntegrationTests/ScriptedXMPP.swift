import Foundation
import NIOCore
import NIOPosix
import Synchronization

/// An XMPP server that accepts every login, with PLAIN in clear, and then misbehaves as a test requires.
struct ScriptedXMPP: Sendable {
    /// The server's reactions to its clients.
    struct Behaviour: Sendable {
        /// The JID that it binds to a client that asks for this resource.
        var binds: @Sendable (_ resource: String) -> String = { "user1@localhost/\($0)" }
        /// The reply to the sender of message number `count`, from 1 on.
        var answers: @Sendable (_ message: String, _ count: Int) -> String = { message, _ in message }
        /// The reply to answers to the server's own requests.
        var hears: @Sendable (_ iq: String) -> String = { _ in "" }
        /// The count that it acknowledges, of so many stanzas.
        var acknowledges: @Sendable (_ handled: Int) -> Int = { $0 }
        /// Resets the connection after that many messages.
        var resetsBehind = Int.max
    }

    /// The observations of the server.
    final class Facts: Sendable {
        private let most = Mutex(0)

        /// Messages of one read at most.
        var mostInOneRead: Int { self.most.withLock { $0 } }

        fileprivate func note(_ count: Int) { self.most.withLock { $0 = max($0, count) } }
    }

    let port: Int
    let facts: Facts

    static func with<Result>(
        _ behaviour: Behaviour,
        _ body: (ScriptedXMPP) async throws -> Result
    ) async throws -> Result {
        let facts = Facts()
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let server = try await ServerBootstrap(group: group)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(ScriptedStream(behaviour, facts))
                }
            }
            .bind(host: "127.0.0.1", port: 0)
            .get()
        let outcome: Swift.Result<Result, any Error>
        do {
            outcome = .success(try await body(ScriptedXMPP(port: server.localAddress?.port ?? 0, facts: facts)))
        } catch {
            outcome = .failure(error)
        }
        try? await server.close()
        try await group.shutdownGracefully()
        return try outcome.get()
    }
}

private final class ScriptedStream: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let behaviour: ScriptedXMPP.Behaviour
    private let facts: ScriptedXMPP.Facts
    private var text = ""
    private var isIn = false
    private var handled = 0
    private var messages = 0

    init(_ behaviour: ScriptedXMPP.Behaviour, _ facts: ScriptedXMPP.Facts) {
        self.behaviour = behaviour
        self.facts = facts
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let before = self.messages
        self.text += String(buffer: self.unwrapInboundIn(data))
        var answer = ""
        while let element = self.takeElement() { answer += self.answer(to: element) }
        self.facts.note(self.messages - before)
        if self.messages >= self.behaviour.resetsBehind {
            (context.channel as? any SocketOptionProvider)?.setSoLinger(linger(l_onoff: 1, l_linger: 0))
                .whenComplete { _ in }
            return context.close(promise: nil)
        }
        context.writeAndFlush(self.wrapOutboundOut(ByteBuffer(string: answer)), promise: nil)
        if answer.hasSuffix("</stream:stream>") { context.close(promise: nil) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    /// The next thing that is whole: a header, a closing tag, or an element with all in it.
    private func takeElement() -> String? {
        guard let start = self.text.firstIndex(of: "<") else { return nil }
        let rest = self.text[start...]
        guard let close = rest.firstIndex(of: ">") else { return nil }
        let name = rest.dropFirst().prefix { !" />?".contains($0) }
        var end = rest.index(after: close)
        let isWhole = name.isEmpty || name == "stream:stream" || rest[..<end].hasSuffix("/>")
        if !isWhole {
            guard let tag = rest.range(of: "</\(name)>") else { return nil }
            end = tag.upperBound
        }
        defer { self.text = String(rest[end...]) }
        return String(rest[..<end])
    }

    private func answer(to element: String) -> String {
        let name = element.dropFirst().prefix { !" />?".contains($0) }
        switch name {
        case "stream:stream":
            let features =
                self.isIn
                ? "<bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/><sm xmlns='urn:xmpp:sm:3'/>"
                : "<mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>PLAIN</mechanism></mechanisms>"
            return "<?xml version='1.0'?><stream:stream xmlns='jabber:client' "
                + "xmlns:stream='http://etherx.jabber.org/streams' from='localhost' version='1.0' id='\(self.isIn)'>"
                + "<stream:features>\(features)</stream:features>"
        case "auth":
            self.isIn = true
            return "<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>"
        case "enable": return "<enabled xmlns='urn:xmpp:sm:3'/>"
        case "r": return "<a xmlns='urn:xmpp:sm:3' h='\(self.behaviour.acknowledges(self.handled))'/>"
        case "iq": return self.answer(toIQ: element)
        case "message":
            self.handled += 1
            self.messages += 1
            return self.behaviour.answers(element, self.messages)
        case "": return element == "</stream:stream>" ? element : ""
        default: return ""
        }
    }

    private func answer(toIQ iq: String) -> String {
        let id = Self.between("id='", "'", in: iq) ?? Self.between("id=\"", "\"", in: iq) ?? ""
        if iq.contains("urn:ietf:params:xml:ns:xmpp-bind") {
            let jid = self.behaviour.binds(Self.between("<resource>", "</resource>", in: iq) ?? "")
            return
                "<iq type='result' id='\(id)'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><jid>\(jid)</jid></bind></iq>"
        }
        self.handled += 1
        return self.behaviour.hears(iq)
    }

    private static func between(_ start: String, _ end: String, in text: String) -> String? {
        guard let first = text.range(of: start), let last = text[first.upperBound...].range(of: end) else { return nil }
        return String(text[first.upperBound..<last.lowerBound])
    }
}
