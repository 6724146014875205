import LoopContext
import MQTTCodec
import NIOCore

extension ClientCore {
    func receive(_ view: PublishView) {
        // A message with malformed properties is not delivered; the decoder rejects it before.
        guard let properties = try? view.properties() else { return }
        let message = MQTTMessage(
            topic: String(decoding: view.topic, as: UTF8.self),
            payload: view.payload,
            qos: view.qos,
            retain: view.retain,
            properties: properties
        )
        let id = PacketID(rawValue: view.packetID)
        let policy = self.configuration.acknowledgement
        let received = MQTTReceived(
            message: message,
            packetID: id,
            dup: view.dup,
            epoch: view.qos == .exactlyOnce ? self.sessionNumber : self.epoch,
            acknowledger: policy == .manual ? self.seed.inbox : nil
        )
        if let id {
            let taken = received.taken(id)
            self.unacknowledged.insert(taken)
            if policy == .onReceipt { self.acknowledge(taken, .success) }
        }
        if self.seed.inbox.put(received) != .low { self.updateReading() }
    }

    /// Sends PUBACK, or PUBREC once the store has the message.
    func acknowledge(_ taken: Taken, _ reason: ReasonCode) {
        guard self.unacknowledged.remove(taken) != nil else { return }
        // Only MQTT 5 can reject a message; earlier servers see it as accepted.
        let reason = self.configuration.version == .v5 ? reason : .success
        if taken.qos == .exactlyOnce, !reason.isError, self.keepsSession {
            self.flows.received(taken.id)
        } else {
            self.sendAcknowledgement(taken.qos, taken.id, reason)
        }
    }

    func sendAcknowledgement(_ qos: QoS, _ id: PacketID, _ reason: ReasonCode) {
        if let connection = self.connection {
            connection.acknowledge(qos, id: id.rawValue, reason: reason)
        } else if qos == .exactlyOnce {
            // PUBREC is sent when the message comes again.
            _ = self.session.pointee.record(id.rawValue, reason, isUp: false)
        }
    }

    /// PUBREL came: PUBCOMP is sent once the store has removed the message.
    func forget(_ id: PacketID) {
        // A server may release a message that the application has not acknowledged: its flow is over too.
        self.unacknowledged.remove(Taken(epoch: self.sessionNumber, id: id, qos: .exactlyOnce))
        if self.keepsSession { self.flows.released(id) }
    }

    /// Tasks have taken or acknowledged messages.
    func inboxChanged() {
        let (due, resumes) = self.seed.inbox.collect()
        for acknowledgement in due { self.acknowledge(acknowledgement.taken, acknowledgement.reason) }
        if resumes { self.updateReading() }
        self.settle()
    }

    // MARK: Back-pressure

    /// Whether a call waits for something that only reading can bring.
    private var awaitsAnswer: Bool {
        self.session.pointee.window.inFlight > 0 || !self.requests.isEmpty || !self.pings.isEmpty
            || self.reauthentication.isAwaited || self.state == .disconnecting
    }

    /// Pauses or resumes reading from the socket.
    func updateReading() {
        guard let channel = self.channel, self.connection != nil else { return }
        let pauses = self.seed.inbox.pauseIfFull(self.awaitsAnswer ? .overfull : .full)
        guard pauses != self.isPaused else { return }
        self.isPaused = pauses
        // Bytes that the kernel already has still arrive if the server closes.
        try? channel.syncOptions?.setOption(.autoRead, value: !pauses)
        if !pauses { self.session.pointee.received(now: self.context.now) }
    }
}
