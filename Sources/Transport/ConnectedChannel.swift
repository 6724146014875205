package import NIOCore

/// How long each step of a connect took; the steps do not overlap.
package struct ConnectPhases: Hashable, Sendable {
    /// The wait for a name lookup; `nil` when none was waited for (a literal address, or an answer kept).
    package var dns: TimeAmount?
    /// From the first connect(2) to the connection, over all addresses tried; `nil` when it was not reached.
    package var tcp: TimeAmount?

    package init(dns: TimeAmount? = nil, tcp: TimeAmount? = nil) {
        self.dns = dns
        self.tcp = tcp
    }
}

/// A connection that is up.
package struct ConnectedChannel {
    package let channel: any Channel
    package let target: Target
    package let phases: ConnectPhases

    package init(channel: any Channel, target: Target, phases: ConnectPhases) {
        self.channel = channel
        self.target = target
        self.phases = phases
    }
}
