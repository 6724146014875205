import Ledger
import LoopContext
package import LoadEngine
package import MQTT
import MQTTCodec
import Measurement
package import NIOCore

extension MQTTShardWork {
    func ids(_ qos: QoS, stream: Int = 0) -> UnsafeMutablePointer<MQTTMetrics.Publish> {
        self.publishes + (stream * 3 + Int(qos.rawValue))
    }

    /// The QoS of a client's messages in a stream.
    func qos(_ place: Int, stream: Int) -> QoS {
        self.load.hasStreams
            ? self.load.qos(ofPublisher: self.number(place), stream: stream) : self.clients[place].own.qos
    }

    package func room(_ place: Int) -> Int {
        guard self.clients[place].stage == .up, let connection = self.clients[place].connection,
            connection.isWritable
        else { return 0 }
        if self.clients[place].own.qos == .atMostOnce { return self.messagesPerWrite }
        return min(self.sessions[place].room, self.largestBatch)
    }

    package func operation(of place: Int, stream: Int) -> OperationMetrics? {
        self.load.qualities.isEmpty
            ? nil : self.ids(self.qos(place, stream: stream), stream: stream).pointee.operation
    }

    package func isIdle(_ place: Int) -> Bool {
        self.sessions[place].window.awaited == 0 && self.clients[place].unsent == 0 && self.turns[place] == nil
    }

    package func send(_ place: Int, _ batch: OperationBatch) {
        guard let connection = self.clients[place].connection else { return }
        let began = self.context.refresh()
        self.recordLag(batch, began: began) { stream in
            self.ids(self.qos(place, stream: stream), stream: stream).pointee.operation.blocked
        }
        self.write(place, connection, batch, began: began)
        self.recordWrite(place, batch, ended: self.context.refresh())
    }

    package func beginWrite(_ place: Int, _ batch: OperationBatch, first: UInt64, began: NIODeadline) -> Int {
        guard self.hasManyAudiences else {
            let (qos, alias) = (self.clients[place].own.qos, self.aliasUse(place))
            return self.begin(place, stream: 0, qos: qos, number: first, now: began, alias: alias)
        }
        self.beginTail(place)
        let (stream, number) = batch.operation(0)
        let next = self.load.hasStreams ? number : first
        return self.begin(place, stream: stream, qos: self.qos(place, stream: stream), number: next, now: began)
    }

    /// Points a stream's writer at one message of a client, and returns the message's size.
    @inline(__always)
    func begin(
        _ place: Int,
        stream: Int,
        qos: QoS,
        number: UInt64,
        now: NIODeadline,
        alias: TopicAliasUse = .none
    ) -> Int {
        let writer = self.writers + stream
        let client = self.number(place)
        let size = writer.pointee.begin(client, qos: qos, message: number, now: self.time(now), alias: alias)
        guard self.hasManyAudiences else {
            writer.pointee.audience = self.clients[place].own.audience
            return size
        }
        self.current = stream
        writer.pointee.audience = self.audience(place, of: writer)
        return size
    }

    package var isWriteUniform: Bool { !self.hasManyAudiences && self.writer.pointee.isUniform }
    package var payloadSize: Int { (self.writers + self.current).pointee.payloadSize }

    package func renderMessage(_ place: Int, _ message: DueMessage) -> Int {
        guard self.hasManyAudiences else {
            self.writer.pointee.introduced()
            return self.writer.pointee.render(message: message.sequence, now: self.time(message.began))
        }
        let (stream, qos) = (message.stream, self.qos(place, stream: message.stream))
        return self.begin(place, stream: stream, qos: qos, number: message.number, now: message.began)
    }

