import Ledger
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
        self.tallies[place].packets += UInt64(packets)
        self.meter.add(self.metrics.traffic.decodePackets, UInt64(packets))
        let madeRoom = self.sessions[place].room > 0 && self.awaitsAnswers(place)
        self.sendAfterRead(place, madeRoom: madeRoom, now: now)
    }

    package func message(_ place: Int, _ view: PublishView, now: NIODeadline) {
        self.tallies[place].received += 1
        guard self.receives else { return }
        let ids = self.arrivals + Int(view.qos.rawValue)
        self.meter.add(view.retain ? ids.pointee.retained : ids.pointee.fresh)
        self.meter.add(self.metrics.traffic.payloadReceived, UInt64(view.payload.count))
        if self.hearsReplies, let reply = PayloadHeader.readReply(view.payload) {
            return self.replyArrived(place, reply, now: now)
        }
        if self.load.topology == .request {
            guard self.places.isOperator(place) else { return self.answer(place, view) }
            guard self.isAnswer(view) else { return }
        }
        if self.retained.awaiting > 0 || view.retain && !self.retained.visits.isEmpty {
            self.retainedArrived(place, view, now: now)
        }
        // A stored copy was counted when it was new.
        guard self.load.hasLedger, !(view.retain && self.marksStoredCopies) else { return }
        guard var header = self.header(of: view, now: now) else {
            if self.reader.isStripped(view) { self.stripped.insert(place) }
            return
        }
        // Messages left over from another run are not losses of this run. `sub` alone follows any run.
        guard self.isOurs(header), !self.isOthersAnswer(view, header) else { return }
        if header.isShort { self.complete(&header, place, view) }
        self.latest.pointee.arrival = now
        let isFirst = self.isFirst(header, place, view, now: now)
        if isFirst { self.recordDelivery(place, header, now: now) }
        guard self.hearsReplies, let reply = self.load.reply else { return }
        // A share group's member does not know whether another one had the message before.
        let isShared = !isFirst && !view.dup && self.member(place, view.topic) != nil
        if isFirst || isShared { self.promiseReply(place, reply, header, view) }
    }

    func header(of view: PublishView, now: NIODeadline) -> PayloadHeader? {
        let run = self.deliveries.hasPublishers ? self.load.run : self.followedRun
        return self.reader.header(of: view, run: run, now: Int64(now.uptimeNanoseconds) &+ self.clock.pointee)
    }

    /// Makes the sequence number of a short header whole.
    private func complete(_ header: inout PayloadHeader, _ place: Int, _ view: PublishView) {
        if let member = self.member(place, view.topic) {
            header.sequence = self.members.whole(member: member, header)
        } else if self.clients[place].own.receiver >= 0 {
            let subscription = Int(self.clients[place].own.receiver)
            header.sequence = self.ledger.pointee.whole(subscription: subscription, header)
        }
    }

    /// Whether it is the answer to another group: its header is that of the request, which is followed.
    private func isOthersAnswer(_ view: PublishView, _ header: PayloadHeader) -> Bool {
        guard self.deliveries.hasRequests, self.load.topology != .request, view.correlation != nil, view.request == nil
        else { return false }
        let sender = self.deliveries.sender(header.publisher)
        return sender.map { self.deliveries.groups[$0.group].load.topology } == .request
    }

    /// Whether the message belongs to the run that the ledger follows: this run, or for `sub` alone the first one
    /// heard.
    ///
    /// Another run's publishers have the same numbers, and their sequence numbers start again.
    private func isOurs(_ header: PayloadHeader) -> Bool {
        if self.deliveries.hasPublishers { return header.run == self.load.run }
        if self.followedRun == nil { self.followedRun = header.run }
        if header.run == self.followedRun { return true }
        self.error("another run", "messages of a second run came; the ledger follows the first")
        return false
    }

    /// Records the arrival.
    ///
    /// Returns whether it is known here to be the first.
    private func isFirst(_ header: PayloadHeader, _ place: Int, _ view: PublishView, now: NIODeadline) -> Bool {
        if let member = self.member(place, view.topic) {
            let due = header.due &- self.clock.pointee
            self.countNegative(Int64(now.uptimeNanoseconds) &- due, self.ids(of: header))
            // Another member may have it already, so durations are recorded when the batches are merged.
            self.members.arrived(
                member: member,
                ShareBatch.Arrival(
                    publisher: header.publisher,
                    audience: header.audience,
                    qos: header.qos,
                    sequence: header.sequence,
                    lane: self.lane(of: header),
                    due: due,
                    at: Int64(now.uptimeNanoseconds)
                )
            )
            return false
        }
        let index = Int(self.clients[place].own.receiver)
        // The message came to a client that did not subscribe; only the server knows why.
        guard index >= 0 else {
            self.error("stray", "a message came to a client without a subscription")
            return false
        }
        let arrival = self.ledger.pointee.arrived(
            subscription: index,
            publisher: header.publisher,
            audience: header.audience,
            qos: header.qos,
            sequence: header.sequence,
            isRedelivery: view.dup,
            mayRepeat: view.qos == .atLeastOnce && self.clients[place].own.hasResumed,
            copies: self.matchingFilters(place, view.topic)
        )
        switch arrival {
        case .new, .newLate:
            self.received.received += 1
            return true
        case .duplicate, .overlap, nil: return false
        }
    }

    func lane(of header: PayloadHeader) -> Int {
        // `sub` alone does not know the publisher's plan, so the stages of its own plan count, by their times.
        guard !self.deliveries.hasPublishers else { return header.lane(stages: self.load.stages.count) }
        guard !self.load.stages.isEmpty else { return MetricLane.measured }
        let due = header.due &- self.clock.pointee
        return self.slab.times.lane(NIODeadline.uptimeNanoseconds(UInt64(max(0, due))))
    }

    private func ids(of header: PayloadHeader) -> UnsafeMutablePointer<MQTTMetrics.Delivery> {
        self.durations + (self.deliveries.stream(of: header.publisher) * 3 + Int(min(header.qos, 2)))
    }

    /// A histogram has no negative values; the clocks of two hosts may make some.
    private func countNegative(_ duration: Int64, _ ids: UnsafeMutablePointer<MQTTMetrics.Delivery>) {
        if duration < 0, let negative = ids.pointee.negative { self.meter.add(negative) }
    }

    private func recordDelivery(_ place: Int, _ header: PayloadHeader, now: NIODeadline) {
        let due = header.due &- self.clock.pointee
        let duration = Int64(now.uptimeNanoseconds) &- due
        let ids = self.ids(of: header)
        let lane = self.lane(of: header)
        self.meter.record(ids.pointee.duration, duration, lane: lane)
        self.countNegative(duration, ids)
        if self.meter.isSlow(.arrival, duration) {
            self.longest = max(self.longest, duration)
            let entry = SlowEntry(
                .arrival,
                ids.pointee.duration,
                duration: duration,
                due: due,
                sender: header.publisher,
                audience: header.audience,
                sequence: header.sequence,
                receiver: self.number(place)
            )
            self.keepSlow(entry, lane: lane)
        }
        // A message of publishers beyond this run may have become due after the end, and is none that was owed.
        if let end = self.shard.drainEnded, now > end, self.deliveries.hasPublishers {
            self.meter.count(.deliveryLate, ["qos": "\(min(header.qos, 2))"])
        }
        if let late = ids.pointee.late, duration > self.load.publisherSession.ackTimeout.nanoseconds {
            self.meter.add(late)
        }
    }

    /// The messages that the run's receivers still await, as far as this loop knows.
    package var balance: DeliveryBalance {
        guard self.load.hasLedger, self.deliveries.hasLedger else { return DeliveryBalance() }
        var balance = self.received
        balance.expected += self.retained.owed
        balance.received += self.retained.settled
        if self.hearsReplies {
            let replies = self.replies.balance
            balance.expected += replies.expected
            balance.received += replies.received
        }
        balance.uncertain += self.uncertain
        balance.lastArrival = self.latest.pointee.arrival
        balance.longest = .nanoseconds(self.longest)
        guard self.load.publishes, !self.hasManyAudiences, self.load.stream.hasHeader else { return balance }
        for place in 0..<self.places.operators {
            let copies = self.copies(place, self.clients[place].own.audience)
            // Receivers that publish at QoS 0 stay until it has arrived, and it is confirmed only when they leave.
            let known =
                self.clients[place].own.qos == .atMostOnce && self.subscribes(place)
                ? self.clients[place].sequence - self.clients[place].unknown.count
                : self.clients[place].own.known
            balance.expected += Int64(known) * copies
            balance.uncertain += Int64(self.clients[place].unknown.count) * copies
        }
        return balance
    }

    /// Whether any client of the load receives messages.
    var receives: Bool { self.load.subscribes || self.deliveries.hasP2P }
}
