import Ledger
import LoopContext
package import LoadEngine
package import MQTT
package import MQTTCodec
import Measurement
package import NIOCore

/// The outcome of the publishes of one QoS, in addition to the counters.
package struct PublishBook: Hashable, Sendable {
    package var timedOut: UInt64 = 0
    /// Refused with a reason code of 0x80 or above, or lost with their connection.
    package var failed: UInt64 = 0
    /// Without an answer when the run ended.
    package var inFlight: UInt64 = 0
    /// QoS 0 messages whose connection did not end gracefully.
    package var unconfirmed: UInt64 = 0
}

extension MQTTShardWork {
    func ids(_ qos: QoS) -> UnsafeMutablePointer<MQTTMetrics.Publish> { self.publishes + Int(qos.rawValue) }

    package func room(_ place: Int) -> Int {
        guard self.clients[place].stage == .up, let connection = self.clients[place].connection,
            connection.isWritable
        else { return 0 }
        if self.clients[place].own.qos == .atMostOnce { return self.messagesPerWrite }
        return min(self.sessions[place].room, self.largestBatch)
    }

    package func operation(of place: Int) -> OperationMetrics? {
        self.load.qualities.isEmpty ? nil : self.ids(self.clients[place].own.qos).pointee.operation
    }

    package func isIdle(_ place: Int) -> Bool {
        self.sessions[place].window.awaited == 0 && self.clients[place].unsent == 0
    }

    package func send(_ place: Int, _ batch: OperationBatch) {
        guard let connection = self.clients[place].connection else { return }
        let qos = self.clients[place].own.qos
        if let store = self.store, qos != .atMostOnce { return store.take(place, batch) }
        let began = self.context.refresh()
        let ids = self.ids(qos)
        self.recordLag(batch, ids.pointee.operation, began: began)
        self.write(place, connection, batch, ids.pointee.operation, began: began)
        self.recordWrite(batch, qos, ended: self.context.refresh())
    }

    package func beginWrite(_ place: Int, first: UInt64, began: NIODeadline) -> Int {
        self.writer.pointee.begin(
            self.number(place),
            qos: self.clients[place].own.qos,
            message: first,
            now: self.time(began),
            alias: self.aliasUse(place)
        )
    }

    package var isWriteUniform: Bool { self.writer.pointee.isUniform }
    package var payloadSize: Int { self.writer.pointee.payloadSize }

    package func renderMessage(_ place: Int, sequence: UInt64, began: NIODeadline) -> Int {
        self.writer.pointee.introduced()
        return self.writer.pointee.render(message: sequence, now: self.time(began))
    }

    @inline(__always)
    package func writeMessage(
        _ place: Int,
        _ message: DueMessage,
        copying model: UnsafeRawPointer?,
        to memory: UnsafeMutableRawPointer
    ) {
        let qos = self.clients[place].own.qos
        let (sequence, due, lane) = (message.sequence, message.due, message.lane)
        let id = self.identifier(place, qos, due: due, written: message.began, sequence: sequence)
        if let model {
            self.writer.pointee.copy(model, id: id, sequence: sequence, due: due, lane: lane, to: memory)
        } else {
            self.writer.pointee.write(id: id, sequence: sequence, due: due, lane: lane, to: memory)
        }
    }

    package func noteWrite(_ place: Int, _ connection: MQTTConnection, first: UInt64, count: Int, began: NIODeadline) {
        self.clients[place].own.batchEnd = connection.bytesHanded + UInt64(self.context.scratch.pointee.readableBytes)
        if self.clients[place].own.qos != .atMostOnce {
            self.wantsTimer(place, at: began + self.load.publisherSession.ackTimeout)
        }
        if self.writer.pointee.usesAlias { self.clients[place].own.hasAlias = true }
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
        var publish = publish
        if let store = self.store,
            !store.acknowledged(place, type, reason: reason, &publish, finished: finished, now: now)
        {
            return
        }
        // It has already been counted as timed out; a late answer is no acknowledgement.
        if timedOut { return }
        let ids = self.ids(publish.qos)
        let response = (now - publish.due).nanoseconds
        let service = (now - publish.written).nanoseconds
        let lane = self.slab.times.lane(publish.due)
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
        self.clients[place].own.known += 1
        if response > self.tallies[place].longestAckNanoseconds {
            self.tallies[place].longestAckNanoseconds = response
        }
    }

