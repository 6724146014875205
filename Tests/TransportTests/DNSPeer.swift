import NIOCore
import NIOPosix
import TestSupport
import Transport

/// A name server on 127.0.0.1, over UDP and TCP at one port, that answers as a test tells it.
final class DNSPeer: Sendable {
    struct Query: Sendable, Hashable {
        let id: Int
        let name: String
        let kind: Int
        let isTCP: Bool
        /// From 0, over all questions.
        let number: Int
    }

    /// Datagrams, or messages over TCP, that go back.
    typealias Script = @Sendable (Query) -> [[UInt8]]

    let port: Int
    var address: SocketAddress { get throws { try SocketAddress(ipAddress: "127.0.0.1", port: self.port) } }
    private let group: MultiThreadedEventLoopGroup
    private let state: NIOLoopBound<State>

    final class State {
        var queries: [Query] = []
    }

    init(_ script: @escaping Script) async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let loop = group.next()
        self.group = group
        let state = try await loop.submit { NIOLoopBound(State(), eventLoop: loop) }.get()
        self.state = state
        while true {
            let datagrams = try await DatagramBootstrap(group: group)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(DatagramHandler(script, state.value))
                    }
                }
                .bind(host: "127.0.0.1", port: 0).get()
            let port = datagrams.localAddress?.port ?? 0
            let listener = try? await ServerBootstrap(group: group)
                .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(StreamHandler(script, state.value))
                    }
                }
                .bind(host: "127.0.0.1", port: port).get()
            // Another process may have the port over TCP.
            guard listener != nil else {
                try await datagrams.close()
                continue
            }
            self.port = port
            return
        }
    }

    func queries() async throws -> [Query] {
        let state = self.state
        return try await self.group.next().submit { state.value.queries }.get()
    }

    func shutdown() async throws { try await self.group.shutdownGracefully() }

    fileprivate static func read(_ bytes: [UInt8], isTCP: Bool, _ state: State) -> Query? {
        guard bytes.count > 16 else { return nil }
        var labels: [String] = []
        var place = 12
        while place < bytes.count, bytes[place] != 0 {
            let length = Int(bytes[place])
            labels.append(String(decoding: bytes[(place + 1)..<(place + 1 + length)], as: UTF8.self))
            place += 1 + length
        }
        let query = Query(
            id: Int(bytes[0]) << 8 | Int(bytes[1]),
            name: labels.joined(separator: "."),
            kind: Int(bytes[place + 1]) << 8 | Int(bytes[place + 2]),
            isTCP: isTCP,
            number: state.queries.count
        )
        state.queries.append(query)
        return query
    }

    private final class DatagramHandler: ChannelInboundHandler {
        typealias InboundIn = AddressedEnvelope<ByteBuffer>
        private let script: Script
        private let state: State

        init(_ script: @escaping Script, _ state: State) {
            self.script = script
            self.state = state
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let envelope = self.unwrapInboundIn(data)
            let bytes = Array(envelope.data.readableBytesView)
            guard let query = DNSPeer.read(bytes, isTCP: false, self.state) else { return }
            for answer in self.script(query) {
                let reply = AddressedEnvelope(remoteAddress: envelope.remoteAddress, data: ByteBuffer(bytes: answer))
                context.writeAndFlush(NIOAny(reply), promise: nil)
            }
        }
    }

    private final class StreamHandler: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private let script: Script
        private let state: State
        private var received: [UInt8] = []

        init(_ script: @escaping Script, _ state: State) {
            self.script = script
            self.state = state
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            self.received += self.unwrapInboundIn(data).readableBytesView
            guard self.received.count >= 2 else { return }
            let length = Int(self.received[0]) << 8 | Int(self.received[1])
            guard self.received.count >= 2 + length else { return }
            guard let query = DNSPeer.read(Array(self.received[2...]), isTCP: true, self.state) else { return }
            let answers = self.script(query)
            for answer in answers {
                // Cut, as TCP may cut it.
                for piece in (DNSBytes.short(answer.count) + answer).pieces(of: 7) {
                    context.writeAndFlush(NIOAny(ByteBuffer(bytes: piece)), promise: nil)
                }
            }
            if answers.isEmpty { context.close(promise: nil) }
        }
    }
}

/// Runs `body` beside a name server, and shuts it down after.
func withDNSPeer<Answer>(
    _ script: @escaping DNSPeer.Script,
    _ body: (DNSPeer) async throws -> Answer
) async throws -> Answer {
    let peer = try await DNSPeer(script)
    do {
        let answer = try await body(peer)
        try await peer.shutdown()
        return answer
    } catch {
        try? await peer.shutdown()
        throw error
    }
}

/// An event loop with a client of the DNS on it.
final class DNSLoop: Sendable {
    private let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    private let client: NIOLoopBound<DNSClient>

    init(_ servers: [SocketAddress]) async throws {
        let loop = self.group.next()
        self.client = try await loop.submit {
            NIOLoopBound(DNSClient(eventLoop: loop, servers: servers), eventLoop: loop)
        }.get()
    }

    /// Asks, and says that it is so much later.
    func ask(_ question: DNSQuestion, in time: TimeAmount = .zero) async throws -> DNSOutcome {
        let loop = self.group.next()
        let client = self.client
        return try await loop.flatSubmit {
            let promise = loop.makePromise(of: DNSOutcome.self)
            if let known = client.value.ask(question, now: .now() + time, completion: { promise.succeed($0) }) {
                promise.succeed(known)
            }
            return promise.futureResult
        }.get()
    }

    func resolve(
        _ host: String,
        _ preference: AddressPreference = .ipv4First
    ) async throws -> Result<[SocketAddress], LookupFailure> {
        let loop = self.group.next()
        let client = self.client
        return try await loop.flatSubmit {
            let promise = loop.makePromise(of: Result<[SocketAddress], LookupFailure>.self)
            if let known = client.value.resolve(host, preference, now: .now(), completion: { promise.succeed($0) }) {
                promise.succeed(known)
            }
            return promise.futureResult
        }.get()
    }

    func questions() async throws -> Int {
        let client = self.client
        return try await self.group.next().submit { client.value.questions }.get()
    }

    func shutdown() async throws { try await self.group.shutdownGracefully() }
}

/// Runs `body` with a client of these name servers.
func withDNSLoop<Answer>(_ servers: [SocketAddress], _ body: (DNSLoop) async throws -> Answer) async throws -> Answer {
    let loop = try await DNSLoop(servers)
    do {
        let answer = try await body(loop)
        try await loop.shutdown()
        return answer
    } catch {
        try? await loop.shutdown()
        throw error
    }
}
