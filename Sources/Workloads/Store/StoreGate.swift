import LoadEngine
import LoopContext
import MQTT
import MQTTCodec
import Measurement
import NIOCore

/// Holds back what the clients of one event loop send until their store has it.
///
/// ``StoredFlows`` decides for each client which packet waits for which commit. The changes of all clients in one turn
/// of the loop are one commit. Changes during a commit are gathered for the next one. No packet waits for a removal, so
/// removals are delayed until there are other changes.
///
/// ``MQTTShardWork`` calls it only in runs with a store.
final class StoreGate {
    struct Client {
        /// Key of its messages in the store.
        let key: String
        var flows = StoredFlows()
        /// Messages are numbered as in the store: those of an earlier run below this, those of this run from it on.
        var base: UInt64 = 0
        /// Messages of this run that may be written end here.
        var committed: UInt64 = 0
        /// Messages of this run that were written to a connection end here.
        var written: UInt64 = 0
        /// The next commit has changes of its flows.
        var isGathered = false
        /// The commit under way has changes of its flows.
        var isUnderWay = false
        /// A commit of its flows failed: it is at its end.
        var hasFailed = false
        /// It has ended, and waits for its last commit.
        var isLeaving = false

        var isOpen: Bool { self.isGathered || self.isUnderWay }
    }

    /// Longest delay of a removal.
    static var patience: TimeAmount { .milliseconds(50) }

    unowned let work: MQTTShardWork
    let context: LoopContext
    let metrics: MQTTMetrics.Store
    private let store: any FlowStore
    var clients: [Client] = []
    /// Publishes whose time begins behind the present step of their session.
    var begun: [(place: Int, id: UInt16, sequence: UInt64)] = []
    /// Publishes of this run that leave for the first time with a session that was resumed.
    var firsts: [(place: Int, sequence: UInt64)] = []
    /// The due times of the messages in the write that is put together.
    var dues: [NIODeadline] = []

    private var gathered: [Int] = []
    private var gatheredSince = NIODeadline.distantPast
    private var underWay: [(place: Int, changes: [MQTTStoreChange])] = []
    private var began = NIODeadline.distantPast
    /// A packet waits for the next commit.
    private var isUrgent = false
    private var isCommitScheduled = false
    private var isSweepScheduled = false
    /// Clients at their end that wait for their last commit.
    private var leaving = 0

    init(_ flows: KeptFlows, _ metrics: MQTTMetrics.Store, work: MQTTShardWork) {
        self.store = flows.store
        self.metrics = metrics
        self.work = work
        self.context = work.context
        self.clients.reserveCapacity(work.places.count)
        for place in 0..<work.places.count {
            let number = work.number(place)
            let id = work.load.values(of: number).clientID
            self.clients.append(Client(key: String(decoding: id, as: UTF8.self)))
            // Also without stored messages: the server may have a session without open flows.
            self.restore(place, flows.messages[number] ?? [])
        }
    }

    /// Restores the messages that an earlier run left of a client.
    ///
    /// Messages with an identifier are sent again in a resumed session, and queued ones in any session.
    private func restore(_ place: Int, _ messages: [MQTTStoredMessage]) {
        var base: UInt64 = 0
        for stored in messages {
            if case .received = stored.stage { continue }
            base = max(base, stored.sequence + 1)
            self.work.meter.add(self.counter(self.metrics.restored, stored.message.qos))
        }
        let (outbound, inbound) = self.clients[place].flows.restore(messages, now: self.context.now)
        self.clients[place].base = base
        self.clients[place].committed = base
        self.clients[place].written = base
        self.work.sessions[place].restore(outbound: outbound, inbound: inbound)
    }

    func counter(_ counters: [CounterID], _ qos: QoS) -> CounterID { counters[qos == .exactlyOnce ? 1 : 0] }

    /// How many messages of this run the client has begun to send.
    func sentCount(_ place: Int) -> UInt64 { self.clients[place].written - self.clients[place].base }

    // MARK: - Gathering

    /// Adds the client's changes to the next commit.
    func gather(_ place: Int) {
        guard !self.clients[place].flows.changes.isEmpty else { return }
        if !self.clients[place].isGathered {
            if self.gathered.isEmpty { self.gatheredSince = self.context.now }
            self.clients[place].isGathered = true
            self.gathered.append(place)
        }
        if self.clients[place].flows.isUrgent {
            self.hurry()
        } else if !self.isUrgent {
            self.sweepLater()
        }
    }

    /// Begins the commit after the events of this turn of the loop.
    private func hurry() {
        self.isUrgent = true
        guard !self.isCommitScheduled, self.underWay.isEmpty else { return }
        self.isCommitScheduled = true
        let gate = NIOLoopBound(self, eventLoop: self.context.eventLoop)
        self.context.eventLoop.execute {
            gate.value.isCommitScheduled = false
            gate.value.commit()
        }
    }

