import Foundation
import LoopContext
import NIOCore
import NIOPosix
import NIOSSL
import TestSupport
import Testing
import Transport

/// A client that asks for TLS on a connection that is in use.
final class StartTLSClient: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    var order: [String] = []
    var clear: [UInt8] = []
    /// Bytes behind the server's word.
    var dropped = 0
    var secured: [UInt8] = []
    private var isSecure = false
    private var hasAsked = false
    private let layer: TLSLayer
    private let target: Target
    private let receive: ReceiveBuffer
    private let header: [UInt8]
    private let ask: [UInt8]
    private let done: (Result<Void, ConnectError.Reason>) -> Void
    private var waiting: [(condition: (StartTLSClient) -> Bool, promise: EventLoopPromise<Void>)] = []

    init(
        _ layer: TLSLayer,
        _ target: Target,
        _ receive: ReceiveBuffer,
        xmpp domain: String?,
        done: @escaping (Result<Void, ConnectError.Reason>) -> Void
    ) {
        self.layer = layer
        self.target = target
        self.receive = receive
        self.header = domain.map { Array(XMPPServer.header(to: $0).utf8) } ?? StartTLSTests.header
        let ask = "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"
        self.ask = domain == nil ? StartTLSTests.ask : Array(ask.utf8)
        self.done = done
    }

    func wait(_ promise: EventLoopPromise<Void>, until condition: @escaping (StartTLSClient) -> Bool) {
        self.waiting.append((condition, promise))
        self.wake()
    }

    private func wake() {
        let ready = self.waiting.filter { $0.condition(self) }
        self.waiting.removeAll { $0.condition(self) }
        for entry in ready { entry.promise.succeed(()) }
    }

    func channelActive(context: ChannelHandlerContext) {
        context.writeAndFlush(self.wrapOutboundOut(ByteBuffer(bytes: self.header)), promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) { self.order.append("inactive") }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let buffer = self.unwrapInboundIn(data)
        let bytes = Array(buffer.readableBytesView)
        if self.isSecure {
            self.secured += bytes
            self.order.append("read")
            return self.wake()
        }
        self.clear += bytes
        let text = String(decoding: self.clear, as: UTF8.self)
        if !self.hasAsked, text.contains("features>") {
            self.hasAsked = true
            context.writeAndFlush(self.wrapOutboundOut(ByteBuffer(bytes: self.ask)), promise: nil)
        }
        if let word = text.range(of: "<proceed"), let end = text[word.upperBound...].firstIndex(of: ">") {
            self.dropped = text[end...].utf8.count - 1
            self.isSecure = true
            self.order.append("proceed")
            self.layer.begin(context.channel, client: 0, target: self.target, position: .before(self)) { result in
                if case .success = result { self.order.append("secure") } else { self.order.append("told") }
                self.done(result)
            }
        }
        self.receive.give(back: buffer)
    }
}

/// The client's side, driven from a test.
final class StartTLSLoop: Sendable {
    struct Outcome: Sendable {
        let failure: TLSFailure?
    }

    private let loop: TestLoop
    private let port: Int
    private let context: TLSContext
    /// Of the stream, if the server speaks XMPP.
    private let xmppDomain: String?
    /// For which the server is asked before TLS.
    private let domain: String
    private let client: NIOLoopBoundBox<StartTLSClient?>
    private let channel: NIOLoopBoundBox<(any Channel)?>

    init(_ loop: TestLoop, _ settings: TLSSettings, port: Int, xmpp domain: String?) throws {
        self.xmppDomain = domain
        self.loop = loop
        self.port = port
        self.context = try TLSContext(settings)
        self.domain = domain ?? settings.xmppDomain ?? "broker.test"
        self.client = NIOLoopBoundBox.makeBoxSendingValue(nil, eventLoop: loop.eventLoop)
        self.channel = NIOLoopBoundBox.makeBoxSendingValue(nil, eventLoop: loop.eventLoop)
    }

