package import Ledger
import Synchronization

/// News of a receiver for the publishers of all event loops.
package struct PresenceNews: Hashable, Sendable {
    package var receiver: UInt32
    package var visit: UInt64
    package var event: PresenceMark.Event
    /// The receiver is a share group, and the news are of one member.
    package var isMember = false
}

/// Tells all event loops of a run when a receiver comes or goes, and what the server has stored.
package final class DeliveryHub: Sendable {
    let retained = Mutex(RetainedTopics())
    /// By the place of the group whose clients asked.
    let replies = Mutex<[Int: OwedReplies]>([:])
    private let listeners = Mutex<[@Sendable (PresenceNews) -> Void]>([])

    package init() {}

    /// Adds a loop; before the load begins.
    package func add(_ listener: @escaping @Sendable (PresenceNews) -> Void) {
        self.listeners.withLock { $0.append(listener) }
    }

    package func tell(_ news: PresenceNews) {
        for listener in self.listeners.withLock({ $0 }) { listener(news) }
    }
}
