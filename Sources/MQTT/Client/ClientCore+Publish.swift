import DequeModule
import LoopContext
package import MQTTCodec
package import NIOCore

/// A message of ours at QoS 1 or 2, from the call to its last acknowledgement.
struct Outgoing {
    var message: MQTTMessage
    var stage = MQTTStoredMessage.Stage.queued
    /// Since when it waits: what its expiry is counted from.
    let since: NIODeadline
    /// The store has been told of it.
    var isInserted = false
    /// The commit that holds its identifier has returned.
    var isCommitted = false
    /// The number of the connection that it was last written on; 0 for none.
    var writtenOn = 0
    /// It has failed, and only its identifier is not free yet.
    var isGivenUp = false
    var waiter: Waiter<MQTTPublishResult>?
    /// Once PUBREC came.
    var recorded: RecordedAnswer?

    /// What it counts towards the limit of bytes.
    var size: Int { self.message.topic.utf8.count + self.message.payload.count }

    mutating func end(_ outcome: Waiter<MQTTPublishResult>.Outcome) {
        self.waiter?.complete(outcome)
        self.waiter = nil
    }
}

extension ClientCore {
    func publish(_ message: MQTTMessage, _ waiter: Waiter<MQTTPublishResult>) {
        guard !waiter.isDone else { return }
        if self.configuration.validates, let problem = message.problem(as: self.configuration.version) {
            waiter.complete(.failure(.forbidden(problem)))
            return
        }
        if let error = self.aliasProblem(of: message) {
            waiter.complete(.failure(error))
            return
        }
        if message.qos == .atMostOnce { return self.publishAtOnce(message, waiter) }
        self.whenLoaded { error in
            if let error {
                waiter.complete(.failure(error))
            } else {
                self.enqueue(message, waiter)
            }
        }
        if case .loading = self.storeState { self.waitingForStore.append(waiter) }
    }

    /// QoS 0: written now, or not at all.
    private func publishAtOnce(_ message: MQTTMessage, _ waiter: Waiter<MQTTPublishResult>) {
        guard self.state == .connected, let connection = self.connection else {
            waiter.complete(.failure(.notConnected))
            return
        }
        if let refusal = self.refusal(of: message) {
            waiter.complete(.failure(.notAllowed(refusal)))
            return
        }
        connection.write(.publish(self.aliased(Publish(message, age: .zero))))
        self.writing.append(waiter)
        if connection.flush() == 0 { self.written() }
        self.tell()
    }

    /// The kernel has taken all that was written.
    func written() {
        let writing = self.writing
        self.writing = []
        for waiter in writing { waiter.complete(.success(MQTTPublishResult())) }
    }

    private func enqueue(_ message: MQTTMessage, _ waiter: Waiter<MQTTPublishResult>) {
        let outgoing = Outgoing(message: message, since: self.context.now, waiter: waiter)
        let limits = self.configuration.limits
        guard self.outgoing.count < limits.messages, self.outgoingBytes + outgoing.size <= limits.bytes else {
            waiter.complete(.failure(.storeFull))
            return
        }
        self.lastSequence += 1
        let sequence = self.lastSequence
        self.outgoing[sequence] = outgoing
        self.outgoingBytes += outgoing.size
        self.queue.append(sequence)
        self.pump()
        // With an identifier already it has been handed to the store as published: one change instead of two.
        if let waiting = self.outgoing[sequence], !waiting.isInserted { self.insert(sequence) }
        self.settle()
        self.updateReading()
    }

    // MARK: Sending

    /// Gives identifiers to as many messages as the window has room for; they go out when the store has them.
    func pump() {
        // A store that failed is waited for: what it has not taken could not be sent anyway.
        guard self.retryAt == .distantFuture, self.state == .connected, self.session.pointee.state == .connected
        else { return }
        let now = self.context.now
        while self.session.pointee.room > 0, let sequence = self.queue.first {
            guard let outgoing = self.outgoing[sequence] else {
                self.queue.removeFirst()
                continue
            }
            if outgoing.message.isExpired(after: now - outgoing.since) {
                self.finish(sequence, .failure(.expired), forgets: true)
                continue
            }
            if let refusal = self.refusal(of: outgoing.message) {
                self.finish(sequence, .failure(.notAllowed(refusal)), forgets: true)
                continue
            }
            self.queue.removeFirst()
            let publish = InFlightPublish(due: now, written: now, sequence: sequence, qos: outgoing.message.qos)
            guard let id = PacketID(rawValue: self.session.pointee.publish(publish)) else { continue }
            self.outgoing[sequence]?.stage = .published(id)
            if outgoing.isInserted {
                // Sent when the store knows the identifier, not when it knows the message: else a killed client's
                // successor sends it again under another one, and those before it are overtaken.
                self.outgoing[sequence]?.isCommitted = false
                self.change(.advance(sequence: sequence, to: .published(id)), then: .send(sequence, id))
            } else {
                self.insert(sequence)
            }
        }
    }

    private func insert(_ sequence: UInt64) {
        guard let outgoing = self.outgoing[sequence] else { return }
        self.outgoing[sequence]?.isInserted = true
        let stored = MQTTStoredMessage(sequence: sequence, stage: outgoing.stage, message: outgoing.message)
        var then = Then.nothing
        if case .published(let id) = outgoing.stage { then = .send(sequence, id) }
        self.change(.insert(stored), then: then)
    }

    private func refusal(of message: MQTTMessage) -> ReasonCode? {
        let limits = self.session.pointee.limits
        let size = limits.maximumPacketSize == nil ? 0 : message.wireSize(as: self.configuration.version)
        return limits.refusal(ofPublish: message.qos, retain: message.retain, size: size)
    }

