import MQTTCodec
package import NIOCore
import Synchronization

/// Keeps messages while the store itself exists: over connections, and over clients that share it.
///
/// ``MQTTClientLimits`` of the clients bound its size.
public final class MQTTMemoryStore: MQTTMessageStore {
    /// One client's messages; each direction has its own order.
    private struct Messages {
        var outbound: [UInt64: Entry] = [:]
        var inbound: [UInt16: Entry] = [:]
    }

    private struct Entry {
        var stored: MQTTStoredMessage
        /// Arrival time, if the message expires.
        let since: NIODeadline?
    }

    private let clients = Mutex<[String: Messages]>([:])

    private let now: @Sendable () -> NIODeadline

    /// An empty store.
    public convenience init() { self.init { .now() } }

    package init(now: @escaping @Sendable () -> NIODeadline) { self.now = now }

    /// All messages of a client, by `sequence`, the server's last.
    ///
    /// An expiry interval is returned as the time that is left.
    public func load(client: String) async -> [MQTTStoredMessage] { self.messages(of: client) }

    /// Makes the changes.
    public func commit(_ changes: [MQTTStoreChange], client: String) async { self.apply(changes, client: client) }

    func messages(of client: String) -> [MQTTStoredMessage] {
        let messages = self.clients.withLock { $0[client] ?? Messages() }
        return self.inOrder(messages.outbound.values) + self.inOrder(messages.inbound.values)
    }

    private func inOrder(_ entries: some Sequence<Entry>) -> [MQTTStoredMessage] {
        let now = self.now()
        let messages = entries.map { entry in
            var stored = entry.stored
            if let since = entry.since, let interval = stored.message.properties.messageExpiryInterval {
                let waited = UInt32(clamping: (now - since).nanoseconds / 1_000_000_000)
                stored.message.properties.messageExpiryInterval = interval - min(interval, waited)
            }
            return stored
        }
        return messages.sorted { $0.sequence < $1.sequence }
    }

    func apply(_ changes: [MQTTStoreChange], client: String) {
        self.clients.withLock { clients in
            var messages = clients.removeValue(forKey: client) ?? Messages()
            for change in changes { self.apply(change, to: &messages) }
            if !messages.outbound.isEmpty || !messages.inbound.isEmpty { clients[client] = messages }
        }
    }

    private func apply(_ change: MQTTStoreChange, to messages: inout Messages) {
        switch change {
        case .insert(let stored):
            let expires = stored.message.properties.messageExpiryInterval != nil
            let entry = Entry(stored: stored, since: expires ? self.now() : nil)
            if case .received(let id) = stored.stage {
                messages.inbound[id.rawValue] = entry
            } else {
                messages.outbound[stored.sequence] = entry
            }
        case .advance(let sequence, let stage): messages.outbound[sequence]?.stored.stage = stage
        case .remove(let sequence): messages.outbound[sequence] = nil
        case .forget(let id): messages.inbound[id.rawValue] = nil
        case .removeAll: messages = Messages()
        }
    }
}
