import LoadEngine
import LoopContext
import MQTT
import MQTTCodec
import Measurement
import NIOCore

/// Holds back what the clients of one event loop send until their store has it.
///
/// A PUBLISH at QoS 1 or 2 waits for the commit of its message, a PUBREL for that of its PUBREC, a PUBREC and a PUBCOMP
/// for those of what they answer. What all clients want of the store in one turn of the loop goes to it as one commit;
/// while that is under way the next one gathers. Removals wait for nobody and ride along.
///
/// It stands between the connections and the workload only where there is a store: without one neither knows of it.
final class StoreGate {
    /// What a commit lets happen, beside the publishes that wait for it.
    enum Step {
        /// Send PUBREL, if the session is still the same: another one may have given the identifier again.
        case release(UInt16, session: UInt32)
        /// Send PUBREC, under the same condition.
        case record(UInt16, session: UInt32)
        /// Send PUBCOMP, if the connection is still the same.
        case complete(UInt16, connection: UInt32)
        /// Send a message that an earlier run never sent, if it still has this identifier.
        case send(UInt64, UInt16)
    }

    /// What one client wants of a commit.
    struct Part {
        let place: Int
        var changes: [MQTTStoreChange] = []
        var steps: [Step] = []
        /// Messages of this run among the changes, and the number behind the last of them.
        var publishes: UInt64 = 0
        var end: UInt64?
        var records: UInt64 = 0
    }

    /// How far a message of an earlier run has come; those of this run go by ``Client/committed`` and
    /// ``Client/written``.
    enum Progress: UInt8 {
        /// Its identifier is not stored yet.
        case waits
        case unsent
        /// At least it may have been sent.
        case sent
    }

    /// A message that the store has, or is about to.
    struct Kept {
        let id: UInt16
        /// Its payload goes when PUBREC has come.
        var message: MQTTMessage
        let due: NIODeadline
        /// Its expiry interval counts from here.
        let since: NIODeadline
        var progress = Progress.sent
        /// The server does not take it; only its identifier is still to be freed there.
        var isGivenUp = false
    }

    struct Client {
        /// The name under which its flows lie.
        let key: String
        /// Messages are numbered as in the store: those of an earlier run below this, those of this run from it on.
        var base: UInt64 = 0
        /// What is stored ends here.
        var committed: UInt64 = 0
        /// What was written to a connection ends here.
        var written: UInt64 = 0
        var kept: [UInt64: Kept] = [:]
        /// QoS 2 messages of the server's that the store has.
        var inbound: Set<UInt16> = []
        /// What an earlier run queued and never sent, the next one last.
        var queued: [MQTTStoredMessage] = []
        /// Counts its connections.
        var connection: UInt32 = 0
        /// Counts its sessions: how often the server had none.
        var session: UInt32 = 0
        /// Its part of the next commit.
        var part: Int32 = -1
        /// The commit under way has a part of its.
        var isUnderWay = false
        /// A commit of its flows failed: it is at its end.
        var hasFailed = false
        /// It has ended, and waits for its last commit.
        var isLeaving = false
    }

    /// Removals alone wait so long for company.
    static var patience: TimeAmount { .milliseconds(50) }

    unowned let work: MQTTShardWork
    let context: LoopContext
    let metrics: MQTTMetrics.Store
    private let store: any FlowStore
    var clients: [Client] = []
    var inboundSequence: UInt64 = 0
    /// When the store was read.
    let opened: NIODeadline
    /// Publishes whose time begins behind the present step of their session.
    var begun: [(place: Int, id: UInt16, sequence: UInt64)] = []
    /// Publishes of this run that leave for the first time with a session that was resumed.
    var firsts: [First] = []
    /// What the server does not take, until the present step of its session is over.
    var untakeable: [Untakeable] = []
    /// Of the write that is put together: when its messages were due.
    var dues: [NIODeadline] = []

    var gathered: [Part] = []
    private var gatheredSince = NIODeadline.distantPast
    private var underWay: [Part] = []
    private var began = NIODeadline.distantPast
    /// Somebody waits for what is gathered.
    private var isUrgent = false
    private var isCommitScheduled = false
    private var isSweepScheduled = false
    /// Clients at their end that wait for their last commit.
    var leaving = 0

