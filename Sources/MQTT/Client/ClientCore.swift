import LoopContext
import MQTTCodec
import NIOCore
import Transport

/// A client on its event loop: connection, session, messages in flight and calls that wait.
///
/// Confined to the loop. The session decides and the connection moves bytes; this class keeps the messages and the
/// callers. Exactly one of these ends a waiting call: its answer, its timeout, the end of its connection, `disconnect`,
/// the shutdown.
final class ClientCore: LoopTenant {
    let seed: ClientSeed
    /// The present configuration; a session manager changes it between two connections.
    var configuration: MQTTClientConfiguration
    let home: ClientLoop
    var index = -1
    var connectionTimer: TimerID?
    var clientTimer: TimerID?
    /// The time of the connection's timer; the connection may ask for an earlier one, and is asked again when it fired.
    var connectionTimerAt: NIODeadline?

    let session: UnsafeMutablePointer<MQTTSession>
    var connector: TCPConnector?
    var connectorTarget: Target?
    var connection: MQTTConnection?
    var channel: (any Channel)?
    /// The number of the connection: events of earlier ones are ignored.
    var epoch = 0
    private(set) var state = MQTTClientState.created

    // Connecting and disconnecting.
    var connectWaiter: Waiter<MQTTConnectResult>?
    var connectDeadline = NIODeadline.distantFuture
    /// Between the call of `connect` and the first packet, during the wait for the store or the credentials.
    var isPreparing = false
    /// The call of the application's own transport.
    var transportTask: Task<Void, Never>?
    /// Runs when the store has all changes.
    var whenStored: (() -> Void)?
    var clientID: String
    var disconnectWaiters: [Waiter<Void>] = []
    var disconnectDeadline = NIODeadline.distantFuture

    // Messages of ours.
    /// The flows of our messages and the server's, as far as the store has to know them.
    var flows = StoredFlows()
    /// The callers that wait for our messages, by sequence.
    var callers: [UInt64: Caller] = [:]
    /// Messages whose flows the session ended; the connection's next call says why.
    var discarded: [UInt64] = []
    /// Unsent messages end with the connection too, because of a disconnect that does not keep them.
    var dropsUnsent = false
    /// QoS 0 messages that the kernel has not taken.
    var writing: [Waiter<MQTTPublishResult>] = []

    // Another client identifier.
    /// Grows with each identity that a session manager gives the client.
    ///
    /// Calls of an earlier identity change nothing of this one.
    var identity = 0
    /// Messages for the next identity, from its announcement until it is adopted.
    var held: HeldMessages?

    // Requests.
    var requests: [PacketID: Request] = [:]
    var pings: [Waiter<Duration>] = []

    var reauthentication = Reauthentication()
    /// Raw bytes that wait for the transport, and their callers.
    var rawWaiting: [(bytes: [UInt8], waiter: Waiter<MQTTPublishResult>)] = []

    /// Properties of the answer that is reported next.
    var told: ToldProperties?
    var aliases = ConnectionAliases()

    // Messages of the server's.
    /// Delivered messages that are not acknowledged yet.
    var unacknowledged: Set<Taken> = []
    /// The number of the session: QoS 2 messages of an older one are not acknowledged.
    var sessionNumber = 0
    var isPaused = false

    // The store.
    var storeState = StoreState.unused
    /// Calls with messages that wait until the contents of the store are known.
    var waitingForStore: [Waiter<MQTTPublishResult>] = []
    var isCommitting = false
    /// Store failures that an event has reported and that are not resolved yet.
    var toldOfStore: Set<MQTTStoreChange.Subject> = []

    init(_ seed: ClientSeed) {
        self.seed = seed
        self.configuration = seed.configuration
        self.home = ClientLoop.of(seed.eventLoop)
        self.clientID = seed.configuration.clientID
        self.session = .allocate(capacity: 1)
        self.session.initialize(to: MQTTSession(seed.configuration.sessionOptions))
        self.home.live.begin()
        let place = self.home.tenants.add(self)
        self.index = place.index
        self.connectionTimer = place.timers[0]
        self.clientTimer = place.timers[1]
    }

    deinit {
        self.home.live.end()
        self.session.deinitialize(count: 1)
        self.session.deallocate()
    }

    var context: LoopContext { self.home.context }
    var keepsSession: Bool { !self.configuration.cleanStart }

    func change(to state: MQTTClientState) {
        guard state != self.state else { return }
        self.state = state
        self.seed.states.send(state)
    }

    func tell(_ event: MQTTClientEvent) {
        self.seed.log.tell(event)
        self.seed.events.send(event)
    }

    /// Ends a turn that changed something: commits changes, sends and flushes.
    func settle() {
        self.settleWindow()
        self.pump()
        self.commit()
        self.storeMayBeIdle()
        if let deadline = self.session.pointee.deadline { self.wantsTimer(self.epoch, at: deadline) }
        self.updateTimer()
        self.tell()
    }

    func tell() {
        guard let hook = self.configuration.hooks.buffered else { return }
        let queued = self.flows.queuedCount
        let inFlight = self.flows.flows.count - queued
        hook(MQTTTraffic(queued: queued, flowingIn: self.unacknowledged.count, flowingOut: inFlight))
    }

    // MARK: Time

    func updateTimer() {
        guard let timer = self.clientTimer else { return }
        var next = min(self.disconnectDeadline, self.flows.deadline)
        if self.isPreparing { next = min(next, self.connectDeadline) }
        for request in self.requests.values where !request.isOver { next = min(next, request.deadline) }
        next = min(next, self.reauthentication.deadline)
        if next == .distantFuture {
            self.context.timers.cancel(timer)
        } else {
            self.context.timers.schedule(timer, at: next)
        }
    }

