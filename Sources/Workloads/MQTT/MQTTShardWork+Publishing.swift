import Ledger
import LoopContext
package import LoadEngine
package import MQTT
package import MQTTCodec
import Measurement
package import NIOCore

/// What became of the publishes of one QoS, beside what the counters say.
package struct PublishBook: Hashable, Sendable {
    package var timedOut: UInt64 = 0
    /// Refused with a reason of 0x80 or above, or lost with their connection.
    package var failed: UInt64 = 0
    /// Still without an answer when the run ended.
    package var inFlight: UInt64 = 0
    /// QoS 0 whose connection did not end in good order.
    package var unconfirmed: UInt64 = 0
}

extension MQTTShardWork {
    /// In open loop as many messages join one write.
    static var largestJoined: Int { 1_024 }

    /// Bytes of one write, or one message.
    static var largestWrite: Int { 1 << 20 }

    func ids(_ qos: QoS) -> UnsafeMutablePointer<MQTTMetrics.Publish> { self.publishes + Int(qos.rawValue) }

    package func room(_ place: Int) -> Int {
        guard self.clients[place].stage == .up, let connection = self.clients[place].connection,
            connection.isWritable
        else { return 0 }
        if self.clients[place].qos == .atMostOnce { return self.messagesPerWrite }
        return min(self.sessions[place].room, self.largestBatch)
    }

    package func offered(_ place: Int, count: UInt64) {
        self.meter.add(self.ids(self.clients[place].qos).pointee.offered, count)
    }

    package func notSent(_ place: Int, count: UInt64, late: UInt64) {
        self.meter.add(self.ids(self.clients[place].qos).pointee.notSent, count)
    }

    package func isIdle(_ place: Int) -> Bool {
        self.sessions[place].window.awaited == 0 && self.clients[place].unsent == 0
    }

    package func send(_ place: Int, _ batch: OperationBatch) {
        guard let connection = self.clients[place].connection else { return }
        let qos = self.clients[place].qos
        if let store = self.store, qos != .atMostOnce { return store.take(place, batch) }
        let began = self.context.refresh()
        self.recordLag(batch, qos, began: began)
        let first = self.clients[place].sequence
        let alias = self.aliasUse(place)
        let size = self.writer.pointee.begin(
            self.number(place),
            qos: qos,
            message: first,
            now: self.time(began),
            alias: alias
        )
        let isUniform = self.writer.pointee.isUniform && !alias.introducesTopic
        let payload: Int
        if isUniform {
            self.appendUniform(place, connection, batch, qos, size: size, began: began)
            payload = batch.count * self.writer.pointee.payloadSize
        } else {
            payload = self.appendEach(place, connection, batch, qos, size: size, began: began)
        }
        self.clients[place].sequence = first + UInt64(batch.count)
        // All of it is unsent until the kernel took it: the write may find the connection dead and end it.
        self.clients[place].unsent = Int32(batch.count)
        self.clients[place].lastSize = Int32(size)
        self.clients[place].batchEnd = connection.bytesHanded + UInt64(self.context.scratch.pointee.readableBytes)
        if qos != .atMostOnce { self.wantsTimer(place, at: began + self.load.publisherSession.ackTimeout) }
        self.meter.add(self.metrics.traffic.payloadSent, UInt64(payload))
        if alias.introducesTopic { self.clients[place].hasAlias = true }
        let unsent = connection.flush()
        let pending = self.wholeMessages(place, of: batch.count, in: unsent)
        if self.clients[place].connection === connection {
            if !isUniform { self.unsentSizes.end(place, isWhole: unsent == 0) }
            self.clients[place].unsent = Int32(pending)
            self.sent(place, qos, batch.count - pending)
        }
        let ended = self.context.refresh()
        self.recordWrite(batch, qos, ended: ended)
    }

    private func appendUniform(
        _ place: Int,
        _ connection: MQTTConnection,
        _ batch: OperationBatch,
        _ qos: QoS,
        size: Int,
        began: NIODeadline
    ) {
        let first = self.clients[place].sequence
        connection.append(size * batch.count) { memory in
            guard let model = memory.baseAddress else { return 0 }
            batch.forEach { index, due in
                let sequence = first + UInt64(index)
                let id = self.identifier(place, qos, due: due, written: began, sequence: sequence)
                let lane = batch.lane(due)
                if index == 0 {
                    self.writer.pointee.write(id: id, sequence: sequence, due: due, lane: lane, to: model)
                } else {
                    let memory = model + index * size
                    self.writer.pointee.copy(model, id: id, sequence: sequence, due: due, lane: lane, to: memory)
                }
            }
            return size * batch.count
        }
    }

