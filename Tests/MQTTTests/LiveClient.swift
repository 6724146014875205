import LoopContext
import MQTT
import MQTTCodec
import NIOCore
import NIOPosix
import TestSupport
import Transport

/// One client on a real socket, on an event loop of its own, steered from a test.
final class LiveClient: Sendable {
    struct State {
        let context: LoopContext
        let connector: TCPConnector
        let observer: RecordingObserver
        let place: SessionPlace
        let connection: MQTTConnection

        var session: UnsafeMutablePointer<MQTTSession> { self.place.pointer }
    }

    private let group: any EventLoopGroup
    private let eventLoop: any EventLoop
    private let state: NIOLoopBound<State>

    /// With `socketLoop` the client's connection is a socket without a channel.
    init(
        port: Int,
        version: ProtocolVersion,
        readSize: Int = ReceiveBuffer.capacity,
        socketLoop: SocketLoop? = nil,
        layers: @escaping @Sendable (LoopContext) throws -> [any ConnectLayer] = { _ in [] }
    ) async throws {
        self.group = socketLoop ?? MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let loop = self.group.next()
        self.eventLoop = loop
        self.state = try await loop.flatSubmit {
            let context = LoopContext(eventLoop: loop, readSize: readSize)
            socketLoop?.adopt(context)
            let observer = RecordingObserver()
            let place = SessionPlace(SessionOptions(version: version))
            let session = place.pointer
            let connection = MQTTConnection(
                client: 0,
                loop: context,
                session: session,
                observer: observer
            )
            let connector = TCPConnector(
                context: context,
                targets: [Target(host: "127.0.0.1", port: port)],
                layers: (try? layers(context)) ?? []
            )
            let state = State(
                context: context,
                connector: connector,
                observer: observer,
                place: place,
                connection: connection
            )
            let bound = NIOLoopBound(state, eventLoop: loop)
            let promise = loop.makePromise(of: NIOLoopBound<State>.self)
            connector.connect(
                client: 0,
                deadline: loop.now + .seconds(60),
                handler: { connection.makeHandler() },
                done: { result in
                    switch result {
                    case .success(let connected):
                        let connect = session.pointee.connect(
                            clientID: "c",
                            username: nil,
                            password: nil,
                            now: context.refresh()
                        )
                        connection.start(connect, deadline: loop.now + .seconds(60), isBare: connected.isBare)
                        promise.succeed(bound)
                    case .failure(let error): promise.fail(error)
                    }
                }
            )
            return promise.futureResult
        }.get()
    }

    /// Runs `body` on the client's loop.
    func run<Answer: Sendable>(_ body: @escaping @Sendable (State) throws -> Answer) async throws -> Answer {
        let state = self.state
        return try await self.eventLoop.submit { try body(state.value) }.get()
    }

    /// Runs `body` on the client's loop, which has seen nothing of what `meantime` brought about.
    func run<Answer: Sendable>(
        meantime: () async throws -> Void,
        _ body: @escaping @Sendable (State) throws -> Answer
    ) async throws -> Answer {
        let state = self.state
        return try await onHeldLoop(self.eventLoop, meantime: meantime) { try body(state.value) }
    }

    /// Returns when the condition holds, which is looked at whenever the owner hears of something.
    func until(_ condition: @escaping @Sendable (RecordingObserver) -> Bool) async throws {
        let state = self.state
        let loop = self.eventLoop
        try await loop.flatSubmit {
            let promise = loop.makePromise(of: Void.self)
            state.value.observer.wait(promise, until: condition)
            return promise.futureResult
        }.get()
    }

    /// Writes QoS 0 messages of so many bytes together, and says what the kernel has not taken.
    func publish(bytes: Int) async throws -> Int {
        try await self.run { state in
            state.context.refresh()
            let packet = wire(MQTTTests.publish("t", Array(repeating: 7, count: 995)))
            for _ in 0..<(bytes / packet.count) {
                state.connection.append(packet.count) { memory in
                    memory.copyBytes(from: packet)
                    return packet.count
                }
            }
            return state.connection.flush()
        }
    }

    func shutdown() async throws {
        try await self.run { state in
            state.connection.abort()
            state.context.timers.stop()
        }
        try await self.group.shutdownGracefully()
    }
}

/// A session at a place of its own, as in the owner's slab.
final class SessionPlace {
    let pointer = UnsafeMutablePointer<MQTTSession>.allocate(capacity: 1)

    init(_ options: SessionOptions) { self.pointer.initialize(to: MQTTSession(options)) }

    deinit {
        self.pointer.deinitialize(count: 1)
        self.pointer.deallocate()
    }
}

/// Runs `body` with a peer and a client that is connected to it, once with a channel and once with a socket without
/// one; the script goes on behind its CONNACK.
func withLiveClient(
    _ version: ProtocolVersion = .v5,
    readSize: Int = ReceiveBuffer.capacity,
    behindConnack script: [ScriptedPeer.Step],
    _ body: (LiveClient, ScriptedPeer) async throws -> Void
) async throws {
    let connect = Connect(
        version: version,
        clientID: "c",
        cleanStart: true,
        keepAlive: 300,
        username: nil,
        password: nil
    )
    let opening: [ScriptedPeer.Step] = [
        .expect(wire(.connect(connect), version: version)), .send(wire(.connAck(ConnAck()), version: version)),
    ]
    for isSocket in SocketLoop.isAvailable ? [false, true] : [false] {
        let loop = isSocket ? SocketLoop() : nil
        try await withScriptedPeer(opening + script) { peer in
            let client = try await LiveClient(port: peer.port, version: version, readSize: readSize, socketLoop: loop)
            do {
                try await client.until { $0.connack != nil }
                try await body(client, peer)
                try await client.shutdown()
            } catch {
                try? await client.shutdown()
                throw error
            }
        }
    }
}
