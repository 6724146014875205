package import MQTTCodec
package import NIOCore

/// The state of one MQTT client, from CONNECT to DISCONNECT and over reconnects.
///
/// Pure: packets and the time go in, actions come out; it reads no clock and opens no socket. It stores no payload: the
/// caller rebuilds a message from its sequence number if a resumed session sends it again.
///
/// A session takes about 130 bytes, and 512 more for a window of 16 after the first publish at QoS 1 or 2.
///
/// Spec: MQTT 5.0 §3.1, §3.2, §4; MQTT 3.1.1 §3.1, §3.2, §4.
package struct MQTTSession: ~Copyable {
    package enum State: Hashable, Sendable {
        case idle
        case connecting
        case connected
        case disconnecting
    }

    package private(set) var options: SessionOptions
    package private(set) var state = State.idle
    package private(set) var limits = Limits()
    package internal(set) var window: OutboundWindow
    /// Assigned by the server to a client without an id, and kept for its reconnects (§3.2.2.3.7).
    package private(set) var assignedClientID: String?
    var inbound = InboundFlows()
    /// The flows belong to another server than the one of the next CONNACK, and are not resumed there.
    var isOfAnotherServer = false
    /// Whether this side holds a session that the server may know too.
    private var holdsState = false
    /// DISCONNECT said that the session ends with the connection (§3.14.2.2.2).
    private var endsWithConnection = false
    /// The last connection had a clean start: its state has ended on this side, and the server still has it (MQTT 5).
    private var isLeftBehind = false
    /// The part of the keep-alive, in 65,536ths, by which the next PINGREQ is early.
    var pingEarly: UInt16 = 0
    var lastSent = NIODeadline.distantPast
    var lastReceived = NIODeadline.distantPast
    /// The time of the PINGREQ that is unanswered.
    var pingSent: NIODeadline?
    /// The time of the next check of unacknowledged publishes, or an earlier one.
    var ackDeadline = NIODeadline.distantFuture

    /// The earliest due time among its publishes without an answer, and the slots that were looked at for it.
    package var oldestDue: (due: NIODeadline?, cost: Int) { (self.window.oldestDue, self.window.slotCount) }

    package init(_ options: SessionOptions) {
        self.options = options
        self.window = OutboundWindow(limit: options.window, defersReleases: options.defersReleases)
        self.holdsState = options.takesUpSession && !options.cleanStart
    }

    /// Takes other options between two connections; the flows stay.
    package mutating func adopt(_ options: SessionOptions) {
        self.options = options
        // A clean start asks the server for a session without state.
        if options.cleanStart { self.holdsState = false }
    }

    // MARK: Connecting

    /// The CONNECT for a new connection.
    ///
    /// All state of the last connection ends here; the session itself does not.
    package mutating func connect(
        clientID: String,
        username: String?,
        password: [UInt8]?,
        will: Will? = nil,
        now: NIODeadline
    ) -> Connect {
        self.begin(now: now)
        return Connect(
            version: self.options.version,
            clientID: clientID.isEmpty ? self.assignedClientID ?? "" : clientID,
            cleanStart: self.startsClean,
            keepAlive: self.options.keepAlive,
            username: username,
            password: password,
            will: will,
            properties: self.options.connectProperties
        )
    }

    private var startsClean: Bool {
        self.options.cleanStart || self.isLeftBehind || self.options.sessionEndsWithOwner && !self.holdsState
    }

    /// The same for a CONNECT in raw bytes; only its CONNACK says whether the server kept a session.
    package mutating func connectVerbatim(now: NIODeadline) {
        self.begin(now: now)
        self.holdsState = true
    }

    private mutating func begin(now: NIODeadline) {
        self.state = .connecting
        self.limits = Limits()
        self.pingSent = nil
        self.ackDeadline = .distantFuture
        self.endsWithConnection = false
        self.lastSent = now
        self.lastReceived = now
    }

    /// Restores flows that a client stored before its process ended; called before the first connect.
    ///
    /// With a clean start there is no session to resume: CONNACK ends all these flows, and each is reported.
    ///
    /// - Parameters:
    ///   - outbound: the client's publishes under their identifiers, each once, in the order of their first sending;
    ///     `released` if PUBREC came and was stored.
    ///   - inbound: identifiers of QoS 2 messages that were stored and not yet released.
    package mutating func restore(
        outbound: [(id: UInt16, publish: InFlightPublish, released: Bool)],
        inbound: [UInt16]
    ) {
        // A clean session starts without state, even if an old server's CONNACK has no flag for it.
        self.holdsState = !self.options.cleanStart
        self.window.restore(outbound)
        for id in inbound where id != 0 { _ = self.inbound.begin(id) }
    }

    package enum ConnAckAction: Hashable, Sendable {
        /// Connected. With `resumed` the server kept the session: see ``MQTTSession/resume(now:_:)``.
        case connected(resumed: Bool)
        /// Refused with this return code (3.x, ``ConnAck/isVersion3``) or reason code (5.0); the server closes.
        case refused(UInt8)
        /// The server resumed a session that this side does not hold; the connection has to be closed
        /// ([MQTT-3.2.2-4]).
        case sessionKept
        /// The connection has to be closed with this reason (§3.2.2.1.1, [MQTT-3.2.0-2]).
        case violation(ReasonCode, String)
    }

    package mutating func received(_ connack: ConnAck, now: NIODeadline) -> ConnAckAction {
        guard self.state == .connecting else { return .violation(.protocolError, "a second CONNACK") }
        self.lastReceived = now
        guard connack.code == 0 else { return .refused(connack.code) }
        if let limit = connack.properties.maximumPacketSize, limit < AcknowledgementBytes.count {
            return .violation(.packetTooLarge, "packets of \(limit) bytes at most: no acknowledgement is so small")
        }
        // 3.1 has no such flag: a client that kept its session assumes that the server did too.
        let isPresent = self.options.version == .v31 ? self.holdsState : connack.sessionPresent
        if isPresent, !self.holdsState {
            guard self.startsClean else { return .sessionKept }
            return .violation(.protocolError, "a session is present after a clean start ([MQTT-3.2.2-2])")
        }
        self.state = .connected
        self.adopt(connack.properties)
        // In 3.x a clean session ends with its connection, even if the options want one that persists.
        self.holdsState = !self.options.cleanStart && !(self.isLeftBehind && self.options.version != .v5)
        self.isLeftBehind = self.options.version == .v5 && self.options.cleanStart && self.limits.sessionExpiry > 0
        return .connected(resumed: isPresent && !self.isOfAnotherServer)
    }

    private mutating func adopt(_ properties: Properties) {
        self.limits = Limits(properties, options: self.options)
        self.assignedClientID = properties.assignedClientIdentifier ?? self.assignedClientID
        self.window.setReceiveMaximum(Int(self.limits.receiveMaximum))
    }

    /// Ends the flows of a session that the server no longer has ([MQTT-3.2.2-5]), or never had.
    package mutating func discardState(_ body: (InFlightPublish, _ timedOut: Bool) -> Void) {
        self.window.abandon(body)
        self.inbound.removeAll()
    }

    /// Passes each publish that a resumed session sends again to `body`, in order (§4.4).
    ///
    /// These are all released publishes, and others up to the server's receive maximum; for the rest see
    /// ``nextHeldBack(now:)``.
    package mutating func resume(now: NIODeadline, _ body: (_ id: UInt16, InFlightPublish, _ released: Bool) -> Void) {
        self.window.resume(body)
        if self.window.inFlight > 0 { self.ackDeadline = now + self.options.firstCheck }
        if let age = self.options.dupTimeout { self.window.restartRepeats(now: now, every: age) }
    }

    /// The next publish of a resumed session that the receive maximum now has room for.
    package mutating func nextHeldBack(now: NIODeadline) -> (id: UInt16, publish: InFlightPublish)? {
        guard let next = self.window.nextHeldBack() else { return nil }
        if let age = self.options.dupTimeout {
            self.window.restartRepeats(of: next.id, now: now, every: age)
            self.ackDeadline = min(self.ackDeadline, now + self.options.firstCheck)
        }
        return next
    }

    // MARK: Sending

    /// Publishes at QoS 1 or 2 that may go out now.
    package var room: Int { self.state == .connected ? self.window.room : 0 }

    /// Takes an identifier for a publish that is about to be written; the caller takes at most ``room``.
    package mutating func publish(_ publish: InFlightPublish) -> UInt16 {
        let deadline = publish.written + self.options.firstCheck
        if deadline < self.ackDeadline { self.ackDeadline = deadline }
        return self.window.begin(publish)
    }

    /// Takes an identifier for a SUBSCRIBE; `nil` if all are in use or no connection is up.
    package mutating func subscribe(_ filters: Int) -> PacketID? { self.request(.subscribe(filters)) }

    /// The same for an UNSUBSCRIBE.
    package mutating func unsubscribe(_ filters: Int) -> PacketID? { self.request(.unsubscribe(filters)) }

    private mutating func request(_ request: OutboundWindow.Request) -> PacketID? {
        guard self.state == .connected else { return nil }
        return self.window.begin(request).flatMap(PacketID.init(rawValue:))
    }

    /// Frees the identifier of a request that was not sent.
    mutating func withdraw(_ id: PacketID) { self.window.withdraw(id.rawValue) }

    /// Removes a publish that was not sent, or a QoS 1 publish that is not sent again.
    package mutating func withdraw(publish id: PacketID) { self.window.drop(id.rawValue) }

    /// Ends a QoS 2 publish that may have been sent, and is not sent again.
    ///
    /// Its identifier stays in use because the server may use it too. PUBREL frees it on both sides, even if the server
    /// does not know the message (§4.3.3). ``release(_:)`` sends PUBREL.
    package mutating func giveUp(_ id: PacketID) -> Bool { self.window.giveUp(id.rawValue) }

    /// Releases a QoS 2 publish whose PUBREC came; `false` if none waits for its release.
    package mutating func release(_ id: UInt16) -> Bool { self.window.releaseNow(id) }
    package mutating func sent(now: NIODeadline) { self.lastSent = now }

    package mutating func disconnect(_ disconnect: Disconnect = Disconnect()) {
        self.state = .disconnecting
        // No answer is expected any more.
        self.pingSent = nil
        guard self.options.version == .v5, let expiry = disconnect.properties.sessionExpiryInterval else { return }
        self.limits.sessionExpiry = expiry
        self.endsWithConnection = expiry == 0
    }

    // MARK: Receiving

    package mutating func received(now: NIODeadline) { self.lastReceived = now }

    package mutating func received(_ type: PacketType, id: UInt16, reason: UInt8) -> OutboundWindow.AckAction {
        self.window.received(type, id: id, failed: reason >= 0x80)
    }

    package mutating func received(_ answer: SubAck) -> OutboundWindow.AnswerAction {
        self.window.end(.subscribe(answer.codes.count), id: answer.packetID.rawValue)
    }

    /// An UNSUBACK has a code for each filter from 5.0 on, and none before.
    package mutating func received(_ answer: UnsubAck) -> OutboundWindow.AnswerAction {
        let codes = self.options.version == .v5 ? answer.codes.count : nil
        return self.window.end(.unsubscribe(codes), id: answer.packetID.rawValue)
    }

    package enum InboundAction: Hashable, Sendable {
        case deliver
        case deliverAndAcknowledge
        case deliverAndRecord
        /// Delivered before: PUBREC is sent again without a second delivery ([MQTT-4.3.3-10]).
        case recordAgain
    }

    package mutating func receivedPublish(_ qos: QoS, id: UInt16) -> InboundAction {
        switch qos {
        case .atMostOnce: .deliver
        case .atLeastOnce: .deliverAndAcknowledge
        case .exactlyOnce: self.inbound.begin(id) ? .deliverAndRecord : .recordAgain
        }
    }

    /// The reason for the PUBCOMP that answers a PUBREL; PUBCOMP is always sent (§4.3.3).
    package mutating func receivedPubRel(id: UInt16) -> ReasonCode {
        self.inbound.end(id) ? .success : .packetIdentifierNotFound
    }

    /// QoS 2 messages received and not yet released.
    package var inboundCount: Int { self.inbound.count }

    /// Leaves the PUBREC of a new message to the owner.
    mutating func deferRecord(_ id: UInt16) { self.inbound.deferRecord(id) }
    func isAwaitingRecord(_ id: UInt16) -> Bool { self.inbound.isAwaitingRecord(id) }

    /// The owner's PUBREC; one with an error reason ends the flow when it is sent.
    ///
    /// - Parameters:
    ///   - id: of the message.
    ///   - reason: from 0x80 on it rejects the message; MQTT 5 only.
    ///   - isUp: whether PUBREC is sent now; otherwise it is sent when the message comes again, without a delivery.
    /// - Returns: `false` if the message does not wait for PUBREC.
    package mutating func record(_ id: UInt16, _ reason: ReasonCode, isUp: Bool) -> Bool {
        guard self.inbound.record(id) else { return false }
        guard reason.isError, self.options.version == .v5 else { return true }
        if isUp { _ = self.inbound.end(id) } else { self.inbound.refuse(id, reason) }
        return true
    }

    /// The rejection for a message that came again, if the owner rejected it between two connections.
    mutating func takeRefusal(_ id: UInt16) -> ReasonCode? { self.inbound.takeRefusal(id) }

    /// The connection is lost; if the server keeps no session, the flows end with it.
    package mutating func connectionLost(_ body: (InFlightPublish, _ timedOut: Bool) -> Void) {
        self.state = .idle
        self.pingSent = nil
        self.ackDeadline = .distantFuture
        if self.options.cleanStart || self.endsWithConnection { self.discardState(body) }
    }
}
