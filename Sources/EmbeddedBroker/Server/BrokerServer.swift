import LoopContext
import NIOCore
package import NIOSSL
import Transport

/// A broker that listens on one or more sockets, on an event loop of its own.
package final class BrokerServer: Sendable {
    /// The bound port of plain TCP, also if the configuration said 0.
    package var port: Int { self.listeners[0].port }
    /// All listeners with their bound ports: plain TCP first, then in the configured order.
    package let listeners: [BrokerListener]
    private let loop: ServingLoop<BrokerDoors>

    private init(listeners: [BrokerListener], loop: ServingLoop<BrokerDoors>) {
        self.listeners = listeners
        self.loop = loop
    }

    package func port(of transport: BrokerListener.Transport) -> Int? {
        self.listeners.first { $0.transport == transport }?.port
    }

    /// Binds and serves.
    ///
    /// - Parameters:
    ///   - configuration: the settings and addresses.
    ///   - tls: the context of all TLS listeners.
    /// - Returns: the broker, which serves until ``stop()``.
    /// - Throws: ``BrokerStartError``; nothing keeps running then.
    package static func start(
        _ configuration: BrokerConfiguration,
        tls: NIOSSLContext? = nil
    ) async throws -> BrokerServer {
        var listeners = [BrokerListener(.tcp, port: configuration.port)] + configuration.listeners
        if tls == nil, let listener = listeners.first(where: { $0.transport.isSecure }) {
            throw BrokerStartError.noTLS(listener)
        }
        let loop = try await ServingLoop { eventLoop, isWanted in
            BrokerDoors(loop: BrokerLoop(configuration, eventLoop: eventLoop, isWanted: isWanted), tls: tls)
        }
        do {
            for index in listeners.indices {
                listeners[index].port = try await Self.bind(listeners[index], configuration, on: loop)
            }
            return BrokerServer(listeners: listeners, loop: loop)
        } catch {
            await loop.end()
            throw error
        }
    }

    private static func bind(
        _ listener: BrokerListener,
        _ configuration: BrokerConfiguration,
        on loop: ServingLoop<BrokerDoors>
    ) async throws -> Int {
        let host = listener.host ?? configuration.host
        do {
            return try await loop.bind(
                host: host,
                port: listener.port,
                backlog: configuration.backlog,
                // A large buffer would absorb bytes that a slow broker does not read.
                receiveBuffer: configuration.faults.maximumRate == nil ? nil : 8_192
            ) { doors, channel in try doors.admit(channel, by: listener.transport) }
        } catch {
            throw BrokerStartError.cannotListen(listener, host: host, error)
        }
    }

    package func counters() async -> BrokerCounters { await self.loop.ask { $0.loop.counters } ?? BrokerCounters() }

    /// Wrong credentials by the client's address since the last call.
    package func takeGuesses() async -> [String: UInt64] { await self.loop.ask { $0.loop.broker.takeGuesses() } ?? [:] }

    /// Ends every connection, closes the listener, and returns the final counters.
    @discardableResult
    package func stop() async -> BrokerCounters {
        await self.loop.stop({ $0.loop.shutDown() }, last: { $0.loop.counters }) ?? BrokerCounters()
    }
}

/// Assembles the channel handlers of an accepted connection.
///
/// Confined to the broker's event loop.
final class BrokerDoors {
    let loop: BrokerLoop
    private let tls: NIOSSLContext?
    private let webSockets: WebSocketBuffers

    init(loop: BrokerLoop, tls: NIOSSLContext?) {
        self.loop = loop
        self.tls = tls
        self.webSockets = WebSocketBuffers(receive: loop.context.receive)
    }

    func admit(_ channel: any Channel, by transport: BrokerListener.Transport) throws {
        let pipeline = channel.pipeline.syncOperations
        guard transport != .tcp else {
            try channel.syncOptions?.setOption(.recvAllocator, value: self.loop.context.receive.makeAllocator())
            if let reader = self.makeProxyReader() { try pipeline.addHandler(reader) }
            return try pipeline.addHandler(BrokerLink(loop: self.loop, door: nil))
        }
        let door = SocketDoor()
        try pipeline.addHandler(door)
        if let reader = self.makeProxyReader() { try pipeline.addHandler(reader) }
        if transport.isSecure, let tls = self.tls {
            // TLS keeps the buffer it gets, so the loop's buffer would be reallocated for each read.
            let sizes = AdaptiveRecvByteBufferAllocator(minimum: 64, initial: 512, maximum: 16_384)
            try channel.syncOptions?.setOption(.recvAllocator, value: sizes)
            try pipeline.addHandler(NIOSSLServerHandler(context: tls))
        } else {
            try channel.syncOptions?.setOption(.recvAllocator, value: self.loop.context.receive.makeAllocator())
        }
        if transport.isWebSocket {
            try pipeline.addHandler(
                WebSocketHandler(server: self.loop.configuration.webSocket, buffers: self.webSockets)
            )
        }
        try pipeline.addHandler(BrokerLink(loop: self.loop, door: door))
    }

    private func makeProxyReader() -> ProxyHeaderHandler? {
        guard self.loop.configuration.readsProxyHeader else { return nil }
        let loop = self.loop
        return ProxyHeaderHandler(deadline: loop.configuration.connectDeadline, receive: loop.context.receive) {
            switch $0 {
            case .read(let header): loop.broker.proxied(from: header.addresses?.source.ipAddress)
            case .refused, .missing: loop.broker.proxyRefused()
            }
        }
    }
}

/// Sits next to the socket, so that a connection can be ended past all other handlers.
final class SocketDoor: ChannelOutboundHandler {
    typealias OutboundIn = ByteBuffer

    private(set) var context: ChannelHandlerContext?

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }
    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }
}
