import Ledger
package import LoadEngine
import LoopContext
import Measurement
package import NIOCore
import Transport
package import XMPP

extension XMPPShardWork {
    package func room(_ place: Int) -> Int {
        guard self.clients[place].stage == .up, let connection = self.clients[place].connection,
            connection.isWritable
        else { return 0 }
        switch self.load.work {
        case .login, .register, .unregister: return 0
        case .ping: return self.load.window - Int(self.clients[place].own.pings)
        case .message, .muc, .presence:
            // A client whose messages have no receiver does not send.
            if !self.load.isOpenLoop, let groups = self.groups, groups.isAlone(place, self.load.work) { return 0 }
            let most = self.load.isOpenLoop ? Self.largestJoined : Int(self.clients[place].own.credit)
            return min(max(0, most), self.largestBatch)
        }
    }

    package func operation(of place: Int, stream: Int) -> OperationMetrics? { self.metrics.operation?.counts }

    package func isIdle(_ place: Int) -> Bool {
        self.clients[place].unsent == 0 && self.clients[place].own.pings == 0 && !self.isAtAccount(place)
    }

    package var balance: DeliveryBalance { self.received }

    package func send(_ place: Int, _ batch: OperationBatch) {
        guard let connection = self.clients[place].connection, let operation = self.metrics.operation else { return }
        let began = self.context.refresh()
        self.recordLag(batch, began: began) { _ in operation.counts.blocked }
        if self.load.work == .ping { return self.sendPings(place, connection, batch, began: began) }
        self.noteOwnStanzas(place)
        self.write(place, connection, batch, began: began)
    }

    package func beginWrite(_ place: Int, _ batch: OperationBatch, first: UInt64, began: NIODeadline) -> Int {
        batch.forEach { _, due in self.noteUnacknowledged(place, due: due, at: began) }
        return self.writer.pointee.begin(place, number: self.number(place), message: first, now: self.time(began))
    }

    /// A WebSocket carries each message in a frame of its own.
    package var isWriteUniform: Bool { self.writer.pointee.isUniform && !self.load.layers.contains(.webSocket) }
    package var payloadSize: Int { self.writer.pointee.payloadSize }

    package func renderMessage(_ place: Int, _ message: DueMessage) -> Int {
        self.writer.pointee.render(place, message: message.sequence, now: self.time(message.began))
    }

    @inline(__always)
    package func writeMessage(
        _ place: Int,
        _ message: DueMessage,
        copying model: UnsafeRawPointer?,
        to memory: UnsafeMutableRawPointer
    ) {
        let (sequence, due) = (message.sequence, message.due)
        let delay = Self.microseconds(message.began - due)
        if let model {
            self.writer.pointee.copy(model, sequence: sequence, due: due, delay: delay, to: memory)
        } else {
            self.writer.pointee.write(place, sequence: sequence, due: due, delay: delay, to: memory)
        }
    }

    package func noteWrite(_ place: Int, _ connection: XMPPConnection, first: UInt64, count: Int, began: NIODeadline) {
        self.deliveryEnd.lastPublish = Int64(began.uptimeNanoseconds)
        self.received.expected += self.groups.map { self.beginFlights(place, $0, first, count) } ?? Int64(count)
        if !self.load.isOpenLoop { self.clients[place].own.credit -= Int32(count) }
        self.clients[place].own.counted = self.streams[place].stanzasSent
    }

    private static func microseconds(_ time: TimeAmount) -> UInt32 { UInt32(clamping: time.nanoseconds / 1_000) }

    /// Settles the fate of a connection's stanzas.
    ///
    /// A closing tag confirms everything sent before it (RFC 6120 §4.4), and stream management knows the server's
    /// count.
    package func settleSent(_ place: Int, isConfirmed: Bool) {
        if !isConfirmed { self.settleUnacknowledged(place) }
        guard self.load.stanza != nil, let operation = self.metrics.operation else { return }
        let first = self.clients[place].connectionFirst
        let last = self.clients[place].sequence
        self.clients[place].connectionFirst = last
        guard last > first else { return }
        let lost = UInt64(self.clients[place].lost)
        let known = isConfirmed ? last - first - lost : min(self.clients[place].own.acknowledged, last - first - lost)
        // The server has read a stanza that came back, and it failed.
        let returned = self.clients[place].unknown.clamped(to: first..<first + known).count
        self.meter.add(operation.known, known - returned)
        self.tallies[place].acked += known - returned
        self.books.unconfirmed += returned
        self.books.broken += returned
        guard first + known < last else { return }
        self.books.unconfirmed += last - first - known - lost
        let range = first + known..<last
        self.noteUnanswered(place, range, unsent: lost)
        if let groups = self.groups {
            self.dropUnsent(place, groups, range, neverSent: lost)
            return self.clients[place].unknown.insert(range)
        }
        let refused = self.clients[place].unknown.clamped(to: range).count
        self.received.expected -= Int64(last - first - known - refused)
        // Any of them may have arrived, and then counts among the received ones.
        self.received.uncertain += Int64(last - first - known - refused - lost)
        self.clients[place].unknown.insert(range)
    }

    /// A stanza that was not confirmed when the run ended is the server's to deliver, unless it came back before.
    private func noteUnanswered(_ place: Int, _ range: Range<UInt64>, unsent: UInt64) {
        let sent = range.lowerBound..<range.upperBound - unsent
        var own = self.exceptions[place, default: PublishExceptions()]
        own.unsent.insert(sent.upperBound..<range.upperBound)
        let open = SequenceRanges([sent]).subtracting(self.clients[place].unknown)
        self.books.broken += UInt64(sent.count) - open.count
        if self.isEndedByRun(place) {
            for run in open.runs { own.outstanding.insert(run) }
        } else if self.isEndedByPlan(place) {
            self.books.excused += open.count
        } else {
            self.books.broken += open.count
        }
        self.exceptions[place] = own
    }

