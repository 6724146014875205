package import NIOCore

/// How long each step of a connect took; the steps do not overlap.
package struct ConnectPhases: Hashable, Sendable {
    /// The wait for a name lookup; `nil` when none was waited for (a literal address, or an answer kept).
    package var dns: TimeAmount?
    /// From the first connect(2) to the connection, over all addresses tried; `nil` when it was not reached.
    package var tcp: TimeAmount?
    /// The TLS handshake; `nil` without TLS, or when it did not get that far.
    package var tls: TimeAmount?
    /// The WebSocket's opening handshake; `nil` without one, or when it did not get that far.
    package var webSocket: TimeAmount?

    package init(dns: TimeAmount? = nil, tcp: TimeAmount? = nil, tls: TimeAmount? = nil, webSocket: TimeAmount? = nil) {
        self.dns = dns
        self.tcp = tcp
        self.tls = tls
        self.webSocket = webSocket
    }
}

/// A connection that is up.
package struct ConnectedChannel {
    package let channel: any Channel
    package let target: Target
    package internal(set) var phases: ConnectPhases
    /// Nothing stands between the client's handler and the socket: what it writes is what goes over the wire.
    package let isBare: Bool
    /// Of a domain's targets it is one where TLS begins at once.
    package internal(set) var isDirectTLS = false

    package init(channel: any Channel, target: Target, phases: ConnectPhases, isBare: Bool = true) {
        self.channel = channel
        self.target = target
        self.phases = phases
        self.isBare = isBare
    }
}
