import NIOCore
import NIOPosix
import XMPP

/// A server on 127.0.0.1 that accepts every login, without TLS, and sends the answers that a test scripts.
final class FakeServer: Sendable {
    /// The answer to an element of a connection, by its number from 0; `nil` leaves it to the server.
    typealias Answer = @Sendable (_ connection: Int, _ element: XMPPElement) -> String?

    private let channel: any Channel
    private let state: NIOLoopBound<State>
    private let group: MultiThreadedEventLoopGroup

    fileprivate final class State {
        var connections: [Connection] = []
        var heard: [(connection: Int, element: XMPPElement)] = []
        var waiting: [(isRight: (State) -> Bool, promise: EventLoopPromise<Void>)] = []

        func wake() {
            let ready = self.waiting.filter { $0.isRight(self) }
            self.waiting.removeAll { $0.isRight(self) }
            for entry in ready { entry.promise.succeed(()) }
        }
    }

    var port: UInt16 { UInt16(self.channel.localAddress?.port ?? 0) }

    private init(_ channel: any Channel, _ state: NIOLoopBound<State>, _ group: MultiThreadedEventLoopGroup) {
        self.channel = channel
        self.state = state
        self.group = group
    }

    /// Runs `body` beside it.
    static func with<Result>(
        features: String = "<sm xmlns='urn:xmpp:sm:3'/>",
        _ answer: @escaping Answer,
        _ body: (FakeServer) async throws -> Result
    ) async throws -> Result {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let loop = group.next()
        let state = try await loop.submit { NIOLoopBound(State(), eventLoop: loop) }.get()
        let channel = try await ServerBootstrap(group: group)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let connection = Connection(state.value, features, answer)
                    try channel.pipeline.syncOperations.addHandler(connection)
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let server = FakeServer(channel, state, group)
        do {
            let result = try await body(server)
            try await channel.close()
            try await group.shutdownGracefully()
            return result
        } catch {
            try? await channel.close()
            try? await group.shutdownGracefully()
            throw error
        }
    }

    var configuration: XMPPClientConfiguration {
        var configuration = XMPPClientConfiguration(jid: "juliet@localhost/balcony", password: "secret")
        configuration.host = "127.0.0.1"
        configuration.port = self.port
        configuration.encryption = .off
        configuration.allowsPlainWithoutTLS = true
        return configuration
    }

    private func run<Answer: Sendable>(_ body: @escaping @Sendable (State) -> Answer) async throws -> Answer {
        let state = self.state
        return try await self.channel.eventLoop.submit { body(state.value) }.get()
    }

    /// Says something on the connection that came last.
    func say(_ text: String) async throws { try await self.run { $0.connections.last?.say(text) } }

    /// Cuts the connection that came last, with what it has in hand.
    func cut() async throws { try await self.run { $0.connections.last?.context?.close(promise: nil) } }

    func setReading(_ reads: Bool) async throws {
        try await self.run { state in
            _ = state.connections.last?.context?.channel.setOption(.autoRead, value: reads)
        }
    }

    /// Elements that came on a connection, but for those of the negotiation.
    func heard(_ connection: Int) async throws -> [XMPPElement] {
        try await self.run { state in state.heard.filter { $0.connection == connection }.map(\.element) }
    }

    /// Returns when so many elements of this name have come, on all connections.
    func until(_ name: String, count: Int = 1) async throws {
        let state = self.state
        let loop = self.channel.eventLoop
        try await loop.flatSubmit {
            let promise = loop.makePromise(of: Void.self)
            state.value.waiting.append(({ $0.heard.count { $0.element.name == name } >= count }, promise))
            state.value.wake()
            return promise.futureResult
        }.get()
    }

    fileprivate final class Connection: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer

        private let state: State
        private let features: String
        private let answer: Answer
        private let number: Int
        private(set) var context: ChannelHandlerContext?
        private var reader = XMPPReader()
        private var headers = 0

        init(_ state: State, _ features: String, _ answer: @escaping Answer) {
            self.state = state
            self.features = features
            self.answer = answer
            self.number = state.connections.count
            state.connections.append(self)
        }

        func handlerAdded(context: ChannelHandlerContext) { self.context = context }
        func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }
        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

        func say(_ text: String) {
            self.context?.writeAndFlush(NIOAny(ByteBuffer(string: text)), promise: nil)
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let bytes = Array(self.unwrapInboundIn(data).readableBytesView)
            var rest = bytes[...]
            while !rest.isEmpty {
                var sink = Sink()
                let taken = rest.withUnsafeBytes { (try? self.reader.read($0, into: &sink)) ?? $0.count }
                rest = rest.dropFirst(taken)
                if sink.isOpened { self.open() }
                if let element = sink.element { self.take(element) }
                if sink.isClosed { self.say("</stream:stream>") }
            }
            self.state.wake()
        }

        private func open() {
            self.headers += 1
            let inner =
                self.headers == 1
                ? "<mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>PLAIN</mechanism></mechanisms>"
                : "<bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/>\(self.features)"
            self.say(
                "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' "
                    + "from='localhost' version='1.0' id='\(self.number)-\(self.headers)'>"
                    + "<stream:features>\(inner)</stream:features>"
            )
        }

        private func take(_ element: XMPPElement) {
            let isBinding = element.child("bind") != nil
            if !isBinding { self.state.heard.append((self.number, element)) }
            if let text = self.answer(self.number, element) { return self.say(text) }
            switch element.name {
            case "auth":
                self.reader.restart()
                self.say("<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>")
            case "iq" where isBinding:
                self.say(
                    "<iq type='result' id='\(element["id"] ?? "")'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>"
                        + "<jid>juliet@localhost/balcony</jid></bind></iq>"
                )
            case "enable": self.say("<enabled xmlns='urn:xmpp:sm:3' id='s\(self.number)' resume='true'/>")
            case "resume": self.say("<resumed xmlns='urn:xmpp:sm:3' previd='\(element["previd"] ?? "")' h='0'/>")
            default: break
            }
        }
    }

    /// One event at a time: behind a login the reader begins anew.
    private struct Sink: XMPPReaderSink {
        var isOpened = false
        var element: XMPPElement?
        var isClosed = false

        mutating func opened(_ header: StreamHeader) -> ReadingGoesOn {
            self.isOpened = true
            return .stop
        }

        mutating func element(_ element: borrowing ElementView) -> ReadingGoesOn {
            self.element = element.element()
            return .stop
        }

        mutating func closed() -> ReadingGoesOn {
            self.isClosed = true
            return .stop
        }
    }
}