    @inline(__always)
    package func writeMessage(
        _ place: Int,
        _ message: DueMessage,
        copying model: UnsafeRawPointer?,
        to memory: UnsafeMutableRawPointer
    ) {
        guard !self.hasManyAudiences else { return self.writeAddressed(place, message, to: memory) }
        let qos = self.clients[place].own.qos
        let (sequence, due, lane) = (message.sequence, message.due, message.lane)
        let id = self.identifier(place, qos, due: due, written: message.began, sequence: sequence)
        if let model {
            self.writer.pointee.copy(model, id: id, sequence: sequence, due: due, lane: lane, to: memory)
        } else {
            self.writer.pointee.write(id: id, sequence: sequence, due: due, lane: lane, to: memory)
        }
        if self.followsRetained { self.noteRetainedWrite(place, 0) }
    }

    /// Writes a message whose audience may be another than that of the message before.
    private func writeAddressed(_ place: Int, _ message: DueMessage, to memory: UnsafeMutableRawPointer) {
        let (stream, qos) = (message.stream, self.qos(place, stream: message.stream))
        let writer = self.writers + stream
        let row = self.published.pointee.row(
            publisher: place * self.load.streams.count + stream,
            audience: writer.pointee.audience
        )
        let due = Int64(bitPattern: message.due.uptimeNanoseconds)
        let sequence = self.published.pointee.take(row, due: due, lane: message.lane)
        self.written.append(WrittenMessage(row: row, sequence: sequence, stream: stream, qos: qos))
        var id: UInt16 = 0
        if qos != .atMostOnce {
            let flight = self.published.pointee.flight(row, sequence: sequence, number: message.number)
            id = self.identifier(place, qos, due: message.due, written: message.began, sequence: flight)
        }
        writer.pointee.write(id: id, sequence: sequence, due: message.due, lane: message.lane, to: memory)
        if self.followsRetained { self.noteRetainedWrite(place, stream) }
    }

    // MARK: - Messages that the kernel has not taken yet

    /// A write that ends its connection may start another client's write.
    private func beginTail(_ place: Int) {
        if self.writing >= 0 { self.tails[self.writing] = self.written }
        self.written.removeAll(keepingCapacity: true)
        self.writing = place
    }

    package func settleWritten(_ place: Int, sent: Int, lost: Int) {
        guard self.hasManyAudiences else {
            guard let operation = self.operation(of: place, stream: 0) else { return }
            self.countSent(place, operation, sent)
            guard lost > 0 else { return }
            self.meter.add(operation.notSent, UInt64(lost))
            let next = self.clients[place].sequence
            let unsent = next - min(next, UInt64(lost))..<next
            self.clients[place].unknown.insert(unsent)
            self.exceptions[place, default: PublishExceptions()].unsent.insert(unsent)
            return
        }
        let isCurrent = self.writing == place
        let all = isCurrent ? self.written : self.tails[place] ?? []
        for message in all.prefix(sent) {
            self.countSent(place, self.ids(message.qos, stream: message.stream).pointee.operation, 1)
        }
        for message in all.dropFirst(sent).suffix(lost) {
            self.meter.add(self.ids(message.qos, stream: message.stream).pointee.operation.notSent)
            self.published.pointee.noteUnsent(message.row, message.sequence)
            self.uncertain += self.copies(place, self.published.pointee.audience(ofRow: message.row))
        }
        let left = sent + lost >= all.count ? [] : Array(all.dropFirst(sent))
        if isCurrent { self.writing = -1 }
        self.tails[place] = left.isEmpty ? nil : left
    }

    package func noteWrite(_ place: Int, _ connection: MQTTConnection, first: UInt64, count: Int, began: NIODeadline) {
        self.latest.pointee.publish = began
        if self.joint != nil, self.subscribes(place) { self.joint?.publishersEnded = began }
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
        return self.sessions[place].publish(InFlightPublish(due: due, written: written, sequence: sequence, qos: qos))
    }

    private func recordWrite(_ place: Int, _ batch: OperationBatch, ended: NIODeadline) {
        if batch.isDueWhenAble {
            let due = batch.ableSince
            let lane = batch.lane(due)
            let id = self.ids(self.clients[place].own.qos).pointee.write
            self.meter.record(id, (ended - due).nanoseconds, count: UInt64(batch.count), lane: lane)
            return
        }
        batch.forEachOperation { _, due, stream, _ in
            let id = self.ids(self.qos(place, stream: stream), stream: stream).pointee.write
            self.meter.record(id, (ended - due).nanoseconds, lane: batch.lane(due))
        }
    }

