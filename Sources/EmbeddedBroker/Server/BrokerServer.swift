import FaultInjection
import NIOCore
package import NIOSSL
import Transport

/// A broker that listens on one or more sockets, on an event loop of its own.
package final class BrokerServer: Sendable {
    /// The bound port of plain TCP, also if the configuration said 0.
    package var port: Int { self.listeners[0].port }
    /// All listeners with their bound ports: plain TCP first, then in the configured order.
    package let listeners: [BrokerListener]
    private let sockets: [any Channel]
    private let loop: ServingLoop<BrokerDoors>
    private let isWanted: ServingFlag

    private init(
        listeners: [BrokerListener],
        sockets: [any Channel],
        loop: ServingLoop<BrokerDoors>,
        isWanted: ServingFlag
    ) {
        self.listeners = listeners
        self.sockets = sockets
        self.loop = loop
        self.isWanted = isWanted
    }

    /// The port of the first listener of a kind.
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
        let wanted = [BrokerListener(.tcp, port: configuration.port)] + configuration.listeners
        if tls == nil, let listener = wanted.first(where: { $0.transport.isSecure }) {
            throw BrokerStartError.noTLS(listener)
        }
        let isWanted = ServingFlag()
        let loop = try await ServingLoop { eventLoop in
            BrokerDoors(loop: BrokerLoop(configuration, eventLoop: eventLoop, isWanted: isWanted), tls: tls)
        }
        do {
            var sockets: [any Channel] = []
            for listener in wanted { sockets.append(try await Self.bind(listener, configuration, on: loop)) }
            let bound = zip(wanted, sockets).map { listener, socket in
                var bound = listener
                bound.port = socket.localAddress?.port ?? listener.port
                return bound
            }
            return BrokerServer(listeners: bound, sockets: sockets, loop: loop, isWanted: isWanted)
        } catch {
            await loop.end()
            throw error
        }
    }

    private static func bind(
        _ listener: BrokerListener,
        _ configuration: BrokerConfiguration,
        on loop: ServingLoop<BrokerDoors>
    ) async throws -> any Channel {
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

    /// The current counters.
    package func counters() async -> BrokerCounters { await self.loop.ask { $0.loop.counters } ?? BrokerCounters() }

    /// Wrong credentials by the client's address since the last call.
    package func takeGuesses() async -> [String: UInt64] { await self.loop.ask { $0.loop.broker.takeGuesses() } ?? [:] }

    /// Ends every connection, closes the listener, and returns the final counters.
    @discardableResult
    package func stop() async -> BrokerCounters {
        // Wakes the loop out of a stall.
        self.isWanted.clear()
        for socket in self.sockets { try? await socket.close() }
        await self.loop.ask { $0.loop.shutDown() }
        let counters = await self.counters()
        await self.loop.end()
        return counters
    }
}
