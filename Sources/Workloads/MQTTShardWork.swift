import CPosix
package import LoadEngine
import LoopContext
package import MQTT
package import MQTTCodec
package import Measurement
package import NIOCore
package import Transport

/// The MQTT clients of one event loop: they connect, publish, subscribe and come back when told to, and write down
/// what each of them saw.
///
/// Confined to its loop. A client is a row of the slab here, its session, its tally of 64 bytes, and its connection
/// while it has one.
package final class MQTTShardWork: ShardWork, MQTTConnectionObserver {
    package typealias Sample = MQTTSample

    enum Stage: UInt8 {
        case idle
        case connecting
        case up
        /// Between two connections.
        case waiting
        /// Everything that was to come has come; the peer still has to say so.
        case flushing
        case finishing
        case finished
    }

    struct Client {
        /// Its channel owns it; it is let go of before the channel does, see ``MQTTConnectionObserver/ended(_:_:now:)``.
        unowned(unsafe) var connection: MQTTConnection?
        var stage = Stage.idle
        /// Of what it publishes.
        var qos = QoS.atMostOnce
        var timer: TimerID
        var timerAt = NIODeadline.distantFuture
        var attempts: Int32 = 0
        var reconnects: Int32 = 0
        /// When the connect was begun, and when TCP was up.
        var begun = NIODeadline.distantPast
        var tcpUp = NIODeadline.distantPast
        var subscribeSent = NIODeadline.distantPast
        /// The next message's sequence.
        var sequence: UInt64 = 0
        /// The first sequence of this connection: what QoS 0 confirms at its end.
        var connectionFirst: UInt64 = 0
        /// Messages in the channel of which the kernel has not taken the first byte, and their size.
        var unsent: Int32 = 0
        var lastSize: Int32 = 0
        /// Where they end in the connection's stream: acknowledgements may follow them.
        var batchEnd: UInt64 = 0
        /// Those that a closing connection never sent: the last ones.
        var lost: Int32 = 0
        /// Sequences of unknown fate; most clients have none.
        var unknown = SequenceRanges()
        /// Publishes acknowledged or confirmed.
        var known: UInt64 = 0
        var subscription: Int32 = -1
        /// A SUBACK granted what it asked for: from then on the run holds its subscription.
        var hasSubscribed = false
        /// Counted among the live ones.
        var isLive = false
    }

    let load: MQTTLoad
    let metrics: MQTTMetrics
    let context: LoopContext
    /// The shard owns this, and lives as long.
    unowned(unsafe) let shard: Shard<MQTTShardWork>
    /// Those of the shard.
    let places: ShardClients
    let meter: LoopMeter
    let connector: any ClientConnector
    let clients: UnsafeMutableBufferPointer<Client>
    let sessions: UnsafeMutablePointer<MQTTSession>
    let tallies: UnsafeMutableBufferPointer<ClientTally>
    // Behind pointers, since exclusivity checks of a class's property cost as much as a message.
    let writer: UnsafeMutablePointer<MessageWriter>
    let ledger: UnsafeMutablePointer<SubscriberLedger>
    /// By QoS: what is recorded of a publish.
    let publishes: UnsafeMutablePointer<MQTTMetrics.Publish>
    /// By QoS: what is recorded of a message that came.
    let arrivals: UnsafeMutablePointer<MQTTMetrics.Arrival>
    /// Messages of one write at most, by their size.
    let largestBatch: Int
    /// The same at QoS 0, as the load has it.
    let messagesPerWrite: Int
    var members: ShareMembers
    var books = PerQoS(repeating: PublishBook())
    var probe: DecodeProbe
    var received = DeliveryBalance()
    /// The run that `sub` alone follows.
    var followedRun: UInt32?
    /// Of the client whose read is being decoded.
    var roomBeforeRead = 0
    /// The measured phase, as it was when the last read began.
    var measured = NIODeadline.distantFuture..<NIODeadline.distantFuture
    /// Told of the first SUBACK of each subscription, if publishers may have begun already: every shard has to note
    /// how far its publishers are, see ``noteEarly(_:)``.
    package var subscriptionBegan: ((_ subscription: UInt32) -> Void)?
    private(set) var earlySubscriptions: [EarlySubscription] = []
    private var timerOwner: TimerOwner?
    private var lastCPU: Int64 = 0
    private var lastDecodeBytes: UInt64 = 0
    private var lastSample: NIODeadline
    private var recycled: LoopSample?
    /// Connections that are up, counted here; the shard counts too, and they have to agree.
    private var live = 0

    package init(
        _ load: MQTTLoad,
        metrics: MQTTMetrics,
        shard: Shard<MQTTShardWork>,
        connector: any ClientConnector
    ) {
        self.load = load
        self.metrics = metrics
        self.context = shard.context
        self.shard = shard
        self.places = shard.clients
        self.meter = LoopMeter(catalog: metrics.catalog, loop: shard.clients.index)
        self.connector = connector
        let count = shard.clients.count
        self.clients = .allocate(capacity: count)
        self.sessions = .allocate(capacity: max(1, count))
        self.tallies = .allocate(capacity: count)
        self.tallies.initialize(repeating: ClientTally())
        self.writer = .allocate(capacity: 1)
        self.writer.initialize(
            to: MessageWriter(load, seed: load.seed &+ UInt64(shard.clients.index) &* 0x9E37_79B9)
        )
        let publishers = load.publishers > 0 ? UInt32(load.publishers) : nil
        self.ledger = .allocate(capacity: 1)
        self.ledger.initialize(to: SubscriberLedger(publishers: publishers))
        self.publishes = metrics.makePublishTable()
        self.arrivals = metrics.makeArrivalTable()
        let most = load.isOpenLoop ? Self.largestJoined : load.batch
        self.largestBatch = max(1, Self.largestWrite / max(1, load.payloadBytes))
        self.messagesPerWrite = min(most, self.largestBatch)
        self.members = ShareMembers(publishers: publishers)
        self.probe = DecodeProbe(clients: count, version: load.version)
        self.lastSample = shard.context.now
        let owner = shard.context.timers.addOwner { [unowned self] _, place in self.timerFired(Int(place)) }
        self.timerOwner = owner
        for place in 0..<count {
            let options = shard.clients.isOperator(place) ? load.publisherSession : load.subscriberSession
            (self.sessions + place).initialize(to: MQTTSession(options))
            let timer = shard.context.timers.register(owner, tag: Int32(place))
            (self.clients.baseAddress.map { $0 + place })?.initialize(to: Client(timer: timer))
            if shard.clients.isOperator(place) {
                self.clients[place].qos = load.qos(ofPublisher: shard.clients.number(at: place))
            }
        }
        self.addSubscriptions()
        self.lastCPU = clamor_thread_cpu_nanoseconds()
    }

    deinit {
        self.clients.deinitialize()
        self.clients.deallocate()
        self.sessions.deinitialize(count: self.clients.count)
        self.sessions.deallocate()
        self.tallies.deallocate()
        self.writer.deinitialize(count: 1)
        self.writer.deallocate()
        self.ledger.deinitialize(count: 1)
        self.ledger.deallocate()
        self.publishes.deallocate()
        self.arrivals.deallocate()
    }

    func number(_ place: Int) -> Int { self.places.number(at: place) }

    /// Whether the client publishes at QoS 1 or 2, and so waits for acknowledgements.
    func awaitsAnswers(_ place: Int) -> Bool { self.clients[place].qos != .atMostOnce }

    private func addSubscriptions() {
        let listeners = self.places.operators..<self.places.count
        self.ledger.pointee.reserve(subscriptions: listeners.count, streams: listeners.count)
        for place in listeners {
            let number = UInt32(self.number(place) - self.load.publishers)
            let index =
                self.load.topology == .shared
                ? self.members.addMember(group: 0) : self.ledger.pointee.addSubscription(number)
            self.clients[place].subscription = Int32(index)
        }
    }

    // MARK: - Coming up

    package func connect(_ place: Int, due: NIODeadline) {
        self.meter.record(self.metrics.connect.lag, (self.context.now - due).nanoseconds)
        self.begin(place)
    }

    private func begin(_ place: Int) {
        let now = self.context.refresh()
        self.clients[place].stage = .connecting
        self.clients[place].begun = now
        let deadline = now + self.load.connectTimeout
        self.connector.connect(
            client: self.number(place),
            deadline: deadline,
            handler: { [unowned self] in self.makeConnection(place) },
            done: { [unowned self] result in self.tcpEnded(place, result, deadline: deadline) }
        )
    }

    private func makeConnection(_ place: Int) -> MQTTConnection {
        let connection = MQTTConnection(
            client: place,
            loop: self.context,
            session: self.sessions + place,
            maximumPacketSize: self.sessions[place].options.maximumPacketSize,
            observer: self
        )
        self.clients[place].connection = connection
        return connection
    }

    private func tcpEnded(_ place: Int, _ result: Result<ConnectedChannel, ConnectError>, deadline: NIODeadline) {
        let now = self.context.refresh()
        switch result {
        case .success(let connected):
            if let dns = connected.phases.dns { self.meter.record(self.metrics.connect.dns, dns.nanoseconds) }
            if let tcp = connected.phases.tcp { self.meter.record(self.metrics.connect.tcp, tcp.nanoseconds) }
            self.clients[place].tcpUp = now
            guard let connection = self.clients[place].connection else { return }
            if self.clients[place].stage != .connecting { return connection.abort() }
            let values = self.load.values(of: self.number(place))
            let username = self.load.username.map { _ in String(decoding: values.username, as: UTF8.self) }
            var random = SeededGenerator(seed: self.load.seed &+ UInt64(place))
            let connect = self.sessions[place].connect(
                clientID: String(decoding: values.clientID, as: UTF8.self),
                username: username,
                password: self.load.password?.rendered(values, random: &random),
                now: now
            )
            connection.start(connect, deadline: deadline)
        case .failure(let error):
            self.clients[place].connection = nil
            self.meter.error(error.kind, at: Int64(now.uptimeNanoseconds)) { error.description }
            self.connectFailed(place)
        }
    }

    /// The client could not come up this time.
    private func connectFailed(_ place: Int) {
        if self.clients[place].stage == .finishing { return self.finished(place) }
        let isFirst = self.tallies[place].connectNanoseconds == 0
        let canRetry =
            isFirst
            ? self.clients[place].attempts < self.load.connectRetries
            : self.clients[place].reconnects < self.load.reconnects
        guard canRetry, self.clients[place].attempts != .max else {
            self.clients[place].stage = .idle
            self.clients[place].attempts = .max
            self.shard.settled(place, up: false)
            self.shard.checkDrained(place)
            return
        }
        if isFirst { self.clients[place].attempts += 1 } else { self.clients[place].reconnects += 1 }
        self.clients[place].stage = .waiting
        self.schedule(place, at: self.context.now + self.load.reconnectPeriod)
    }

    package func connected(_ place: Int, _ connack: ConnAck, resumed: Bool, now: NIODeadline) {
        let session = now - self.clients[place].tcpUp
        let total = now - self.clients[place].begun
        self.meter.record(self.metrics.connect.session, session.nanoseconds)
        self.meter.record(self.metrics.connect.total, total.nanoseconds)
        if self.tallies[place].connectNanoseconds == 0 {
            self.tallies[place].connectNanoseconds = max(1, total.nanoseconds)
        } else {
            self.meter.add(self.metrics.reconnects)
        }
        if let reason = self.disallowed(place) {
            return self.refuse(place, "not allowed", "CONNACK does not allow what this load does: \(reason.name)")
        }
        self.clients[place].connectionFirst = self.clients[place].sequence
        self.clients[place].unsent = 0
        self.clients[place].lost = 0
        if self.probe.place == place { self.probe.restart() }
        let holdsSubscription = resumed && self.clients[place].hasSubscribed
        if holdsSubscription || self.places.isOperator(place) || self.load.subscribers == 0 {
            self.isUp(place, now: now)
        } else {
            self.subscribe(place, now: now)
        }
    }

    /// What the plan wants of this client and the server's CONNACK forbids (MQTT 5.0 §3.2.2.3): it would be a protocol
    /// error to send it.
    private func disallowed(_ place: Int) -> ReasonCode? {
        let limits = self.sessions[place].limits
        guard self.places.isOperator(place) else {
            return limits.refusal(of: self.load.subscriptions(of: self.number(place)))
        }
        guard !self.load.qualities.isEmpty else { return nil }
        let qos = self.clients[place].qos
        let size = self.writer.pointee.begin(self.number(place), qos: qos, message: 0, now: 0)
        return limits.refusal(ofPublish: qos, retain: self.load.retain, size: size)
    }

    private func subscribe(_ place: Int, now: NIODeadline) {
        self.clients[place].subscribeSent = now
        let subscriptions = self.load.subscriptions(of: self.number(place))
        if self.clients[place].connection?.subscribe(subscriptions) == nil {
            self.refuse(place, "suback", "no packet identifier is free")
        }
        self.wantsTimer(place, at: now + self.sessions[place].options.ackTimeout)
    }

    package func subscribed(_ place: Int, _ id: PacketID, codes: [UInt8], now: NIODeadline) {
        self.meter.record(self.metrics.subscribe, (now - self.clients[place].subscribeSent).nanoseconds)
        if let code = codes.first(where: { $0 >= 0x80 }) {
            let name = ReasonCode(rawValue: code)?.name ?? "unknown code"
            return self.refuse(place, "suback 0x" + String(code, radix: 16), "SUBACK refused: \(name)")
        }
        if !self.clients[place].hasSubscribed {
            self.clients[place].hasSubscribed = true
            let number = self.number(place) - self.load.publishers
            self.subscriptionBegan?(self.load.topology == .shared ? 0 : UInt32(number))
        }
        self.isUp(place, now: now)
    }

    /// The client cannot do its part here, now or later.
    private func refuse(_ place: Int, _ kind: String, _ words: String) {
        self.meter.error(kind, at: Int64(self.context.now.uptimeNanoseconds)) { words }
        self.clients[place].attempts = .max
        self.clients[place].connection?.abort()
    }

    /// A subscription is in effect: what its publishers have sent until now is of unknown fate for it.
    package func noteEarly(_ subscription: UInt32) {
        for place in 0..<self.places.operators where self.clients[place].sequence > 0 {
            let publisher = self.number(place)
            guard self.load.feeds(subscription, from: publisher) else { continue }
            self.earlySubscriptions.append(
                EarlySubscription(
                    subscription: subscription,
                    publisher: UInt32(publisher),
                    sequence: self.clients[place].sequence
                )
            )
        }
    }

    package func unsubscribed(_ place: Int, _ id: PacketID, now: NIODeadline) {}

    private func isUp(_ place: Int, now: NIODeadline) {
        self.clients[place].stage = .up
        self.clients[place].isLive = true
        self.live += 1
        self.shard.up(place, at: now)
        self.shard.settled(place, up: true)
    }

    // MARK: - Going down

    package func ending(_ place: Int, unsent: Int) {
        self.settleUnsent(place, bytes: unsent)
    }

    package func ended(_ place: Int, _ end: ConnectionEnd, now: NIODeadline) {
        let stage = self.clients[place].stage
        self.clients[place].connection = nil
        self.clients[place].timerAt = .distantFuture
        self.context.timers.cancel(self.clients[place].timer)
        if self.clients[place].isLive {
            self.clients[place].isLive = false
            self.live -= 1
        }
        self.connectionEnded(place, isConfirmed: end == .answered)
        if end != .answered, end != .aborted { self.count(place, end, now: now) }
        switch stage {
        case .connecting: self.connectFailed(place)
        case .up: self.connectionLost(place)
        case .flushing, .finishing: self.finished(place)
        case .idle, .waiting, .finished: break
        }
    }

    private func connectionLost(_ place: Int) {
        let returns = self.clients[place].reconnects < self.load.reconnects && self.clients[place].attempts != .max
        self.clients[place].stage = returns ? .waiting : .idle
        if returns {
            self.clients[place].reconnects += 1
            self.schedule(place, at: self.context.now + self.load.reconnectPeriod)
        }
        self.shard.lost(place, returns: returns)
    }

    /// An end that nobody asked for, as an error and as a disconnect.
    private func count(_ place: Int, _ end: ConnectionEnd, now: NIODeadline) {
        let (kind, reason, words) = end.account(version: self.load.version)
        self.meter.error(kind, at: Int64(now.uptimeNanoseconds)) { words }
        let wasUp = self.clients[place].stage != .connecting
        if wasUp, let id = self.metrics.disconnects[reason] { self.meter.add(id) }
    }

    package func finish(_ place: Int) {
        switch self.clients[place].stage {
        case .up where !self.places.isOperator(place) && self.load.subscribers > 0:
            // What the broker had queued before the PINGRESP is read before it.
            self.clients[place].stage = .flushing
            self.clients[place].connection?.ping()
        case .up:
            self.sayGoodbye(place)
        case .connecting:
            self.clients[place].stage = .finishing
            if self.clients[place].tcpUp > self.clients[place].begun { self.clients[place].connection?.abort() }
        case .idle, .waiting:
            self.context.timers.cancel(self.clients[place].timer)
            self.finished(place)
        case .flushing, .finishing, .finished:
            break
        }
    }

    private func sayGoodbye(_ place: Int) {
        self.clients[place].stage = .finishing
        self.clients[place].connection?.finish()
    }

    package func abort(_ place: Int) {
        guard self.clients[place].stage != .finished else { return }
        if let connection = self.clients[place].connection, self.clients[place].stage != .connecting {
            if self.clients[place].stage != .flushing { self.clients[place].stage = .finishing }
            connection.abort()
        } else {
            self.finish(place)
        }
        if self.clients[place].stage != .finished { self.finished(place) }
    }

    private func finished(_ place: Int) {
        self.clients[place].stage = .finished
        // What a session of its own still holds for a next connection has no answer in this run.
        let now = self.context.now
        self.sessions[place].discardState { publish, timedOut in
            self.abandoned(place, publish, .connectionLost(timedOutBefore: timedOut), now: now)
        }
        self.shard.settled(place, up: false)
        self.shard.finished(place)
    }

    package func pingAnswered(_ place: Int, after: TimeAmount, now: NIODeadline) {
        self.meter.record(self.metrics.ping, after.nanoseconds)
        if self.clients[place].stage == .flushing { self.sayGoodbye(place) }
    }

    // MARK: - Time

    package func wantsTimer(_ place: Int, at time: NIODeadline) {
        guard time < self.clients[place].timerAt else { return }
        self.schedule(place, at: time)
    }

    private func schedule(_ place: Int, at time: NIODeadline) {
        self.clients[place].timerAt = time
        self.context.timers.schedule(self.clients[place].timer, at: time)
    }

    private func timerFired(_ place: Int) {
        self.clients[place].timerAt = .distantFuture
        switch self.clients[place].stage {
        case .waiting:
            if self.shard.isDraining, self.shard.checkDrained(place) { return }
            self.begin(place)
        case .connecting where self.subscribeIsOverdue(place):
            self.refuse(place, "timeout", "no SUBACK before --ack-timeout")
        case .connecting, .up, .flushing, .finishing:
            self.clients[place].connection?.timerFired(now: self.context.now)
            // A SUBACK is awaited longer than CONNACK, whose timer this was.
            if self.clients[place].stage == .connecting, self.isSubscribing(place) {
                let sent = self.clients[place].subscribeSent
                self.wantsTimer(place, at: sent + self.sessions[place].options.ackTimeout)
            }
        case .idle, .finished:
            break
        }
    }

    private func subscribeIsOverdue(_ place: Int) -> Bool {
        let sent = self.clients[place].subscribeSent
        return self.isSubscribing(place) && self.context.now >= sent + self.sessions[place].options.ackTimeout
    }

    /// Whether SUBSCRIBE went out on this connection.
    private func isSubscribing(_ place: Int) -> Bool {
        self.clients[place].subscribeSent >= self.clients[place].tcpUp && self.clients[place].tcpUp > .distantPast
    }

    package func woke(late: TimeAmount) {
        self.meter.record(self.metrics.loopLag[self.places.index], late.nanoseconds)
    }

    package func measuring(_ begins: Bool) {
        begins ? self.meter.beginMeasured() : self.meter.endMeasured()
    }

    package func loadEnded() {}

    /// Nanoseconds since 1970.
    func time(_ now: NIODeadline) -> Int64 { Int64(now.uptimeNanoseconds) &+ self.load.realtimeOffset }

    package func takeSample() -> MQTTSample {
        let now = self.context.refresh()
        let cpu = clamor_thread_cpu_nanoseconds()
        defer {
            self.lastCPU = cpu
            self.lastSample = now
        }
        self.meter.set(self.metrics.connected, Double(self.live))
        let span = (now - self.lastSample).nanoseconds
        let used = cpu - self.lastCPU
        if span > 0 { self.meter.set(self.metrics.cpu[self.places.index], Double(used) / Double(span)) }
        if self.live != self.shard.live {
            self.meter.error("live connections", at: Int64(now.uptimeNanoseconds)) {
                "\(self.live) here, \(self.shard.live) planned"
            }
        }
        let recycled = self.recycled
        self.recycled = nil
        let sample = self.meter.swap(recycled)
        let bytes = self.meter.value(of: self.metrics.decodeBytes)
        defer { self.lastDecodeBytes = bytes }
        return MQTTSample(
            metrics: sample,
            share: self.members.swap(),
            probe: self.probe.take(),
            decodeBytes: bytes - self.lastDecodeBytes,
            cpu: cpu - self.lastCPU,
            span: now - self.lastSample
        )
    }

    /// Takes back what a sample held, emptied, for the next one.
    package func recycle(_ sample: LoopSample) { self.recycled = sample }
}