    func startTLS() async throws -> Outcome {
        let promise = self.loop.eventLoop.makePromise(of: Outcome.self)
        try await self.loop.run { state in
            let target = Target(host: "127.0.0.1", port: self.port)
            let layer = TLSLayer(self.context, loop: state.context, preamble: .xmpp(domain: self.domain))
            let client = StartTLSClient(layer, target, state.context.receive, xmpp: self.xmppDomain) { result in
                switch result {
                case .success: promise.succeed(Outcome(failure: nil))
                case .failure(.tls(let failure)): promise.succeed(Outcome(failure: failure))
                case .failure(let reason): promise.fail(reason)
                }
            }
            self.client.value = client
            state.connector.connect(client: 0, deadline: .now() + .seconds(60), handler: { client }) { result in
                switch result {
                case .success(let connected): self.channel.value = connected.channel
                case .failure(let error): promise.fail(error)
                }
            }
        }
        return try await promise.futureResult.get()
    }

    func send(_ bytes: [UInt8]) async throws {
        try await self.loop.run { _ in
            self.channel.value?.writeAndFlush(ByteBuffer(bytes: bytes), promise: nil)
        }
    }

    func ask<Answer: Sendable>(_ question: @escaping @Sendable (StartTLSClient) -> Answer) async throws -> Answer {
        try await self.loop.run { _ in question(try #require(self.client.value)) }
    }

    func until(_ condition: @escaping @Sendable (StartTLSClient) -> Bool) async throws {
        let promise = self.loop.eventLoop.makePromise(of: Void.self)
        try await self.loop.run { _ in self.client.value?.wait(promise, until: condition) }
        try await promise.futureResult.get()
    }

    func version() async throws -> String? { try await self.loop.run { _ in self.channel.value?.tlsVersion } }

    func binding() async throws -> [UInt8]? {
        try await self.loop.run { _ in self.channel.value.flatMap { TLSServerEndPoint.data(of: $0) } }
    }
}

/// Runs `body` with a client of a server that speaks XMPP for a domain, or as little of it as ``withStartTLSPeer``.
func withStartTLSLoop<Answer>(
    _ settings: TLSSettings,
    port: Int,
    xmpp domain: String? = nil,
    _ body: (StartTLSLoop) async throws -> Answer
) async throws -> Answer {
    try await withTestLoop([Target(host: "127.0.0.1", port: port)]) { loop in
        try await body(try StartTLSLoop(loop, settings, port: port, xmpp: domain))
    }
}

/// Runs `body` beside a server that offers STARTTLS and echoes in TLS; without settings it hangs up instead.
func withStartTLSPeer<Answer>(
    _ settings: TLSServer?,
    inject: [UInt8] = [],
    injectLater: [UInt8] = [],
    _ body: (Int) async throws -> Answer
) async throws -> Answer {
    let context = try settings?.makeContext()
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let listener = try await ServerBootstrap(group: group)
        .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
        .childChannelInitializer { channel in
            channel.eventLoop.makeCompletedFuture {
                let front = StartTLSFront(context, inject: inject, later: injectLater)
                try channel.pipeline.syncOperations.addHandler(front)
            }
        }
        .bind(host: "127.0.0.1", port: 0).get()
    do {
        let answer = try await body(listener.localAddress?.port ?? 0)
        try await group.shutdownGracefully()
        return answer
    } catch {
        try? await group.shutdownGracefully()
        throw error
    }
}

private final class StartTLSFront: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let context: NIOSSLContext?
    private let inject: [UInt8]
    private let later: [UInt8]
    private var received = ""
    private var isSecure = false

    init(_ context: NIOSSLContext?, inject: [UInt8], later: [UInt8]) {
        self.context = context
        self.inject = inject
        self.later = later
    }

    private func send(_ bytes: [UInt8], _ context: ChannelHandlerContext) {
        context.writeAndFlush(self.wrapOutboundOut(ByteBuffer(bytes: bytes)), promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if self.isSecure {
            // The client's first words in TLS: it has read the answer, and this is another segment.
            return self.later.isEmpty ? context.writeAndFlush(data, promise: nil) : self.send(self.later, context)
        }
        self.received += String(buffer: self.unwrapInboundIn(data))
        if self.received.contains("<stream:stream") {
            self.received = ""
            self.send(Array("<stream:stream><stream:features><starttls/></stream:features>".utf8), context)
        }
        guard self.received.contains("<starttls") else { return }
        self.isSecure = true
        self.send(StartTLSTests.proceed + self.inject, context)
        guard self.later.isEmpty else { return }
        // Its own half only: what a closed socket has not read would make a reset of the end.
        guard let tls = self.context else { return context.close(mode: .output, promise: nil) }
        do {
            try context.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: tls), position: .first)
        } catch {
            context.close(promise: nil)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
