/// One resource of this host, compared with the load's need.
package struct HostCheck: Hashable, Sendable {
    package enum State: String, Hashable, Sendable, Codable {
        case ok
        /// The load runs, but it may measure this host instead of the server.
        case warn
        /// The load cannot run.
        case fail
    }

    package var name: String
    package var state = State.ok
    /// The available amount, as the end of a sentence: `this process may have 20,000`.
    package var found: String
    /// The load's need, as the object of a sentence: `30,014 descriptors`.
    package var needs: String?
    /// Alternative remedies; empty if none is needed.
    package var remedies: [HostRemedy] = []
    /// The available and the needed amount, if both are numbers of the same kind.
    package var available: Double?
    package var needed: Double?
    /// The most clients that this resource allows.
    package var largestClients: Int?

    package init(_ name: String, found: String) {
        self.name = name
        self.found = found
    }

    /// Sets the need and judges it: the result is `state` if it exceeds the available amount.
    mutating func judge(
        _ needed: Double,
        of available: Double,
        else state: State,
        _ remedies: @autoclosure () -> [HostRemedy]
    ) {
        self.available = available
        self.needed = needed
        guard needed > available else { return }
        self.state = state
        self.remedies = remedies()
    }
}
