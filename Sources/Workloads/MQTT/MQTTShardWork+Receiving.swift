import Ledger
import LoopContext
package import LoadEngine
import MQTT
package import MQTTCodec
import Measurement
package import NIOCore

extension MQTTShardWork {
    package func read(_ place: Int, _ bytes: UnsafeRawBufferPointer, atBoundary: Bool) {
        self.countRead(place, bytes, room: self.sessions[place].room)
        if self.slab.probe.place == place { self.slab.probe.copy(bytes, atBoundary: atBoundary) }
    }

    package func readEnded(_ place: Int, packets: Int, now: NIODeadline) {
        self.store?.readEnded(place, now: now)
        self.tallies[place].packets += UInt64(packets)
        self.meter.add(self.metrics.traffic.decodePackets, UInt64(packets))
        let madeRoom = self.sessions[place].room > 0 && self.awaitsAnswers(place)
        self.sendAfterRead(place, madeRoom: madeRoom, now: now)
    }

    package func message(_ place: Int, _ view: PublishView, now: NIODeadline) {
        defer { self.store?.received(place, view) }
        self.tallies[place].received += 1
        guard self.load.subscribers > 0 else { return }
        let ids = self.arrivals + Int(view.qos.rawValue)
        self.meter.add(view.retain ? ids.pointee.retained : ids.pointee.fresh)
        self.meter.add(self.metrics.traffic.payloadReceived, UInt64(view.payload.count))
        if self.load.topology == .request {
            guard self.places.isOperator(place) else { return self.answer(place, view) }
            guard self.isAnswer(view) else { return }
        }
        // A stored copy was counted when it was new.
        guard self.load.hasLedger, !(view.retain && self.load.marksStoredCopies),
            let header = PayloadHeader.read(view.payload)
        else { return }
        // Messages left over from another run are not losses of this run. `sub` alone follows any run.
        guard self.isOurs(header) else { return }
        if self.isFirst(header, place, now: now) { self.recordDelivery(header, now: now) }
    }

    package func released(_ place: Int, _ id: UInt16, now: NIODeadline) { self.store?.released(place, id) }

    /// Whether the message belongs to the run that the ledger follows: this run, or for `sub` alone the first one
    /// heard.
    ///
    /// Another run's publishers have the same numbers, and their sequence numbers start again.
    private func isOurs(_ header: PayloadHeader) -> Bool {
        if self.load.publishers > 0 { return header.run == self.load.run }
        if self.followedRun == nil { self.followedRun = header.run }
        if header.run == self.followedRun { return true }
        self.meter.error("another run", at: Int64(self.context.now.uptimeNanoseconds)) {
            "messages of a second run came; the ledger follows the first"
        }
        return false
    }

    /// Records the arrival.
    ///
    /// Returns whether it is known here to be the first.
    private func isFirst(_ header: PayloadHeader, _ place: Int, now: NIODeadline) -> Bool {
        let index = Int(self.clients[place].own.subscription)
        // The message came to a client that did not subscribe; only the server knows why.
        guard index >= 0 else {
            self.meter.error("stray", at: Int64(self.context.now.uptimeNanoseconds)) {
                "a message came to a client without a subscription"
            }
            return false
        }
        if self.load.topology == .shared {
            // Another member may have it already, so durations are recorded when the batches are merged.
            self.members.arrived(
                member: index,
                ShareBatch.Arrival(
                    publisher: header.publisher,
                    qos: header.qos,
                    sequence: header.sequence,
                    lane: self.lane(of: header),
                    due: header.due &- self.load.realtimeOffset,
                    at: Int64(now.uptimeNanoseconds)
                )
            )
            return false
        }
        let arrival = self.ledger.pointee.arrived(
            subscription: index,
            publisher: header.publisher,
            qos: header.qos,
            sequence: header.sequence
        )
        guard let arrival else { return false }
        if case .duplicate = arrival { return false }
        self.received.received += 1
        return true
    }

    private func lane(of header: PayloadHeader) -> Int {
        // `sub` alone does not know the publisher's plan, so the stages of its own plan count, by their times.
        guard self.load.publishers == 0 else { return header.lane(stages: self.load.stages.count) }
        guard !self.load.stages.isEmpty else { return MetricLane.measured }
        let due = header.due &- self.load.realtimeOffset
        return self.slab.times.lane(NIODeadline.uptimeNanoseconds(UInt64(max(0, due))))
    }

    private func recordDelivery(_ header: PayloadHeader, now: NIODeadline) {
        let due = header.due &- self.load.realtimeOffset
        let duration = Int64(now.uptimeNanoseconds) &- due
        let ids = self.arrivals + Int(min(header.qos, 2))
        self.meter.record(ids.pointee.duration, duration, lane: self.lane(of: header))
        if let late = ids.pointee.late, duration > self.load.publisherSession.ackTimeout.nanoseconds {
            self.meter.add(late)
        }
    }

    /// The messages that the subscribers still await, as far as this loop knows.
    package var balance: DeliveryBalance {
        guard self.load.hasLedger, self.load.publishers > 0, self.load.subscribers > 0 else { return DeliveryBalance() }
        var balance = self.received
        for place in 0..<self.shard.clients.operators {
            let copies = Int64(self.load.deliveries(ofPublisher: self.number(place)))
            balance.expected += Int64(self.clients[place].own.known) * copies
            balance.uncertain += Int64(self.clients[place].unknown.count) * copies
        }
        return balance
    }
}