    /// - Returns: bytes of the payloads.
    private func appendEach(
        _ place: Int,
        _ connection: MQTTConnection,
        _ batch: OperationBatch,
        _ qos: QoS,
        size firstSize: Int,
        began: NIODeadline
    ) -> Int {
        let first = self.clients[place].sequence
        var payload = 0
        self.unsentSizes.begin(place)
        batch.forEach { index, due in
            let sequence = first + UInt64(index)
            if index == 1 { self.writer.pointee.introduced() }
            let size = index == 0 ? firstSize : self.writer.pointee.render(message: sequence, now: self.time(began))
            self.unsentSizes.add(size)
            payload += self.writer.pointee.payloadSize
            let id = self.identifier(place, qos, due: due, written: began, sequence: sequence)
            connection.append(size) { memory in
                guard let base = memory.baseAddress else { return 0 }
                self.writer.pointee.write(id: id, sequence: sequence, due: due, lane: batch.lane(due), to: base)
                return size
            }
        }
        return payload
    }

    @inline(__always)
    private func identifier(
        _ place: Int,
        _ qos: QoS,
        due: NIODeadline,
        written: NIODeadline,
        sequence: UInt64
    ) -> UInt16 {
        guard qos != .atMostOnce else { return 0 }
        return self.sessions[place].publish(
            InFlightPublish(due: due, written: written, sequence: sequence, qos: qos)
        )
    }

    func sent(_ place: Int, _ qos: QoS, _ count: Int) {
        guard count > 0 else { return }
        self.meter.add(self.ids(qos).pointee.sent, UInt64(count))
        self.tallies[place].sent += UInt64(count)
    }

    /// What was due before the write began: the plan's view, and the generator's own part of the delay.
    func recordLag(_ batch: OperationBatch, _ qos: QoS, began: NIODeadline) {
        if batch.isDueWhenAble {
            let lane = batch.lane(batch.ableSince)
            self.meter.record(
                self.metrics.scheduleLag,
                (began - batch.ableSince).nanoseconds,
                count: UInt64(batch.count),
                lane: lane
            )
            return
        }
        let blocked = self.ids(qos).pointee.blocked
        batch.forEach { _, due in
            let able = max(due, batch.ableSince)
            let lane = batch.lane(due)
            self.meter.record(blocked, (able - due).nanoseconds, lane: lane)
            self.meter.record(self.metrics.scheduleLag, (began - able).nanoseconds, lane: lane)
        }
    }

    private func recordWrite(_ batch: OperationBatch, _ qos: QoS, ended: NIODeadline) {
        let id = self.ids(qos).pointee.write
        if batch.isDueWhenAble {
            let due = batch.ableSince
            let lane = batch.lane(due)
            self.meter.record(id, (ended - due).nanoseconds, count: UInt64(batch.count), lane: lane)
            return
        }
        batch.forEach { _, due in
            self.meter.record(id, (ended - due).nanoseconds, lane: batch.lane(due))
        }
    }

    // MARK: - Answers

    package func acknowledged(
        _ place: Int,
        _ type: PacketType,
        reason: UInt8,
        _ publish: InFlightPublish,
        finished: Bool,
        timedOut: Bool,
        now: NIODeadline
    ) {
        // Told of as timed out already: late is not acknowledged.
        if timedOut { return }
        let ids = self.ids(publish.qos)
        let response = (now - publish.due).nanoseconds
        let service = (now - publish.written).nanoseconds
        let lane = self.times.lane(publish.due)
        if reason >= 0x80 {
            self.books[publish.qos.rawValue].failed += 1
            self.clients[place].unknown.insert(publish.sequence)
            self.meter.error("\(type.name) 0x\(String(reason, radix: 16))", at: Int64(now.uptimeNanoseconds)) {
                "the server refused a publish: \(ReasonCode(rawValue: reason)?.name ?? "unknown reason")"
            }
            return
        }
        let isFirst = type != .pubComp
        let responseID = isFirst ? ids.pointee.response.first : ids.pointee.response.last
        let serviceID = isFirst ? ids.pointee.service.first : ids.pointee.service.last
        self.meter.record(responseID, response, lane: lane)
        self.meter.record(serviceID, service, lane: lane)
        guard finished else { return }
        self.meter.add(ids.pointee.acked)
        self.tallies[place].acked += 1
        self.clients[place].known += 1
        if response > self.tallies[place].longestAckNanoseconds {
            self.tallies[place].longestAckNanoseconds = response
        }
    }

