import NIOCore
import NIOPosix

/// A TCP server on 127.0.0.1 that follows a script with each connection, on an event loop of its own.
///
/// Whatever the script, all bytes that arrive are kept, unless it says ``Step/discard``. After the script the
/// connection stays open and counts on. Connections are numbered from 0, as they come.
package final class ScriptedPeer: Sendable {
    package enum Step: Sendable, Hashable {
        /// Waits for these bytes; others end the script, see ``ScriptedPeer/mismatches()``.
        case expect([UInt8])
        /// Waits for that many bytes, whatever they are.
        case expectCount(Int)
        /// Writes with a single write(2).
        case send([UInt8])
        /// Shuts the sending side.
        case halfClose
        case close
        /// Closes with RST.
        case reset
        /// From now on bytes are counted, not kept.
        case discard
        /// From now on nothing is read.
        case stopReading
        /// Reading goes on.
        case startReading
    }

    package let port: Int
    private let group: MultiThreadedEventLoopGroup
    private let server: any Channel
    private let state: NIOLoopBound<PeerState>

    /// - Parameters:
    ///   - script: what each connection goes through.
    ///   - backlog: of the listening socket.
    /// - Throws: what bind(2) failed with.
    package init(script: [Step] = [], backlog: Int32 = 4_096) async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let loop = group.next()
        self.group = group
        let state = try await loop.submit { NIOLoopBound(PeerState(eventLoop: loop), eventLoop: loop) }.get()
        self.state = state
        self.server = try await ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: backlog)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let handler = PeerConnection(script: script, channel: channel, state: state.value)
                    state.value.connections.append(handler)
                    try channel.pipeline.syncOperations.addHandler(handler)
                }
            }
            .bind(host: "127.0.0.1", port: 0)
            .get()
        guard let port = self.server.localAddress?.port else { throw ChannelError.unknownLocalAddress }
        self.port = port
    }

    /// Closes everything and ends the loop's thread.
    package func shutdown() async throws {
        try? await self.server.close()
        try await self.group.shutdownGracefully()
    }

    // MARK: What has happened

    package func connectionCount() async throws -> Int { try await self.ask { $0.connections.count } }

    /// Bytes that arrived on all connections.
    package func byteCount() async throws -> Int { try await self.ask { $0.byteCount } }

    /// The bytes kept of one connection.
    package func received(_ connection: Int = 0) async throws -> [UInt8] {
        try await self.ask { $0.connections[connection].received }
    }

    /// Unexpected packets, one entry for each script that ended by one.
    package func mismatches() async throws -> [[UInt8]] { try await self.ask { $0.mismatches } }

    /// Returns when so many connections have been accepted, ended ones included.
    package func untilConnections(_ count: Int) async throws { try await self.wait { $0.connections.count >= count } }

    /// Returns when so many bytes have arrived on all connections.
    package func untilBytes(_ count: Int) async throws { try await self.wait { $0.byteCount >= count } }

    /// Returns when a connection's peer has shut its sending side.
    package func untilEnd(of connection: Int = 0) async throws {
        try await self.wait { $0.connections.count > connection && $0.connections[connection].hasEnded }
    }

    /// Returns when a connection has been through its script.
    package func untilScriptDone(_ connection: Int = 0) async throws {
        try await self.wait { $0.connections.count > connection && $0.connections[connection].isScriptDone }
    }

    // MARK: Orders from outside the script

    /// Has a connection go through more steps, after its script.
    package func perform(_ steps: [Step], on connection: Int = 0) async throws {
        try await self.ask { $0.connections[connection].append(steps) }
    }

    package func send(_ bytes: [UInt8], to connection: Int = 0) async throws {
        try await self.perform([.send(bytes)], on: connection)
    }

    package func reset(_ connection: Int = 0) async throws { try await self.perform([.reset], on: connection) }

    package func halfClose(_ connection: Int = 0) async throws { try await self.perform([.halfClose], on: connection) }

    package func startReading(_ connection: Int = 0) async throws {
        try await self.perform([.startReading], on: connection)
    }

    private func ask<Answer: Sendable>(
        _ question: @escaping @Sendable (PeerState) -> Answer
    ) async throws -> Answer {
        let state = self.state
        return try await self.server.eventLoop.submit { question(state.value) }.get()
    }

    private func wait(until condition: @escaping @Sendable (PeerState) -> Bool) async throws {
        let state = self.state
        try await self.server.eventLoop.flatSubmit { state.value.wait(until: condition) }.get()
    }
}

