import Ledger
import LoadEngine
import LoopContext
import MQTT
import MQTTCodec
import Measurement
import NIOCore

// What is stored and may go out.
extension StoreGate {
    /// Takes a batch of publishes: each has its identifier and its place in the window from now on.
    func take(_ place: Int, _ batch: OperationBatch) {
        let work = self.work
        let began = self.context.refresh()
        let qos = work.clients[place].own.qos
        // From here on it is the client's own store that it waits for, not the generator.
        work.recordLag(batch, work.ids(qos).pointee.operation, began: began)
        let first = work.clients[place].sequence
        let base = self.clients[place].base
        let time = work.time(began)
        _ = work.writer.pointee.begin(work.number(place), qos: qos, message: first, now: time)
        let isUniform = work.writer.pointee.isUniform
        let part = self.part(place)
        batch.forEach { index, due in
            let sequence = first + UInt64(index)
            if index > 0, !isUniform { _ = work.writer.pointee.render(message: sequence, now: time) }
            let message = work.writer.pointee.stored(sequence: sequence, due: due, lane: batch.lane(due))
            let publish = InFlightPublish(due: due, written: began, sequence: base + sequence, qos: qos)
            let id = work.sessions[place].publish(publish)
            guard let packetID = PacketID(rawValue: id) else { return }
            self.clients[place].kept[base + sequence] = Kept(id: id, message: message, due: due, since: began)
            self.gathered[part].changes.append(
                .insert(
                    MQTTStoredMessage(sequence: base + sequence, stage: .published(packetID), message: message)
                )
            )
        }
        work.clients[place].sequence = first + UInt64(batch.count)
        self.gathered[part].publishes += UInt64(batch.count)
        self.gathered[part].end = base + first + UInt64(batch.count)
        self.hurry()
    }

    /// Writes what is stored and was not written yet, with whatever waits in the loop's scratch buffer.
    ///
    /// - Returns: whether anything was written.
    @discardableResult
    func write(_ place: Int) -> Bool {
        var hasWritten = false
        // What a socket does not take at once goes on when it is writable.
        while self.writeOnce(place) { hasWritten = true }
        self.giveUpUntakeable()
        return hasWritten
    }

    private func writeOnce(_ place: Int) -> Bool {
        let work = self.work
        guard self.clients[place].written < self.clients[place].committed,
            let connection = work.clients[place].connection, connection.isUp, connection.isWritable
        else { return false }
        let now = self.context.refresh()
        let count = self.append(place, to: connection, now: now)
        guard count > 0 else { return false }
        let qos = work.clients[place].own.qos
        // All of it is unsent until the kernel took it: the write may find the connection dead and end it.
        work.clients[place].unsent = Int32(count)
        work.clients[place].own.batchEnd = connection.bytesHanded + UInt64(self.context.scratch.pointee.readableBytes)
        work.wantsTimer(place, at: now + work.load.publisherSession.ackTimeout)
        let unsent = connection.flush()
        let pending = work.wholeMessages(place, of: count, in: unsent)
        if work.clients[place].connection === connection {
            work.slab.unsentSizes.end(place, isWhole: unsent == 0)
            work.clients[place].unsent = Int32(pending)
            work.countSent(place, work.ids(qos).pointee.operation, count - pending)
        }
        let ended = self.context.refresh()
        for due in self.dues { self.recordWrite(qos, due: due, ended: ended) }
        return true
    }

    private func recordWrite(_ qos: QoS, due: NIODeadline, ended: NIODeadline) {
        let lane = self.work.shard.times.lane(due)
        self.work.meter.record(self.work.ids(qos).pointee.write, (ended - due).nanoseconds, lane: lane)
    }

    /// Appends the client's messages from the first that was not written; how many.
    private func append(_ place: Int, to connection: MQTTConnection, now: NIODeadline) -> Int {
        let work = self.work
        work.slab.unsentSizes.begin(place)
        self.dues.removeAll(keepingCapacity: true)
        var bytes = 0
        while self.clients[place].written < self.clients[place].committed, bytes < MQTTShardWork.largestWrite {
            let sequence = self.clients[place].written
            if let kept = self.clients[place].kept[sequence] {
                // The server's receive maximum may hold back what a resumed session has: that comes by `resend`.
                guard work.sessions[place].writes(kept.id, sequence: sequence, now: now) else { break }
                let alias = work.aliasUse(place)
                let (size, refusal) = self.append(
                    kept,
                    isRepetition: false,
                    alias: alias,
                    place,
                    to: connection,
                    now: now
                )
                if let refusal {
                    self.untakeable.append(
                        Untakeable(place: place, sequence: sequence, reason: refusal, wasSent: false)
                    )
                } else {
                    bytes += size
                    work.slab.unsentSizes.add(size)
                    self.dues.append(kept.due)
                    work.meter.add(work.metrics.traffic.payloadSent, UInt64(kept.message.payload.count))
                }
            }
            self.clients[place].written = sequence + 1
        }
        return work.slab.unsentSizes.count
    }

