import LoadEngine
import LoopContext
import MQTT
import MQTTCodec
import Measurement
import NIOCore

// Connections report here first; the workload hears of its own messages, under its own numbers.
extension StoreGate: MQTTConnectionObserver {
    func connected(_ place: Int, _ connack: ConnAck, resumed: Bool, now: NIODeadline) {
        if self.clients[place].hasFailed {
            self.work.clients[place].connection?.abort()
            return
        }
        if !resumed {
            self.clients[place].session &+= 1
            for id in self.clients[place].inbound {
                if let id = PacketID(rawValue: id) { self.gather(place, .forget(id)) }
            }
            self.clients[place].inbound = []
        }
        self.begin(now: now)
        self.work.connected(place, connack, resumed: resumed, now: now)
        self.settleFirsts()
        self.takeQueued(place)
    }

    func read(_ place: Int, _ bytes: UnsafeRawBufferPointer, atBoundary: Bool) {
        self.work.read(place, bytes, atBoundary: atBoundary)
    }

    func readEnded(_ place: Int, packets: Int, now: NIODeadline) {
        while self.begin(now: now) { self.work.clients[place].connection?.sendHeldBack(now: now) }
        self.settleFirsts()
        // What was queued before this run goes first.
        if !self.clients[place].queued.isEmpty { self.takeQueued(place) }
        self.work.readEnded(place, packets: packets, now: now)
    }

    func message(_ place: Int, _ view: PublishView, now: NIODeadline) {
        self.work.message(place, view, now: now)
        guard self.work.sessions[place].options.acknowledgesMessages == .byOwner,
            let id = PacketID(rawValue: view.packetID)
        else { return }
        switch view.qos {
        case .atMostOnce: break
        case .atLeastOnce: self.work.clients[place].connection?.acknowledge(.atLeastOnce, id: id.rawValue)
        case .exactlyOnce:
            self.inboundSequence += 1
            self.clients[place].inbound.insert(id.rawValue)
            // The message itself has been counted: its identifier is all that a repetition is known by.
            let message = MQTTMessage(topic: "", qos: .exactlyOnce)
            let stored = MQTTStoredMessage(sequence: self.inboundSequence, stage: .received(id), message: message)
            self.gather(place, .insert(stored), then: .record(id.rawValue, session: self.clients[place].session))
            self.noteRecord(place)
        }
    }

    func released(_ place: Int, _ id: UInt16, now: NIODeadline) {
        self.clients[place].inbound.remove(id)
        guard let packetID = PacketID(rawValue: id) else { return }
        self.gather(place, .forget(packetID), then: .complete(id, connection: self.clients[place].connection))
    }

    func acknowledged(
        _ place: Int,
        _ type: PacketType,
        reason: UInt8,
        _ publish: InFlightPublish,
        finished: Bool,
        timedOut: Bool,
        now: NIODeadline
    ) {
        let sequence = publish.sequence
        let isGivenUp = self.clients[place].kept[sequence]?.isGivenUp ?? false
        if finished {
            self.forget(place, sequence)
        } else if let id = self.clients[place].kept[sequence].flatMap({ PacketID(rawValue: $0.id) }) {
            self.clients[place].kept[sequence]?.message.payload = []
            let step = Step.release(id.rawValue, session: self.clients[place].session)
            self.gather(place, .advance(sequence: sequence, to: .released(id)), then: step)
        }
        if isGivenUp { return }
        let base = self.clients[place].base
        if sequence < base {
            if finished { self.endRestored(type, reason: reason, publish.qos, now: now) }
            return
        }
        var own = publish
        own.sequence -= base
        self.work.acknowledged(
            place,
            type,
            reason: reason,
            own,
            finished: finished,
            timedOut: timedOut,
            now: now
        )
    }

    /// A message of an earlier run has its answer.
    private func endRestored(_ type: PacketType, reason: UInt8, _ qos: QoS, now: NIODeadline) {
        if reason < 0x80 { return self.work.meter.add(self.counter(self.metrics.delivered, qos)) }
        self.work.meter.add(self.counter(self.metrics.refused, qos))
        self.work.meter.error("\(type.name) 0x\(String(reason, radix: 16))", at: Int64(now.uptimeNanoseconds)) {
            "the server refused a publish of an earlier run: \(ReasonCode(rawValue: reason)?.name ?? "unknown reason")"
        }
    }

    func abandoned(_ place: Int, _ publish: InFlightPublish, _ why: AbandonReason, now: NIODeadline) {
        let isGivenUp = self.clients[place].kept[publish.sequence]?.isGivenUp ?? false
        switch why {
        case .timedOut:
            // What was not written cannot have been answered; its time begins with the write.
            let isOwn = publish.sequence >= self.clients[place].base
            guard isOwn, !isGivenUp, publish.sequence < self.clients[place].written else {
                self.work.shard.checkDrained(place)
                return
            }
            var own = publish
            own.sequence -= self.clients[place].base
            self.work.abandoned(place, own, .timedOut, now: now)
        case .connectionLost(let timedOutBefore):
            if self.requeue(place, publish.sequence) { return }
            self.forget(place, publish.sequence)
            if isGivenUp { return }
            // The server has no session, so nothing of it may go on ([MQTT-3.2.2-5]).
            if self.abandon(place, publish, timedOut: timedOutBefore, now: now) {
                self.work.meter.add(self.counter(self.metrics.dropped, publish.qos))
            }
        }
    }

    func resend(_ place: Int, id: UInt16, _ publish: InFlightPublish, now: NIODeadline) {
        self.sendAgain(place, publish, now: now)
    }

    func subscribed(_ place: Int, _ id: PacketID, codes: [UInt8], now: NIODeadline) {
        self.work.subscribed(place, id, codes: codes, now: now)
    }

    func unsubscribed(_ place: Int, _ id: PacketID, codes: [UInt8], now: NIODeadline) {
        self.work.unsubscribed(place, id, codes: codes, now: now)
    }

    func pingAnswered(_ place: Int, after: TimeAmount, now: NIODeadline) {
        self.work.pingAnswered(place, after: after, now: now)
    }

    func wrote(_ place: Int, bytes: Int) { self.work.wrote(place, bytes: bytes) }

    func writable(_ place: Int, now: NIODeadline) {
        self.work.writable(place, now: now)
        self.write(place)
    }

    func ending(_ place: Int, unsent: Int) { self.work.ending(place, unsent: unsent) }

    func ended(_ place: Int, _ end: ConnectionEnd, now: NIODeadline) {
        self.clients[place].connection &+= 1
        self.work.ended(place, end, now: now)
        self.settleFirsts()
    }

    func wantsTimer(_ place: Int, at time: NIODeadline) { self.work.wantsTimer(place, at: time) }
}
