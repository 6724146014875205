import Foundation
import NIOCore
import NIOPosix

/// One end of a TCP connection, which keeps what comes and how it ended.
final class WireEnd: Sendable {
    enum Ending: Sendable, Hashable {
        case fin
        case rst
    }

    private let channel: any Channel
    private let state: NIOLoopBound<WireState>

    fileprivate init(_ channel: any Channel, _ state: WireState) {
        self.channel = channel
        self.state = NIOLoopBound(state, eventLoop: channel.eventLoop)
    }

    /// Connects.
    ///
    /// - Parameters:
    ///   - port: on 127.0.0.1.
    ///   - receiveBuffer: SO_RCVBUF in bytes, which Linux doubles; `nil`: the kernel adapts it.
    /// - Returns: the connection.
    /// - Throws: what connect(2) failed with.
    static func connect(to port: Int, receiveBuffer: Int? = nil) async throws -> WireEnd {
        var bootstrap = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelOption(.allowRemoteHalfClosure, value: true)
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
        if let receiveBuffer {
            bootstrap = bootstrap.channelOption(.socketOption(.so_rcvbuf), value: SocketOptionValue(receiveBuffer))
        }
        return try await bootstrap.connect(host: "127.0.0.1", port: port) { channel in
            channel.eventLoop.makeCompletedFuture { try WireState.add(to: channel) }
        }
    }

    /// Connects to one who resets: that may come before the connection is seen to be up.
    static func ending(of port: Int) async throws -> Ending? {
        do {
            return try await self.connect(to: port).ending()
        } catch is NIOConnectionError {
            return .rst
        }
    }

    // MARK: Orders

    func send(_ bytes: [UInt8]) async throws { try await self.channel.writeAndFlush(ByteBuffer(bytes: bytes)) }

    /// Hands bytes to the channel, however long they take to go.
    func begin(_ bytes: [UInt8]) { self.channel.writeAndFlush(ByteBuffer(bytes: bytes), promise: nil) }

    func halfClose() async throws { try await self.end(.output) }

    func close() async throws { try await self.end(.all) }

    private func end(_ mode: CloseMode) async throws {
        let (channel, state) = (self.channel, self.state)
        try await channel.eventLoop.flatSubmit {
            state.value.hasEnded = true
            return channel.close(mode: mode)
        }.get()
    }

    func reset() async throws {
        let channel = self.channel
        try await channel.eventLoop.submit {
            // With a linger time of 0 close(2) sends RST.
            (channel as? any SocketOptionProvider)?.setSoLinger(linger(l_onoff: 1, l_linger: 0)).whenComplete { _ in }
            channel.close(promise: nil)
        }.get()
    }

    func setReading(_ isReading: Bool) async throws {
        try await self.channel.setOption(.autoRead, value: isReading).get()
    }

    // MARK: What has come

    var received: [UInt8] {
        get async throws {
            let state = self.state
            return try await self.channel.eventLoop.submit { state.value.received }.get()
        }
    }

    /// Waits for so many bytes, and returns all there are.
    func bytes(_ count: Int) async throws -> [UInt8] {
        try await self.wait { $0.received.count >= count || $0.ending != nil }
        return try await self.received
    }

    func ending() async throws -> Ending? {
        try await self.wait { $0.ending != nil }
        let state = self.state
        return try await self.channel.eventLoop.submit { state.value.ending }.get()
    }

    private func wait(until condition: @escaping @Sendable (WireState) -> Bool) async throws {
        let state = self.state
        try await self.channel.eventLoop.flatSubmit { state.value.wait(until: condition) }.get()
    }
}

/// Accepts connections and gives them out in their order.
final class WireServer: Sendable {
    let port: Int
    private let channel: any Channel
    private let ends: AsyncStream<WireEnd>

    /// Listens on a free port.
    ///
    /// - Parameter answer: what is sent back for bytes that came, and how much later; without one nothing is.
    /// - Throws: what bind(2) failed with.
    init(answer: (@Sendable ([UInt8]) -> (bytes: [UInt8], after: TimeAmount))? = nil) async throws {
        let (stream, continuation) = AsyncStream.makeStream(of: WireEnd.self)
        self.ends = stream
        self.channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    continuation.yield(try WireState.add(to: channel, answer: answer))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        guard let port = self.channel.localAddress?.port else { throw ChannelError.unknownLocalAddress }
        self.port = port
    }

    /// The next connection.
    func accept() async throws -> WireEnd {
        for await end in self.ends { return end }
        throw ChannelError.eof
    }

    func close() async { try? await self.channel.close() }
}

/// Confined to the channel's loop.
private final class WireState: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private(set) var received: [UInt8] = []
    private(set) var ending: WireEnd.Ending?
    /// We have sent our own FIN.
    var hasEnded = false
    private let eventLoop: any EventLoop
    private let answer: (@Sendable ([UInt8]) -> (bytes: [UInt8], after: TimeAmount))?
    private var waiting: [(condition: (WireState) -> Bool, promise: EventLoopPromise<Void>)] = []

    private init(
        _ eventLoop: any EventLoop,
        _ answer: (@Sendable ([UInt8]) -> (bytes: [UInt8], after: TimeAmount))?
    ) {
        self.eventLoop = eventLoop
        self.answer = answer
    }

    static func add(
        to channel: any Channel,
        answer: (@Sendable ([UInt8]) -> (bytes: [UInt8], after: TimeAmount))? = nil
    ) throws -> WireEnd {
        let state = WireState(channel.eventLoop, answer)
        try channel.pipeline.syncOperations.addHandler(state)
        return WireEnd(channel, state)
    }

    func wait(until condition: @escaping (WireState) -> Bool) -> EventLoopFuture<Void> {
        let promise = self.eventLoop.makePromise(of: Void.self)
        self.waiting.append((condition, promise))
        self.changed()
        return promise.futureResult
    }

    private func changed() {
        let ready = self.waiting.filter { $0.condition(self) }
        guard !ready.isEmpty else { return }
        self.waiting.removeAll { $0.condition(self) }
        for entry in ready { entry.promise.succeed(()) }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = Array(self.unwrapInboundIn(data).readableBytesView)
        self.received += bytes
        if let answer = self.answer?(bytes) {
            let channel = context.channel
            context.eventLoop.assumeIsolated().scheduleTask(in: answer.after) {
                channel.writeAndFlush(ByteBuffer(bytes: answer.bytes), promise: nil)
            }
        }
        self.changed()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .inputClosed? = event as? ChannelEvent { self.end(.fin) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if (error as? IOError)?.errnoCode == ECONNRESET { self.end(.rst) }
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        // Behind our own FIN the peer's has no event of its own; a write that fails has none either.
        self.end(self.hasEnded ? .fin : .rst)
    }

    private func end(_ ending: WireEnd.Ending) {
        if self.ending == nil { self.ending = ending }
        self.changed()
    }
}