    /// Appends one PUBLISH, if the server takes it; its size.
    ///
    /// `alias` is that of the client's topic, for messages of this run: those of others may have another topic.
    func append(
        _ kept: Kept,
        isRepetition: Bool,
        alias: TopicAliasUse = .none,
        _ place: Int,
        to connection: MQTTConnection,
        now: NIODeadline
    ) -> (size: Int, refusal: ReasonCode?) {
        let (qos, retain) = (kept.message.qos, kept.message.retain)
        if let reason = self.work.sessions[place].limits.refusal(ofPublish: qos, retain: retain, size: 0) {
            return (0, reason)
        }
        let before = self.context.scratch.pointee.readableBytes
        var publish = Publish(kept.message, age: now - kept.since)
        publish.packetID = PacketID(rawValue: kept.id)
        // [MQTT-3.3.1-1]
        publish.dup = isRepetition
        if let number = alias.number { publish.properties.append(.topicAlias(number)) }
        if alias.replacesTopic { publish.topic = "" }
        guard connection.write(.publish(publish)) else { return (0, .packetTooLarge) }
        if alias.introducesTopic { self.work.clients[place].own.hasAlias = true }
        return (self.context.scratch.pointee.readableBytes - before, nil)
    }

    /// One publish of a resumed session.
    func sendAgain(_ place: Int, _ publish: InFlightPublish, now: NIODeadline) {
        let sequence = publish.sequence
        // What is not stored yet is written when it is.
        guard sequence < self.clients[place].committed, let kept = self.clients[place].kept[sequence],
            kept.progress != .waits, let connection = self.work.clients[place].connection
        else { return }
        let isFirst = sequence >= self.clients[place].written || kept.progress == .unsent
        let isOfThisRun = sequence >= self.clients[place].base
        let alias = isOfThisRun ? self.work.aliasUse(place) : .none
        let (_, refusal) = self.append(
            kept,
            isRepetition: !isFirst,
            alias: alias,
            place,
            to: connection,
            now: now
        )
        if isFirst, isOfThisRun { self.clients[place].written = sequence + 1 }
        if let refusal {
            self.untakeable.append(Untakeable(place: place, sequence: sequence, reason: refusal, wasSent: !isFirst))
            return
        }
        self.clients[place].kept[sequence]?.progress = .sent
        if isFirst || !isOfThisRun { self.begun.append((place, kept.id, sequence)) }
        guard isOfThisRun else { return }
        if isFirst {
            self.firsts.append(First(place: place, sequence: sequence, due: kept.due))
        } else {
            self.work.meter.add(self.work.ids(publish.qos).pointee.resent)
        }
    }

    /// Counts what a resumed session sent for the first time; it leaves with the answers to the present read.
    ///
    /// If the connection has ended since, none of it left.
    func settleFirsts() {
        guard !self.firsts.isEmpty else { return }
        let firsts = self.firsts
        self.firsts = []
        let ended = self.context.refresh()
        for first in firsts {
            let place = first.place
            guard self.work.clients[place].connection != nil,
                let kept = self.clients[place].kept[first.sequence]
            else {
                self.clients[place].written = min(self.clients[place].written, first.sequence)
                continue
            }
            self.work.meter.add(self.work.metrics.traffic.payloadSent, UInt64(kept.message.payload.count))
            self.work.countSent(place, self.work.ids(kept.message.qos).pointee.operation, 1)
            self.recordWrite(kept.message.qos, due: first.due, ended: ended)
        }
    }

    /// Lets the time of what was sent again begin, now that its session has ended its step, and ends what the server does
    /// not take.
    ///
    /// - Returns: whether there was any of that, so that there may be room for what the receive maximum held back.
    @discardableResult
    func begin(now: NIODeadline) -> Bool {
        if !self.begun.isEmpty {
            for (place, id, sequence) in self.begun {
                _ = self.work.sessions[place].writes(id, sequence: sequence, now: now)
            }
            self.begun.removeAll()
        }
        guard !self.untakeable.isEmpty else { return false }
        self.giveUpUntakeable()
        return true
    }

    /// How many messages of this run the client has begun to send.
    func sentCount(_ place: Int) -> UInt64 { self.clients[place].written - self.clients[place].base }

    // MARK: - Flows that end

    /// The flow is over: nothing of it is kept.
    func forget(_ place: Int, _ sequence: UInt64) {
        self.clients[place].kept[sequence] = nil
        if !self.clients[place].hasFailed { self.gather(place, .remove(sequence: sequence)) }
    }

    /// Accounts for a flow that came to no end.
    ///
    /// - Returns: whether the message is one of an earlier run, which this run's books know nothing of.
    func abandon(_ place: Int, _ publish: InFlightPublish, timedOut: Bool, now: NIODeadline) -> Bool {
        let base = self.clients[place].base
        guard publish.sequence >= base else { return true }
        let work = self.work
        var own = publish
        own.sequence -= base
        let written = self.clients[place].written
        if publish.sequence >= written {
            // It never left.
            work.clients[place].unknown.insert(own.sequence)
            work.meter.add(work.ids(publish.qos).pointee.operation.notSent)
        } else if publish.sequence >= written - min(written, UInt64(work.clients[place].lost)) {
            // The last ones of a connection never left this process, and were counted with its end.
            work.clients[place].unknown.insert(own.sequence)
        } else {
            work.abandoned(place, own, .connectionLost(timedOutBefore: timedOut), now: now)
        }
        return false
    }

    /// What the client's session still holds at the end of the run: the next run finds it in the store.
    func left(_ place: Int, _ publish: InFlightPublish, timedOut: Bool, now: NIODeadline) {
        if self.requeue(place, publish.sequence) { return }
        let isGivenUp = self.clients[place].kept[publish.sequence]?.isGivenUp ?? false
        self.clients[place].kept[publish.sequence] = nil
        if !isGivenUp { _ = self.abandon(place, publish, timedOut: timedOut, now: now) }
    }
}
