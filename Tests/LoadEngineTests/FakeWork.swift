import LoadEngine
import LoopContext
import NIOCore
import NIOEmbedded

/// Clients without a protocol: a test says when they come up, are blocked, answered or lost, and everything that
/// the shard asks of them is kept.
final class FakeWork: ShardWork {
    struct Sent {
        let place: Int
        let batch: OperationBatch
        let at: NIODeadline

        var dues: [NIODeadline] { (0..<self.batch.count).map(self.batch.due) }
        var operations: [OperationBatch.StreamOperation] {
            var operations: [OperationBatch.StreamOperation] = []
            self.batch.forEachOperation { operations.append(.init(due: $1, stream: $2, number: $3)) }
            return operations
        }
    }

    struct Client {
        var isBegun = false
        var isUp = false
        var isBlocked = false
        var inFlight = 0
        var offered: UInt64 = 0
        var sent: UInt64 = 0
        /// The number behind the last one that was sent.
        var next: UInt64 = 0
        var notSent: UInt64 = 0
        /// By stream; without an entry for streams of which there was nothing.
        var offeredOf: [Int: UInt64] = [:]
        var notSentOf: [Int: UInt64] = [:]
        var isFinishing = false
        var isFinished = false
        /// When it could send, as the test sees it.
        var ableSince = NIODeadline.distantPast
    }

    unowned let shard: Shard<FakeWork>
    let window: Int
    /// Whether clients close at once when ordered to.
    var closesAtOnce = true
    /// Whether what is sent is answered in the same moment.
    var answersAtOnce = false
    var clients: [Client]
    var connects: [(place: Int, due: NIODeadline, at: NIODeadline)] = []
    var sent: [Sent] = []
    var late: UInt64 = 0
    var measuring: [(begins: Bool, at: NIODeadline)] = []
    var stages: [(stage: Int?, offered: UInt64, at: NIODeadline)] = []
    var loadEnds: [NIODeadline] = []
    var balance = DeliveryBalance()
    /// How late the loop woke up at the worst.
    var latest = TimeAmount.zero
    /// The immediate result of a connect; by default it stays pending.
    var onConnect: ((Int) -> Void)?
    var onSend: ((Int) -> Void)?
    struct Departure: Hashable {
        let place: Int
        let cause: DeparturePlan.Cause
        let cuts: Bool
        let at: NIODeadline
    }
    var departed: [Departure] = []
    var missed: [Int] = []
    var turns: [(place: Int, due: NIODeadline, at: NIODeadline)] = []
    var turnsMissed: UInt64 = 0
    var departuresMissed: UInt64 = 0
    var returned: [(place: Int, due: NIODeadline, at: NIODeadline)] = []
    /// Whether departing clients close at once.
    var leavesAtOnce = true
    /// The immediate result of a return; by default it stays pending.
    var onReturn: ((Int) -> Void)?
    var onDepart: ((Int) -> Void)?

    init(_ shard: Shard<FakeWork>, window: Int) {
        self.shard = shard
        self.window = window
        self.clients = Array(repeating: Client(), count: shard.clients.count)
    }

    /// Lets go of what the test put in, which often holds this.
    func forgetTest() {
        self.onConnect = nil
        self.onSend = nil
        self.onReturn = nil
        self.onDepart = nil
    }

    var now: NIODeadline { self.shard.context.eventLoop.now }

    // MARK: What the shard asks for

    func connect(_ place: Int, due: NIODeadline) {
        precondition(!self.clients[place].isBegun, "one first connect a client")
        self.clients[place].isBegun = true
        self.connects.append((place, due, self.now))
        self.onConnect?(place)
    }

    func depart(_ place: Int, _ cause: DeparturePlan.Cause, cuts: Bool) {
        precondition(self.clients[place].isUp, "only who is up can leave")
        self.clients[place].isUp = false
        self.departed.append(Departure(place: place, cause: cause, cuts: cuts, at: self.now))
        if self.leavesAtOnce { self.shard.left(place) }
        self.onDepart?(place)
    }

    func departureMissed(_ place: Int, _ cause: DeparturePlan.Cause) { self.missed.append(place) }

    func turn(_ place: Int, due: NIODeadline) { self.turns.append((place, due, self.now)) }
    func turnsMissed(_ count: UInt64, due: NIODeadline) { self.turnsMissed += count }
    func departuresMissed(_ cause: DeparturePlan.Cause, count: UInt64) { self.departuresMissed += count }

    func reconnect(_ place: Int, due: NIODeadline) {
        self.returned.append((place, due, self.now))
        self.onReturn?(place)
    }

    func room(_ place: Int) -> Int {
        let client = self.clients[place]
        return client.isUp && !client.isBlocked && !client.isFinishing ? self.window - client.inFlight : 0
    }

    func send(_ place: Int, _ batch: OperationBatch) {
        precondition(batch.count > 0 && batch.count <= self.room(place), "no more than there is room for")
        let client = self.clients[place]
        let next = client.next
        precondition(batch.first >= next, "a client's operations go out in order, each once")
        // Operations of absent clients are skipped.
        precondition(batch.first == next || self.shard.plan.departures != DeparturePlan(), "and none is left out")
        self.clients[place].next = batch.first + UInt64(batch.count)
        self.sent.append(Sent(place: place, batch: batch, at: self.now))
        self.clients[place].sent += UInt64(batch.count)
        if !self.answersAtOnce { self.clients[place].inFlight += batch.count }
        self.onSend?(place)
    }

