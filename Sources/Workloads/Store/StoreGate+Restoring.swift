import LoopContext
import MQTT
import MQTTCodec
import Measurement
import NIOCore

// What an earlier run left.
extension StoreGate {
    /// Takes up what an earlier run left of a client: it goes out again once its session is resumed, and what was never
    /// sent once there is a session at all.
    func restore(_ place: Int, _ messages: [MQTTStoredMessage]) {
        let now = self.opened
        var flows: [(id: UInt16, publish: InFlightPublish, released: Bool)] = []
        var inbound: [UInt16] = []
        for stored in messages {
            if case .received(let id) = stored.stage {
                inbound.append(id.rawValue)
                self.clients[place].inbound.insert(id.rawValue)
                self.inboundSequence = max(self.inboundSequence, stored.sequence)
                continue
            }
            let qos = stored.message.qos
            self.clients[place].base = max(self.clients[place].base, stored.sequence + 1)
            self.work.meter.add(self.counter(self.metrics.restored, qos))
            switch stored.stage {
            case .queued, .received:
                self.clients[place].queued.append(stored)
            case .published(let id), .released(let id):
                let publish = InFlightPublish(due: now, written: now, sequence: stored.sequence, qos: qos)
                flows.append((id.rawValue, publish, stored.stage == .released(id)))
                self.clients[place].kept[stored.sequence] = Kept(
                    id: id.rawValue,
                    message: stored.message,
                    due: now,
                    since: now
                )
            }
        }
        self.clients[place].queued.sort { $0.sequence > $1.sequence }
        self.clients[place].committed = self.clients[place].base
        self.clients[place].written = self.clients[place].base
        self.work.sessions[place].restore(outbound: flows, inbound: inbound)
    }

    // MARK: - What was queued, and never sent

    /// Gives identifiers to what was queued, as far as the window goes: it is sent before anything of this run.
    func takeQueued(_ place: Int) {
        guard !self.clients[place].hasFailed else { return }
        while let stored = self.clients[place].queued.last, self.work.sessions[place].room > 0 {
            let now = self.context.now
            self.clients[place].queued.removeLast()
            let sequence = stored.sequence
            let publish = InFlightPublish(due: now, written: now, sequence: sequence, qos: stored.message.qos)
            let id = self.work.sessions[place].publish(publish)
            guard let packetID = PacketID(rawValue: id) else { return }
            var kept = Kept(id: id, message: stored.message, due: now, since: self.opened)
            kept.progress = .waits
            self.clients[place].kept[sequence] = kept
            self.gather(place, .advance(sequence: sequence, to: .published(packetID)), then: .send(sequence, id))
        }
    }

    /// The identifier of a message that was queued is stored: it goes out, for the first time.
    func sendQueued(_ place: Int, _ sequence: UInt64, id: UInt16) {
        guard let kept = self.clients[place].kept[sequence], kept.id == id, kept.progress == .waits else { return }
        self.clients[place].kept[sequence]?.progress = .unsent
        let now = self.context.now
        // Without a connection it goes out when the session is resumed.
        guard let connection = self.work.clients[place].connection, connection.isUp,
            self.work.sessions[place].writes(id, sequence: sequence, now: now)
        else { return }
        let (_, refusal) = self.append(kept, isRepetition: false, place, to: connection, now: now)
        if let refusal {
            self.untakeable.append(Untakeable(place: place, sequence: sequence, reason: refusal, wasSent: false))
        } else {
            self.clients[place].kept[sequence]?.progress = .sent
            self.work.wantsTimer(place, at: now + self.work.sessions[place].options.ackTimeout)
        }
    }

    /// Queues a message again that was never sent, for its session is gone.
    ///
    /// - Returns: `false` if it is none.
    func requeue(_ place: Int, _ sequence: UInt64) -> Bool {
        guard let kept = self.clients[place].kept[sequence], kept.progress != .sent else { return false }
        self.clients[place].kept[sequence] = nil
        guard !self.clients[place].hasFailed else { return true }
        let stored = MQTTStoredMessage(sequence: sequence, stage: .queued, message: kept.message)
        self.clients[place].queued.append(stored)
        self.clients[place].queued.sort { $0.sequence > $1.sequence }
        self.gather(place, .advance(sequence: sequence, to: .queued))
        return true
    }
}
