import LoopContext
import MQTTCodec
import NIOCore

// The connection's events; events of an earlier connection are ignored.

extension ClientCore: MQTTConnectionObserver {
    func connected(_ client: Int, _ connack: ConnAck, resumed: Bool, now: NIODeadline) {
        guard client == self.epoch, self.state == .connecting else { return }
        self.connectDeadline = .distantFuture
        self.spreadPing()
        if let assigned = self.session.pointee.assignedClientID, self.clientID.isEmpty { self.clientID = assigned }
        if !resumed {
            if self.session.pointee.isOfAnotherServer { self.takeAlong() }
            self.failDiscarded(.sessionLost)
            self.beginSession()
        } else if self.configuration.acknowledgement != .onReceipt {
            // The server sends unacknowledged messages again, but not those that were acknowledged on receipt.
            self.seed.inbox.removeUnacknowledged()
        }
        let result = MQTTConnectResult(
            sessionPresent: connack.sessionPresent,
            clientID: self.clientID,
            limits: MQTTServerLimits(self.session.pointee.limits),
            properties: connack.properties
        )
        self.change(to: .connected)
        self.tell(.connected(result))
        self.connectWaiter?.complete(.success(result))
        self.connectWaiter = nil
        // A resumed session's own messages come first; they are written already.
        self.settle()
    }

    func read(_ client: Int, _ bytes: UnsafeRawBufferPointer, atBoundary: Bool) {}

    func readEnded(_ client: Int, packets: Int, now: NIODeadline) {
        guard client == self.epoch else { return }
        // The properties belonged to an unexpected answer, and the next message may have its identifier.
        self.told = nil
        self.settle()
    }

    func message(_ client: Int, _ view: PublishView, now: NIODeadline) {
        if client == self.epoch { self.receive(view) }
    }

    func acknowledged(
        _ client: Int,
        _ type: PacketType,
        reason: UInt8,
        _ publish: InFlightPublish,
        finished: Bool,
        timedOut: Bool,
        now: NIODeadline
    ) {
        guard client == self.epoch else { return }
        // Most answers have no properties.
        let properties =
            self.told == nil
            ? Properties() : self.takeProperties(of: type, self.flows.flows[publish.sequence]?.stage.packetID)
        if reason >= 0x80 { self.seed.log.refused(type, ReasonCode(rawValue: reason) ?? .unspecifiedError) }
        if finished {
            self.acknowledged(type, reason: reason, publish, properties: properties)
        } else {
            self.recorded(publish, reason: reason, properties: properties)
        }
    }

    func abandoned(_ client: Int, _ publish: InFlightPublish, _ why: AbandonReason, now: NIODeadline) {
        switch why {
        case .timedOut: self.callers[publish.sequence]?.end(.failure(.timedOut(.acknowledgement)))
        case .connectionLost: self.discarded.append(publish.sequence)
        }
    }

    func resend(_ client: Int, id: UInt16, _ publish: InFlightPublish, now: NIODeadline) {
        guard client == self.epoch else { return }
        // A message is sent twice on one connection only if `repeatsAfter` asks for it; not in MQTT 5 ([MQTT-4.4.0-1]).
        _ = self.write(publish.sequence, repeats: self.session.pointee.options.dupTimeout != nil)
    }

    func subscribed(_ client: Int, _ id: PacketID, codes: [UInt8], now: NIODeadline) {
        guard client == self.epoch else { return }
        for code in codes where code >= 0x80 {
            self.seed.log.refused(.subAck, ReasonCode(rawValue: code) ?? .unspecifiedError)
        }
        self.answered(.subAck, id, codes: codes)
    }

    func unsubscribed(_ client: Int, _ id: PacketID, codes: [UInt8], now: NIODeadline) {
        if client == self.epoch { self.answered(.unsubAck, id, codes: codes) }
    }

    func pingAnswered(_ client: Int, after: TimeAmount, now: NIODeadline) {
        guard client == self.epoch else { return }
        let pings = self.pings
        self.pings = []
        self.spreadPing()
        for waiter in pings { waiter.complete(.success(.nanoseconds(after.nanoseconds))) }
    }

    /// Draws how early the next PINGREQ is.
    private func spreadPing() {
        let jitter = self.configuration.keepAliveJitter
        if jitter > 0 { self.session.pointee.spreadPing(by: Double.random(in: 0...jitter)) }
    }

    func properties(_ client: Int, of type: PacketType, _ id: PacketID, _ properties: Properties, now: NIODeadline) {
        if client == self.epoch { self.told = ToldProperties(type: type, id: id, properties: properties) }
    }

    func released(_ client: Int, _ id: UInt16, now: NIODeadline) {
        guard client == self.epoch, let id = PacketID(rawValue: id) else { return }
        self.forget(id)
    }

