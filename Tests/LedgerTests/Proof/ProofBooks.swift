import Ledger
import TestSupport

/// The ledger's view of a virtual run: what the harness records on its event loops, and what it makes of that.
final class ProofBooks {
    /// One event loop, or one segment.
    final class Shard {
        var table = AudienceTable()
        var publishers = PublisherLedger()
        var receivers = SubscriberLedger()
        var members = ShareMembers()
        var shares = ShareGroupLedger()
        /// By (client, stream): its index.
        var publisherOf: [Int: Int] = [:]
        var receiverOf: [Int: Int] = [:]
        var memberOf: [Int: Int] = [:]
        /// By the index of a publisher here.
        var numbers: [(publisher: UInt32, client: Int, stream: Int)] = []
        /// Marks of this loop's publishers, and of its receivers, in their order.
        var publisherMarks: [PresenceMark] = []
        var receiverMarks: [PresenceMark] = []
        var hasPublished = false
    }

    /// Where a message is in the ledger.
    struct Place: Hashable {
        var publisher: UInt32
        var audience: UInt32
        var row: Int
        var sequence: UInt64
    }

    let run: VirtualRun
    let plan: ProofPlan
    private(set) var shards: [Shard] = []
    /// By message.
    private(set) var places: [Place?]
    let isJoint: Bool
    private(set) var layout = LedgerPlaces()
    private(set) var receiverNumbers: [ProofPlan.Target: UInt32] = [:]
    private var publisherNumbers: [[UInt32]] = []
    private(set) var members: [[AudienceMember]] = []
    var dice: SeededDice

    /// Takes the run's log, or one with a fault, on so many event loops, or segments if `isJoint`.
    init(_ run: VirtualRun, log: [VirtualRun.Entry]? = nil, shards count: Int, isJoint: Bool = false) {
        self.run = run
        self.plan = run.plan
        self.places = Array(repeating: nil, count: run.messages.count)
        self.isJoint = isJoint
        self.dice = SeededDice(seed: run.plan.seed &+ UInt64(count))
        self.number()
        self.shards = (0..<count).map { _ in Shard() }
        self.enter()
        for (index, entry) in (log ?? run.log).enumerated() { self.take(entry, at: index) }
        self.finish()
    }

    // MARK: - Numbers

    /// Numbers publishers and receivers as a run of several groups does.
    private func number() {
        self.publisherNumbers = self.plan.groupOf.map { _ in [] }
        var receiver: UInt32 = 0
        var publisher: UInt32 = 0
        for (index, group) in self.plan.groups.enumerated() {
            let count = UInt32(group.clients.count)
            let hasReceivers = !group.filters.isEmpty
            if hasReceivers {
                for (place, client) in group.clients.enumerated() {
                    self.receiverNumbers[.client(client)] = receiver + UInt32(place)
                }
                self.layout.receivers.append(.init(numbers: receiver..<receiver + count, group: "g\(index)"))
            }
            for stream in group.streams.indices {
                for (place, client) in group.clients.enumerated() {
                    self.publisherNumbers[client].append(publisher + UInt32(place))
                }
                self.layout.streams.append(
                    .init(
                        publishers: publisher..<publisher + count,
                        own: hasReceivers ? receiver : nil,
                        group: "g\(index)",
                        name: "s\(stream)"
                    )
                )
                publisher += count
            }
            if hasReceivers { receiver += count }
        }
        for share in self.plan.shares.indices {
            self.receiverNumbers[.share(share)] = receiver
            self.layout.receivers.append(.init(numbers: receiver..<receiver + 1, group: "share\(share)"))
            receiver += 1
        }
        self.members = self.plan.reach.map { $0.map(self.member(of:)) }
    }

    private func member(of reach: ProofPlan.Reach) -> AudienceMember {
        let receiver = self.receiver(reach.target)
        let signature = ProofPlan.Signature(reach)
        if case .share = reach.target { return AudienceMember(receiver: receiver, qos: signature.qos, isShared: true) }
        return AudienceMember(
            receiver: receiver,
            copies: UInt16(signature.copies),
            noLocal: UInt16(signature.noLocal),
            qos: signature.qos,
            ownQoS: signature.ownQoS
        )
    }

