package import MQTT

/// Where the clients of a run keep their flows: one for all event loops.
package protocol FlowStore: Sendable {
    /// Makes the changes of many clients, in order and all of them or none.
    ///
    /// - Parameters:
    ///   - parts: by client identifier, what happened to its flows.
    ///   - done: called once, on any thread.
    func commit(
        _ parts: [(client: String, changes: [MQTTStoreChange])],
        done: @escaping @Sendable (Result<Void, any Error>) -> Void
    )
}

/// A store, and what it had when the run began.
package struct KeptFlows: Sendable {
    package let store: any FlowStore
    /// The messages of each client, by its number in the run: the server's, and its own in order.
    ///
    /// No two of its own have the same identifier.
    package let messages: [Int: [MQTTStoredMessage]]

    package init(store: any FlowStore, messages: [Int: [MQTTStoredMessage]] = [:]) {
        self.store = store
        self.messages = messages
    }
}

/// How a store's failure is counted.
package enum StoreFailure {
    /// The kind among the errors of a run: one for each client that the failure ended.
    package static let kind = "store"
    /// The same: one for each client that had ended, and whose last changes are not stored.
    package static let lateKind = "store at the end"
}
