import MQTTCodec
import NIOCore

// Packets from the decoder.
extension MQTTConnection {
    func received(_ view: PublishView, now: NIODeadline) -> Bool {
        guard self.session.pointee.state != .connecting else {
            self.refuseBeforeConnack(.publish)
            return false
        }
        // This side announces no topic alias, so none may be used (§3.1.2.11.5).
        if !view.rawProperties.isEmpty, view.topicAlias != nil {
            self.refuse(.topicAliasInvalid, "a topic alias that was not allowed ([MQTT-3.1.2-26])")
            return false
        }
        switch self.session.pointee.receivedPublish(view.qos, id: view.packetID) {
        case .deliver:
            self.observer.message(self.client, view, now: now)
        case .deliverAndAcknowledge:
            self.observer.message(self.client, view, now: now)
            self.acknowledge(.pubAck, view.packetID)
        case .deliverAndRecord:
            self.observer.message(self.client, view, now: now)
            self.acknowledge(.pubRec, view.packetID)
        case .recordAgain:
            self.acknowledge(.pubRec, view.packetID)
        }
        return self.end == nil
    }

    func received(_ type: PacketType, id: UInt16, reason: UInt8, now: NIODeadline) -> Bool {
        guard self.session.pointee.state != .connecting else {
            self.refuseBeforeConnack(type)
            return false
        }
        if type == .pubRel {
            self.complete(id, self.session.pointee.receivedPubRel(id: id))
            return true
        }
        switch self.session.pointee.received(type, id: id, reason: reason) {
        case .completed(let publish, let timedOut):
            self.observer.acknowledged(
                self.client,
                type,
                reason: reason,
                publish,
                finished: true,
                timedOut: timedOut,
                now: now
            )
        case .release(let publish, let timedOut):
            self.acknowledge(.pubRel, id)
            self.tellRecorded(reason, publish, timedOut: timedOut, now: now)
        case .releaseWhenTold(let publish, let timedOut):
            self.tellRecorded(reason, publish, timedOut: timedOut, now: now)
        case .releaseAgain:
            self.acknowledge(.pubRel, id)
        case .unknown where type == .pubRec && self.session.pointee.options.version != .v5:
            // Without PUBREL the peer's flow would never end (3.1.1 §4.3.3). An owner that stores flows decides itself.
            if !self.session.pointee.options.defersReleases { self.acknowledge(.pubRel, id) }
        case .unknown where type == .pubRec:
            if let id = PacketID(rawValue: id) { self.write(.pubRel(PubRel(id, reason: .packetIdentifierNotFound))) }
        case .unknown, .awaitsRelease:
            break
        case .wrongFlow:
            self.refuse(.protocolError, "\(type.name) for a publish of another QoS (§4.3)")
            return false
        }
        return self.end == nil
    }

    private func tellRecorded(_ reason: UInt8, _ publish: InFlightPublish, timedOut: Bool, now: NIODeadline) {
        self.observer.acknowledged(
            self.client,
            .pubRec,
            reason: reason,
            publish,
            finished: false,
            timedOut: timedOut,
            now: now
        )
    }

    /// Sends PUBCOMP, which is always sent; MQTT 5 has a reason code for unknown identifiers (§4.3.3).
    func complete(_ id: UInt16, _ answer: ReasonCode) {
        if answer == .success || self.session.pointee.options.version != .v5 {
            self.acknowledge(.pubComp, id)
        } else if let id = PacketID(rawValue: id) {
            self.write(.pubComp(PubComp(id, reason: answer)))
        }
    }

    func received(_ packet: Packet, now: NIODeadline) -> Bool {
        switch packet {
        case .connAck(let connack):
            self.received(connack, now: now)
        // A server may send DISCONNECT with a reason instead of refusing with CONNACK.
        case .subAck where self.session.pointee.state == .connecting,
            .unsubAck where self.session.pointee.state == .connecting,
            .pingResp where self.session.pointee.state == .connecting:
            self.refuseBeforeConnack(packet.type)
        case .subAck(let answer):
            switch self.session.pointee.received(answer) {
            case .answered: self.observer.subscribed(self.client, answer.packetID, codes: answer.codes, now: now)
            case .unknown: break
            case .mismatch: self.refuse(.protocolError, "SUBACK does not fit its SUBSCRIBE")
            }
        case .unsubAck(let answer):
            switch self.session.pointee.received(answer) {
            case .answered: self.observer.unsubscribed(self.client, answer.packetID, codes: answer.codes, now: now)
            case .unknown: break
            case .mismatch: self.refuse(.protocolError, "UNSUBACK does not fit its UNSUBSCRIBE")
            }
        case .pingResp:
            if let duration = self.session.pointee.pingAnswered(now: now) {
                self.observer.pingAnswered(self.client, after: duration, now: now)
            }
        case .disconnect(let disconnect):
            self.close(.disconnected(disconnect))
        case .auth(let auth):
            self.received(auth, now: now)
        default:
            // The decoder refuses what a server never sends.
            self.refuse(.protocolError, "\(packet.type.name) was not asked for")
        }
        return self.end == nil
    }

    /// The first packet was not CONNACK ([MQTT-3.2.0-1]).
    func refuseBeforeConnack(_ type: PacketType) { self.refuse(.protocolError, "\(type.name) before CONNACK") }

    private func received(_ connack: ConnAck, now: NIODeadline) {
        let wasConnecting = self.session.pointee.state == .connecting
        switch self.session.pointee.received(connack, now: now) {
        case .connected(let resumed):
            // A reason sent now follows a CONNACK, as a DISCONNECT may.
            if wasConnecting, !self.verifyOrClose(connack) { return }
            self.connackDeadline = .distantFuture
            if resumed {
                self.session.pointee.resume(now: now) { id, publish, released in
                    self.sendAgain(id, publish, released: released, now: now)
                }
            } else {
                self.session.pointee.discardState { publish, timedOut in
                    self.observer.abandoned(self.client, publish, .connectionLost(timedOutBefore: timedOut), now: now)
                }
            }
            self.updateTimer()
            self.observer.connected(self.client, connack, resumed: resumed, now: now)
        case .refused:
            self.close(.refused(connack))
        case .sessionKept:
            self.refuse(.protocolError, .sessionKept)
        case .violation(let reason, let words):
            self.refuse(reason, words)
        }
    }
}

/// Passes the decoder's packets to the connection; lives for one read.
struct InboundSink: PacketSink {
    let connection: MQTTConnection
    let now: NIODeadline

    mutating func publish(_ view: PublishView) -> Bool { self.connection.received(view, now: self.now) }

    mutating func acknowledgement(
        _ type: PacketType,
        id: UInt16,
        reason: UInt8,
        rawProperties: UnsafeRawBufferPointer
    ) -> Bool {
        self.connection.received(type, id: id, reason: reason, now: self.now)
    }

    mutating func control(_ packet: Packet) -> Bool { self.connection.received(packet, now: self.now) }
}
