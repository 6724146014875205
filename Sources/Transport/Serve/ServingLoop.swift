package import NIOCore
import NIOPosix
import Synchronization

/// Whether a server goes on, for another thread to say no: a thread that sleeps in a stall hears of nothing else.
package final class ServingFlag: Sendable {
    private let value = Atomic(true)

    package var isSet: Bool { self.value.load(ordering: .relaxed) }
    fileprivate func clear() { self.value.store(false, ordering: .relaxed) }
}

/// An event loop with the server that it runs; accepted connections are served on it.
package final class ServingLoop<Server>: Sendable {
    private let group: MultiThreadedEventLoopGroup
    private let server: NIOLoopBound<Server>
    private let isWanted: ServingFlag
    private let sockets = Mutex<[any Channel]>([])

    /// Starts the loop.
    ///
    /// `make`: called on it.
    package init(_ make: @escaping @Sendable (any EventLoop, _ isWanted: ServingFlag) -> Server) async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let eventLoop = group.next()
        let isWanted = ServingFlag()
        self.group = group
        self.isWanted = isWanted
        self.server = try await eventLoop.submit { NIOLoopBound(make(eventLoop, isWanted), eventLoop: eventLoop) }.get()
    }

    /// Listens at an address.
    ///
    /// - Parameters:
    ///   - host: a literal address or a name.
    ///   - port: 0 takes a free one.
    ///   - backlog: of listen(2).
    ///   - receiveBuffer: bytes of the kernel's buffer of an accepted connection; `nil`: as many as the kernel likes.
    ///   - readsAtOnce: whether a connection is read before it is asked to.
    ///   - admit: takes an accepted connection, which is not active yet.
    /// - Returns: the bound port.
    /// - Throws: what bind(2) or the resolver said.
    package func bind(
        host: String,
        port: Int,
        backlog: Int32,
        receiveBuffer: SocketOptionValue?,
        readsAtOnce: Bool = true,
        admit: @escaping @Sendable (Server, any Channel) throws -> Void
    ) async throws -> Int {
        let server = self.server
        var bootstrap = ServerBootstrap(group: server.eventLoop)
            .serverChannelOption(.backlog, value: backlog)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .serverChannelOption(.maxMessagesPerRead, value: 64)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelOption(.maxMessagesPerRead, value: 1)
            // Requests sent before a FIN are still served, and bytes that the other side still sends come through.
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            // Writable means that at most one byte is pending, so a client's output is written one write at a time.
            .childChannelOption(.writeBufferWaterMark, value: .init(low: 1, high: 1))
            .childChannelOption(.autoRead, value: readsAtOnce)
        if let receiveBuffer {
            // Accepted sockets inherit it.
            bootstrap = bootstrap.serverChannelOption(.socketOption(.so_rcvbuf), value: receiveBuffer)
        }
        let socket =
            try await bootstrap
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try admit(server.value, channel) }
            }
            .bind(host: host, port: port).get()
        self.sockets.withLock { $0.append(socket) }
        return socket.localAddress?.port ?? port
    }

    /// Asks on the loop; `nil` once it has ended.
    @discardableResult
    package func ask<Answer: Sendable>(_ question: @escaping @Sendable (Server) -> Answer) async -> Answer? {
        let server = self.server
        return try? await server.eventLoop.submit { question(server.value) }.get()
    }

    /// Ends the connections by `shutDown`, closes the listeners, and gives a last answer.
    package func stop<Answer: Sendable>(
        _ shutDown: @escaping @Sendable (Server) -> Void,
        last question: @escaping @Sendable (Server) -> Answer
    ) async -> Answer? {
        // Wakes the loop out of a stall.
        self.isWanted.clear()
        for socket in self.sockets.withLock(\.self) { try? await socket.close() }
        await self.ask(shutDown)
        let answer = await self.ask(question)
        await self.end()
        return answer
    }

    package func end() async { try? await self.group.shutdownGracefully() }
}
