import LoopContext
package import MQTTCodec
package import NIOCore

/// A call that waits for the end of a message of ours at QoS 1 or 2.
struct Caller {
    var waiter: Waiter<MQTTPublishResult>?
    /// The PUBREC, once it came.
    var recorded: RecordedAnswer?

    mutating func end(_ outcome: Waiter<MQTTPublishResult>.Outcome) {
        self.waiter?.complete(outcome)
        self.waiter = nil
    }
}

extension ClientCore {
    func publish(_ message: MQTTMessage, _ waiter: Waiter<MQTTPublishResult>) {
        guard !waiter.isDone else { return }
        if self.held != nil { return self.hold(message, waiter) }
        self.accept(message, waiter, since: self.context.now)
    }

    /// - Parameters:
    ///   - message: a message of the present identity.
    ///   - waiter: its caller, who may have stopped waiting.
    ///   - since: the start of its expiry interval.
    func accept(_ message: MQTTMessage, _ waiter: Waiter<MQTTPublishResult>, since: NIODeadline) {
        if self.configuration.validates, let problem = message.problem(as: self.configuration.version) {
            return waiter.fail(.forbidden(problem))
        }
        if let error = self.aliasProblem(of: message) { return waiter.fail(error) }
        if message.qos == .atMostOnce { return self.publishAtOnce(message, waiter) }
        self.whenLoaded { error in
            if let error {
                waiter.fail(error)
            } else {
                self.enqueue(message, waiter, since: since)
            }
        }
        if case .loading = self.storeState { self.waitingForStore.append(waiter) }
    }

    /// QoS 0: the message is written now, or not at all.
    private func publishAtOnce(_ message: MQTTMessage, _ waiter: Waiter<MQTTPublishResult>) {
        guard self.state == .connected, let connection = self.connection else { return waiter.fail(.notConnected) }
        if let refusal = self.refusal(of: message) { return waiter.fail(.notAllowed(refusal)) }
        connection.write(.publish(self.aliased(Publish(message, age: .zero))))
        self.writing.append(waiter)
        if connection.flush() == 0 { self.written() }
        self.tell()
    }

    /// The kernel has taken all bytes written.
    func written() {
        let writing = self.writing
        self.writing = []
        for waiter in writing { waiter.complete(.success(MQTTPublishResult())) }
    }

    private func enqueue(_ message: MQTTMessage, _ waiter: Waiter<MQTTPublishResult>, since: NIODeadline) {
        let limits = self.configuration.limits
        guard self.flows.flows.count < limits.messages, self.flows.bytes + message.storedSize <= limits.bytes else {
            return waiter.fail(.storeFull)
        }
        let sequence = self.flows.add(message, now: since)
        self.callers[sequence] = Caller(waiter: waiter)
        self.pump()
        // A message with an identifier is in the store's changes already: one change instead of two.
        self.flows.insert(sequence)
        self.settle()
        self.updateReading()
    }

    // MARK: Sending

    /// Assigns identifiers to as many messages as the window has room for; they are sent when the store has them.
    func pump() {
        // A store that failed is waited for: a message that it does not have could not be sent.
        guard !self.flows.waitsToRetry, self.state == .connected, self.session.pointee.state == .connected
        else { return }
        let now = self.context.now
        while self.session.pointee.room > 0, let sequence = self.flows.firstQueued,
            let flow = self.flows.flows[sequence]
        {
            if flow.message.isExpired(after: now - flow.since) {
                self.finish(sequence, .failure(.expired), forgets: true)
                continue
            }
            if let refusal = self.refusal(of: flow.message) {
                self.finish(sequence, .failure(.notAllowed(refusal)), forgets: true)
                continue
            }
            let publish = InFlightPublish(due: now, written: now, sequence: sequence, qos: flow.message.qos)
            guard let id = PacketID(rawValue: self.session.pointee.publish(publish)) else { return }
            self.flows.assign(id, to: sequence)
        }
    }

    private func refusal(of message: MQTTMessage) -> ReasonCode? {
        let limits = self.session.pointee.limits
        let size = limits.maximumPacketSize == nil ? 0 : message.wireSize(as: self.configuration.version)
        return limits.refusal(ofPublish: message.qos, retain: message.retain, size: size)
    }