    /// Appends a message whose commit has returned to what waits for the next flush.
    ///
    /// - Parameters:
    ///   - sequence: which one.
    ///   - repeats: also if it was written on this connection before (``MQTTClientConfiguration/repeatsAfter``).
    /// - Returns: whether there was anything to write.
    func write(_ sequence: UInt64, repeats: Bool = false) -> Bool {
        guard let connection = self.connection, self.state == .connected || self.state == .connecting,
            var outgoing = self.outgoing[sequence], outgoing.isCommitted, repeats || outgoing.writtenOn != self.epoch,
            case .published(let id) = outgoing.stage
        else { return false }
        var publish = Publish(outgoing.message, age: self.context.now - outgoing.since)
        publish.packetID = id
        // [MQTT-3.3.1-1]
        publish.dup = outgoing.writtenOn != 0
        let (message, limits) = (outgoing.message, self.session.pointee.limits)
        var refusal = limits.refusal(ofPublish: message.qos, retain: message.retain, size: 0)
        if refusal == nil, !connection.write(.publish(self.aliased(publish))) { refusal = .packetTooLarge }
        if let refusal {
            self.untakeable.append((sequence, refusal))
            return false
        }
        outgoing.writtenOn = self.epoch
        self.outgoing[sequence] = outgoing
        return true
    }

    // MARK: Ends

    /// A message is done with; with `forgets` the store has to forget it, if it knows of it.
    func finish(_ sequence: UInt64, _ outcome: Waiter<MQTTPublishResult>.Outcome, forgets: Bool) {
        guard var outgoing = self.outgoing.removeValue(forKey: sequence) else { return }
        if self.queue.first == sequence {
            self.queue.removeFirst()
        } else if outgoing.stage == .queued {
            self.queue.removeAll { $0 == sequence }
        }
        self.outgoingBytes -= outgoing.size
        if forgets, outgoing.isInserted { self.change(.remove(sequence: sequence), then: .nothing) }
        outgoing.end(outcome)
    }

    func acknowledged(_ type: PacketType, reason: UInt8, _ publish: InFlightPublish, properties: Properties) {
        let sequence = publish.sequence
        guard let outgoing = self.outgoing[sequence] else { return }
        let reason = ReasonCode(rawValue: reason) ?? .unspecifiedError
        var result = MQTTPublishResult(reason: reason, properties: properties)
        result.packetID = outgoing.stage.packetID
        if let recorded = outgoing.recorded { result.add(recorded) }
        if reason.isError {
            self.finish(sequence, .failure(.rejected(result)), forgets: true)
        } else {
            if let id = result.packetID, !outgoing.isGivenUp {
                self.configuration.hooks.delivered?(outgoing.message, id)
            }
            self.finish(sequence, .success(result), forgets: true)
        }
    }

    /// PUBREC came: PUBREL goes out once the store knows.
    func recorded(_ publish: InFlightPublish, reason: UInt8, properties: Properties) {
        guard case .published(let id)? = self.outgoing[publish.sequence]?.stage else { return }
        let reason = ReasonCode(rawValue: reason) ?? .success
        self.outgoing[publish.sequence]?.recorded = RecordedAnswer(reason: reason, properties: properties)
        self.outgoing[publish.sequence]?.stage = .released(id)
        self.change(.advance(sequence: publish.sequence, to: .released(id)), then: .release(publish.sequence, id))
    }

    /// The session that they belonged to is no more: what the server cannot know of waits for the next one.
    func failDiscarded(_ error: MQTTClientError) {
        let discarded = self.discarded
        self.discarded = []
        var unsent: [UInt64] = []
        for sequence in discarded {
            if !self.dropsUnsent, self.isUnsent(sequence) {
                unsent.append(sequence)
            } else {
                self.finish(sequence, .failure(error), forgets: true)
            }
        }
        for sequence in unsent where self.outgoing[sequence]?.isInserted ?? false {
            self.change(.advance(sequence: sequence, to: .queued), then: .nothing)
        }
        self.requeue(unsent)
    }

    /// What has not been sent is not going to be.
    func dropQueue() {
        let queue = self.queue
        self.queue = []
        for sequence in queue { self.finish(sequence, .failure(.disconnected), forgets: true) }
    }
}

extension MQTTMessage {
    func problem(as version: ProtocolVersion) -> PacketProblem? {
        Publish(self, age: .zero).problem(as: version, packetID: false)
    }

    /// §3.3.2.3.3; of a message that never was sent.
    func isExpired(after age: TimeAmount) -> Bool {
        guard let expiry = self.properties.messageExpiryInterval else { return false }
        return age >= .seconds(Int64(expiry))
    }

    func wireSize(as version: ProtocolVersion) -> Int {
        var buffer = ByteBuffer()
        Packet.publish(Publish(self, age: .zero)).encode(as: version, into: &buffer)
        // The identifier's own bytes are in it: a missing one is written as 0.
        return buffer.readableBytes
    }
}

extension Publish {
    /// The packet for a message that has waited for `age`, which its expiry is lowered by (§3.3.2.3.3).
    package init(_ message: MQTTMessage, age: TimeAmount) {
        var properties = message.properties
        if let expiry = properties.messageExpiryInterval, age.nanoseconds >= 1_000_000_000 {
            let seconds = UInt32(clamping: age.nanoseconds / 1_000_000_000)
            properties.messageExpiryInterval = expiry > seconds ? expiry - seconds : 0
        }
        self.init(
            topic: message.topic,
            payload: ByteBuffer(bytes: message.payload),
            qos: message.qos,
            retain: message.retain,
            properties: properties
        )
    }
}
