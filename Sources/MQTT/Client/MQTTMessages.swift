import LoopContext
public import MQTTCodec

/// A message as it came from the server; ``message``'s own members are its members too.
@dynamicMemberLookup
public struct MQTTReceived: Sendable {
    /// The message itself.
    public let message: MQTTMessage
    /// The server's identifier for it; `nil` at QoS 0.
    public let packetID: PacketID?
    /// Whether the server said that it may have come before.
    public let dup: Bool
    let epoch: Int
    let acknowledger: Inbox?

    /// What the message holds.
    public subscript<Member>(dynamicMember path: KeyPath<MQTTMessage, Member>) -> Member { self.message[keyPath: path] }

    /// Sends PUBACK or PUBREC, with ``MQTTAcknowledgement/manual``; nothing otherwise, at QoS 0, or a second time.
    ///
    /// A message that is not acknowledged comes again with the next connection, if the server keeps the session.
    ///
    /// - Parameter reason: one of those for PUBACK (§3.4.2.1); from 0x80 on it refuses the message. MQTT 5 only.
    public func acknowledge(_ reason: ReasonCode = .success) {
        guard let id = self.packetID else { return }
        self.acknowledger?.acknowledge(self.taken(id), reason)
    }

    func taken(_ id: PacketID) -> Taken { Taken(epoch: self.epoch, id: id, qos: self.message.qos) }

    /// What it counts towards the limit of bytes: a small one is not free either.
    var size: Int { 128 + self.message.topic.utf8.count + self.message.payload.count }
}

/// The messages of a client, over all its connections, in the order in which they came.
///
/// Each message goes to one iterator: several tasks that iterate share the messages. While nobody iterates messages
/// wait, ``MQTTClientLimits/inbox`` of them or so; then the socket is not read any more, and with it no answer, until
/// half of them have been taken. As long as a call of this client waits for an answer the socket is read on, up to
/// eight times ``MQTTClientLimits/inboxBytes``, so that a task may publish between two messages. Somebody has to take
/// what a client has subscribed to.
///
/// The sequence ends when its client is shut down or let go, or the iterating task is cancelled; not with a connection.
public struct MQTTMessages: AsyncSequence, Sendable {
    let inbox: Inbox

    /// Makes an iterator; it may be used by one task at a time.
    public func makeAsyncIterator() -> Iterator { Iterator(inbox: self.inbox) }

    /// Takes messages, one at a time.
    public struct Iterator: AsyncIteratorProtocol {
        let inbox: Inbox

        /// The next message; `nil` when there is none any more, or the task is cancelled.
        public mutating func next() async -> MQTTReceived? { await self.inbox.next() }

        /// The same, for any isolation.
        public mutating func next(isolation: isolated (any Actor)?) async throws(Never) -> MQTTReceived? {
            await self.inbox.next()
        }
    }
}

/// A message at QoS 1 or 2 that came.
struct Taken: Hashable, Sendable {
    /// The number of the connection at QoS 1, which the server repeats on the next; of the session at QoS 2.
    var epoch: Int
    var id: PacketID
    var qos: QoS
}

/// Where messages wait between the event loop and the tasks that take them.
final class Inbox: Sendable {
    private struct Notes {
        var acknowledgements: [(taken: Taken, reason: ReasonCode)] = []
        var isPaused = false
        var isNotified = false

        mutating func acknowledge(_ taken: Taken, _ reason: ReasonCode) {
            self.acknowledgements.append((taken, reason))
        }

        /// Whether the loop has to be told that there is something for ``Inbox/collect()``.
        mutating func notifies() -> Bool {
            defer { self.isNotified = true }
            return !self.isNotified
        }
    }

    private typealias Queue = TakeQueue<MQTTReceived, Notes>

    private let queue: Queue
    private let limits: MQTTClientLimits
    /// Called, on whatever thread, when there is something for ``collect()``; once until that was called.
    private let notify: @Sendable () -> Void

    init(limits: MQTTClientLimits, acknowledgesTaken: Bool, notify: @escaping @Sendable () -> Void) {
        self.limits = limits
        self.notify = notify
        self.queue = Queue(Notes()) { message, waiting in
            if acknowledgesTaken, let id = message.packetID {
                waiting.notes.acknowledge(message.taken(id), .success)
            } else if !(waiting.notes.isPaused && Inbox.isDrained(waiting, limits)) {
                return nil
            }
            return waiting.notes.notifies() ? notify : nil
        }
    }

    // MARK: The event loop's side

    enum Fill: Hashable {
        case low, full, overfull
    }

    /// Takes a message in, and says how full it is then.
    func put(_ message: MQTTReceived) -> Fill {
        self.queue.put(message, size: message.size) { self.fill($0) } ?? .low
    }

    private func fill(_ waiting: Queue.State) -> Fill {
        let (most, overflows) = self.limits.inboxBytes.multipliedReportingOverflow(by: 8)
        if !overflows, waiting.size >= most { return .overfull }
        return waiting.count >= self.limits.inbox || waiting.size >= self.limits.inboxBytes ? .full : .low
    }

    /// Whether reading stops now, because it is as full as `limit`, or more.
    ///
    /// Who is told so hears by ``collect()`` when it may go on.
    func pauses(when limit: Fill) -> Bool {
        self.queue.withState { waiting in
            let fill = self.fill(waiting)
            waiting.notes.isPaused = fill == .overfull || fill == .full && limit == .full
            return waiting.notes.isPaused
        }
    }

    /// What has become due since the last call.
    func collect() -> (acknowledgements: [(taken: Taken, reason: ReasonCode)], resumes: Bool) {
        self.queue.withState { waiting in
            waiting.notes.isNotified = false
            defer { waiting.notes.acknowledgements = [] }
            let resumes = waiting.notes.isPaused && Self.isDrained(waiting, self.limits)
            if resumes { waiting.notes.isPaused = false }
            return (waiting.notes.acknowledgements, resumes)
        }
    }

    private static func isDrained(_ waiting: Queue.State, _ limits: MQTTClientLimits) -> Bool {
        waiting.count <= limits.inbox / 2 && waiting.size <= limits.inboxBytes / 2
    }

    /// Takes out what the server will send again: messages at QoS 1 of a session that goes on.
    func removeUnacknowledged() {
        self.queue.withState { $0.removeAll { $0.message.qos == .atLeastOnce } }
    }

    /// Ends the sequence; what waits is dropped.
    func finish() {
        self.queue.withState { $0.removeAll { _ in true } }
        self.queue.finish()
    }

    // MARK: The readers' side

    func next() async -> MQTTReceived? { await self.queue.next() }

    func acknowledge(_ taken: Taken, _ reason: ReasonCode) {
        let notifies = self.queue.withState { waiting in
            waiting.notes.acknowledge(taken, reason)
            return waiting.notes.notifies()
        }
        if notifies { self.notify() }
    }
}