    package func resend(_ place: Int, id: UInt16, _ publish: InFlightPublish, now: NIODeadline) {
        let flight = self.flight(place, publish)
        let writer = self.writers + flight.stream
        let size = self.begin(place, stream: flight.stream, qos: publish.qos, number: flight.number, now: now)
        self.exceptions[flight.row, default: PublishExceptions()].resent.insert(flight.sequence)
        self.clients[place].connection?.append(size) { memory in
            guard let base = memory.baseAddress else { return 0 }
            writer.pointee.write(
                id: id,
                sequence: flight.sequence,
                due: publish.due,
                lane: self.shard.times.lane(publish.due),
                isDuplicate: true,
                to: base
            )
            return size
        }
        self.meter.add(self.ids(publish.qos, stream: flight.stream).pointee.resent)
    }

    /// How the client's next message names its topic.
    ///
    /// A client that uses an alias has one topic, so one bit replaces the table. `TopicAliases` would cost a hash per
    /// message and a hundred bytes per client.
    func aliasUse(_ place: Int) -> TopicAliasUse {
        guard let alias = self.load.stream.topicAlias else { return .none }
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
        guard self.places.isOperator(place), self.load.publishes else { return }
        // The server has read what came before its FIN. One that receives stays: its last message was acknowledged.
        if !self.subscribes(place) || self.load.qualities.contains(.atMostOnce) {
            self.latest.pointee.publish = self.context.now
        }
        let fate: PublisherLedger.ConnectionFate =
            isConfirmed ? .confirmed : self.isEndedByRun(place) ? .outstanding : .broken
        for stream in self.load.streams.indices where self.qos(place, stream: stream) == .atMostOnce {
            guard self.hasManyAudiences else { return self.settleOnly(place, fate) }
            let publisher = place * self.load.streams.count + stream
            self.published.pointee.endConnection(publisher: publisher, fate) { row, count, unsent in
                let copies = self.copies(place, self.published.pointee.audience(ofRow: row))
                self.book(place, stream: stream, fate, count: count, unsent: unsent, copies: copies)
            }
        }
    }

    /// Settles the messages of a client with one audience, whose copies ``balance`` counts.
    private func settleOnly(_ place: Int, _ fate: PublisherLedger.ConnectionFate) {
        let (first, last) = (self.clients[place].connectionFirst, self.clients[place].sequence)
        self.clients[place].connectionFirst = last
        guard last > first else { return }
        let lost = UInt64(self.clients[place].lost)
        if fate != .confirmed { self.clients[place].unknown.insert(first..<last) }
        // The unsent ones are the last ones of the connection.
        if fate == .outstanding {
            self.exceptions[place, default: PublishExceptions()].outstanding.insert(first..<last - lost)
        }
        self.book(place, stream: 0, fate, count: last - first, unsent: lost, copies: 0)
    }

    /// Books the QoS 0 messages of a connection that has ended.
    private func book(
        _ place: Int,
        stream: Int,
        _ fate: PublisherLedger.ConnectionFate,
        count: UInt64,
        unsent: UInt64,
        copies: Int64
    ) {
        if fate == .confirmed {
            self.meter.add(self.ids(.atMostOnce, stream: stream).pointee.acked, count)
            if !self.load.awaitsAcknowledgement(publisher: self.number(place)) { self.tallies[place].acked += count }
            self.clients[place].own.known += count
            self.received.expected += copies * Int64(count)
            return
        }
        self.books[0].unconfirmed += count - unsent
        self.uncertain += copies * Int64(count - unsent)
        // Nothing tells whether the server has read them.
        guard fate == .broken else { return }
        let end: WritableKeyPath<MessageBook, UInt64> = self.isEndedByPlan(place) ? \.excused : \.broken
        self.books[0][keyPath: end] += count - unsent
    }
}