    func receiver(_ target: ProofPlan.Target) -> UInt32 { self.receiverNumbers[target] ?? .max }

    private func enter() {
        for (client, group) in self.plan.groupOf.enumerated() {
            let shard = self.shard(client)
            for stream in self.plan.groups[group].streams.indices {
                shard.publisherOf[client * 16 + stream] = shard.publishers.addPublisher()
                shard.numbers.append((self.publisherNumbers[client][stream], client, stream))
            }
            if let share = self.plan.groups[group].share {
                shard.memberOf[client] = shard.members.addMember(group: self.receiver(.share(share)))
            } else if let receiver = self.receiverNumbers[.client(client)] {
                shard.receiverOf[client] = shard.receivers.addSubscription(receiver)
            }
        }
    }

    private func shard(_ client: Int) -> Shard { self.shards[client % self.shards.count] }

    // MARK: - The log

    private func take(_ entry: VirtualRun.Entry, at index: Int) {
        switch entry {
        case .sent(let message): self.sent(message)
        case .publisherLeft(let client, let fate): self.publisherLeft(client, fate)
        case .arrived(let arrival, let times): for _ in 0..<times { self.arrived(arrival, at: index) }
        case .left(let client, let visit): self.left(client, visit)
        case .noticed(let loop, let notice): self.noticed(loop, notice)
        }
        // Loops hand their batches over at any time.
        if self.dice.hits(0.02) { self.mergeShares() }
    }

    private func sent(_ message: Int) {
        let facts = self.run.messages[message]
        let shard = self.shard(facts.client)
        let (row, audience) = self.row(facts.client, facts.stream, facts.topic)
        let sequence = shard.publishers.take(row)
        if facts.isUnsent { shard.publishers.noteUnsent(row, sequence) }
        shard.hasPublished = true
        self.places[message] = Place(
            publisher: self.publisherNumbers[facts.client][facts.stream],
            audience: audience,
            row: row,
            sequence: sequence
        )
    }

    /// The publisher's row for a topic, with its audience.
    private func row(_ client: Int, _ stream: Int, _ topic: Int) -> (row: Int, audience: UInt32) {
        let shard = self.shard(client)
        let audience = shard.table.number(of: self.members[topic])
        let publisher = shard.publisherOf[client * 16 + stream] ?? 0
        return (shard.publishers.row(publisher: publisher, audience: audience), audience)
    }

    private func publisherLeft(_ client: Int, _ fate: PublisherLedger.ConnectionFate) {
        let shard = self.shard(client)
        for (stream, facts) in self.plan.group(of: client).streams.enumerated() where facts.qos == 0 {
            let publisher = shard.publisherOf[client * 16 + stream] ?? 0
            shard.publishers.endConnection(publisher: publisher, fate) { _, _, _ in }
        }
    }

    private func arrived(_ arrival: VirtualRun.Arrival, at index: Int) {
        guard let place = self.places[arrival.message] else { return }
        let facts = self.run.messages[arrival.message]
        let shard = self.shard(arrival.client)
        switch arrival.target {
        case .client(let client):
            let own = facts.client == client ? self.receiver(arrival.target) : nil
            let member = self.members[facts.topic].first { $0.receiver == self.receiver(arrival.target) }
            _ = shard.receivers.arrived(
                subscription: shard.receiverOf[client] ?? 0,
                publisher: place.publisher,
                audience: place.audience,
                qos: facts.qos,
                sequence: place.sequence,
                isRedelivery: arrival.isRedelivery,
                mayRepeat: arrival.qos == 1 && arrival.isResumed,
                copies: member?.copies(from: own) ?? 0
            )
        case .share:
            shard.members.arrived(
                member: shard.memberOf[arrival.client] ?? 0,
                ShareBatch.Arrival(
                    publisher: place.publisher,
                    audience: place.audience,
                    qos: facts.qos,
                    sequence: place.sequence,
                    lane: 0,
                    due: 0,
                    at: Int64(index)
                )
            )
        }
    }

