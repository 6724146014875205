/// One thing that this host allows, against what a load needs of it.
package struct HostCheck: Hashable, Sendable {
    package enum State: String, Hashable, Sendable, Codable {
        case ok
        /// The load runs, but what it measures may be this host.
        case warn
        /// The load cannot run.
        case fail
    }

    package var name: String
    package var state = State.ok
    /// What is here, as the end of a sentence: `this process may have 20,000`.
    package var found: String
    /// What the load wants, as the object of a sentence: `30,014 descriptors`.
    package var needs: String?
    /// Alternatives, each a remedy; empty where the check passes.
    package var remedies: [HostRemedy] = []
    /// What is here and what is needed, where that is a number of the same kind.
    package var available: Double?
    package var needed: Double?
    /// The most clients that this alone allows.
    package var largestClients: Int?

    package init(_ name: String, found: String) {
        self.name = name
        self.found = found
    }

    /// Takes in what is needed and judges it: `state` if it is more than there is.
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