    package func noteNeverSent(_ place: Int, stream: Int, _ batch: OperationBatch) {
        // An occupant or a contact that is not there yet is owed nothing; a peer has its place from the beginning.
        guard self.load.work == .message else { return }
        self.noteNeverSent(place, batch)
    }

    // MARK: - Acknowledgements of stream management (XEP-0198), and the stanzas that they cover

    /// Adds the stanzas that the stream itself has sent since the last write, answers to requests, to the list of
    /// unacknowledged writes.
    ///
    /// Called before each write and each acknowledgement.
    ///
    /// The server counts all stanzas. Otherwise each of these would confirm a message that the server does not have.
    func noteOwnStanzas(_ place: Int) {
        guard self.metrics.acknowledged != nil else { return }
        let sent = self.streams[place].stanzasSent
        let own = sent &- self.clients[place].own.counted
        self.clients[place].own.counted = sent
        // The count has decreased: stream management is off, or begins anew.
        guard own > 0, own < 1 << 31 else { return }
        self.clients[place].own.writes.append(
            Write(due: self.context.now, at: self.context.now, count: Int32(clamping: own), isOwn: true)
        )
    }

    /// Adds one of the load's stanzas, if the server counts them.
    func noteUnacknowledged(_ place: Int, due: NIODeadline, at began: NIODeadline) {
        guard self.metrics.acknowledged != nil, self.streams[place].isManaged else { return }
        let last = self.clients[place].own.writes.count - 1
        if last >= 0, self.clients[place].own.writes[last].joins(due: due, at: began) {
            self.clients[place].own.writes[last].count += 1
        } else {
            self.clients[place].own.writes.append(Write(due: due, at: began, count: 1))
        }
    }

    /// The connection has ended, and what the server has read of the rest is unknown.
    private func settleUnacknowledged(_ place: Int) {
        guard let ids = self.metrics.acknowledged else { return }
        let writes = self.clients[place].own.writes
        self.clients[place].own.writes = []
        let isOwnEnd = self.isEndedByRun(place)
        guard isOwnEnd || !self.isEndedByPlan(place) else { return }
        let end: UnansweredEnd = isOwnEnd ? .outstanding : .failed
        for write in writes where !write.isOwn {
            let (lane, count) = (self.slab.times.lane(write.due), UInt64(write.count))
            self.meter.recordUnanswered(
                ids.response,
                self.age(since: write.due, end),
                count: count,
                lane: lane,
                as: end
            )
            self.meter.recordUnanswered(ids.service, self.age(since: write.at, end), count: count, lane: lane, as: end)
        }
    }

    package func acknowledged(_ place: Int, count: Int, now: NIODeadline) {
        guard let ids = self.metrics.acknowledged else { return }
        // Adds the stream's own stanzas first. Added later, they would precede the next write although acknowledged.
        self.noteOwnStanzas(place)
        var left = count
        var done = 0
        var known = 0
        while left > 0, done < self.clients[place].own.writes.count {
            let write = self.clients[place].own.writes[done]
            let part = min(left, Int(write.count))
            if !write.isOwn {
                let lane = self.slab.times.lane(write.due)
                let count = UInt64(part)
                self.meter.record(ids.response, (now - write.due).nanoseconds, count: count, lane: lane)
                self.meter.record(ids.service, (now - write.at).nanoseconds, count: count, lane: lane)
                known += part
            }
            left -= part
            self.clients[place].own.writes[done].count -= Int32(part)
            if self.clients[place].own.writes[done].count == 0 { done += 1 }
        }
        self.clients[place].own.writes.removeFirst(done)
        self.clients[place].own.acknowledged += UInt64(known)
        self.meter.add(ids.count, UInt64(known))
    }

    // MARK: - Clients in closed loop that would wait forever

    /// Checks once a second for clients whose stanza has not reached all receivers within `--ack-timeout`, and for
    /// clients that will never have a receiver.
    func checkStalled(_ now: NIODeadline) {
        guard let groups = self.groups, !self.load.isOpenLoop, self.shard.phase == .loading else { return }
        for place in 0..<self.places.count where self.clients[place].stage == .up {
            if groups.isAlone(place, self.load.work) {
                self.checkAlone(place, groups)
            } else if self.clients[place].own.credit <= 0, now - groups.members[place].sentAt > self.load.ackTimeout {
                self.giveUp(place, groups, now: now)
            }
        }
    }

    private func giveUp(_ place: Int, _ groups: XMPPGroups, now: NIODeadline) {
        let count = self.giveUpFlights(place, groups, as: .failed)
        guard count > 0 else { return }
        for _ in 0..<count {
            self.error("fan-out timeout", "a stanza did not reach all receivers within the acknowledgement timeout")
        }
        self.clients[place].own.credit = Int32(clamping: self.load.window)
        self.shard.markAble(place, at: now)
    }

    private func checkAlone(_ place: Int, _ groups: XMPPGroups) {
        let membership = groups.membership(place)
        let nobodyComes = (0..<groups.size).allSatisfy { member in
            let other = groups.place(group: membership.group, member: member)
            return other == place || self.clients[other].stage == .idle && self.clients[other].attempts == .max
        }
        guard nobodyComes else { return }
        self.error("no contacts", "none of a client's contacts came up, so it had no receiver")
        self.clients[place].connection?.abort()
    }
}
