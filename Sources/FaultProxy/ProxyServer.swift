import FaultInjection
import NIOCore
import Transport

/// A proxy that puts faults in front of a server, whatever the two sides speak, on one event loop of its own.
package final class ProxyServer: Sendable {
    /// Bytes of a kernel's receive buffer where `rate` holds back.
    static let receiveBufferAtRate = 65_536

    /// The port that is bound, also where the configuration said 0.
    package let port: Int
    private let socket: any Channel
    private let loop: ServingLoop<ProxyLoop>
    private let isWanted: ServingFlag

    private init(port: Int, socket: any Channel, loop: ServingLoop<ProxyLoop>, isWanted: ServingFlag) {
        self.port = port
        self.socket = socket
        self.loop = loop
        self.isWanted = isWanted
    }

    /// Binds and serves.
    ///
    /// - Parameter configuration: what to serve, and where.
    /// - Returns: the proxy, which serves until ``stop()``.
    /// - Throws: ``ProxyStartError``; nothing is left running then.
    package static func start(_ configuration: ProxyConfiguration) async throws -> ProxyServer {
        let isWanted = ServingFlag()
        let loop = try await ServingLoop { eventLoop in
            ProxyLoop(configuration, eventLoop: eventLoop, isWanted: isWanted)
        }
        do {
            let socket = try await loop.bind(
                host: configuration.host,
                port: configuration.port,
                backlog: configuration.backlog,
                receiveBuffer: configuration.faults.rate == nil ? nil : SocketOptionValue(self.receiveBufferAtRate),
                // Nothing is read before the server is there to have it.
                readsAtOnce: false
            ) { loop, channel in try loop.admit(channel) }
            let port = socket.localAddress?.port ?? configuration.port
            return ProxyServer(port: port, socket: socket, loop: loop, isWanted: isWanted)
        } catch {
            await loop.end()
            throw ProxyStartError(host: configuration.host, port: configuration.port, reason: SystemError.words(error))
        }
    }

    /// The counters as they stand now.
    package func counters() async -> ProxyCounters { await self.loop.ask { $0.allCounters } ?? ProxyCounters() }

    /// Ends every connection, closes the listener, and gives the last counters.
    @discardableResult
    package func stop() async -> ProxyCounters {
        // Wakes the loop out of a stall.
        self.isWanted.clear()
        try? await self.socket.close()
        await self.loop.ask { $0.shutDown() }
        let counters = await self.counters()
        await self.loop.end()
        return counters
    }
}

/// Why a proxy does not serve: what bind(2) or the resolver said.
package struct ProxyStartError: Error, Hashable, Sendable, CustomStringConvertible {
    package let host: String
    package let port: Int
    package let reason: String

    package var description: String { "cannot listen on \(self.host):\(self.port): \(self.reason)" }
}
