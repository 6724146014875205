import MQTTCodec
import NIOCore

// Wills.
//
// Spec: MQTT 5.0 §3.1.2.5, §3.1.3.2.
extension Broker {
    /// The connection ended without DISCONNECT 0x00: its will is published now or after its delay.
    mutating func releaseWill(_ will: StoredWill, of session: Int32, now: NIODeadline) {
        guard will.delay > 0, let kept = self.sessions[Int(session)].kept, kept.ticket > 0 else {
            return self.publish(will, of: session, now: now)
        }
        let due = now + .seconds(Int64(will.delay))
        kept.will = will
        kept.willDue = due
        // The session ends first, and its end publishes the will.
        if let end = kept.endsAt, end < due { return }
        self.sessionsDue.add(DueQueue.Entry(due: due, session: session, ticket: kept.ticket))
        self.tidyDue()
    }

    mutating func publish(_ will: StoredWill, of session: Int32, now: NIODeadline) {
        self.tally.wills[will.qos] += 1
        let kept = KeptMessage(
            topic: will.topic,
            payload: will.payload,
            properties: will.properties,
            qos: will.qos,
            retain: will.retain
        )
        kept.withView { view in
            if view.retain { self.retain(view, now: now) }
            self.distribute(view, from: MessageSource(session: session, connection: -1), now: now)
        }
    }
}
