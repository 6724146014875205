import Ledger
import LoadEngine
import LoopContext
import MQTT
import MQTTCodec
import Measurement
import NIOCore

// Messages that are stored, and that the server of the present connection does not take.
extension StoreGate {
    /// Against what CONNACK said.
    struct Untakeable {
        let place: Int
        let sequence: UInt64
        let reason: ReasonCode
        /// The server may have it from an earlier connection.
        let wasSent: Bool
    }

    /// A publish of this run that leaves for the first time by way of a resumed session.
    struct First {
        let place: Int
        let sequence: UInt64
        let due: NIODeadline
    }

    /// Ends what the server does not take ([MQTT-3.2.2-11], [MQTT-3.2.2-14], [MQTT-3.2.2-15]).
    func giveUpUntakeable() {
        guard !self.untakeable.isEmpty else { return }
        let all = self.untakeable
        self.untakeable = []
        for untakeable in all { self.giveUp(untakeable) }
    }

    private func giveUp(_ untakeable: Untakeable) {
        let (place, sequence) = (untakeable.place, untakeable.sequence)
        guard let kept = self.clients[place].kept[sequence], let id = PacketID(rawValue: kept.id) else { return }
        self.account(untakeable, kept)
        let hadRoom = self.work.sessions[place].room > 0
        if untakeable.wasSent, kept.message.qos == .exactlyOnce, self.work.sessions[place].giveUp(id) {
            // The server may have its identifier, which PUBREL frees there, known or not (§4.3.3).
            self.clients[place].kept[sequence]?.isGivenUp = true
            self.clients[place].kept[sequence]?.message.payload = []
            self.gather(
                place,
                .advance(sequence: sequence, to: .released(id)),
                then: .release(kept.id, session: self.clients[place].session)
            )
            return
        }
        self.work.sessions[place].withdraw(publish: id)
        self.forget(place, sequence)
        self.takeQueued(place)
        guard self.work.clients[place].stage == .up, self.work.places.isOperator(place) else { return }
        if !hadRoom, self.work.room(place) > 0 {
            self.work.shard.markAble(place, at: self.context.now)
        } else {
            self.work.shard.checkDrained(place)
        }
    }

    private func account(_ untakeable: Untakeable, _ kept: Kept) {
        let work = self.work
        let (place, sequence, qos) = (untakeable.place, untakeable.sequence, kept.message.qos)
        let base = self.clients[place].base
        let now = self.context.now
        let whose = sequence < base ? "a publish of an earlier run" : "a publish"
        work.meter.error("not allowed", at: Int64(now.uptimeNanoseconds)) {
            "CONNACK does not allow \(whose): \(untakeable.reason.name)"
        }
        if sequence < base {
            work.meter.add(self.counter(self.metrics.refused, qos))
        } else if !untakeable.wasSent {
            work.clients[place].unknown.insert(sequence - base)
            work.meter.add(work.ids(qos).pointee.operation.notSent)
        } else {
            let own = InFlightPublish(due: kept.due, written: now, sequence: sequence - base, qos: qos)
            let timedOut = work.clients[place].unknown.contains(own.sequence)
            work.abandoned(place, own, .connectionLost(timedOutBefore: timedOut), now: now)
        }
    }
}