    private func left(_ client: Int, _ visit: Int) {
        let shard = self.shard(client)
        if let member = shard.memberOf[client], let share = self.plan.group(of: client).share {
            let receiver = self.receiver(.share(share))
            shard.members.heads(of: member) { publisher, audience, next in
                let key = StreamKey(subscription: receiver, publisher: publisher, audience: audience)
                let visit = VirtualRun.memberVisit(client, visit)
                shard.receiverMarks.append(PresenceMark(key, visit: visit, .left, at: next))
            }
            if self.isJoint { shard.shares.memberLeft(receiver) }
        } else if let subscription = shard.receiverOf[client] {
            let receiver = self.receiver(.client(client))
            shard.receivers.heads(of: subscription) { publisher, audience, next in
                let key = StreamKey(subscription: receiver, publisher: publisher, audience: audience)
                shard.receiverMarks.append(PresenceMark(key, visit: UInt64(visit), .left, at: next))
            }
            if self.isJoint { shard.receivers.open(subscription) }
        }
    }

    /// One loop of publishers reports where it is.
    private func noticed(_ loop: Int, _ notice: VirtualRun.Notice) {
        if self.isJoint, loop == 0, notice.visit == 0 { self.beganLate(notice) }
        let receiver = self.receiver(notice.target)
        for (index, shard) in self.shards.enumerated() where index % self.plan.loops == loop {
            let audiences = Set(shard.table.audiences(with: receiver))
            for row in 0..<shard.publishers.count where audiences.contains(shard.publishers.audience(ofRow: row)) {
                let next = shard.publishers.next(row)
                // Before the first message a first subscription excuses nothing.
                if notice.visit == 0, next == 0 { continue }
                let key = StreamKey(
                    subscription: receiver,
                    publisher: shard.numbers[shard.publishers.publisher(ofRow: row)].publisher,
                    audience: shard.publishers.audience(ofRow: row)
                )
                shard.publisherMarks.append(PresenceMark(key, visit: notice.visit, notice.event, at: next))
            }
        }
    }

    /// In a run of segments only the receiver's segment knows that the load had begun.
    private func beganLate(_ notice: VirtualRun.Notice) {
        guard self.plan.clusterDelay > 0 || self.shards.contains(where: \.hasPublished) else { return }
        switch notice.target {
        case .client(let client):
            if let place = self.shard(client).receiverOf[client] { self.shard(client).receivers.beganLate(place) }
        case .share: self.shards[0].shares.beganLate(self.receiver(notice.target))
        }
    }

    private func mergeShares() {
        if self.isJoint {
            for shard in self.shards { shard.shares.merge([shard.members.swap()]) }
        } else {
            self.shards[0].shares.merge(self.shards.map { $0.members.swap() })
        }
    }

    private func finish() {
        self.mergeShares()
        for (message, facts) in self.run.messages.enumerated() {
            guard let place = self.places[message] else { continue }
            let shard = self.shard(facts.client)
            if facts.qos > 0, !facts.isKnown { shard.publishers.noteUnknown(place.row, place.sequence) }
            guard facts.isOutstanding || facts.isResent || facts.isAdmitted else { continue }
            var own = shard.publishers.exceptions[place.row] ?? PublishExceptions()
            if facts.qos > 0, facts.isOutstanding { own.outstanding.insert(place.sequence) }
            if facts.isResent { own.resent.insert(place.sequence) }
            if facts.isAdmitted { own.admitted.insert(place.sequence) }
            shard.publishers.exceptions[place.row] = own
        }
        for one in self.run.neverSent {
            let row = self.row(one.client, one.stream, one.topic).row
            let shard = self.shard(one.client)
            shard.publishers.exceptions[row, default: PublishExceptions()].neverSent.add(lane: 0, last: 0)
        }
    }
}