    func offered(_ place: Int, stream: Int, count: UInt64) {
        self.clients[place].offered += count
        self.clients[place].offeredOf[stream, default: 0] += count
    }

    func notSent(_ place: Int, stream: Int, _ batch: OperationBatch, late: UInt64) {
        let count = UInt64(batch.count)
        self.clients[place].notSent += count
        self.clients[place].notSentOf[stream, default: 0] += count
        self.late += late
    }

    func isIdle(_ place: Int) -> Bool { self.clients[place].inFlight == 0 }

    func finish(_ place: Int) {
        precondition(!self.clients[place].isFinishing, "a client is closed once")
        self.clients[place].isFinishing = true
        if self.closesAtOnce || !self.clients[place].isUp { self.closes(place) }
    }

    func abort(_ place: Int) {
        self.clients[place].isFinishing = true
        self.closes(place)
    }

    func woke(late: TimeAmount) { self.latest = max(self.latest, late) }

    func measuring(_ begins: Bool) { self.measuring.append((begins, self.now)) }

    func begins(stage: Int?) { self.stages.append((stage, self.total(\.offered), self.now)) }

    func loadEnded() { self.loadEnds.append(self.now) }

    func takeSample() -> [UInt64] { self.clients.map(\.sent) }

    // MARK: What happens to a client

    func comesUp(_ place: Int) {
        self.clients[place].isUp = true
        self.clients[place].ableSince = self.now
        self.shard.up(place, at: self.now)
        self.shard.settled(place, up: true)
    }

    /// A client that was up before.
    func comesBack(_ place: Int) {
        self.clients[place].isUp = true
        self.clients[place].ableSince = self.now
        self.shard.up(place, at: self.now)
        self.shard.returnEnded(place)
    }

    func fails(_ place: Int) { self.shard.settled(place, up: false) }

    func loses(_ place: Int, returns: Bool) {
        self.clients[place].isUp = false
        self.clients[place].isBlocked = false
        self.clients[place].inFlight = 0
        self.shard.lost(place, returns: returns)
    }

    func answers(_ place: Int, _ count: Int, inTurn: Bool = false) {
        let before = self.room(place)
        self.clients[place].inFlight -= count
        guard before == 0, self.room(place) > 0 else {
            self.shard.checkDrained(place)
            return
        }
        self.clients[place].ableSince = self.now
        inTurn ? self.shard.markAbleInTurn(place, at: self.now) : self.shard.markAble(place, at: self.now)
    }

    func blocks(_ place: Int) { self.clients[place].isBlocked = true }

    func unblocks(_ place: Int) {
        self.clients[place].isBlocked = false
        guard self.room(place) > 0 else { return }
        self.clients[place].ableSince = self.now
        self.shard.markAble(place, at: self.now)
    }

    func closes(_ place: Int) {
        guard !self.clients[place].isFinished else { return }
        self.clients[place].isFinished = true
        self.clients[place].isUp = false
        self.shard.finished(place)
    }

    // MARK: What the test sums up

    /// The due times of all that one client sent, in order.
    func dues(of place: Int) -> [NIODeadline] { self.sent.filter { $0.place == place }.flatMap(\.dues) }

    func total(_ count: KeyPath<Client, UInt64>) -> UInt64 { self.clients.reduce(0) { $0 + $1[keyPath: count] } }
}

/// A shard in virtual time.
struct ShardRig {
    let loop: EmbeddedEventLoop
    let shard: Shard<FakeWork>
    let work: FakeWork
    let events: EventLog

    final class EventLog {
        var all: [ShardEvent] = []
    }

    init(_ plan: LoadPlan, index: Int = 0, of shards: Int = 1, window: Int = 4) {
        self.loop = EmbeddedEventLoop()
        // A time in front of the test, so that "one second ago" exists.
        self.loop.advanceTime(by: .seconds(100))
        let events = EventLog()
        self.events = events
        let context = LoopContext(eventLoop: self.loop, tick: .exact)
        self.shard = Shard(context: context, plan: plan, index: index, of: shards) { events.all.append($0) }
        self.work = FakeWork(self.shard, window: window)
        self.shard.work = self.work
    }

    var now: NIODeadline { self.loop.now }

    func advance(_ time: TimeAmount) { self.loop.advanceTime(by: time) }

    /// Connects all, and begins the load, now.
    func begin() {
        self.work.onConnect = { [unowned work = self.work] in work.comesUp($0) }
        self.shard.startConnecting(at: self.now)
        self.advance(.zero)
        self.work.onConnect = nil
        for place in self.work.clients.indices { self.work.clients[place].ableSince = self.now }
        self.shard.startLoad(at: self.now)
        self.advance(.zero)
    }

    func count(_ event: ShardEvent) -> Int { self.events.all.count { $0 == event } }
}
