import NIOCore
import NIOPosix
import Transport

/// A server on 127.0.0.1 that answers an upgrade as a test scripts it, and keeps the bytes after it.
final class WebSocketPeer: Sendable {
    enum Step: Sendable {
        /// Writes with a single write(2).
        case send([UInt8])
        /// Writes each byte by itself, and waits for it to be taken.
        case trickle([UInt8])
        /// Waits until so many bytes behind the request have come.
        case expectCount(Int)
        /// Shuts the sending side.
        case halfClose
        case close
        /// Closes with RST.
        case reset
    }

    let port: Int
    private let group: MultiThreadedEventLoopGroup
    private let server: any Channel
    private let state: NIOLoopBound<State>

    final class State {
        var requests: [[UInt8]] = []
        var received: [UInt8] = []
        var hasEnded = false
        var waiting: [(condition: (State) -> Bool, promise: EventLoopPromise<Void>)] = []

        func changed() {
            let ready = self.waiting.filter { $0.condition(self) }
            self.waiting.removeAll { $0.condition(self) }
            for entry in ready { entry.promise.succeed(()) }
        }
    }

    /// - Parameter script: what follows a request, from its `Sec-WebSocket-Key`.
    /// - Throws: what bind(2) failed with.
    init(_ script: @escaping @Sendable (_ key: String) -> [Step]) async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let loop = group.next()
        let state = try await loop.submit { NIOLoopBound(State(), eventLoop: loop) }.get()
        self.group = group
        self.state = state
        self.server = try await ServerBootstrap(group: group)
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Handler(script: script, state: state.value))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        self.port = self.server.localAddress?.port ?? 0
    }

    func shutdown() async throws { try await self.group.shutdownGracefully() }

    func ask<Answer: Sendable>(_ question: @escaping @Sendable (State) -> Answer) async throws -> Answer {
        try await self.server.eventLoop.submit { question(self.state.value) }.get()
    }

    func until(_ condition: @escaping @Sendable (State) -> Bool) async throws {
        try await self.server.eventLoop.flatSubmit {
            let promise = self.server.eventLoop.makePromise(of: Void.self)
            self.state.value.waiting.append((condition, promise))
            self.state.value.changed()
            return promise.futureResult
        }.get()
    }

    /// The answer that every client takes.
    static func answer(_ key: String, _ change: (inout [String]) -> Void = { _ in }) -> [UInt8] {
        var lines = [
            "HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade",
            "Sec-WebSocket-Accept: \(WebSocketHandshake.accept(key))", "Sec-WebSocket-Protocol: mqtt",
        ]
        change(&lines)
        return Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
    }

    private final class Handler: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private let script: (String) -> [Step]
        private var steps: ArraySlice<Step> = []
        private var head: [UInt8] = []
        private var isUpgraded = false
        /// Bytes of this connection behind its request.
        private var count = 0
        private let state: State

        init(script: @escaping (String) -> [Step], state: State) {
            self.script = script
            self.state = state
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let bytes = Array(self.unwrapInboundIn(data).readableBytesView)
            if self.isUpgraded {
                self.take(bytes)
            } else {
                self.head += bytes
                guard let head = try? WebSocketHead.read(self.head, start: []) else { return }
                self.isUpgraded = true
                self.state.requests.append(Array(self.head[..<head.size]))
                self.take(Array(self.head[head.size...]))
                self.steps = self.script(head.value("sec-websocket-key") ?? "")[...]
            }
            self.proceed(context)
            self.state.changed()
        }

        private func take(_ bytes: [UInt8]) {
            self.count += bytes.count
            self.state.received += bytes
        }

        private func proceed(_ context: ChannelHandlerContext) {
            while let step = self.steps.first {
                if case .expectCount(let count) = step, self.count < count { return }
                self.steps.removeFirst()
                switch step {
                case .send(let bytes): context.writeAndFlush(NIOAny(ByteBuffer(bytes: bytes)), promise: nil)
                case .trickle(let bytes):
                    for byte in bytes { context.writeAndFlush(NIOAny(ByteBuffer(bytes: [byte])), promise: nil) }
                case .expectCount: break
                case .halfClose: context.close(mode: .output, promise: nil)
                case .close: context.close(promise: nil)
                case .reset:
                    (context.channel as? any SocketOptionProvider)?
                        .setSoLinger(linger(l_onoff: 1, l_linger: 0)).whenComplete { _ in }
                    context.close(promise: nil)
                }
            }
        }

        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            guard case .inputClosed? = event as? ChannelEvent else { return }
            self.state.hasEnded = true
            self.state.changed()
        }

        func channelInactive(context: ChannelHandlerContext) {
            self.state.hasEnded = true
            self.state.changed()
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }
}

/// Runs `body` beside a peer, which is gone after that.
func withWebSocketPeer<Answer>(
    _ script: @escaping @Sendable (_ key: String) -> [WebSocketPeer.Step],
    _ body: (WebSocketPeer) async throws -> Answer
) async throws -> Answer {
    let peer = try await WebSocketPeer(script)
    do {
        let answer = try await body(peer)
        try await peer.shutdown()
        return answer
    } catch {
        try? await peer.shutdown()
        throw error
    }
}
