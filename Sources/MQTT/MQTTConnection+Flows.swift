package import MQTTCodec
package import NIOCore

// Flow steps that wait for the owner, and retransmissions.
extension MQTTConnection {
    /// Acknowledges a message if ``SessionOptions/acknowledgesMessages`` leaves this to the owner.
    ///
    /// The owner acknowledges in the order of arrival ([MQTT-4.6.0-2], [MQTT-4.6.0-3]). A QoS 1 message of an earlier
    /// connection is not acknowledged, because the server sends it again. A QoS 2 message is acknowledged after it came
    /// again.
    ///
    /// - Parameters:
    ///   - qos: of the message; at QoS 0 nothing is to be done.
    ///   - id: its packet identifier.
    ///   - reason: from 0x80 on it rejects the message; MQTT 5 only.
    ///   - flushes: `false` if the caller flushes later because it has more to send.
    /// - Returns: whether an acknowledgement was sent.
    @discardableResult
    package func acknowledge(_ qos: QoS, id: UInt16, reason: ReasonCode = .success, flushes: Bool = true) -> Bool {
        guard let packetID = PacketID(rawValue: id) else { return false }
        switch qos {
        case .atMostOnce: return false
        case .atLeastOnce:
            guard self.extras?.unacknowledged.remove(id) != nil, self.isUp else { return false }
            self.extras?.returnQuota(inRead: self.isDecoding)
        case .exactlyOnce:
            let isUp = self.isUp
            guard self.session.pointee.record(id, reason, isUp: isUp), isUp else { return false }
            if reason.isError, self.session.pointee.options.version == .v5 { self.endRefused(id) }
        }
        let type: PacketType = qos == .atLeastOnce ? .pubAck : .pubRec
        if reason == .success || self.session.pointee.options.version != .v5 {
            self.acknowledge(type, id)
        } else {
            self.write(
                type == .pubAck ? .pubAck(PubAck(packetID, reason: reason)) : .pubRec(PubRec(packetID, reason: reason))
            )
        }
        if flushes { self.flushUnlessReading() }
        return true
    }

    /// A rejected QoS 2 message no longer counts towards the receive maximum (§4.9).
    private func endRefused(_ id: UInt16) {
        self.extras?.unreleased.remove(id)
        self.extras?.returnQuota(inRead: self.isDecoding)
    }

    /// A QoS 2 message came again: sends PUBREC again, unless the owner has not acknowledged the message yet.
    func recordAgain(_ id: UInt16) {
        if let reason = self.session.pointee.takeRefusal(id), let packetID = PacketID(rawValue: id) {
            self.endRefused(id)
            self.write(.pubRec(PubRec(packetID, reason: reason)))
        } else if !self.session.pointee.isAwaitingRecord(id) {
            self.acknowledge(.pubRec, id)
        }
    }

    /// Sends the PUBREL that ``SessionOptions/defersReleases`` held back.
    ///
    /// If the connection is not up, the session remembers the release and PUBREL is sent when the session resumes.
    ///
    /// - Parameters:
    ///   - id: of the publish.
    ///   - flushes: `false` if the caller flushes later because it has more to send.
    /// - Returns: whether it was sent.
    @discardableResult
    package func release(_ id: UInt16, flushes: Bool = true) -> Bool {
        guard self.session.pointee.release(id), self.isUp else { return false }
        self.acknowledge(.pubRel, id)
        if flushes { self.flushUnlessReading() }
        return true
    }

    /// Sends the PUBCOMP that ``SessionOptions/defersCompletions`` held back.
    ///
    /// If the connection is not up, PUBCOMP is sent when PUBREL has come again and the owner calls this again.
    ///
    /// - Parameters:
    ///   - id: of the message.
    ///   - flushes: `false` if the caller flushes later because it has more to send.
    package func complete(_ id: UInt16, flushes: Bool = true) {
        guard self.isUp else { return }
        self.session.pointee.inbound.completed(id)
        self.acknowledge(.pubComp, id)
        if flushes { self.flushUnlessReading() }
    }

    /// Whether packets of a flow may be sent.
    package var isUp: Bool { self.end == nil && self.session.pointee.state == .connected }

    /// Sends one publish again: of a resumed session, or an overdue one.
    func sendAgain(_ id: UInt16, _ publish: InFlightPublish, released: Bool, now: NIODeadline) {
        if !released { return self.observer.resend(self.client, id: id, publish, now: now) }
        self.acknowledge(.pubRel, id)
    }

    /// Sends publishes of a resumed session that had no room in the server's receive maximum.
    ///
    /// Each read calls this. The owner calls it after it has made room itself.
    package func sendHeldBack(now: NIODeadline) {
        guard self.isUp else { return }
        while let (id, publish) = self.session.pointee.nextHeldBack(now: now) {
            self.observer.resend(self.client, id: id, publish, now: now)
            guard self.isUp else { return }
        }
    }

    /// Sends publishes again that waited too long for an acknowledgement; before MQTT 5 only (3.1 §4.2, 3.1.1 §4.4).
    ///
    /// - Returns: whether any publish was sent again.
    func repeatOverdue(now: NIODeadline) -> Bool {
        let overdue = self.session.pointee.overdue(now: now)
        for (id, publish, released) in overdue {
            guard self.isUp else { break }
            if released, self.session.pointee.options.version == .v31 {
                // 3.1 §2.1 requires DUP on each retransmission; later versions require the bit to be 0.
                self.append(4) { bytes in
                    bytes.copyBytes(from: [0x6A, 2, UInt8(id >> 8), UInt8(truncatingIfNeeded: id)])
                    return 4
                }
            } else {
                self.sendAgain(id, publish, released: released, now: now)
            }
        }
        return !overdue.isEmpty
    }
}
