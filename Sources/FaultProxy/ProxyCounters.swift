package import FaultInjection

/// Counters of a proxy since its start.
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
    /// From clients to the server.
    package var up = Bytes()
    /// From the server to clients.
    package var down = Bytes()
    /// How long what `--delay` chose was held.
    package var delayHolds = HoldTimes.Summary()
    /// How much longer than it should have been.
    package var delayLate = HoldTimes.Summary()
    package var stalls: [Stall] = []
}

/// Why a connection ended, see ``ProxyCounters/ends``.
enum ProxyEnd: String {
    case client, server, clientReset, serverReset, cut, reset, shutdown
}