    init(_ flows: KeptFlows, _ metrics: MQTTMetrics.Store, work: MQTTShardWork) {
        self.store = flows.store
        self.metrics = metrics
        self.work = work
        self.context = work.context
        self.opened = work.context.now
        self.clients.reserveCapacity(work.places.count)
        for place in 0..<work.places.count {
            let number = work.number(place)
            let id = work.load.values(of: number).clientID
            self.clients.append(Client(key: String(decoding: id, as: UTF8.self)))
            // With nothing in the file too: the server may hold a session in which nothing is open.
            self.restore(place, flows.messages[number] ?? [])
        }
    }

    func counter(_ counters: [CounterID], _ qos: QoS) -> CounterID { counters[qos == .exactlyOnce ? 1 : 0] }

    // MARK: - Gathering

    /// Puts a change into the next commit.
    func gather(_ place: Int, _ change: MQTTStoreChange, then step: Step? = nil) {
        let index = self.part(place)
        self.gathered[index].changes.append(change)
        if let step {
            self.gathered[index].steps.append(step)
            self.hurry()
        } else if !self.isUrgent {
            self.sweepLater()
        }
    }

    /// The client's part of the next commit.
    func part(_ place: Int) -> Int {
        if self.clients[place].part < 0 {
            if self.gathered.isEmpty { self.gatheredSince = self.context.now }
            self.clients[place].part = Int32(truncatingIfNeeded: self.gathered.count)
            self.gathered.append(Part(place: place))
        }
        return Int(self.clients[place].part)
    }

    func noteRecord(_ place: Int) { self.gathered[self.part(place)].records += 1 }

    /// Has the commit begin behind the events of this turn of the loop.
    func hurry() {
        self.isUrgent = true
        guard !self.isCommitScheduled, self.underWay.isEmpty else { return }
        self.isCommitScheduled = true
        let gate = NIOLoopBound(self, eventLoop: self.context.eventLoop)
        self.context.eventLoop.execute {
            gate.value.isCommitScheduled = false
            gate.value.commit()
        }
    }

    /// Has the commit begin when nothing has hurried it for a while.
    private func sweepLater() {
        guard !self.isSweepScheduled else { return }
        self.isSweepScheduled = true
        let gate = NIOLoopBound(self, eventLoop: self.context.eventLoop)
        self.context.eventLoop.scheduleTask(deadline: self.gatheredSince + Self.patience) { gate.value.sweep() }
    }

    private func sweep() {
        self.isSweepScheduled = false
        guard !self.gathered.isEmpty, self.underWay.isEmpty else { return }
        // What is gathered now may have come behind a commit that took the rest.
        if self.context.refresh() < self.gatheredSince + Self.patience { return self.sweepLater() }
        self.commit()
    }

    // MARK: - Committing

    /// Hands over what is gathered; one commit at a time.
    func commit() {
        guard self.underWay.isEmpty, !self.gathered.isEmpty else { return }
        self.underWay = self.gathered
        self.gathered = []
        self.isUrgent = false
        self.began = self.context.refresh()
        let parts = self.underWay.map { (client: self.clients[$0.place].key, changes: $0.changes) }
        for part in self.underWay {
            self.clients[part.place].part = -1
            self.clients[part.place].isUnderWay = true
        }
        let gate = NIOLoopBound(self, eventLoop: self.context.eventLoop)
        let loop = self.context.eventLoop
        self.store.commit(parts) { result in loop.execute { gate.value.returned(result) } }
    }

    private func returned(_ result: Result<Void, any Error>) {
        let now = self.context.refresh()
        let parts = self.underWay
        self.underWay = []
        for part in parts { self.clients[part.place].isUnderWay = false }
        switch result {
        case .success:
            let lane = self.work.shard.times.lane(self.began)
            self.work.meter.record(self.metrics.commit, (now - self.began).nanoseconds, lane: lane)
            for part in parts { self.settle(part) }
        case .failure(let error):
            for part in parts { self.fail(part.place, "\(error)") }
        }
        if self.isUrgent || self.leaving > 0 { self.commit() }
        if !self.gathered.isEmpty { self.sweepLater() }
        for part in parts where self.clients[part.place].isLeaving && !self.isOpen(part.place) {
            self.letGo(part.place)
        }
    }
}