    func admits(_ client: Int, _ packet: Packet, now: NIODeadline) -> Bool {
        let hooks = self.configuration.hooks
        guard let trace = MQTTPacketTrace(packet, version: self.configuration.version) else { return true }
        hooks.received?(trace)
        return !(hooks.ignore?(trace) ?? false)
    }

    func sends(_ client: Int, _ bytes: UnsafeRawBufferPointer) {
        guard let hook = self.configuration.hooks.sending else { return }
        var rest = bytes[...]
        while let count = MQTTPacketTrace.size(of: rest), count <= rest.count {
            let packet = Array(rest.prefix(count))
            rest = rest.dropFirst(count)
            if let trace = MQTTPacketTrace(packet, version: self.configuration.version) { hook(trace) }
        }
    }

    func wrote(_ client: Int, bytes: Int) {}

    func writable(_ client: Int, now: NIODeadline) {
        guard client == self.epoch else { return }
        self.written()
    }

    func ending(_ client: Int, unsent: Int) {}

    func wantsTimer(_ client: Int, at deadline: NIODeadline) {
        guard client == self.epoch, let timer = self.connectionTimer else { return }
        if let set = self.connectionTimerAt, set <= deadline { return }
        self.connectionTimerAt = deadline
        self.context.timers.schedule(timer, at: deadline)
    }

    func ended(_ client: Int, _ end: ConnectionEnd, now: NIODeadline) {
        guard client == self.epoch else { return }
        self.flows.connectionEnded()
        self.connection = nil
        self.channel = nil
        self.isPaused = false
        self.connectDeadline = .distantFuture
        self.disconnectDeadline = .distantFuture
        self.connectionTimerAt = nil
        if let timer = self.connectionTimer { self.context.timers.cancel(timer) }
        self.told = nil
        if self.keepsSession {
            // Unacknowledged QoS 1 messages come again with the next connection; QoS 2 messages are recognised by then.
            self.unacknowledged = self.unacknowledged.filter { $0.qos == .exactlyOnce }
        } else {
            self.unacknowledged = []
        }

        let before = self.state
        let error = self.error(for: end, before)
        let waiting: MQTTClientError = before == .disconnecting ? .disconnected : error
        let waiter = self.connectWaiter
        self.connectWaiter = nil
        self.change(to: .closed)
        self.tell(self.event(for: end, before, error))
        waiter?.fail(error)
        self.failDiscarded(waiting)
        self.dropsUnsent = false
        self.failRequests(waiting)
        for waiter in self.disconnectWaiters { waiter.complete(.success(())) }
        self.disconnectWaiters = []
        self.settle()
    }

    private func error(for end: ConnectionEnd, _ state: MQTTClientState) -> MQTTClientError {
        switch end {
        case .answered: .disconnected
        case .refused(let connack): .refused(self.refusal(connack))
        case .notAuthenticated(let error): .notAuthenticated("\(error)")
        case .sessionKept:
            .connectionLost(.protocolError(.protocolError, "the server has a session of this client identifier"))
        case .connackTimedOut: .timedOut(.connack)
        case .pingTimedOut: .connectionLost(.pingTimedOut)
        case .closedByPeer: .connectionLost(.closedByServer)
        case .disconnected(let disconnect): .connectionLost(.disconnected(disconnect.reason, disconnect.properties))
        case .malformed(let error): .connectionLost(.protocolError(error.reason, "\(error)"))
        case .violation(let reason, let words): .connectionLost(.protocolError(reason, words))
        case .insecure(let failure): .noConnection(MQTTConnectFailure(kind: "tls", words: "\(failure)"))
        case .failed(let code): .connectionLost(.failed(errno: code))
        case .aborted: .connectionLost(.aborted)
        }
    }

    private func event(for end: ConnectionEnd, _ state: MQTTClientState, _ error: MQTTClientError) -> MQTTClientEvent {
        if state == .disconnecting { return .closed }
        return switch end {
        case .answered, .aborted: .closed
        case .refused(let connack): .refused(self.refusal(connack))
        case .closedByPeer, .disconnected: .closedByServer(error)
        case .malformed, .violation, .sessionKept: .protocolError(error)
        case .connackTimedOut, .pingTimedOut, .insecure, .failed, .notAuthenticated: .failed(error)
        }
    }

    private func refusal(_ connack: ConnAck) -> MQTTRefusal {
        let version = connack.isVersion3 ? .v311 : self.configuration.version
        return MQTTRefusal(code: connack.code, version: version, properties: connack.properties)
    }

    /// The session is new: stored messages of the server belong to the old one.
    private func beginSession() {
        self.sessionNumber += 1
        self.unacknowledged = []
        self.flows.sessionBegan()
    }
}
