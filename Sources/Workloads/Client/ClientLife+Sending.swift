import Ledger
package import LoadEngine
import LoopContext
import Measurement
package import NIOCore
import Transport

// Due messages, from their batch to the kernel.
extension ClientLife {
    /// Messages that share one write in open loop, at most.
    static var largestJoined: Int { 1_024 }

    /// Bytes per write, or per message, at most.
    static var largestWrite: Int { 1 << 20 }

    /// Messages per write at most, given their size.
    static func largestBatch(of load: Load) -> Int { max(1, Self.largestWrite / max(1, load.largestPayload)) }

    package func offered(_ place: Int, stream: Int, count: UInt64) {
        if let operation = self.operation(of: place, stream: stream) { self.meter.add(operation.offered, count) }
    }

    package func skipped(_ place: Int, stream: Int, count: UInt64) {
        if let id = self.operation(of: place, stream: stream)?.skipped { self.meter.add(id, count) }
    }

    package func notSent(_ place: Int, stream: Int, _ batch: OperationBatch, late: UInt64) {
        guard let operation = self.operation(of: place, stream: stream) else { return }
        self.meter.add(operation.notSent, UInt64(batch.count))
        self.noteNeverSent(place, stream: stream, batch)
        guard !operation.answers.isEmpty else { return }
        let now = self.context.now
        batch.forEach { _, due in
            for id in operation.answers {
                self.meter.recordUnanswered(id, (now - due).nanoseconds, lane: batch.lane(due), as: .outstanding)
            }
        }
    }

    /// Encodes the messages of the batch and writes them in one go.
    func write(_ place: Int, _ link: Link, _ batch: OperationBatch, began: NIODeadline) {
        let first = self.clients[place].sequence
        let size = self.beginWrite(place, batch, first: first, began: began)
        let isUniform = self.isWriteUniform
        let payload: Int
        if isUniform {
            self.appendUniform(place, link, batch, size: size, began: began)
            payload = batch.count * self.payloadSize
        } else {
            payload = self.appendEach(place, link, batch, size: size, began: began)
        }
        self.noteDue(place, batch)
        self.clients[place].sequence = first + UInt64(batch.count)
        self.noteWrite(place, link, first: first, count: batch.count, began: began)
        // Everything counts as unsent until the kernel takes it: the write may find a dead connection and end it.
        self.clients[place].unsent = Int32(batch.count)
        self.clients[place].lastSize = Int32(size)
        self.meter.add(self.metrics.traffic.payloadSent, UInt64(payload))
        let unsent = link.flush()
        guard self.clients[place].connection === link else { return }
        let pending = self.wholeMessages(place, of: batch.count, in: unsent)
        if !isUniform { self.slab.unsentSizes.end(place, isWhole: unsent == 0) }
        self.clients[place].unsent = Int32(pending)
        self.settleWritten(place, sent: batch.count - pending, lost: 0)
    }

    /// Notes when the client's next messages were due, for the ages of deliveries that do not come.
    func noteDue(_ place: Int, _ batch: OperationBatch) {
        let (lane, last) = (batch.lane(batch.firstDue), batch.due(batch.count - 1))
        if lane != Int(self.clients[place].lane) || lane != batch.lane(last) { self.beginLane(place, batch) }
        self.clients[place].lastDue = last
    }

    /// Messages of the batch were due in another lane than those before.
    private func beginLane(_ place: Int, _ batch: OperationBatch) {
        let first = self.clients[place].sequence
        batch.forEach { index, due in
            let lane = UInt16(batch.lane(due))
            if lane != self.clients[place].lane {
                let (own, before) = (self.clients[place], first + UInt64(index))
                // The rows of messages to several audiences have due times of their own.
                if before > 0, !self.hasManyAudiences {
                    let last = Int64(own.lastDue.uptimeNanoseconds)
                    self.exceptions[place, default: PublishExceptions()].end(Int(own.lane), before: before, last: last)
                }
                self.clients[place].lane = lane
            }
            self.clients[place].lastDue = due
        }
    }

    /// Notes messages of a publisher with one audience that were due and get no number.
    func noteNeverSent(_ place: Int, _ batch: OperationBatch) {
        batch.forEach { _, due in
            let (lane, last) = (batch.lane(due), Int64(due.uptimeNanoseconds))
            self.exceptions[place, default: PublishExceptions()].neverSent.add(lane: lane, last: last)
        }
    }

    /// The lane of one of the client's messages, and when the last one of its lane was due.
    func due(_ place: Int, of sequence: UInt64) -> (lane: Int, last: Int64) {
        var end: UInt64 = 0
        for mark in self.exceptions[place]?.ended ?? [] {
            end += mark.count
            if sequence < end { return (mark.lane, mark.last) }
        }
        return (Int(self.clients[place].lane), Int64(self.clients[place].lastDue.uptimeNanoseconds))
    }

    /// The fate of a client's messages, from what every protocol knows of them.
    func complete(_ fate: inout PublisherFate, _ place: Int) {
        let client = self.clients[place]
        (fate.assigned, fate.unknown) = (client.sequence, client.unknown)
        let last = Int64(client.lastDue.uptimeNanoseconds)
        fate.take(self.exceptions[place], lane: Int(client.lane), last: last)
    }

    /// Counts the oldest unsettled messages of the client as sent, and the latest ones as never sent.
    package func settleWritten(_ place: Int, sent: Int, lost: Int) {
        guard let operation = self.operation(of: place, stream: 0) else { return }
        self.countSent(place, operation, sent)
        if lost > 0 { self.meter.add(operation.notSent, UInt64(lost)) }
    }

