package import Ledger
package import LoadEngine
package import LoopContext
package import Measurement
package import NIOCore
package import Transport

/// The life that the simulated clients of all protocols share.
///
/// Clients connect, retry, come up, send, leave by plan, return and close; the life records all of it.
///
/// A protocol's shard work conforms and adds the parts of its own: the login, the message format, and the fate of sent
/// messages. It reports to its ``Shard`` and is confined to its event loop. The methods below are generic over the link
/// and specialised for each protocol, so nothing is dispatched at run time.
package protocol ClientLife: LoopWork, ConnectObserver {
    associatedtype Link: ClientLink
    associatedtype End: ClientLinkEnd
    associatedtype Own
    associatedtype Load: ClientLoad
    associatedtype Metrics: ClientMetrics

    var load: Load { get }
    var metrics: Metrics { get }
    var shard: Shard<Self> { get }
    var context: LoopContext { get }
    var connector: any ClientConnector { get }
    var slab: ClientSlab<Link, Own> { get }

    // MARK: A connection

    /// The client's first connect is due. `false` if it must not be made; the implementation has then counted an error.
    func admit(_ place: Int, due: NIODeadline) -> Bool
    func prepareConnect(_ place: Int)
    /// Makes the link of the new connection.
    func makeLink(_ place: Int) -> Link
    /// The layers below the protocol are up. Begins the login, which must end by the deadline.
    func logIn(_ place: Int, _ link: Link, _ connected: ConnectedChannel, deadline: NIODeadline)
    /// A client that is logged in does not come up: records what it had asked for.
    func recordNotUp(_ place: Int, as end: UnansweredEnd)
    /// The earliest due time among the client's operations in flight, and the cost of finding it in slots.
    func oldestInFlight(_ place: Int) -> (due: NIODeadline?, cost: Int)
    /// The client has stopped trying to connect.
    func handleGivenUp(_ place: Int)

    // MARK: Its end

    /// The client is about to leave by plan.
    func prepareDeparture(_ place: Int, cuts: Bool)
    func close(_ place: Int)
    /// The link is about to go, and still knows its state.
    func prepareEnd(_ place: Int)
    /// The link is gone. Settles the fate of the messages it sent.
    func settleSent(_ place: Int, isConfirmed: Bool)
    /// The link is gone, before the client's stage changes.
    ///
    /// - Returns: whether the end counts as an error, and whether the life handles it now.
    func handleEnd(_ place: Int, _ end: End) -> (isCounted: Bool, goesOn: Bool)
    /// How to count an end that the run did not request.
    func account(of end: End) -> (kind: String, reason: DisconnectReason, words: String)
    /// Whether a client may retry after a connect that ended this way.
    func mayRetry(_ place: Int, after end: End) -> Bool
    /// The link went while the client was joining its group.
    func joinEnded(_ place: Int, _ end: End)
    /// A client that was up has lost its connection.
    func handleLoss(_ place: Int)
    /// The client has no more connections. Settles the messages it still holds.
    func settle(_ place: Int)
    /// The run asks the client to close.
    func noteClosing(_ place: Int)
    /// Operations of the client and stream will never be sent.
    func noteNeverSent(_ place: Int, stream: Int, _ batch: OperationBatch)
    /// Whether the messages of a client have several rows in the publishers' ledger, with due times of their own.
    var hasManyAudiences: Bool { get }
    /// The rare facts about messages, by the place of a client with one row, else by row.
    var exceptions: [Int: PublishExceptions] { get set }
    /// The client's timer has fired; the link may be waiting for it.
    func linkTimerFired(_ place: Int)

    // MARK: Messages

    /// The metrics of the client's operations in that stream; `nil` if it has none.
    func operation(of place: Int, stream: Int) -> OperationMetrics?
    /// Points the writer at the client's next write.
    ///
    /// - Returns: the size of its first message.
    func beginWrite(_ place: Int, _ batch: OperationBatch, first: UInt64, began: NIODeadline) -> Int
    /// Whether all messages of the write are copies of the first.
    var isWriteUniform: Bool { get }
    /// Payload bytes of the last rendered message.
    var payloadSize: Int { get }
    /// Renders the next message of a write that is not uniform.
    ///
    /// - Returns: its size.
    func renderMessage(_ place: Int, _ message: DueMessage) -> Int
    /// Copies the last rendered message to memory; with a `model`, a copy of the first message.
    func writeMessage(
        _ place: Int,
        _ message: DueMessage,
        copying model: UnsafeRawPointer?,
        to: UnsafeMutableRawPointer
    )
    /// The messages of the write are encoded; none has been written.
    func noteWrite(_ place: Int, _ link: Link, first: UInt64, count: Int, began: NIODeadline)
    /// Counts the oldest unsettled messages of the client as sent, and the latest ones as never sent.
    func settleWritten(_ place: Int, sent: Int, lost: Int)
    /// How many of the last messages the ended link did not send and will never send.
    func lostUnsent(_ place: Int, of count: Int, bytes: Int) -> Int

    // MARK: Samples

    /// A second has passed.
    func observe(_ now: NIODeadline)
    /// Adds the values that only this protocol has to the sample.
    func complete(_ sample: inout LoadSample)
}

