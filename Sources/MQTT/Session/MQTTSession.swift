package import MQTTCodec
package import NIOCore

/// The state of one MQTT client, from CONNECT to DISCONNECT and over reconnects.
///
/// Pure: packets and the time go in, actions come out; it reads no clock and opens no socket. It keeps no
/// payload: what a resumed session has to send again, the caller can build anew from the sequence number.
///
/// About 130 bytes a client, 512 more for a window of 16 once it has published at QoS 1 or 2.
///
/// Spec: MQTT 5.0 §3.1, §3.2, §4; MQTT 3.1.1 §3.1, §3.2, §4.
package struct MQTTSession: ~Copyable {
    package enum State: Hashable, Sendable {
        case idle
        case connecting
        case connected
        case disconnecting
    }

    /// What the server said it allows, until the next CONNACK (§3.2.2.3).
    package struct Limits: Hashable, Sendable {
        package var receiveMaximum: UInt16 = 65_535
        package var maximumQoS = QoS.exactlyOnce
        package var retainAvailable = true
        package var maximumPacketSize: UInt32?
        package var topicAliasMaximum: UInt16 = 0
        package var wildcardAvailable = true
        package var subscriptionIdentifiersAvailable = true
        package var sharedAvailable = true
        /// Seconds in force; 0 is off.
        package var keepAlive: UInt16 = 0

        /// What a silent CONNACK means.
        package init() {}

        /// Why a publish must not be sent to this server; `nil` if it may.
        ///
        /// - Parameters:
        ///   - qos: of the publish.
        ///   - retain: whether it is to be retained.
        ///   - size: of the whole packet, in bytes.
        /// - Returns: what the server would answer ([MQTT-3.2.2-11], [MQTT-3.2.2-14], [MQTT-3.2.2-15]).
        package func refusal(ofPublish qos: QoS, retain: Bool, size: Int) -> ReasonCode? {
            if qos > self.maximumQoS { return .qosNotSupported }
            if retain, !self.retainAvailable { return .retainNotSupported }
            if let limit = self.maximumPacketSize, size > Int(limit) { return .packetTooLarge }
            return nil
        }

        /// Why this server would not take a SUBSCRIBE; `nil` if it would (§3.2.2.3.11 to §3.2.2.3.13).
        package func refusal(of subscriptions: [Subscription], hasIdentifier: Bool = false) -> ReasonCode? {
            if hasIdentifier, !self.subscriptionIdentifiersAvailable { return .subscriptionIdentifiersNotSupported }
            for filter in subscriptions.map(\.filter) {
                if !self.sharedAvailable, filter.hasPrefix("$share/") { return .sharedSubscriptionsNotSupported }
                if !self.wildcardAvailable, filter.contains("#") || filter.contains("+") {
                    return .wildcardSubscriptionsNotSupported
                }
            }
            return nil
        }
    }

    package let options: SessionOptions
    package private(set) var state = State.idle
    package private(set) var limits = Limits()
    package private(set) var window: OutboundWindow
    /// Given by the server to a client without an id, and kept for its reconnects (§3.2.2.3.7).
    package private(set) var assignedClientID: String?
    private var inbound = InboundFlows()
    /// Whether this side holds a session that the server may know too.
    private var holdsState = false
    private var lastSent = NIODeadline.distantPast
    private var lastReceived = NIODeadline.distantPast
    /// When the PINGREQ that is unanswered was sent.
    private var pingSent: NIODeadline?
    /// When the first unacknowledged publish times out, or earlier.
    private var ackDeadline = NIODeadline.distantFuture

    package init(_ options: SessionOptions) {
        self.options = options
        self.window = OutboundWindow(limit: options.window)
    }

    // MARK: Connecting

    /// The CONNECT for a new connection.
    ///
    /// Whatever belonged to the last connection ends here; the session itself does not.
    package mutating func connect(
        clientID: String,
        username: String?,
        password: [UInt8]?,
        will: Will? = nil,
        now: NIODeadline
    ) -> Connect {
        self.state = .connecting
        self.pingSent = nil
        self.ackDeadline = .distantFuture
        self.lastSent = now
        self.lastReceived = now
        var properties = Properties()
        if self.options.version == .v5 {
            if let expiry = self.options.sessionExpiry { properties.append(.sessionExpiryInterval(expiry)) }
            if let size = self.options.maximumPacketSize {
                properties.append(.maximumPacketSize(UInt32(clamping: size)))
            }
        }
        return Connect(
            version: self.options.version,
            clientID: clientID.isEmpty ? self.assignedClientID ?? "" : clientID,
            cleanStart: self.options.cleanStart,
            keepAlive: self.options.keepAlive,
            username: username,
            password: password,
            will: will,
            properties: properties
        )
    }

    package enum ConnAckAction: Hashable, Sendable {
        /// Connected. With `resumed` the server kept the session: see ``MQTTSession/resume(now:_:)``.
        case connected(resumed: Bool)
        /// Refused with this return code (3.x) or reason code (5.0); the server closes.
        case refused(UInt8)
        /// The connection has to be closed with this reason (§3.2.2.1.1, [MQTT-3.2.0-2]).
        case violation(ReasonCode, String)
    }

    package mutating func received(_ connack: ConnAck, now: NIODeadline) -> ConnAckAction {
        guard self.state == .connecting else { return .violation(.protocolError, "a second CONNACK") }
        self.lastReceived = now
        guard connack.code == 0 else { return .refused(connack.code) }
        if connack.sessionPresent, !self.holdsState {
            let words = "it kept a session of this id ([MQTT-3.2.2-4]); use other ids, or a clean start"
            return .violation(.protocolError, words)
        }
        self.state = .connected
        self.adopt(connack.properties)
        self.holdsState = !self.options.cleanStart
        return .connected(resumed: connack.sessionPresent)
    }

    private mutating func adopt(_ properties: Properties) {
        var limits = Limits()
        limits.keepAlive = properties.serverKeepAlive ?? self.options.keepAlive
        limits.receiveMaximum = properties.receiveMaximum ?? 65_535
        limits.maximumQoS = properties.maximumQoS.flatMap(QoS.init(rawValue:)) ?? .exactlyOnce
        limits.retainAvailable = properties.retainAvailable ?? true
        limits.maximumPacketSize = properties.maximumPacketSize
        limits.topicAliasMaximum = properties.topicAliasMaximum ?? 0
        limits.wildcardAvailable = properties.wildcardSubscriptionAvailable ?? true
        limits.subscriptionIdentifiersAvailable = properties.subscriptionIdentifierAvailable ?? true
        limits.sharedAvailable = properties.sharedSubscriptionAvailable ?? true
        self.limits = limits
        self.assignedClientID = properties.assignedClientIdentifier ?? self.assignedClientID
        self.window.setLimit(min(self.options.window, Int(limits.receiveMaximum)))
    }

    /// Ends the flows of a session that the server no longer has ([MQTT-3.2.2-5]), or never kept.
    package mutating func discardState(_ body: (InFlightPublish, _ timedOut: Bool) -> Void) {
        self.window.abandon(body)
        self.inbound.removeAll()
    }

    /// Tells what a resumed session sends again, in order (§4.4).
    package mutating func resume(now: NIODeadline, _ body: (_ id: UInt16, InFlightPublish, _ released: Bool) -> Void) {
        self.window.resume(body)
        if self.window.inFlight > 0 { self.ackDeadline = now + self.options.ackTimeout }
    }

    // MARK: Sending

    /// Publishes at QoS 1 or 2 that may go out now.
    package var room: Int { self.state == .connected ? self.window.room : 0 }

    /// Takes an identifier for a publish whose write begins; the caller asks for no more than ``room``.
    package mutating func publish(_ publish: InFlightPublish) -> UInt16 {
        let deadline = publish.written + self.options.ackTimeout
        if deadline < self.ackDeadline { self.ackDeadline = deadline }
        return self.window.begin(publish)
    }

    /// Takes an identifier for a SUBSCRIBE; `nil` while all are in use or nobody is connected.
    package mutating func subscribe(_ filters: Int) -> PacketID? { self.request(.subscribe(filters)) }

    /// The same for an UNSUBSCRIBE.
    package mutating func unsubscribe(_ filters: Int) -> PacketID? { self.request(.unsubscribe(filters)) }

    private mutating func request(_ request: OutboundWindow.Request) -> PacketID? {
        guard self.state == .connected else { return nil }
        return self.window.begin(request).flatMap(PacketID.init(rawValue:))
    }

    package mutating func sent(now: NIODeadline) { self.lastSent = now }

    package mutating func disconnect() { self.state = .disconnecting }

    // MARK: Receiving

    package mutating func received(now: NIODeadline) { self.lastReceived = now }

    package mutating func received(
        _ type: PacketType,
        id: UInt16,
        reason: UInt8
    ) -> OutboundWindow.AckAction {
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
        /// Delivered before: PUBREC once more, and no second delivery ([MQTT-4.3.3-10]).
        case recordAgain
    }

    package mutating func receivedPublish(_ qos: QoS, id: UInt16) -> InboundAction {
        switch qos {
        case .atMostOnce: .deliver
        case .atLeastOnce: .deliverAndAcknowledge
        case .exactlyOnce: self.inbound.begin(id) ? .deliverAndRecord : .recordAgain
        }
    }

    /// The reason for the PUBCOMP that answers a PUBREL; it is always answered (§4.3.3).
    package mutating func receivedPubRel(id: UInt16) -> ReasonCode {
        self.inbound.end(id) ? .success : .packetIdentifierNotFound
    }

    /// The connection is gone, and without a session on the server's side its flows are gone with it.
    package mutating func connectionLost(_ body: (InFlightPublish, _ timedOut: Bool) -> Void) {
        self.state = .idle
        self.pingSent = nil
        self.ackDeadline = .distantFuture
        if self.options.cleanStart { self.discardState(body) }
    }

    // MARK: Time

    package enum TimerAction: Hashable, Sendable {
        case none
        case ping
        /// No PINGRESP in time: the connection is dead.
        case pingTimedOut
    }

    package mutating func pingAnswered(now: NIODeadline) -> TimeAmount? {
        defer { self.pingSent = nil }
        return self.pingSent.map { now - $0 }
    }

    /// When ``timerFired(now:expired:)`` has to be called next, if nothing is sent or received before.
    package var deadline: NIODeadline? {
        guard self.state == .connected || self.state == .disconnecting else { return nil }
        var next = self.ackDeadline
        if let pingSent = self.pingSent {
            next = min(next, pingSent + self.pingTimeout)
        } else if self.limits.keepAlive > 0, self.state == .connected {
            next = min(next, min(self.lastSent, self.lastReceived) + self.keepAlive)
        }
        return next == .distantFuture ? nil : next
    }

    /// Does what time brings.
    ///
    /// - Parameters:
    ///   - now: the time.
    ///   - expired: called for each publish whose acknowledgement is overdue.
    /// - Returns: what the connection has to do about it.
    package mutating func timerFired(now: NIODeadline, expired: (InFlightPublish) -> Void) -> TimerAction {
        if now >= self.ackDeadline {
            let earliest = self.window.expire(writtenBefore: now - self.options.ackTimeout, expired)
            self.ackDeadline = earliest.map { $0 + self.options.ackTimeout } ?? .distantFuture
        }
        guard self.state == .connected else { return .none }
        if let pingSent = self.pingSent {
            return now >= pingSent + self.pingTimeout ? .pingTimedOut : .none
        }
        // Nothing sent, or nothing received: the second finds a half-open link under a client that only sends.
        guard self.limits.keepAlive > 0, now >= min(self.lastSent, self.lastReceived) + self.keepAlive else {
            return .none
        }
        self.pingSent = now
        return .ping
    }

    /// Notes a PINGREQ that the caller sends on its own account.
    package mutating func pings(now: NIODeadline) { self.pingSent = now }

    private var keepAlive: TimeAmount { .seconds(Int64(self.limits.keepAlive)) }

    private var pingTimeout: TimeAmount {
        self.limits.keepAlive == 0 ? self.options.pingTimeout : min(self.keepAlive, self.options.pingTimeout)
    }
}