    package func abandoned(_ place: Int, _ publish: InFlightPublish, _ why: AbandonReason, now: NIODeadline) {
        if let store = self.store { return store.abandoned(place, publish, why, now: now) }
        self.noteAbandoned(place, publish, why, now: now)
    }

    func noteAbandoned(_ place: Int, _ publish: InFlightPublish, _ why: AbandonReason, now: NIODeadline) {
        self.clients[place].unknown.insert(publish.sequence)
        let qos = publish.qos.rawValue
        switch why {
        case .timedOut:
            self.books[qos].timedOut += 1
            self.meter.error("timeout", at: Int64(now.uptimeNanoseconds)) {
                "no acknowledgement within the acknowledgement timeout"
            }
            self.shard.checkDrained(place)
        case .connectionLost(timedOutBefore: true):
            break
        case .connectionLost(timedOutBefore: false):
            // The last messages of a connection may never have left this process.
            let firstLost = self.clients[place].sequence - UInt64(self.clients[place].lost)
            if publish.sequence >= firstLost { return }
            if self.clients[place].stage == .finishing || self.clients[place].stage == .finished {
                self.books[qos].inFlight += 1
            } else {
                self.books[qos].failed += 1
            }
        }
    }

    package func afterWritable(_ place: Int) { self.store?.write(place) }

    package func resend(_ place: Int, id: UInt16, _ publish: InFlightPublish, now: NIODeadline) {
        if let store = self.store { return store.resend(place, publish, now: now) }
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

    /// How the client's next message names its topic.
    ///
    /// A client that uses an alias has one topic, so one bit replaces the table. `TopicAliases` would cost a hash per
    /// message and a hundred bytes per client.
    func aliasUse(_ place: Int) -> TopicAliasUse {
        guard let alias = self.load.topicAlias else { return .none }
        let number: UInt16
        switch alias {
        case .automatic: number = 1
        case .fixed(let fixed): number = fixed
        }
        guard number <= self.sessions[place].limits.topicAliasMaximum else { return .none }
        return self.clients[place].own.hasAlias ? .replaces(number) : .introduces(number)
    }

    package func lostUnsent(_ place: Int, of count: Int, bytes unsentBytes: Int) -> Int {
        // A persistent session sends them again; a session that ends with its connection does not.
        guard self.load.publisherSession.cleanStart || self.clients[place].own.qos == .atMostOnce else { return 0 }
        let handed = self.clients[place].connection?.bytesHanded ?? 0
        let behind = Int(handed - min(handed, self.clients[place].own.batchEnd))
        return self.wholeMessages(place, of: count, in: max(0, unsentBytes - behind))
    }

    /// Settles the fate of the QoS 0 messages of a connection.
    package func settleSent(_ place: Int, isConfirmed: Bool) {
        guard self.places.isOperator(place), !self.load.qualities.isEmpty, self.load.publishers > 0,
            self.clients[place].own.qos == .atMostOnce
        else { return }
        let first = self.clients[place].connectionFirst
        let last = self.clients[place].sequence
        self.clients[place].connectionFirst = last
        guard last > first else { return }
        let lost = UInt64(self.clients[place].lost)
        if isConfirmed {
            self.meter.add(self.ids(.atMostOnce).pointee.acked, last - first)
            self.clients[place].own.known += last - first
            self.tallies[place].acked += last - first
        } else {
            self.books[0].unconfirmed += last - first - lost
            self.clients[place].unknown.insert(first..<last)
        }
    }
}
