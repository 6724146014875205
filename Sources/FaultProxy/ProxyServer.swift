package import FaultInjection
package import NIOCore
package import Transport

/// A proxy that puts faults in front of a server, whatever the two sides speak, on one event loop of its own.
package final class ProxyServer: Sendable {
    /// Bytes of a kernel's receive buffer where `rate` holds back.
    static let receiveBufferAtRate = 65_536

    /// The port that is bound, also where the configuration said 0.
    package let port: Int
    private let loop: ServingLoop<ProxyLoop>

    private init(port: Int, loop: ServingLoop<ProxyLoop>) {
        self.port = port
        self.loop = loop
    }

    /// Binds and serves.
    ///
    /// - Parameter configuration: what to serve, and where.
    /// - Returns: the proxy, which serves until ``stop()``.
    /// - Throws: ``ProxyStartError``; nothing is left running then.
    package static func start(_ configuration: ProxyConfiguration) async throws -> ProxyServer {
        let loop = try await ServingLoop { eventLoop, isWanted in
            ProxyLoop(configuration, eventLoop: eventLoop, isWanted: isWanted)
        }
        do {
            let port = try await loop.bind(
                host: configuration.host,
                port: configuration.port,
                backlog: configuration.backlog,
                receiveBuffer: configuration.faults.rate == nil ? nil : SocketOptionValue(self.receiveBufferAtRate),
                // Nothing is read before the server is there to have it.
                readsAtOnce: false
            ) { loop, channel in try loop.admit(channel) }
            return ProxyServer(port: port, loop: loop)
        } catch {
            await loop.end()
            throw ProxyStartError(host: configuration.host, port: configuration.port, reason: SystemError.words(error))
        }
    }

    package func counters() async -> ProxyCounters { await self.loop.ask { $0.allCounters } ?? ProxyCounters() }

    /// Ends every connection, closes the listener, and gives the last counters.
    @discardableResult
    package func stop() async -> ProxyCounters {
        await self.loop.stop({ $0.shutDown() }, last: { $0.allCounters }) ?? ProxyCounters()
    }
}

/// Why a proxy does not serve: what bind(2) or the resolver said.
package struct ProxyStartError: Error, Hashable, Sendable, CustomStringConvertible {
    package let host: String
    package let port: Int
    package let reason: String

    package var description: String { "cannot listen on \(self.host):\(self.port): \(self.reason)" }
}

package struct ProxyFaults: Hashable, Sendable {
    /// Delays bytes from the server.
    package var delay: TimeAmount?
    /// Every Nth read of a connection.
    package var delayEvery: UInt64 = 1
    /// Bytes a second that each connection may send, and as many that it may get.
    package var rate: Double?
    /// Counted from the first client.
    package var stall: FaultStall?
    /// One connection is closed every so often, round robin over all.
    package var cutEvery: TimeAmount?
    /// One connection is reset every so often, round robin over all.
    package var resetEvery: TimeAmount?
    /// Bytes per write, both ways.
    package var fragment: ClosedRange<Int>?

    package init() {}
}

package struct ProxyConfiguration: Sendable {
    /// A literal address or a name to listen on.
    package var host = "127.0.0.1"
    /// 0 takes a free one, ``ProxyServer/port`` says which.
    package var port = 0
    package var target: Target
    package var faults = ProxyFaults()
    /// Clients at a time, each with two descriptors; more are reset at once.
    package var maximumClients = Int.max
    /// The remedy, printed after the notice that there are too many clients.
    package var maximumClientsRemedy = ""
    /// How long a connection to the server may take.
    package var connectTimeout = TimeAmount.seconds(10)
    /// Connections that the kernel keeps before accept(2); above `net.core.somaxconn` it takes that.
    package var backlog: Int32 = 16_384
    /// Told of clients that were turned away: one line for each reason, on the event loop.
    package var notice: @Sendable (_ line: String) -> Void = { _ in }

    package init(target: Target) { self.target = target }

    /// Bytes of a connection that wait, each way, at which its sender is no longer read.
    ///
    /// The buffer can exceed this by one read of 64 KiB and the kernel's bytes of a closed sender. A delay needs room
    /// for the bytes in flight; without a delay, a receiver that stops reading stops the sender at once.
    var heldLimit: Int {
        if self.faults.delay != nil { return 1 << 20 }
        return self.faults.rate != nil ? 65_536 : 1
    }
}

package struct ProxyCounters: Hashable, Sendable, Codable {
    /// One way's bytes: read = written + discarded, and what waits.
    package struct Bytes: Hashable, Sendable, Codable {
        package var read: UInt64 = 0
        /// The kernel took them.
        package var written: UInt64 = 0
        /// Their receiver was gone, or a fault ended the connection.
        package var discarded: UInt64 = 0
        /// Times that the sender was no longer read because the receiver was slower.
        package var pauses: UInt64 = 0
    }

    /// CLOCK_REALTIME in nanoseconds.
    package struct Stall: Hashable, Sendable, Codable {
        package var begin: Int64
        package var end: Int64
    }

    /// Clients that came, those turned away among them.
    package var connections: UInt64 = 0
    package var clientsNow: UInt64 = 0
    package var clientsMaximum: UInt64 = 0
    /// By the kind of error: `refused`, `timeout`, ...; `limit` for want of descriptors.
    package var turnedAway: [String: UInt64] = [:]
    /// Ends of connections that reached the server, by who or what began it: `client`, `server` (FIN), `clientReset`,
    /// `serverReset` (RST), `cut`, `reset` (injected), `shutdown`.
    package var ends: [String: UInt64] = [:]
    /// Bytes from clients to the server.
    package var up = Bytes()
    /// Bytes from the server to clients.
    package var down = Bytes()
    /// How long the bytes that the delay chose were held.
    package var delayHolds = HoldTimes.Summary()
    /// How much longer they were held than they should have been.
    package var delayLate = HoldTimes.Summary()
    package var stalls: [Stall] = []
}

/// Why a connection ended, see ``ProxyCounters/ends``.
enum ProxyEnd: String {
    case client, server, clientReset, serverReset, cut, reset, shutdown
}