    func timerFired(_ number: Int) {
        if number == 0 { self.connectionTimerFired() } else { self.ownTimerFired() }
    }

    private func ownTimerFired() {
        let now = self.context.now
        if self.isPreparing, now >= self.connectDeadline { self.failConnect(self.lateError) }
        for (id, request) in self.requests where !request.isOver && now >= request.deadline {
            // The identifier stays in use: the answer may still come.
            self.requests[id]?.end(.failure(.timedOut(request.awaited)))
        }
        self.reauthentication.expire(now: now)
        if now >= self.disconnectDeadline {
            self.disconnectDeadline = .distantFuture
            self.connection?.abort()
        }
        if self.flows.timePassed(now: now) { self.settle() } else { self.updateTimer() }
    }

    private func connectionTimerFired() {
        self.connectionTimerAt = nil
        guard let connection = self.connection else { return }
        let now = self.context.now
        if self.isPaused {
            // While the socket is not read, the server's silence means nothing, and PINGRESP cannot arrive.
            self.session.pointee.received(now: now)
            _ = self.session.pointee.pingAnswered(now: now)
        }
        connection.timerFired(now: now)
    }

    // MARK: The end

    /// Releases everything permanently.
    func shutDown() {
        guard let connectionTimer = self.connectionTimer, let clientTimer = self.clientTimer else { return }
        self.connectionTimer = nil
        self.clientTimer = nil
        self.failConnect(.shutDown)
        self.connection?.abort()
        self.change(to: .closed)
        self.failWaiting(.shutDown)
        for waiter in self.disconnectWaiters { waiter.complete(.success(())) }
        self.disconnectWaiters = []
        self.seed.inbox.finish()
        self.seed.states.finish()
        self.seed.events.finish()
        self.dropConnector()
        if case .loading(let waiting) = self.storeState {
            self.storeState = .failed("shut down")
            for call in waiting { call(.shutDown) }
        }
        self.home.tenants.remove(self.index, connectionTimer, clientTimer, of: ClientLoop.all)
    }

    /// Ends every call that waits for a message, sent or not; the messages themselves stay.
    func failWaiting(_ error: MQTTClientError) {
        for sequence in self.callers.keys { self.callers[sequence]?.end(.failure(error)) }
        for waiter in self.waitingForStore { waiter.fail(error) }
        self.waitingForStore = []
        self.held?.fail(error)
    }
}

/// State shared by an ``MQTTClient`` and its core; it crosses threads.
struct ClientSeed: Sendable {
    enum Place {
        case empty
        case live(ClientCore)
        case shutDown
    }

    let configuration: MQTTClientConfiguration
    let store: any MQTTMessageStore
    let eventLoop: any EventLoop
    let place: NIOLoopBoundBox<Place>
    let inbox: Inbox
    let states: Broadcast<MQTTClientState>
    let events: Broadcast<MQTTClientEvent>
    let lookup: NameLookup
    let log: MQTTClientLog

    /// Runs `body` on the loop with the core, which the first call creates; with `nil` after the shutdown.
    func execute(_ body: @escaping @Sendable (ClientCore?) -> Void) {
        self.eventLoop.execute {
            switch self.place.value {
            case .empty:
                let core = ClientCore(self)
                self.place.value = .live(core)
                core.context.refresh()
                body(core)
            case .live(let core):
                core.context.refresh()
                body(core)
            case .shutDown:
                body(nil)
            }
        }
    }

    /// Runs `body` on the loop, with the core if there is one; does not create it.
    func executeWithoutMaking(_ body: @escaping @Sendable (ClientCore?) -> Void) {
        self.eventLoop.execute {
            guard case .live(let core) = self.place.value else { return body(nil) }
            core.context.refresh()
            body(core)
        }
    }

    /// Runs `body` on the loop only if there is a core.
    func executeIfLive(_ body: @escaping @Sendable (ClientCore) -> Void) {
        self.executeWithoutMaking { if let core = $0 { body(core) } }
    }

    func shutDown() {
        self.eventLoop.execute {
            let before = self.place.value
            self.place.value = .shutDown
            guard case .live(let core) = before else {
                self.inbox.finish()
                self.states.finish()
                self.events.finish()
                return
            }
            core.context.refresh()
            core.shutDown()
        }
    }
}

extension MQTTClientConfiguration {
    var sessionOptions: SessionOptions {
        SessionOptions(
            version: self.version,
            cleanStart: self.cleanStart,
            keepAlive: self.keepAlive,
            sessionExpiry: self.sessionExpiry,
            window: min(max(self.limits.window, 1), 65_535),
            ackTimeout: TimeAmount(self.timeouts.acknowledgement),
            pingTimeout: TimeAmount(self.timeouts.ping),
            maximumPacketSize: self.maximumPacketSize.map { Int($0) } ?? PacketDecoder.usualMaximum,
            receiveMaximum: self.receiveMaximum,
            topicAliasMaximum: self.topicAliasMaximum,
            requestsResponseInformation: self.requestsResponseInformation,
            requestsProblemInformation: self.requestsProblemInformation,
            userProperties: self.userProperties,
            dupTimeout: self.repeatsAfter.map { TimeAmount($0) },
            defersReleases: true,
            defersCompletions: !self.cleanStart,
            acknowledgesMessages: .byOwner,
            tellsProperties: true,
            showsPackets: self.hooks.watchesPackets
        )
    }
}
