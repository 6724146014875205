import DequeModule
public import MQTTCodec
import NIOCore
import Synchronization

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
    private struct State {
        var messages: Deque<MQTTReceived> = []
        var bytes = 0
        var readers: Deque<(number: UInt64, continuation: CheckedContinuation<MQTTReceived?, Never>)> = []
        /// Readers that were cancelled before they waited.
        var cancelled: Set<UInt64> = []
        var nextReader: UInt64 = 0
        var acknowledgements: [(taken: Taken, reason: ReasonCode)] = []
        var isPaused = false
        var isNotified = false
        var isFinished = false
    }

    private let state = Mutex(State())
    private let limits: MQTTClientLimits
    private let acknowledgesTaken: Bool
    /// Called, on whatever thread, when there is something for ``collect()``; once until that was called.
    private let notify: @Sendable () -> Void

    init(limits: MQTTClientLimits, acknowledgesTaken: Bool, notify: @escaping @Sendable () -> Void) {
        self.limits = limits
        self.acknowledgesTaken = acknowledgesTaken
        self.notify = notify
    }

    /// Messages that nobody has taken.
    var count: Int { self.state.withLock { $0.messages.count } }

    // MARK: The event loop's side

    enum Fill: Hashable {
        case low, full, overfull
    }

    /// Takes a message in, and says how full it is then.
    func put(_ message: MQTTReceived) -> Fill {
        let (reader, fill, notifies) = self.state.withLock { state in
            guard !state.isFinished else {
                return (nil as CheckedContinuation<MQTTReceived?, Never>?, .low as Fill, false)
            }
            if let reader = state.readers.popFirst() {
                let notifies = self.take(message, from: &state)
                return (reader.continuation, .low, notifies)
            }
            state.messages.append(message)
            state.bytes += message.size
            return (nil, self.fill(state), false)
        }
        reader?.resume(returning: message)
        if notifies { self.notify() }
        return fill
    }

    private func fill(_ state: State) -> Fill {
        let (count, bytes) = (state.messages.count, state.bytes)
        let (most, overflows) = self.limits.inboxBytes.multipliedReportingOverflow(by: 8)
        if !overflows, bytes >= most { return .overfull }
        return count >= self.limits.inbox || bytes >= self.limits.inboxBytes ? .full : .low
    }

    /// Whether reading stops now, because it is as full as `limit`, or more.
    ///
    /// Who is told so hears by ``collect()`` when it may go on.
    func pauses(when limit: Fill) -> Bool {
        self.state.withLock { state in
            let fill = self.fill(state)
            state.isPaused = fill == .overfull || fill == .full && limit == .full
            return state.isPaused
        }
    }

    /// What has become due since the last call.
    func collect() -> (acknowledgements: [(taken: Taken, reason: ReasonCode)], resumes: Bool) {
        self.state.withLock { state in
            state.isNotified = false
            defer { state.acknowledgements = [] }
            let resumes = state.isPaused && self.isDrained(state)
            if resumes { state.isPaused = false }
            return (state.acknowledgements, resumes)
        }
    }

    private func isDrained(_ state: State) -> Bool {
        state.messages.count <= self.limits.inbox / 2 && state.bytes <= self.limits.inboxBytes / 2
    }

    /// Takes out what the server will send again: messages at QoS 1 of a session that goes on.
    func removeUnacknowledged() {
        self.state.withLock { state in
            state.messages.removeAll { $0.message.qos == .atLeastOnce }
            state.bytes = state.messages.reduce(0) { $0 + $1.size }
        }
    }

    /// Ends the sequence; what waits is dropped.
    func finish() {
        let readers = self.state.withLock { state in
            state.isFinished = true
            state.messages = []
            state.bytes = 0
            defer { state.readers = [] }
            return state.readers
        }
        for reader in readers { reader.continuation.resume(returning: nil) }
    }

    // MARK: The readers' side

    func next() async -> MQTTReceived? {
        let number = self.state.withLock { state in
            state.nextReader += 1
            return state.nextReader
        }
        let message = await withTaskCancellationHandler {
            await withCheckedContinuation { self.read(number, $0) }
        } onCancel: {
            self.cancel(number)
        }
        // The message may have been faster than the cancellation.
        if Task.isCancelled { self.state.withLock { _ = $0.cancelled.remove(number) } }
        return message
    }

    private func read(_ number: UInt64, _ continuation: CheckedContinuation<MQTTReceived?, Never>) {
        let (answer, notifies) = self.state.withLock { state -> (MQTTReceived??, Bool) in
            if state.cancelled.remove(number) != nil || state.isFinished { return (.some(nil), false) }
            guard let message = state.messages.popFirst() else {
                state.readers.append((number, continuation))
                return (nil, false)
            }
            state.bytes -= message.size
            return (message, self.take(message, from: &state))
        }
        if let answer { continuation.resume(returning: answer) }
        if notifies { self.notify() }
    }

    private func cancel(_ number: UInt64) {
        let reader = self.state.withLock { state -> CheckedContinuation<MQTTReceived?, Never>? in
            if let index = state.readers.firstIndex(where: { $0.number == number }) {
                return state.readers.remove(at: index).continuation
            }
            state.cancelled.insert(number)
            return nil
        }
        reader?.resume(returning: nil)
    }

    /// Notes what a message that was taken makes due, and says whether the loop has to be told.
    private func take(_ message: MQTTReceived, from state: inout State) -> Bool {
        if self.acknowledgesTaken, let id = message.packetID {
            state.acknowledgements.append((message.taken(id), .success))
        } else if !(state.isPaused && self.isDrained(state)) {
            return false
        }
        defer { state.isNotified = true }
        return !state.isNotified
    }

    func acknowledge(_ taken: Taken, _ reason: ReasonCode) {
        let notifies = self.state.withLock { state in
            state.acknowledgements.append((taken, reason))
            defer { state.isNotified = true }
            return !state.isNotified
        }
        if notifies { self.notify() }
    }
}