    package func abandoned(_ place: Int, _ publish: InFlightPublish, _ why: AbandonReason, now: NIODeadline) {
        self.clients[place].unknown.insert(publish.sequence)
        let qos = publish.qos.rawValue
        switch why {
        case .timedOut:
            self.books[qos].timedOut += 1
            self.meter.error("timeout", at: Int64(now.uptimeNanoseconds)) { "no acknowledgement before --ack-timeout" }
            self.shard.checkDrained(place)
        case .connectionLost(timedOutBefore: true):
            break
        case .connectionLost(timedOutBefore: false):
            // The last ones of a connection may never have left this process.
            let firstLost = self.clients[place].sequence - UInt64(self.clients[place].lost)
            if publish.sequence >= firstLost { return }
            if self.clients[place].stage == .finishing || self.clients[place].stage == .finished {
                self.books[qos].inFlight += 1
            } else {
                self.books[qos].failed += 1
            }
        }
    }

    package func resend(_ place: Int, id: UInt16, _ publish: InFlightPublish, now: NIODeadline) {
        let size = self.writer.pointee.begin(
            self.number(place),
            qos: publish.qos,
            message: publish.sequence,
            now: self.time(now)
        )
        self.clients[place].connection?.append(size) { memory in
            guard let base = memory.baseAddress else { return 0 }
            self.writer.pointee.write(
                id: id,
                sequence: publish.sequence,
                due: publish.due,
                lane: self.shard.times.lane(publish.due),
                isDuplicate: true,
                to: base
            )
            return size
        }
        self.meter.add(self.ids(publish.qos).pointee.resent)
    }

    // MARK: - The channel's own buffer

    package func wrote(_ place: Int, bytes: Int) { self.meter.add(self.metrics.traffic.bytesSent, UInt64(bytes)) }

    package func writable(_ place: Int, now: NIODeadline) {
        let count = Int(self.clients[place].unsent)
        if count > 0 {
            self.clients[place].unsent = 0
            self.unsentSizes.forget(place)
            self.sent(place, self.clients[place].qos, count)
        }
        guard self.shard.clients.isOperator(place), self.clients[place].stage == .up else { return }
        if self.room(place) > 0 || self.shard.isDraining { self.shard.able(place, at: now) }
    }

    /// How many of the last messages lie whole in so many bytes at the end of the last write.
    func wholeMessages(_ place: Int, of count: Int, in bytes: Int) -> Int {
        self.unsentSizes.whole(place, of: count, in: bytes, each: self.clients[place].lastSize)
    }

    /// How the client's next message names its topic.
    ///
    /// A client that uses an alias has one topic, so one bit is the whole table: `TopicAliases` would cost a hash for each
    /// message, and a hundred bytes for each client.
    func aliasUse(_ place: Int) -> TopicAliasUse {
        guard let alias = self.load.topicAlias else { return .none }
        let number: UInt16
        switch alias {
        case .automatic: number = 1
        case .fixed(let fixed): number = fixed
        }
        guard number <= self.sessions[place].limits.topicAliasMaximum else { return .none }
        return self.clients[place].hasAlias ? .replaces(number) : .introduces(number)
    }

    /// Decides what the kernel never took of the last write, before the session tells of what was in flight.
    func settleUnsent(_ place: Int, bytes unsentBytes: Int) {
        let count = Int(self.clients[place].unsent)
        guard count > 0 else { return }
        // A session that goes on sends them again; one that ends with its connection never will.
        let ends = self.load.publisherSession.cleanStart || self.clients[place].qos == .atMostOnce
        let handed = self.clients[place].connection?.bytesHanded ?? 0
        let behind = Int(handed - min(handed, self.clients[place].batchEnd))
        let unsent = max(0, unsentBytes - behind)
        let lost = ends ? self.wholeMessages(place, of: count, in: unsent) : 0
        self.unsentSizes.forget(place)
        let qos = self.clients[place].qos
        self.sent(place, qos, count - lost)
        self.meter.add(self.ids(qos).pointee.notSent, UInt64(lost))
        self.clients[place].unsent = 0
        self.clients[place].lost = Int32(lost)
    }

    /// Settles the fate of what QoS 0 sent on a connection.
    func connectionEnded(_ place: Int, isConfirmed: Bool) {
        guard self.shard.clients.isOperator(place), !self.load.qualities.isEmpty, self.load.publishers > 0,
            self.clients[place].qos == .atMostOnce
        else { return }
        let first = self.clients[place].connectionFirst
        let last = self.clients[place].sequence
        self.clients[place].connectionFirst = last
        guard last > first else { return }
        let lost = UInt64(self.clients[place].lost)
        if isConfirmed {
            self.meter.add(self.ids(.atMostOnce).pointee.acked, last - first)
            self.clients[place].known += last - first
            self.tallies[place].acked += last - first
        } else {
            self.books[0].unconfirmed += last - first - lost
            self.clients[place].unknown.insert(first..<last)
        }
    }
}