    private func appendUniform(_ place: Int, _ link: Link, _ batch: OperationBatch, size: Int, began: NIODeadline) {
        let first = self.clients[place].sequence
        link.append(messages: batch.count, bytes: size * batch.count) { memory in
            guard let model = memory.baseAddress else { return 0 }
            batch.forEach { index, due in
                let sequence = first + UInt64(index)
                let lane = batch.lane(due)
                let message = DueMessage(sequence: sequence, number: sequence, due: due, began: began, lane: lane)
                self.writeMessage(
                    place,
                    message,
                    copying: index == 0 ? nil : UnsafeRawPointer(model),
                    to: model + index * size
                )
            }
            return size * batch.count
        }
    }

    /// - Returns: payload bytes.
    private func appendEach(
        _ place: Int,
        _ link: Link,
        _ batch: OperationBatch,
        size firstSize: Int,
        began: NIODeadline
    ) -> Int {
        let first = self.clients[place].sequence
        var payload = 0
        self.slab.unsentSizes.begin(place)
        let hasStreams = self.load.hasStreams
        batch.forEachOperation { index, due, stream, number in
            let sequence = first + UInt64(index)
            let message = DueMessage(
                sequence: sequence,
                number: hasStreams ? number : sequence,
                stream: stream,
                due: due,
                began: began,
                lane: batch.lane(due)
            )
            let size = index == 0 ? firstSize : self.renderMessage(place, message)
            self.slab.unsentSizes.add(size)
            payload += self.payloadSize
            link.append(messages: 1, bytes: size) { memory in
                guard let base = memory.baseAddress else { return 0 }
                self.writeMessage(place, message, copying: nil, to: base)
                return size
            }
        }
        return payload
    }

    func countSent(_ place: Int, _ operation: OperationMetrics, _ count: Int) {
        guard count > 0 else { return }
        self.meter.add(operation.sent, UInt64(count))
        self.tallies[place].sent += UInt64(count)
    }

    /// Records messages that were due before the write began: their delay from the plan, and the generator's share of
    /// it.
    ///
    /// `blocked`: the metric of what the client's window and socket held back, by stream.
    func recordLag(_ batch: OperationBatch, began: NIODeadline, blocked: (_ stream: Int) -> DurationID) {
        if batch.isDueWhenAble {
            self.meter.record(
                self.metrics.scheduleLag,
                (began - batch.ableSince).nanoseconds,
                count: UInt64(batch.count),
                lane: batch.lane(batch.ableSince)
            )
            return
        }
        batch.forEachOperation { _, due, stream, _ in
            let able = max(due, batch.ableSince)
            let lane = batch.lane(due)
            self.meter.record(blocked(stream), (able - due).nanoseconds, lane: lane)
            self.meter.record(self.metrics.scheduleLag, (began - able).nanoseconds, lane: lane)
        }
    }

    // MARK: - The channel's own buffer

    package func wrote(_ place: Int, bytes: Int) { self.meter.add(self.metrics.traffic.bytesSent, UInt64(bytes)) }

    package func writable(_ place: Int, now: NIODeadline) {
        let count = Int(self.clients[place].unsent)
        if count > 0 {
            self.clients[place].unsent = 0
            self.slab.unsentSizes.forget(place)
            self.settleWritten(place, sent: count, lost: 0)
        }
        guard self.places.isOperator(place), self.clients[place].stage == .up else { return }
        if self.room(place) > 0 || self.shard.isDraining { self.shard.markAble(place, at: now) }
    }

    /// How many of the last messages are whole within the last `bytes` of the last write.
    func wholeMessages(_ place: Int, of count: Int, in bytes: Int) -> Int {
        self.slab.unsentSizes.whole(place, of: count, in: bytes, each: self.clients[place].lastSize)
    }

    package func lostUnsent(_ place: Int, of count: Int, bytes: Int) -> Int {
        self.wholeMessages(place, of: count, in: bytes)
    }

    /// Settles what the kernel did not take of the last write.
    ///
    /// This precedes the settlement of messages in flight.
    func settleUnsent(_ place: Int, bytes: Int) {
        let count = Int(self.clients[place].unsent)
        guard count > 0 else { return }
        let lost = self.lostUnsent(place, of: count, bytes: bytes)
        self.slab.unsentSizes.forget(place)
        self.settleWritten(place, sent: count - lost, lost: lost)
        self.clients[place].unsent = 0
        self.clients[place].lost = Int32(lost)
    }

    // MARK: - Reads

    /// Counts a read before it is decoded.
    func countRead(_ place: Int, _ bytes: UnsafeRawBufferPointer, room: Int) {
        self.tallies[place].reads += 1
        self.tallies[place].bytes += UInt64(bytes.count)
        self.meter.add(self.metrics.traffic.reads)
        self.meter.add(self.metrics.traffic.bytesReceived, UInt64(bytes.count))
        self.meter.add(self.metrics.traffic.decodeBytes, UInt64(bytes.count))
        self.slab.roomBeforeRead = room
        self.slab.times = self.shard.times
    }

    /// A read has been processed.
    ///
    /// If it made room, due messages share one write with the answers to it.
    func sendAfterRead(_ place: Int, madeRoom: Bool, now: NIODeadline) {
        guard self.slab.roomBeforeRead == 0, madeRoom else {
            self.shard.isDraining ? _ = self.shard.checkDrained(place) : self.shard.sleepIfQuiet(place)
            return
        }
        if self.room(place) > 0 {
            self.shard.markAbleInTurn(place, at: now)
        } else {
            self.shard.checkDrained(place)
        }
    }
}
