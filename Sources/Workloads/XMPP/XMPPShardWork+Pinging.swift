import LoadEngine
import LoopContext
import Measurement
package import NIOCore
package import XMPP
package import XMPPCodec

// IQ pings to the server (XEP-0199), and their answers.
extension XMPPShardWork {
    private static let head = Array("<iq type='get'".utf8)
    /// RFC 7395 §3.3.3: on a WebSocket each message is a document of its own.
    private static let namespace = Array(" xmlns='jabber:client'".utf8)
    private static let to = Array(" to='".utf8)
    private static let id = Array("' id='".utf8)
    private static let tail = Array("'><ping xmlns='urn:xmpp:ping'/></iq>".utf8)

    /// All pings of the batch share one write.
    func sendPings(_ place: Int, _ connection: XMPPConnection, _ batch: OperationBatch, began: NIODeadline) {
        self.noteOwnStanzas(place)
        batch.forEach { _, due in
            let slot = self.takeSlot(place, due: due, began: began)
            let isTaken = connection.appendRequest(
                UInt64(slot),
                to: self.server,
                timeout: self.load.ackTimeout,
                before: self.pingHead,
                after: Self.tail
            )
            if isTaken {
                self.noteUnacknowledged(place, due: due, at: began)
                return self.countPing(place)
            }
            self.free(place, slot)
            guard let operation = self.metrics.operation, let ids = self.metrics.ping else { return }
            self.meter.add(operation.counts.notSent)
            let age = (self.context.now - due).nanoseconds
            self.meter.recordUnanswered(ids.response, age, lane: batch.lane(due), as: .outstanding)
        }
        self.clients[place].own.counted = self.streams[place].stanzasSent
        connection.flushRequests()
    }

    /// A free slot is due in the distant future.
    package func oldestInFlight(_ place: Int) -> (due: NIODeadline?, cost: Int) {
        guard self.clients[place].own.pings > 0 else { return (nil, 0) }
        return (self.clients[place].own.slots.lazy.map(\.due).min(), self.clients[place].own.slots.count)
    }

    /// A slot for one more ping.
    ///
    /// A client has as many slots as it ever had pings in flight.
    private func takeSlot(_ place: Int, due: NIODeadline, began: NIODeadline) -> Int32 {
        let count = Int(self.clients[place].own.pings)
        if count == self.clients[place].own.slots.count {
            self.clients[place].own.slots.append(Ping(due: due, written: began, next: Int32(count)))
        }
        // The slots in flight come first. After them, each entry holds the number of a free slot.
        let slot = self.clients[place].own.slots[count].next
        self.clients[place].own.slots[Int(slot)].due = due
        self.clients[place].own.slots[Int(slot)].written = began
        self.clients[place].own.pings += 1
        return slot
    }

    private func countPing(_ place: Int) {
        if let operation = self.metrics.operation { self.countSent(place, operation.counts, 1) }
    }

    private func free(_ place: Int, _ slot: Int32) {
        self.clients[place].own.pings -= 1
        self.clients[place].own.slots[Int(self.clients[place].own.pings)].next = slot
        self.clients[place].own.slots[Int(slot)].due = .distantFuture
    }

    package func answered(_ place: Int, _ token: UInt64, _ answer: borrowing ElementView, now: NIODeadline) {
        self.countStanza(place)
        self.meter.add(self.metrics.iqs)
        if let groups = self.groups { return self.answered(place, groups, token, answer, now: now) }
        if self.load.work == .unregister { return self.removalAnswered(place, answer, now: now) }
        guard token < UInt64(self.clients[place].own.slots.count), let ids = self.metrics.ping,
            let operation = self.metrics.operation
        else { return }
        if self.isLate(place, now) { return self.unanswered(place, token, .connectionLost, now: now) }
        let ping = self.clients[place].own.slots[Int(token)]
        self.free(place, Int32(token))
        let response = (now - ping.due).nanoseconds
        let lane = self.slab.times.lane(ping.due)
        self.meter.record(ids.response, response, lane: lane)
        self.meter.record(ids.service, (now - ping.written).nanoseconds, lane: lane)
        self.keepIfSlow(place, ids.response, response, due: ping.due, written: ping.written, lane: lane)
        if response > self.tallies[place].longestAckNanoseconds {
            self.tallies[place].longestAckNanoseconds = response
        }
        let isError = answer.withAttribute("type") { $0.elementsEqual("error".utf8) } ?? false
        if isError {
            self.books.failed += 1
            self.meter.add(operation.refused)
            self.countError(answer)
        } else {
            self.meter.add(operation.known)
            self.tallies[place].acked += 1
        }
    }

    /// Keeps a request whose answer is among the slowest.
    func keepIfSlow(
        _ place: Int,
        _ metric: DurationID,
        _ response: Int64,
        due: NIODeadline,
        written: NIODeadline? = nil,
        lane: Int
    ) {
        guard self.meter.isSlow(.answer, response) else { return }
        let entry = SlowEntry(
            .answer,
            metric,
            duration: response,
            due: Int64(due.uptimeNanoseconds),
            sender: UInt32(truncatingIfNeeded: self.number(place)),
            // It has no arrival that it could be joined with.
            sequence: 0,
            written: written.map { Int64($0.uptimeNanoseconds) }
        )
        self.keepSlow(entry, lane: lane)
    }

    package func unanswered(_ place: Int, _ token: UInt64, _ error: XMPPRequestError, now: NIODeadline) {
        if self.groups != nil, error == .timedOut { return self.joinTimedOut(place) }
        if self.load.work == .unregister { return self.removalUnanswered(place, error) }
        guard token < UInt64(self.clients[place].own.slots.count), self.load.work == .ping else { return }
        let ping = self.clients[place].own.slots[Int(token)]
        self.free(place, Int32(token))
        let isOwnEnd = self.isEndedByRun(place)
        let isExcused = error != .timedOut && self.isEndedByPlan(place)
        if let ids = self.metrics.ping, !isExcused {
            let end: UnansweredEnd = error != .timedOut && isOwnEnd ? .outstanding : .failed
            let lane = self.shard.times.lane(ping.due)
            self.meter.recordUnanswered(ids.response, self.age(since: ping.due, end), lane: lane, as: end)
            self.meter.recordUnanswered(ids.service, self.age(since: ping.written, end), lane: lane, as: end)
        }
        if error == .timedOut {
            self.books.timedOut += 1
            self.error("timeout", "no answer to a ping within the acknowledgement timeout")
            if self.room(place) == 1 { self.shard.markAble(place, at: now) }
            self.shard.checkDrained(place)
        } else if isOwnEnd {
            self.books.inFlight += 1
        } else if isExcused {
            self.books.excused += 1
        } else {
            self.books.failed += 1
        }
    }

    /// The text before the id of every ping.
    static func pingHead(to domain: String, isAlone: Bool) -> [UInt8] {
        var bytes = Self.head + (isAlone ? Self.namespace : []) + Self.to
        XMPPMessageWriter.escape(domain.utf8, into: &bytes)
        return bytes + Self.id
    }
}
