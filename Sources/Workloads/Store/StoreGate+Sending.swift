import LoadEngine
import LoopContext
import MQTT
import MQTTCodec
import Measurement
import NIOCore
import Transport

// Messages that are stored and may be sent.
extension StoreGate {
    /// Takes a batch of publishes.
    ///
    /// Each of them gets its identifier and its place in the window.
    func take(_ place: Int, _ batch: OperationBatch) {
        let work = self.work
        let began = self.context.refresh()
        let qos = work.clients[place].own.qos
        // The generator's delay ends here; the rest of the time is the client's own store.
        work.recordLag(batch, began: began) { _ in work.ids(qos).pointee.operation.blocked }
        let first = work.clients[place].sequence
        let base = self.clients[place].base
        let time = work.time(began)
        _ = work.writer.pointee.begin(work.number(place), qos: qos, message: first, now: time)
        work.writer.pointee.audience = work.clients[place].own.audience
        let isUniform = work.writer.pointee.isUniform
        batch.forEach { index, due in
            let sequence = first + UInt64(index)
            if index > 0, !isUniform { _ = work.writer.pointee.render(message: sequence, now: time) }
            let message = work.writer.pointee.stored(sequence: sequence, due: due, lane: batch.lane(due))
            let publish = InFlightPublish(due: due, written: began, sequence: base + sequence, qos: qos)
            guard let id = PacketID(rawValue: work.sessions[place].publish(publish)) else { return }
            self.clients[place].flows.add(message, sequence: base + sequence, id, due: due, now: began)
        }
        work.noteDue(place, batch)
        work.clients[place].sequence = first + UInt64(batch.count)
        self.gather(place)
    }

    /// Writes the stored messages that were not written yet, after the content of the loop's scratch buffer.
    ///
    /// - Returns: whether anything was written.
    @discardableResult
    func write(_ place: Int) -> Bool {
        var hasWritten = false
        // The rest follows when the socket is writable.
        while self.writeOnce(place) { hasWritten = true }
        self.giveUpUntakeable(place)
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
            if let publish = self.clients[place].flows.packet(sequence, now: now) {
                // The server's receive maximum may hold back what a resumed session has: that comes by `resend`.
                guard let id = publish.packetID,
                    work.sessions[place].beginWrite(id.rawValue, sequence: sequence, now: now)
                else { break }
                let payload = publish.payload.readableBytes
                let before = connection.wire.unwritten
                if self.append(place, sequence, publish, to: connection) {
                    let size = connection.wire.unwritten - before
                    bytes += size
                    work.slab.unsentSizes.add(size)
                    if let due = self.clients[place].flows.flows[sequence]?.due { self.dues.append(due) }
                    work.meter.add(work.metrics.traffic.payloadSent, UInt64(payload))
                }
            }
            self.clients[place].written = sequence + 1
        }
        return work.slab.unsentSizes.count
    }

    /// Appends one PUBLISH; `false` if the server does not take it.
    ///
    /// The alias is that of the client's topic in this run. Messages of an earlier run may have another topic.
    private func append(_ place: Int, _ sequence: UInt64, _ packet: Publish, to connection: MQTTConnection) -> Bool {
        let limits = self.work.sessions[place].limits
        if let reason = limits.refusal(ofPublish: packet.qos, retain: packet.retain, size: 0) {
            self.clients[place].flows.refused(sequence, reason)
            return false
        }
        let alias = sequence >= self.clients[place].base ? self.work.aliasUse(place) : .none
        var publish = packet
        if let number = alias.number { publish.properties.append(.topicAlias(number)) }
        if alias.replacesTopic { publish.topic = "" }
        guard connection.write(.publish(publish)) else {
            self.clients[place].flows.refused(sequence, .packetTooLarge)
            return false
        }
        if alias.introducesTopic { self.work.clients[place].own.hasAlias = true }
        self.clients[place].flows.wrote(sequence)
        return true
    }

    /// Writes one publish of a resumed session.
    ///
    /// One that is not stored yet is written after its commit.
    func resend(_ place: Int, _ publish: InFlightPublish, now: NIODeadline) {
        let sequence = publish.sequence
        guard let connection = self.work.clients[place].connection,
            let packet = self.clients[place].flows.packet(sequence, repeats: true, now: now)
        else { return }
        let isOfThisRun = sequence >= self.clients[place].base
        let isSent = self.append(place, sequence, packet, to: connection)
        if !packet.dup, isOfThisRun { self.clients[place].written = sequence + 1 }
        guard isSent else { return }
        if !packet.dup || !isOfThisRun, let id = packet.packetID { self.begun.append((place, id.rawValue, sequence)) }
        guard isOfThisRun else { return }
        if packet.dup {
            self.work.meter.add(self.work.ids(publish.qos).pointee.resent)
        } else {
            self.firsts.append((place, sequence))
        }
    }

    /// Counts the messages that a resumed session sent for the first time.
    ///
    /// They leave with the answers to the present read. If the connection has ended since, none of them left.
    func settleFirsts() {
        guard !self.firsts.isEmpty else { return }
        let firsts = self.firsts
        self.firsts = []
        let ended = self.context.refresh()
        for (place, sequence) in firsts {
            guard self.work.clients[place].connection != nil, let flow = self.clients[place].flows.flows[sequence]
            else {
                self.clients[place].flows.wrote(sequence, false)
                self.clients[place].written = min(self.clients[place].written, sequence)
                continue
            }
            let qos = flow.message.qos
            self.work.meter.add(self.work.metrics.traffic.payloadSent, UInt64(flow.message.payload.count))
            self.work.countSent(place, self.work.ids(qos).pointee.operation, 1)
            self.recordWrite(qos, due: flow.due, ended: ended)
        }
    }

    /// Starts the acknowledgement timeouts of messages that were sent again, and ends messages that CONNACK does not allow.
    ///
    /// Called after the step of the session that sent them.
    ///
    /// - Returns: whether a message was ended, which may make room in the receive maximum.
    @discardableResult
    func begin(_ place: Int, now: NIODeadline) -> Bool {
        for (place, id, sequence) in self.begun {
            _ = self.work.sessions[place].beginWrite(id, sequence: sequence, now: now)
        }
        self.begun.removeAll()
        return self.giveUpUntakeable(place)
    }

    // MARK: - Messages that an earlier run never sent

    /// Assigns identifiers to queued messages while the window has room.
    ///
    /// They are sent before those of this run.
    func takeQueued(_ place: Int) {
        guard !self.clients[place].hasFailed else { return }
        let now = self.context.now
        while self.work.sessions[place].room > 0, let sequence = self.clients[place].flows.firstQueued,
            let qos = self.clients[place].flows.flows[sequence]?.message.qos
        {
            let publish = InFlightPublish(due: now, written: now, sequence: sequence, qos: qos)
            guard let id = PacketID(rawValue: self.work.sessions[place].publish(publish)) else { return }
            self.clients[place].flows.assign(id, to: sequence)
        }
        self.gather(place)
    }

    /// Sends a queued message for the first time, after the commit of its identifier.
    func sendQueued(_ place: Int, _ sequence: UInt64) {
        let now = self.context.now
        // Without a connection the message is sent when the session is resumed.
        guard let connection = self.work.clients[place].connection, connection.isUp,
            let packet = self.clients[place].flows.packet(sequence, now: now), let id = packet.packetID,
            self.work.sessions[place].beginWrite(id.rawValue, sequence: sequence, now: now),
            self.append(place, sequence, packet, to: connection)
        else { return }
        self.work.wantsTimer(place, at: now + self.work.sessions[place].options.ackTimeout)
    }
}