    /// Begins the commit after ``patience``, unless another change begins it earlier.
    private func sweepLater() {
        guard !self.isSweepScheduled else { return }
        self.isSweepScheduled = true
        let gate = NIOLoopBound(self, eventLoop: self.context.eventLoop)
        self.context.eventLoop.scheduleTask(deadline: self.gatheredSince + Self.patience) { gate.value.sweep() }
    }

    private func sweep() {
        self.isSweepScheduled = false
        guard !self.gathered.isEmpty, self.underWay.isEmpty else { return }
        // A commit may have taken the changes that this call was scheduled for.
        if self.context.refresh() < self.gatheredSince + Self.patience { return self.sweepLater() }
        self.commit()
    }

    // MARK: - Committing

    private func commit() {
        guard self.underWay.isEmpty, !self.gathered.isEmpty else { return }
        self.underWay = self.gathered.map { ($0, self.clients[$0].flows.takeChanges()) }
        self.gathered = []
        self.isUrgent = false
        self.began = self.context.refresh()
        for part in self.underWay {
            self.clients[part.place].isGathered = false
            self.clients[part.place].isUnderWay = true
        }
        let gate = NIOLoopBound(self, eventLoop: self.context.eventLoop)
        let loop = self.context.eventLoop
        self.store.commit(self.underWay.map { (self.clients[$0.place].key, $0.changes) }) { result in
            loop.execute { gate.value.returned(result) }
        }
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
            for part in parts { self.settle(part.place, part.changes) }
        case .failure(let error):
            for part in parts { self.fail(part.place, "\(error)") }
        }
        if self.isUrgent || self.leaving > 0 { self.commit() }
        if !self.gathered.isEmpty { self.sweepLater() }
        for part in parts where self.clients[part.place].isLeaving && !self.clients[part.place].isOpen {
            self.letGo(part.place)
        }
    }

    private func settle(_ place: Int, _ changes: [MQTTStoreChange]) {
        self.work.meter.add(self.metrics.changes, UInt64(changes.count))
        var (messages, records): (UInt64, UInt64) = (0, 0)
        for change in changes {
            if case .insert(let stored) = change {
                if case .received = stored.stage { records += 1 } else { messages += 1 }
            }
            guard !self.clients[place].hasFailed, let action = self.clients[place].flows.committed(change) else {
                continue
            }
            self.perform(action, place)
        }
        self.work.meter.add(self.metrics.recorded, records)
        let index = self.work.clients[place].own.qos == .exactlyOnce ? 1 : 0
        if messages > 0, let id = self.metrics.messages[index] { self.work.meter.add(id, messages) }
        if self.clients[place].hasFailed { return }
        if !self.write(place) { self.work.clients[place].connection?.flush() }
    }

    private func perform(_ action: StoredFlows.Action, _ place: Int) {
        let connection = self.work.clients[place].connection
        switch action {
        case .send(let sequence):
            if sequence < self.clients[place].base {
                self.sendQueued(place, sequence)
            } else {
                self.clients[place].committed = sequence + 1
            }
        case .release(let id):
            if let connection {
                connection.release(id.rawValue, flushes: false)
            } else {
                // PUBREL goes out when the session is resumed.
                _ = self.work.sessions[place].release(id.rawValue)
            }
        case .record(let id):
            if let connection {
                connection.acknowledge(.exactlyOnce, id: id.rawValue, flushes: false)
            } else {
                // PUBREC answers the message when it comes again.
                _ = self.work.sessions[place].record(id.rawValue, .success, isUp: false)
            }
        case .complete(let id): connection?.complete(id.rawValue, flushes: false)
        }
    }

    /// Ends the client: messages that it sent from now on would not be stored.
    private func fail(_ place: Int, _ words: String) {
        guard !self.clients[place].hasFailed else { return }
        self.clients[place].hasFailed = true
        // Removals are still committed.
        self.clients[place].flows.stop()
        let client = self.work.clients[place]
        switch client.stage {
        case .finished:
            self.work.error(StoreFailure.lateKind, "the store failed: \(words)")
        case .connecting where !client.hasLink:
            // The connector reports the end of the connection itself, so the attempt goes on until CONNACK.
            self.work.error(StoreFailure.kind, "the store failed: \(words)")
            self.work.clients[place].attempts = .max
        default:
            self.work.refuse(place, StoreFailure.kind, "the store failed: \(words)")
        }
    }

    // MARK: - The end

    /// The client is done: its connection ends at once, and the client itself with its last commit.
    func finished(_ place: Int) {
        self.work.shard.lost(place, returns: false)
        guard self.clients[place].isOpen else { return self.work.shard.finished(place) }
        self.clients[place].isLeaving = true
        self.leaving += 1
        self.commit()
    }

    private func letGo(_ place: Int) {
        self.clients[place].isLeaving = false
        self.leaving -= 1
        self.work.shard.finished(place)
    }

    /// The run is over: the client ends without its last commit.
    func abort(_ place: Int) {
        guard self.clients[place].isLeaving else { return }
        self.clients[place].hasFailed = true
        self.work.error(StoreFailure.lateKind, "the store did not answer before the run was over")
        self.letGo(place)
    }
}
