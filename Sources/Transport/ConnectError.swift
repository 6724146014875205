/// Why a client has no connection.
package struct ConnectError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The step that was open when the deadline came.
    package enum Phase: String, Hashable, Sendable {
        case dns, tcp
    }

    package enum Reason: Hashable, Sendable {
        /// The name has no address; what the resolver said.
        case resolve(String)
        case refused
        case timedOut(Phase)
        case unreachable
        case reset
        /// This host's: no source port is left for the target.
        case localPortsExhausted
        /// This host's: no descriptor is left for a socket.
        case descriptorsExhausted
        /// This host's: the source address given is not its own, or not of the target's family.
        case sourceAddress
        /// The client was given up by its owner.
        case cancelled
        case other(errno: Int32)
    }

    package let reason: Reason
    package let target: Target
    /// What was spent until then.
    package let phases: ConnectPhases

    package init(_ reason: Reason, target: Target, phases: ConnectPhases = ConnectPhases()) {
        self.reason = reason
        self.target = target
        self.phases = phases
    }

    /// The word for it among the kinds of `errors`.
    package var kind: String { "" }

    /// Whether this host is to blame, and not the server.
    package var isLocal: Bool { false }

    /// One line, with host and port.
    package var description: String { "" }
}
