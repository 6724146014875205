package import NIOCore

/// The duration of each step of a connect; the steps do not overlap.
package struct ConnectPhases: Hashable, Sendable {
    /// The wait for a name lookup; `nil` without one (a literal address, or a cached answer).
    package var dns: TimeAmount?
    /// From the first connect(2) to the connection, over all addresses tried; `nil` if it was not reached.
    package var tcp: TimeAmount?
    /// The TLS handshake; `nil` without TLS, or if it was not completed.
    package var tls: TimeAmount?
    /// The WebSocket's opening handshake; `nil` without one, or if it was not completed.
    package var webSocket: TimeAmount?

    package init(dns: TimeAmount? = nil, tcp: TimeAmount? = nil, tls: TimeAmount? = nil, webSocket: TimeAmount? = nil) {
        self.dns = dns
        self.tcp = tcp
        self.tls = tls
        self.webSocket = webSocket
    }
}

/// An open connection.
package struct ConnectedChannel {
    package let channel: any Channel
    package let target: Target
    package internal(set) var phases: ConnectPhases
    /// No layer lies between the client's handler and the socket: the handler's bytes go unchanged over the wire.
    package let isBare: Bool
    /// The channel's socket, if it is known; a lookup costs 2 µs.
    package internal(set) var descriptor: CInt?
    /// The target is one of a domain's targets with direct TLS (TLS from the first byte).
    package internal(set) var isDirectTLS = false

    package init(channel: any Channel, target: Target, phases: ConnectPhases, isBare: Bool = true) {
        self.channel = channel
        self.target = target
        self.phases = phases
        self.isBare = isBare
    }
}