/// Runs `body` with a peer, and shuts the peer down after it.
package func withScriptedPeer<Result>(
    _ script: [ScriptedPeer.Step] = [],
    _ body: (ScriptedPeer) async throws -> Result
) async throws -> Result {
    let peer = try await ScriptedPeer(script: script)
    do {
        let result = try await body(peer)
        try await peer.shutdown()
        return result
    } catch {
        try? await peer.shutdown()
        throw error
    }
}

/// The peer's state for all its connections; confined to its loop.
private final class PeerState {
    let eventLoop: any EventLoop
    var connections: [PeerConnection] = []
    var byteCount = 0
    var mismatches: [[UInt8]] = []
    private var waiting: [(condition: (PeerState) -> Bool, promise: EventLoopPromise<Void>)] = []

    init(eventLoop: any EventLoop) { self.eventLoop = eventLoop }

    func wait(until condition: @escaping (PeerState) -> Bool) -> EventLoopFuture<Void> {
        let promise = self.eventLoop.makePromise(of: Void.self)
        self.waiting.append((condition, promise))
        self.changed()
        return promise.futureResult
    }

    /// Something happened: lets those go who waited for it.
    func changed() {
        let ready = self.waiting.filter { $0.condition(self) }
        guard !ready.isEmpty else { return }
        self.waiting.removeAll { $0.condition(self) }
        for entry in ready { entry.promise.succeed(()) }
    }
}

private final class PeerConnection: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private(set) var received: [UInt8] = []
    private(set) var hasEnded = false
    private var steps: ArraySlice<ScriptedPeer.Step>
    /// Bytes that arrived and no step has taken yet.
    private var untaken = 0
    /// Bytes that steps have taken.
    private var taken = 0
    private var keeps = true
    private let channel: any Channel
    private let state: PeerState

    init(script: [ScriptedPeer.Step], channel: any Channel, state: PeerState) {
        self.steps = script[...]
        self.channel = channel
        self.state = state
    }

    var isScriptDone: Bool { self.steps.isEmpty }

    func append(_ steps: [ScriptedPeer.Step]) {
        self.steps += steps
        self.proceed()
    }

    func channelActive(context: ChannelHandlerContext) { self.proceed() }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = self.unwrapInboundIn(data).readableBytesView
        if self.keeps { self.received += bytes }
        self.untaken += bytes.count
        self.state.byteCount += bytes.count
        self.proceed()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case ChannelEvent.inputClosed = event else { return }
        self.hasEnded = true
        self.state.changed()
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.hasEnded = true
        self.state.changed()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    private func proceed() {
        while let step = self.steps.first, self.perform(step) {
            if !self.steps.isEmpty { self.steps.removeFirst() }
        }
        self.state.changed()
    }

    /// Says whether the step is done; one that waits is tried again.
    private func perform(_ step: ScriptedPeer.Step) -> Bool {
        switch step {
        case .expect(let bytes):
            guard self.untaken >= bytes.count else { return false }
            let came = Array(self.received[self.taken..<(self.taken + bytes.count)])
            if came != bytes {
                self.state.mismatches.append(came)
                self.steps = []
            }
            self.take(bytes.count)
        case .expectCount(let count):
            guard self.untaken >= count else { return false }
            self.take(count)
        case .send(let bytes): self.channel.writeAndFlush(ByteBuffer(bytes: bytes), promise: nil)
        case .halfClose: self.channel.close(mode: .output, promise: nil)
        case .close: self.channel.close(promise: nil)
        case .reset: self.reset()
        case .discard: self.keeps = false
        case .stopReading: try? self.channel.syncOptions?.setOption(.autoRead, value: false)
        case .startReading: try? self.channel.syncOptions?.setOption(.autoRead, value: true)
        }
        return true
    }

    private func take(_ count: Int) {
        self.untaken -= count
        self.taken += count
    }

    private func reset() {
        // With a linger time of 0 close(2) sends RST.
        (self.channel as? any SocketOptionProvider)?.setSoLinger(linger(l_onoff: 1, l_linger: 0)).whenComplete { _ in }
        self.channel.close(promise: nil)
    }
}
