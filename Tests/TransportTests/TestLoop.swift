import LoopContext
import NIOCore
import NIOPosix
import TestSupport
import Transport

/// An event loop of its own with a context and a connector on it, driven from a test.
final class TestLoop: Sendable {
    struct State {
        let context: LoopContext
        let connector: TCPConnector
    }

    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let eventLoop: any EventLoop
    private let state: NIOLoopBound<State>

    init(
        targets: [Target],
        readSize: Int = ReceiveBuffer.capacity,
        sources: SourceAddresses = .any,
        layers: @escaping @Sendable (LoopContext) throws -> [any ConnectLayer] = { _ in [] },
        route: @escaping @Sendable (Int) -> Int = { $0 },
        racing: AddressRacing? = nil,
        resolver: @escaping @Sendable (any EventLoop) -> any AddressResolver
    ) async throws {
        let loop = self.group.next()
        self.eventLoop = loop
        self.state = try await loop.submit {
            let context = LoopContext(eventLoop: loop, readSize: readSize)
            let connector = TCPConnector(
                context: context,
                targets: targets,
                sources: sources,
                layers: try layers(context),
                route: route,
                racing: racing,
                resolver: resolver(loop)
            )
            return NIOLoopBound(State(context: context, connector: connector), eventLoop: loop)
        }.get()
    }

    /// Runs `body` on the loop.
    func run<Answer: Sendable>(_ body: @escaping @Sendable (State) throws -> Answer) async throws -> Answer {
        let state = self.state
        return try await self.eventLoop.submit { try body(state.value) }.get()
    }

    /// A connect whose channel records what happens to it.
    func connect(
        client: Int = 0,
        within time: TimeAmount = .seconds(60),
        greeting: [UInt8] = []
    ) async throws -> Result<Connection, ConnectError> {
        let state = self.state
        let loop = self.eventLoop
        return try await loop.flatSubmit {
            let promise = loop.makePromise(of: Result<Connection, ConnectError>.self)
            let context = state.value.context
            let recorder = Recorder(receive: context.receive, greeting: greeting)
            let bound = NIOLoopBound(recorder, eventLoop: loop)
            state.value.connector.connect(
                client: client,
                deadline: loop.now + time,
                handler: { recorder },
                done: { result in
                    recorder.events.append("done")
                    promise.succeed(
                        result.map { connected in
                            guard let channel = connected.channel else { preconditionFailure("no channel") }
                            return Connection(
                                channel: channel,
                                phases: connected.phases,
                                isBare: connected.isBare,
                                recorder: bound
                            )
                        }
                    )
                }
            )
            return promise.futureResult
        }.get()
    }

    func shutdown() async throws {
        try await self.run { state in
            state.connector.cancelAll()
            state.context.timers.stop()
        }
        try await self.group.shutdownGracefully()
    }
}

/// Runs `body` with a loop that connects to `targets`, and shuts it down after.
func withTestLoop<Answer>(
    _ targets: [Target],
    readSize: Int = ReceiveBuffer.capacity,
    sources: SourceAddresses = .any,
    layers: @escaping @Sendable (LoopContext) throws -> [any ConnectLayer] = { _ in [] },
    route: @escaping @Sendable (Int) -> Int = { $0 },
    racing: AddressRacing? = nil,
    lookup: @escaping NameLookup = NameResolver.system,
    resolver: (@Sendable (any EventLoop) -> any AddressResolver)? = nil,
    _ body: (TestLoop) async throws -> Answer
) async throws -> Answer {
    let loop = try await TestLoop(
        targets: targets,
        readSize: readSize,
        sources: sources,
        layers: layers,
        route: route,
        racing: racing,
        resolver: resolver ?? { NameResolver(eventLoop: $0, lookup: lookup) }
    )
    do {
        let answer = try await body(loop)
        try await loop.shutdown()
        return answer
    } catch {
        try? await loop.shutdown()
        throw error
    }
}

struct Connection: Sendable {
    let channel: any Channel
    let phases: ConnectPhases
    let isBare: Bool
    let recorder: NIOLoopBound<Recorder>

    func ask<Answer: Sendable>(_ question: @escaping @Sendable (Recorder) throws -> Answer) async throws -> Answer {
        try await self.channel.eventLoop.submit { try question(self.recorder.value) }.get()
    }

    /// Returns when the condition holds, which is looked at after each event of the channel.
    func until(_ condition: @escaping @Sendable (Recorder) -> Bool) async throws {
        try await self.channel.eventLoop.flatSubmit { self.recorder.value.wait(until: condition) }.get()
    }
}

/// Records the sizes of the reads and the events of a channel, and gives the receive buffer back as a client does.
final class Recorder: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    var events: [String] = []
    var errors: [any Error] = []
    var reads: [Int] = []
    var readTurns = 0
    var bytes: [UInt8] = []
    /// Where each read's bytes lay.
    var places: [Int] = []
    let receive: ReceiveBuffer
    private let greeting: [UInt8]
    private var context: ChannelHandlerContext?
    private var waiting: [(condition: (Recorder) -> Bool, promise: EventLoopPromise<Void>)] = []

    init(receive: ReceiveBuffer, greeting: [UInt8]) {
        self.receive = receive
        self.greeting = greeting
    }

    func wait(until condition: @escaping (Recorder) -> Bool) -> EventLoopFuture<Void> {
        guard let context else { preconditionFailure("the handler is in a pipeline") }
        let promise = context.eventLoop.makePromise(of: Void.self)
        self.waiting.append((condition, promise))
        self.wakeWaiting()
        return promise.futureResult
    }

    private func record(_ event: String, _ context: ChannelHandlerContext) {
        self.events.append(event)
        self.wakeWaiting()
    }

    private func wakeWaiting() {
        let ready = self.waiting.filter { $0.condition(self) }
        self.waiting.removeAll { $0.condition(self) }
        for entry in ready { entry.promise.succeed(()) }
    }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func channelActive(context: ChannelHandlerContext) {
        self.record("active", context)
        if !self.greeting.isEmpty {
            context.writeAndFlush(self.wrapOutboundOut(ByteBuffer(bytes: self.greeting)), promise: nil)
        }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let buffer = self.unwrapInboundIn(data)
        self.reads.append(buffer.readableBytes)
        self.bytes += buffer.readableBytesView
        self.places.append(buffer.withUnsafeReadableBytes { Int(bitPattern: $0.baseAddress) })
        self.receive.give(back: buffer)
        self.wakeWaiting()
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        self.record(context.channel.isWritable ? "writable" : "unwritable", context)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case ChannelEvent.inputClosed = event { self.record("inputClosed", context) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        self.errors.append(error)
        self.record("error", context)
    }

    func channelReadComplete(context: ChannelHandlerContext) { self.readTurns += 1 }

    func channelInactive(context: ChannelHandlerContext) { self.record("inactive", context) }
}
