import LoopContext
import MQTTCodec
import NIOCore

/// Messages at QoS 1 and 2 that wait until the client has another identifier, and their callers.
struct HeldMessages {
    private struct Held {
        let message: MQTTMessage
        let waiter: Waiter<MQTTPublishResult>
        let since: NIODeadline
    }

    private let limits: MQTTClientLimits
    private var all: [Held] = []
    private var bytes = 0

    /// Messages within the limits of the client's next configuration.
    init(_ limits: MQTTClientLimits) { self.limits = limits }

    /// - Returns: whether there is room.
    mutating func add(_ message: MQTTMessage, _ waiter: Waiter<MQTTPublishResult>, now: NIODeadline) -> Bool {
        guard self.all.count < self.limits.messages, self.bytes + message.storedSize <= self.limits.bytes else {
            return false
        }
        self.all.append(Held(message: message, waiter: waiter, since: now))
        self.bytes += message.storedSize
        return true
    }

    mutating func fail(_ error: MQTTClientError) {
        for held in self.all { held.waiter.fail(error) }
        self.all = []
        self.bytes = 0
    }

    func forEach(_ body: (MQTTMessage, Waiter<MQTTPublishResult>, _ since: NIODeadline) -> Void) {
        for held in self.all { body(held.message, held.waiter, held.since) }
    }
}

// Another configuration, and another identity: the change begins with its announcement and ends when the next connect
// adopts it. In between the old connection ends, and the store takes what it is owed.
extension ClientCore {
    func isEarlier(_ identity: Int?) -> Bool { identity.map { $0 < self.identity } ?? false }

    /// Announces another client identifier: every call that waits ends, and later messages wait for the new one.
    func announce(_ new: MQTTClientConfiguration, identity: Int) {
        self.endWaiting()
        self.identity = identity
        self.held = HeldMessages(new.limits)
        self.settle()
    }

    /// Ends every call that waits for a message, and unsent messages if the session does not persist.
    func endWaiting() {
        self.failWaiting(.disconnected)
        guard !self.keepsSession else { return }
        self.dropQueue()
        self.dropsUnsent = self.connection != nil
    }

    /// QoS 0 has no queue: a client of the new identifier is not connected yet.
    func hold(_ message: MQTTMessage, _ waiter: Waiter<MQTTPublishResult>) {
        if message.qos == .atMostOnce {
            waiter.fail(.notConnected)
        } else if self.held?.add(message, waiter, now: self.context.now) == false {
            waiter.fail(.storeFull)
        }
    }

    func releaseHeld() {
        let held = self.held
        self.held = nil
        held?.forEach { self.accept($0, $1, since: $2) }
    }

    /// Removes everything that the store has of a client whose session does not persist.
    func forgetStored() {
        guard !self.keepsSession, case .loaded = self.storeState else { return }
        self.callers = [:]
        self.discarded = []
        self.flows = StoredFlows()
        self.flows.removeAll()
        self.commit()
    }

    /// Takes another configuration, between two connections and with a store that has all changes.
    ///
    /// Messages under way stay, unless the client identifier is another one: they belong to the old one, in the store
    /// too.
    func adopt(_ new: MQTTClientConfiguration) {
        let isOtherClient = new.clientID != self.configuration.clientID
        self.dropConnector()
        self.configuration = new
        self.seed.inbox.adopt(new)
        guard isOtherClient else { return self.session.pointee.adopt(new.sessionOptions) }
        for sequence in self.callers.keys { self.callers[sequence]?.end(.failure(.disconnected)) }
        self.callers = [:]
        self.discarded = []
        self.flows = StoredFlows()
        self.toldOfStore = []
        self.storeState = .unused
        self.unacknowledged = []
        // Messages of the old session can be read, and are not acknowledged.
        self.sessionNumber += 1
        self.clientID = new.clientID
        self.session.pointee = MQTTSession(new.sessionOptions)
    }
}