    /// Appends a message whose commit has returned to the bytes that wait for the next flush.
    ///
    /// - Parameters:
    ///   - sequence: which one.
    ///   - repeats: `true` writes it even if it was written on this connection
    ///     (``MQTTClientConfiguration/repeatsAfter``).
    /// - Returns: whether anything was written.
    func write(_ sequence: UInt64, repeats: Bool = false) -> Bool {
        guard let connection = self.connection, self.state == .connected || self.state == .connecting,
            let publish = self.flows.packet(sequence, repeats: repeats, now: self.context.now)
        else { return false }
        let limits = self.session.pointee.limits
        var refusal = limits.refusal(ofPublish: publish.qos, retain: publish.retain, size: 0)
        if refusal == nil, !connection.write(.publish(self.aliased(publish))) { refusal = .packetTooLarge }
        if let refusal {
            self.flows.refused(sequence, refusal)
            return false
        }
        self.flows.wrote(sequence)
        return true
    }

    // MARK: Ends

    /// Ends a message; with `forgets` the store removes it, if it has it.
    func finish(_ sequence: UInt64, _ outcome: Waiter<MQTTPublishResult>.Outcome, forgets: Bool) {
        self.flows.finish(sequence, forgets: forgets)
        self.callers.removeValue(forKey: sequence)?.waiter?.complete(outcome)
    }

    func acknowledged(_ type: PacketType, reason: UInt8, _ publish: InFlightPublish, properties: Properties) {
        let sequence = publish.sequence
        guard let flow = self.flows.flows[sequence] else { return }
        let reason = ReasonCode(rawValue: reason) ?? .unspecifiedError
        var result = MQTTPublishResult(reason: reason, properties: properties)
        result.packetID = flow.stage.packetID
        if let recorded = self.callers[sequence]?.recorded { result.add(recorded) }
        if reason.isError {
            self.finish(sequence, .failure(.rejected(result)), forgets: true)
        } else {
            if let id = result.packetID, !flow.isGivenUp { self.configuration.hooks.delivered?(flow.message, id) }
            self.finish(sequence, .success(result), forgets: true)
        }
    }

    /// PUBREC came: PUBREL is sent once the store has recorded it.
    func recorded(_ publish: InFlightPublish, reason: UInt8, properties: Properties) {
        guard self.flows.recorded(publish.sequence, keepsPayload: true) else { return }
        let reason = ReasonCode(rawValue: reason) ?? .success
        self.callers[publish.sequence, default: Caller()].recorded = RecordedAnswer(
            reason: reason,
            properties: properties
        )
    }

    /// The session has ended: messages that the server cannot know wait for the next one.
    func failDiscarded(_ error: MQTTClientError) {
        let discarded = self.discarded
        self.discarded = []
        var unsent: [UInt64] = []
        for sequence in discarded {
            if !self.dropsUnsent, self.flows.flows[sequence]?.isUnsent ?? false {
                unsent.append(sequence)
            } else {
                self.finish(sequence, .failure(error), forgets: true)
            }
        }
        self.flows.requeue(unsent)
    }

    /// Ends all messages that were never sent.
    func dropQueue() {
        while let sequence = self.flows.firstQueued { self.finish(sequence, .failure(.disconnected), forgets: true) }
    }
}

extension MQTTMessage {
    func problem(as version: ProtocolVersion) -> PacketProblem? {
        Publish(self, age: .zero).problem(as: version, packetID: false)
    }

    /// Whether the expiry interval has passed, for a message that was never sent (§3.3.2.3.3).
    func isExpired(after age: TimeAmount) -> Bool {
        guard let expiry = self.properties.messageExpiryInterval else { return false }
        return age >= .seconds(Int64(expiry))
    }

    func wireSize(as version: ProtocolVersion) -> Int {
        var buffer = ByteBuffer()
        Packet.publish(Publish(self, age: .zero)).encode(as: version, into: &buffer)
        // The size includes the identifier: a missing one is written as 0.
        return buffer.readableBytes
    }
}

extension Publish {
    /// The packet for a message that has waited for `age`, which lowers its expiry interval (§3.3.2.3.3).
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
