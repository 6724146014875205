package import Ledger
import LoadEngine
import LoopContext
package import MQTTCodec
package import Measurement
package import NIOCore

/// The results of one loop at the end of a run.
package struct MQTTResult: Sendable {
    package var published: PublishedExport
    package var ledger: LedgerExport
    package var books: [QoS: MessageBook]
    /// The receivers of the loop's clients, and those that ever had a subscription in effect.
    package var receivers: Set<UInt32>
    package var began: Set<UInt32>
    /// Receivers that were granted a lower QoS than they asked for.
    package var granted: [UInt32: UInt8]
    /// The last visit of each receiver that is away at the end, of a share group those of its members.
    package var absent: [UInt32: [UInt64]]
    /// Marks after the last sample.
    package var presence: [PresenceMark]
    /// How the deliveries of the loop's clients ended, by the monotonic clock.
    package var end: DeliveryEnd
    /// Publishers had more audiences than a header can name.
    package var hasTooManyAudiences: Bool
    /// Receivers that got messages without the user property that they were sent with.
    package var stripped: Set<UInt32> = []
    package var retained = RetainedAccount()
    /// Replies to the loop's clients, by lane.
    package var repliesArrived: [Int: UInt64] = [:]
    /// The part of a segment whose publishers or subscribers have counterparts in other segments.
    package var joint: JointResult?
    /// The clients' tallies, by number in the run.
    package var tallies: [(number: Int, tally: ClientTally)]
}

/// The observations of one loop of a segment, for the join of its ledger with the others.
///
/// Times are monotonic.
package struct JointResult: Sendable {
    /// Times when the last publisher and the first subscriber were asked to close.
    package var publishersEnded: NIODeadline?
    package var subscribersLeft: NIODeadline?
    package var loadBegan = NIODeadline.distantFuture
    /// Share groups that a member left, and those that a member joined after the load had begun.
    var absentShares: Set<UInt32> = []
    var lateShares: Set<UInt32> = []
}

extension MQTTShardWork {
    /// The run asks a client to close.
    package func noteClosing(_ place: Int) {
        guard self.joint != nil else { return }
        let now = NIODeadline.now()
        // A publisher that receives stays until everything has come: it ended with its last write.
        if self.places.isOperator(place), !self.subscribes(place) { self.joint?.publishersEnded = now }
        if self.clients[place].own.receiver >= 0, self.joint?.subscribersLeft == nil {
            self.joint?.subscribersLeft = now
        }
    }

    package func takeResult() -> MQTTResult {
        self.joint?.loadBegan = self.shard.loadBegan
        var books: [QoS: MessageBook] = [:]
        for qos in QoS.allCases { books[qos] = self.books[qos.rawValue] }
        if self.joint != nil {
            // Nothing tells what was sent to a receiver that did not come back.
            for place in 0..<self.places.count where self.clients[place].own.isAway {
                let receiver = self.clients[place].own.receiver
                if receiver >= 0 { self.ledger.pointee.open(Int(receiver)) }
                self.joint?.absentShares.formUnion(self.shareGroups(place))
            }
        }
        let (receivers, began) = self.presentReceivers
        return MQTTResult(
            published: PublishedExport(audiences: self.audiences.pointee.audiences, fates: self.fates),
            ledger: self.ledger.pointee.export(),
            books: books,
            receivers: receivers,
            began: began,
            granted: self.granted,
            absent: self.absentReceivers,
            presence: self.marks,
            end: self.deliveryEnd,
            hasTooManyAudiences: self.audiences.pointee.overflowed,
            stripped: Set(self.stripped.flatMap(self.receivers)),
            retained: self.retained.account,
            repliesArrived: self.replies.arrived,
            joint: self.joint,
            tallies: self.numberedTallies
        )
    }

