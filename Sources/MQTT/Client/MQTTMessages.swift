import LoopContext
public import MQTTCodec

/// A message from the server; members of ``message`` are its members too.
@dynamicMemberLookup
public struct MQTTReceived: Sendable {
    /// The message itself.
    public let message: MQTTMessage
    /// The server's packet identifier for it; `nil` at QoS 0.
    public let packetID: PacketID?
    /// Whether the server marked it as a possible duplicate.
    public let dup: Bool
    let epoch: Int
    let acknowledger: Inbox?

    /// A member of ``message``.
    public subscript<Member>(dynamicMember path: KeyPath<MQTTMessage, Member>) -> Member { self.message[keyPath: path] }

    /// Sends PUBACK or PUBREC, with ``MQTTAcknowledgement/manual``; has no effect otherwise, at QoS 0, or a second
    /// time.
    ///
    /// An unacknowledged message comes again with the next connection, if the server keeps the session.
    ///
    /// - Parameter reason: a reason code of PUBACK (§3.4.2.1); from 0x80 on it rejects the message. MQTT 5 only.
    public func acknowledge(_ reason: ReasonCode = .success) {
        guard let id = self.packetID else { return }
        self.acknowledger?.acknowledge(self.taken(id), reason)
    }

    func taken(_ id: PacketID) -> Taken { Taken(epoch: self.epoch, id: id, qos: self.message.qos) }

    /// Bytes that count towards the limit, including a fixed cost for each message.
    var size: Int { 128 + self.message.topic.utf8.count + self.message.payload.count }
}

/// The messages of a client, over all its connections, in the order in which they came.
///
/// Each message goes to one iterator: tasks that iterate at the same time share the messages. Without an iterator about
/// ``MQTTClientLimits/inbox`` messages wait. Then the client stops reading the socket, including answers, until half of
/// them have been taken. While a call of this client waits for an answer, it keeps reading, up to eight times
/// ``MQTTClientLimits/inboxBytes``. So a task may publish between two messages. An application that subscribes must
/// take the messages.
///
/// The sequence ends when its client is shut down or deallocated, or the iterating task is cancelled. The end of a
/// connection does not end it.
public struct MQTTMessages: AsyncSequence, Sendable {
    let inbox: Inbox

    /// Creates an iterator; only one task may use it at a time.
    public func makeAsyncIterator() -> Iterator { Iterator(inbox: self.inbox) }

    /// Takes messages one at a time.
    public struct Iterator: AsyncIteratorProtocol {
        let inbox: Inbox

        /// The next message; `nil` at the end of the sequence, or if the task is cancelled.
        public mutating func next() async -> MQTTReceived? { await self.inbox.next() }

        /// The next message, for any isolation.
        public mutating func next(isolation: isolated (any Actor)?) async throws(Never) -> MQTTReceived? {
            await self.inbox.next()
        }
    }
}

/// A received message at QoS 1 or 2.
struct Taken: Hashable, Sendable {
    /// The number of the connection at QoS 1, whose messages the server repeats on the next; of the session at QoS 2.
    var epoch: Int
    var id: PacketID
    var qos: QoS
}

/// The queue of messages between the event loop and the tasks that take them.
final class Inbox: Sendable {
    private struct Notes {
        var acknowledgements: [(taken: Taken, reason: ReasonCode)] = []
        var isPaused = false
        var isNotified = false
        var limits: MQTTClientLimits
        var acknowledgesTaken: Bool

        init(_ configuration: MQTTClientConfiguration) {
            self.limits = configuration.limits
            self.acknowledgesTaken = configuration.acknowledgement == .whenTaken
        }

        mutating func acknowledge(_ taken: Taken, _ reason: ReasonCode) {
            self.acknowledgements.append((taken, reason))
        }

        /// Whether the loop must be notified to call ``Inbox/collect()``.
        mutating func notifies() -> Bool {
            defer { self.isNotified = true }
            return !self.isNotified
        }
    }

    private typealias Queue = TakeQueue<MQTTReceived, Notes>

    private let queue: Queue
    /// Called on any thread when ``collect()`` has work; once until `collect()` is called.
    private let notify: @Sendable () -> Void

    init(_ configuration: MQTTClientConfiguration, notify: @escaping @Sendable () -> Void) {
        self.notify = notify
        self.queue = Queue(Notes(configuration)) { message, waiting in
            if waiting.notes.acknowledgesTaken, let id = message.packetID {
                waiting.notes.acknowledge(message.taken(id), .success)
            } else if !(waiting.notes.isPaused && Inbox.isDrained(waiting)) {
                return nil
            }
            return waiting.notes.notifies() ? notify : nil
        }
    }

    // MARK: The event loop's side

    /// Takes the limits of another configuration.
    func adopt(_ configuration: MQTTClientConfiguration) {
        self.queue.withState { waiting in
            waiting.notes.limits = configuration.limits
            waiting.notes.acknowledgesTaken = configuration.acknowledgement == .whenTaken
        }
    }

    enum Fill: Hashable {
        case low, full, overfull
    }

    /// Adds a message, and returns how full the inbox is then.
    func put(_ message: MQTTReceived) -> Fill {
        self.queue.put(message, size: message.size) { self.fill($0) } ?? .low
    }

    private func fill(_ waiting: Queue.State) -> Fill {
        let limits = waiting.notes.limits
        let (most, overflows) = limits.inboxBytes.multipliedReportingOverflow(by: 8)
        if !overflows, waiting.size >= most { return .overfull }
        return waiting.count >= limits.inbox || waiting.size >= limits.inboxBytes ? .full : .low
    }

    /// Whether reading pauses now, because the inbox is at `limit` or above.
    ///
    /// After `true`, a later ``collect()`` says when reading may resume.
    func pauseIfFull(_ limit: Fill) -> Bool {
        self.queue.withState { waiting in
            let fill = self.fill(waiting)
            waiting.notes.isPaused = fill == .overfull || fill == .full && limit == .full
            return waiting.notes.isPaused
        }
    }

    /// The acknowledgements due since the last call, and whether reading resumes.
    func collect() -> (acknowledgements: [(taken: Taken, reason: ReasonCode)], resumes: Bool) {
        self.queue.withState { waiting in
            waiting.notes.isNotified = false
            defer { waiting.notes.acknowledgements = [] }
            let resumes = waiting.notes.isPaused && Self.isDrained(waiting)
            if resumes { waiting.notes.isPaused = false }
            return (waiting.notes.acknowledgements, resumes)
        }
    }

    private static func isDrained(_ waiting: Queue.State) -> Bool {
        let limits = waiting.notes.limits
        return waiting.count <= limits.inbox / 2 && waiting.size <= limits.inboxBytes / 2
    }

    /// Removes messages that the server will send again: messages at QoS 1 of a session that persists.
    func removeUnacknowledged() { self.queue.withState { $0.removeAll { $0.message.qos == .atLeastOnce } } }

    /// Ends the sequence; waiting messages are dropped.
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