/// A message of a write: its numbers, due time and write time.
package struct DueMessage {
    /// The number among all messages of its client.
    let sequence: UInt64
    /// The number among those of its client and stream.
    let number: UInt64
    var stream = 0
    let due: NIODeadline
    let began: NIODeadline
    /// The lane of the load in which it was due.
    let lane: Int
}

/// The metrics that all clients' operations share.
package struct OperationMetrics: Sendable {
    package let offered: CounterID
    package let sent: CounterID
    package let notSent: CounterID
    /// Those that were skipped or replaced while their client slept; `nil` of clients that do not, or queue them.
    package let skipped: CounterID?
    package let blocked: DurationID
    /// The durations from the due time to each answer; empty where nothing answers.
    package let answers: [DurationID]
}

extension ClientLife {
    var clients: UnsafeMutableBufferPointer<SimulatedClient<Link, Own>> { self.slab.clients }
    var tallies: UnsafeMutableBufferPointer<ClientTally> { self.slab.tallies }
    var meter: LoopMeter { self.slab.meter }
    var places: ShardClients { self.shard.clients }

    /// The client's number in the run.
    func number(_ place: Int) -> Int { self.places.number(at: place) }

    /// Nanoseconds since 1970.
    func time(_ now: NIODeadline) -> Int64 { Int64(now.uptimeNanoseconds) &+ self.load.realtimeOffset }

    func error(_ kind: String, _ words: @autoclosure () -> String) {
        self.meter.error(kind, at: Int64(self.context.now.uptimeNanoseconds), example: words)
    }

    // Defaults for protocols that do not need these.
    package var hasManyAudiences: Bool { false }
    package func admit(_ place: Int, due: NIODeadline) -> Bool { true }
    package func prepareConnect(_ place: Int) {}
    package func recordNotUp(_ place: Int, as end: UnansweredEnd) {}
    package func handleGivenUp(_ place: Int) {}
    package func prepareDeparture(_ place: Int, cuts: Bool) {}
    package func prepareEnd(_ place: Int) {}
    package func mayRetry(_ place: Int, after end: End) -> Bool { end.allowsRetry }
    package func joinEnded(_ place: Int, _ end: End) {}
    package func handleLoss(_ place: Int) {}
    package func noteClosing(_ place: Int) {}
    package func noteNeverSent(_ place: Int, stream: Int, _ batch: OperationBatch) {}
    package func complete(_ sample: inout LoadSample) {}

    // MARK: - Time

    /// Each client has one timer for all its deadlines.
    func registerTimers() {
        let timers = self.context.timers
        let owner = timers.addOwner { [unowned self] _, place in self.timerFired(Int(place)) }
        for place in 0..<self.places.count { self.clients[place].timer = timers.register(owner, tag: Int32(place)) }
    }

    package func wantsTimer(_ place: Int, at time: NIODeadline) {
        guard time < self.clients[place].timerAt else { return }
        self.schedule(place, at: time)
    }

    func schedule(_ place: Int, at time: NIODeadline) {
        self.clients[place].timerAt = time
        self.context.timers.schedule(self.clients[place].timer, at: time)
    }

    private func timerFired(_ place: Int) {
        self.clients[place].timerAt = .distantFuture
        switch self.clients[place].stage {
        case .waiting:
            if self.shard.isDraining, self.shard.checkDrained(place) { return }
            self.beginConnect(place)
        case .connecting, .joining, .up, .flushing, .finishing: self.linkTimerFired(place)
        case .leaving:
            if self.context.now >= self.clients[place].begun + Self.leaveGrace {
                self.clients[place].connection?.abort()
            } else {
                self.clients[place].connection?.timerFired(now: self.context.now)
                self.wantsTimer(place, at: self.clients[place].begun + Self.leaveGrace)
            }
        case .idle, .away, .finished:
            break
        }
    }

    package func woke(late: TimeAmount) {
        self.meter.record(self.metrics.traffic.loopLag[self.places.loop], late.nanoseconds)
    }

    /// Keeps a message that is among the slowest of its kind on this loop.
    func keepSlow(_ entry: SlowEntry, lane: Int) {
        var entry = entry
        entry.loopLag = self.context.timers.overdue?.nanoseconds
        self.meter.keepSlow(entry, lane: lane)
    }

    // MARK: - Phases and samples

    package func measuring(_ begins: Bool) { begins ? self.meter.beginMeasured() : self.meter.endMeasured() }
    package func begins(stage: Int?) { self.meter.begin(stage: stage) }
    package func loadEnded() {}

    package func takeSample() -> LoadSample {
        let now = self.context.refresh()
        self.observe(now)
        self.sampleOldest()
        var sample = self.slab.sampler.take(
            self.meter,
            self.metrics.traffic,
            live: self.slab.live,
            planned: self.shard.live,
            now: now
        )
        self.complete(&sample)
        sample.probe = self.slab.probe.take()
        return sample
    }

    package func recycle(_ sample: LoopSample) { self.slab.sampler.recycle(sample) }

    /// Each client's tally on this loop, by its number in the run.
    var numberedTallies: [(number: Int, tally: ClientTally)] {
        (0..<self.places.count).map { (self.number($0), self.tallies[$0]) }
    }
}