    /// The receivers of the loop's clients, and those whose subscriptions were ever in effect.
    private var presentReceivers: (all: Set<UInt32>, began: Set<UInt32>) {
        var (all, began) = (Set<UInt32>(), Set<UInt32>())
        for place in 0..<self.places.count where self.clients[place].own.receiver >= 0 {
            let own = self.receivers(place)
            all.formUnion(own)
            if self.clients[place].own.visits > 0 { began.formUnion(own) }
        }
        return (all, began)
    }

    /// The receivers that a client is or is a member of.
    private func receivers(_ place: Int) -> [UInt32] {
        let own = self.deliveries.receiver(group: self.group, client: self.number(place))
        return (own.map { [$0] } ?? []) + self.shareGroups(place)
    }

    private var absentReceivers: [UInt32: [UInt64]] {
        var absent: [UInt32: [UInt64]] = [:]
        for place in 0..<self.places.count where self.clients[place].own.isAway {
            let client = self.number(place)
            let visit = self.clients[place].own.visits - 1
            if let receiver = self.deliveries.receiver(group: self.group, client: client) {
                absent[receiver, default: []].append(UInt64(visit))
            }
            for group in self.deliveries.shareGroups(group: self.group, client: client) {
                absent[group, default: []].append(self.memberVisit(client, visit))
            }
        }
        for (group, life) in self.alive where life.members == 0 && life.lives > 0 {
            absent[group, default: []].append(life.lives - 1)
        }
        return absent
    }

    private var fates: [PublisherFate] {
        guard self.load.publishes, self.load.hasLedger else { return [] }
        if self.hasManyAudiences {
            let streams = self.load.streams.count
            return self.published.pointee.fates { publisher, audience in
                let (place, stream) = publisher.quotientAndRemainder(dividingBy: streams)
                guard self.load.streams[stream].hasHeader else { return nil }
                return self.fate(place, stream: stream, audience: audience)
            }
        }
        guard self.load.stream.hasHeader else { return [] }
        return (0..<self.places.operators).map { place in
            var fate = self.fate(place, stream: 0, audience: self.clients[place].own.audience)
            self.complete(&fate, place)
            return fate
        }
    }

    private func endsWithinRun(_ expiry: UInt32?) -> Bool {
        guard let expiry else { return false }
        // Without a duration, the time that the load really took.
        let load = self.shard.plan.measure.map { self.shard.plan.warmup + $0 }
        let run = load.map { $0 + self.shard.plan.drain } ?? self.context.now - self.shard.loadBegan
        return TimeAmount.seconds(Int64(expiry)) < run
    }

    private var deliveryEnd: DeliveryEnd {
        func nanoseconds(_ time: NIODeadline) -> Int64? { time == .distantPast ? nil : Int64(time.uptimeNanoseconds) }
        var end = DeliveryEnd()
        end.lastArrival = nanoseconds(self.latest.pointee.arrival)
        end.lastPublish = nanoseconds(self.latest.pointee.publish)
        end.probed = self.probed.flatMap(nanoseconds)
        end.ended = self.shard.drainEnded.flatMap(nanoseconds)
        end.longest = self.longest
        for place in 0..<self.places.count {
            let own = self.clients[place].own
            guard own.visits > 0, !own.isProved else { continue }
            end.unproved.formUnion(self.receivers(place))
        }
        return end
    }

    private func fate(_ place: Int, stream: Int, audience: UInt32) -> PublisherFate {
        let own = self.load.streams[stream]
        return PublisherFate(
            publisher: self.deliveries.publisher(group: self.group, stream: stream, client: self.number(place)),
            audience: audience,
            qos: self.qos(place, stream: stream).rawValue,
            assigned: 0,
            expires: self.endsWithinRun(own.properties.messageExpiryInterval),
            // Nodes of a cluster keep no order between the connections of a client, and several that answer have none.
            isOrdered: !own.topicVaries && (self.load.targets == 1 || self.clients[place].reconnects == 0)
                && (self.load.topology != .request || self.load.subscribers <= 1),
            isAlone: self.isAlone
        )
    }
}
