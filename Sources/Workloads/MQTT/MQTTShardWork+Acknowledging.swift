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
            self.noteRetained(place, flight, publish.qos, isAcknowledged: false, now: now)
            publish.isReceived = type == .pubComp
            self.recordUnanswered(publish, ids, at: now, as: .failed)
            return self.error(
                "\(type.name) 0x\(String(reason, radix: 16))",
                "the server refused a publish: \(ReasonCode(rawValue: reason)?.name ?? "unknown reason")"
            )
        }
        let isFirst = type != .pubComp
        let responseID = isFirst ? ids.pointee.response.first : ids.pointee.response.last
        let serviceID = isFirst ? ids.pointee.service.first : ids.pointee.service.last
        self.meter.record(responseID, response, lane: lane)
        self.meter.record(serviceID, service, lane: lane)
        guard finished else { return }
        if self.meter.isSlow(.answer, response) {
            self.keepSlow(publish, flight, responseID, response: response, lane: lane)
        }
        // MQTT 5.0 §3.4.2.1: no subscription matched. Once the clients leave, the server may be right.
        if reason == ReasonCode.noMatchingSubscribers.rawValue, self.clients[place].stage == .up {
            self.exceptions[flight.row, default: PublishExceptions()].admitted.insert(flight.sequence)
        }
        self.meter.add(ids.pointee.acked)
        self.tallies[place].acked += 1
        self.noteKnown(place, flight)
        self.noteRetained(place, flight, publish.qos, isAcknowledged: true, now: now)
        if response > self.tallies[place].longestAckNanoseconds {
            self.tallies[place].longestAckNanoseconds = response
        }
    }

    package func oldestInFlight(_ place: Int) -> (due: NIODeadline?, cost: Int) { self.sessions[place].oldestDue }

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
        if isFinal { return self.abandoned(place, publish, .connectionLost(timedOutBefore: false), now: now) }
        let (ids, lane) = (
            self.ids(publish.qos, stream: self.flight(place, publish).stream), self.shard.times.lane(publish.due)
        )
        for (id, since) in [(ids.pointee.response.first, publish.due), (ids.pointee.service.first, publish.written)] {
            self.meter.recordUnanswered(id, self.age(since: since, .outstanding), lane: lane, as: .outstanding)
        }
    }

    @inline(never)
    private func keepSlow(
        _ publish: InFlightPublish,
        _ flight: Flight,
        _ metric: DurationID,
        response: Int64,
        lane: Int
    ) {
        let entry = SlowEntry(
            .answer,
            metric,
            duration: response,
            due: Int64(publish.due.uptimeNanoseconds),
            sender: self.ledgerNumber(ofRow: flight.row),
            audience: self.namedAudience(ofRow: flight.row),
            sequence: flight.sequence,
            written: Int64(publish.written.uptimeNanoseconds)
        )
        self.keepSlow(entry, lane: lane)
    }

    package func abandoned(_ place: Int, _ publish: InFlightPublish, _ why: AbandonReason, now: NIODeadline) {
        let flight = self.flight(place, publish)
        let ids = self.ids(publish.qos, stream: flight.stream)
        // The last messages of a connection may never have left this process.
        if case .connectionLost(timedOutBefore: false) = why,
            self.exceptions[flight.row]?.unsent.contains(flight.sequence) ?? false
        {
            return self.recordUnanswered(publish, ids, at: now, as: .outstanding, isWritten: false)
        }
        self.noteUnknown(place, flight)
        self.noteRetained(place, flight, publish.qos, isAcknowledged: false, now: now)
        let qos = publish.qos.rawValue
        switch why {
        case .timedOut:
            self.books[qos].timedOut += 1
            self.recordUnanswered(publish, ids, at: now, as: .failed)
            self.error("timeout", "no acknowledgement within the acknowledgement timeout")
            self.shard.checkDrained(place)
        case .connectionLost(timedOutBefore: true):
            break
        case .connectionLost(timedOutBefore: false):
            if self.isEndedByPlan(place) {
                self.books[qos].excused += 1
                return
            }
            let isOwnEnd = self.isEndedByRun(place)
            if isOwnEnd {
                self.books[qos].inFlight += 1
                // The server may deliver it: its deliveries are due.
                self.exceptions[flight.row, default: PublishExceptions()].outstanding.insert(flight.sequence)
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

    // MARK: - Requests and their answers (MQTT 5.0 §4.10)

    /// Bytes of the correlation data: the request's sequence number.
    static var correlationBytes: Int { 8 }

    /// Sends a request's payload back to its response topic, at QoS 0, with its correlation data.
    func answer(_ place: Int, _ view: PublishView) {
        guard let connection = self.clients[place].connection else { return }
        guard let request = view.request else {
            return self.error("no request", "a message came to a responder that names no response topic")
        }
        let correlation = request.correlation?.count ?? -1
        // [MQTT-3.3.2-15]: the property length, then identifier, length and data.
        let inner = correlation < 0 ? 0 : 3 + correlation
        let lengthBytes = inner < 128 ? 1 : inner < 16_384 ? 2 : 3
        let frame = PublishFrame(
            topic: request.responseTopic.count,
            payload: view.payload.count,
            qos: .atMostOnce,
            version: .v5,
            properties: lengthBytes + inner
        )
        connection.append(frame.count) { memory in
            guard let base = memory.baseAddress else { return 0 }
            frame.write(dup: false, retain: false, topic: request.responseTopic, id: 0, to: base)
            var end = base + frame.propertiesOffset
            var rest = inner
            for index in 1...lengthBytes {
                end.storeBytes(of: UInt8(rest & 0x7F) | (index < lengthBytes ? 0x80 : 0), as: UInt8.self)
                rest >>= 7
                end += 1
            }
            if let data = request.correlation {
                end.storeBytes(of: PropertyID.correlationData.rawValue, as: UInt8.self)
                end.storeBytes(of: UInt16(data.count).bigEndian, toByteOffset: 1, as: UInt16.self)
                if let bytes = data.baseAddress { (end + 3).copyMemory(from: bytes, byteCount: data.count) }
            }
            if let bytes = view.payload.baseAddress {
                (base + frame.payloadOffset).copyMemory(from: bytes, byteCount: view.payload.count)
            }
            return frame.count
        }
        // The answer shares a write with everything else that this read causes.
        self.meter.add(self.metrics.traffic.payloadSent, UInt64(view.payload.count))
        if let id = self.metrics.answers { self.meter.add(id) }
    }

    /// Whether the answer's correlation data belongs to the request whose payload it carries.
    func isAnswer(_ view: PublishView) -> Bool {
        if let data = view.correlation, data.count == Self.correlationBytes,
            let header = self.header(of: view, now: self.context.now),
            ShortHeader.matches(UInt64(bigEndian: data.loadUnaligned(as: UInt64.self)), header)
        {
            return true
        }
        self.error("correlation", "an answer came whose correlation data is not that of its request")
        return false
    }
}
