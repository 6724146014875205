import Ledger
import LoadEngine
import LoopContext
package import MQTT
package import MQTTCodec
import Measurement
package import NIOCore

// The ends of publishes: an acknowledgement, a refusal, or no answer.
extension MQTTShardWork {
    package func acknowledged(
        _ place: Int,
        _ type: PacketType,
        reason: UInt8,
        _ publish: InFlightPublish,
        finished: Bool,
        timedOut: Bool,
        now: NIODeadline
    ) {
        var publish = publish
        if let store = self.store,
            !store.acknowledged(place, type, reason: reason, &publish, finished: finished, now: now)
        {
            return
        }
        // It has already been counted as timed out; a late answer is no acknowledgement.
        if timedOut { return }
        if self.isLate(place, now) { return self.answeredLate(place, type, publish, isFinal: finished, now: now) }
        let flight = self.flight(place, publish)
        let ids = self.ids(publish.qos, stream: flight.stream)
        let response = (now - publish.due).nanoseconds
        let service = (now - publish.written).nanoseconds
        let lane = self.slab.times.lane(publish.due)
        if reason >= 0x80 {
            self.books[publish.qos.rawValue].failed += 1
            self.noteUnknown(place, flight)
            publish.isReceived = type == .pubComp
            self.recordUnanswered(publish, ids, at: now, as: .failed)
            self.meter.error("\(type.name) 0x\(String(reason, radix: 16))", at: Int64(now.uptimeNanoseconds)) {
                "the server refused a publish: \(ReasonCode(rawValue: reason)?.name ?? "unknown reason")"
            }
            return
        }
        let isFirst = type != .pubComp
        let responseID = isFirst ? ids.pointee.response.first : ids.pointee.response.last
        let serviceID = isFirst ? ids.pointee.service.first : ids.pointee.service.last
        self.meter.record(responseID, response, lane: lane)
        self.meter.record(serviceID, service, lane: lane)
        guard finished else { return }
        if self.meter.isSlow(.answer, response) {
            self.keepSlow(place, publish, flight, responseID, response: response, lane: lane)
        }
        // Once the clients leave, the server may be right.
        if reason == ReasonCode.noMatchingSubscribers.rawValue, self.clients[place].stage == .up {
            self.noteAdmitted(place, flight)
        }
        self.meter.add(ids.pointee.acked)
        self.tallies[place].acked += 1
        self.noteKnown(place, flight)
        if response > self.tallies[place].longestAckNanoseconds {
            self.tallies[place].longestAckNanoseconds = response
        }
    }

    /// The publish was outstanding when the drain ended, and stays so.
    @inline(never)
    private func answeredLate(
        _ place: Int,
        _ type: PacketType,
        _ publish: InFlightPublish,
        isFinal: Bool,
        now: NIODeadline
    ) {
        var publish = publish
        publish.isReceived = type == .pubComp
        if isFinal { return self.noteAbandoned(place, publish, .connectionLost(timedOutBefore: false), now: now) }
        let (ids, lane) = (
            self.ids(publish.qos, stream: self.flight(place, publish).stream), self.shard.times.lane(publish.due)
        )
        for (id, since) in [(ids.pointee.response.first, publish.due), (ids.pointee.service.first, publish.written)] {
            self.meter.recordUnanswered(id, self.age(since: since, .outstanding), lane: lane, as: .outstanding)
        }
    }

    @inline(never)
    private func keepSlow(
        _ place: Int,
        _ publish: InFlightPublish,
        _ flight: Flight,
        _ metric: DurationID,
        response: Int64,
        lane: Int
    ) {
        let audience =
            flight.row < 0
            ? self.clients[place].own.audience : self.published.pointee.audience(ofRow: flight.row)
        var entry = SlowEntry(
            .answer,
            metric,
            duration: response,
            due: Int64(publish.due.uptimeNanoseconds),
            sender: self.deliveries.publisher(group: self.group, stream: flight.stream, client: self.number(place)),
            audience: audience,
            sequence: flight.sequence
        )
        entry.written = Int64(publish.written.uptimeNanoseconds)
        self.keepSlow(entry, lane: lane)
    }

    package func abandoned(_ place: Int, _ publish: InFlightPublish, _ why: AbandonReason, now: NIODeadline) {
        if let store = self.store { return store.abandoned(place, publish, why, now: now) }
        self.noteAbandoned(place, publish, why, now: now)
    }

    func noteAbandoned(_ place: Int, _ publish: InFlightPublish, _ why: AbandonReason, now: NIODeadline) {
        let flight = self.flight(place, publish)
        let ids = self.ids(publish.qos, stream: flight.stream)
        // The last messages of a connection may never have left this process.
        if case .connectionLost(timedOutBefore: false) = why, self.wasUnsent(place, flight) {
            return self.recordUnanswered(publish, ids, at: now, as: .outstanding, isWritten: false)
        }
        self.noteUnknown(place, flight)
        let qos = publish.qos.rawValue
        switch why {
        case .timedOut:
            self.books[qos].timedOut += 1
            self.recordUnanswered(publish, ids, at: now, as: .failed)
            self.meter.error("timeout", at: Int64(now.uptimeNanoseconds)) {
                "no acknowledgement within the acknowledgement timeout"
            }
            self.shard.checkDrained(place)
        case .connectionLost(timedOutBefore: true):
            break
        case .connectionLost(timedOutBefore: false):
            let isOwnEnd = self.isEndedByRun(place)
            if isOwnEnd {
                self.books[qos].inFlight += 1
                self.noteOutstanding(place, flight)
            } else {
                self.books[qos].failed += 1
            }
            self.recordUnanswered(publish, ids, at: now, as: isOwnEnd ? .outstanding : .failed)
        }
    }

    /// Records the age of a publish in each leg that it did not reach; a leg that was not begun has no service time.
    func recordUnanswered(
        _ publish: InFlightPublish,
        _ ids: UnsafeMutablePointer<MQTTMetrics.Publish>,
        at now: NIODeadline,
        as end: UnansweredEnd,
        isWritten: Bool = true
    ) {
        let now = end == .outstanding ? min(now, self.shard.drainEnded ?? now) : now
        let lane = self.shard.times.lane(publish.due)  // The workload's copy is as old as the last read.
        let (response, service) = (ids.pointee.response, ids.pointee.service)
        let isSecondOnly = publish.qos == .atLeastOnce || publish.isReceived
        for (isLeg, response, service) in [
            (!isSecondOnly, response.first, service.first), (true, response.last, service.last),
        ] where isLeg {
            self.meter.recordUnanswered(response, (now - publish.due).nanoseconds, lane: lane, as: end)
            guard isWritten else { continue }
            self.meter.recordUnanswered(service, (now - publish.written).nanoseconds, lane: lane, as: end)
        }
    }
}
