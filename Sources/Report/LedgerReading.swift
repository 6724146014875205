import Ledger

struct LedgerReading {
    /// Receivers, audiences, or members of audiences; a run has at most 4,194,304 streams.
    private static let numberLimit = 1 << 24
    /// Messages of all rows together.
    ///
    /// Larger sums are no whole numbers in metrics, and may overflow in a merge.
    private static let messageLimit: UInt64 = 1 << 53

    /// Event loops of a segment, and its processes.
    private static let loopLimit = 1 << 12
    /// Stages of a load: as many as a header can name.
    private static let stageLimit = 1 << 10

    private(set) var ledger: SegmentLedger
    /// The publishers of the event loop that the rows belong to; only after its row of audiences.
    private var published: PublishedExport {
        get { self.ledger.published.last ?? PublishedExport() }
        _modify { yield &self.ledger.published[self.ledger.published.count - 1] }
    }
    /// The times of the segment's process that the rows belong to.
    private var time: SegmentLedger.Times {
        get { self.ledger.times[self.ledger.times.count - 1] }
        _modify { yield &self.ledger.times[self.ledger.times.count - 1] }
    }
    private var receivers = 0
    private var audiences = 0
    private var members = 0
    private var messages: UInt64 = 0
    /// The kinds that occur once.
    private var singles: Set<LedgerRow.Kind> = []
    /// The place of the members that were added last.
    private var last: (audience: Int, members: Range<Int>)?

    init() {
        self.ledger = SegmentLedger(received: LedgerExport())
        self.ledger.published = []
    }

    /// Whether what rows refer to is there.
    var isWhole: Bool {
        self.ledger.published.allSatisfy { published in
            let audiences = max(1, published.audiences.count)
            return published.fates.allSatisfy { $0.audience < audiences }
        }
    }

    /// Adds a row; `false` if it is none of a ledger.
    mutating func add(_ row: LedgerRow) -> Bool {
        let last = self.last
        self.last = nil
        switch (row.kind, row.receiver, row.publisher, row.audience, row.qos, row.at, row.count) {
        case (.process, nil, nil, nil, nil, nil, nil):
            guard self.ledger.times.count < Self.loopLimit else { return false }
            self.ledger.times.append(SegmentLedger.Times())
            self.singles.subtract([.loadBegan, .publishersEnded, .subscribersLeft])
            return true
        case (.loadBegan, nil, nil, nil, nil, let at?, nil): self.time.loadBegan = at
        case (.publishersEnded, nil, nil, nil, nil, let at?, nil): self.time.publishersEnded = at
        case (.subscribersLeft, nil, nil, nil, nil, let at?, nil): self.time.subscribersLeft = at
        case (.lastArrival, nil, nil, nil, nil, let at?, nil): self.ledger.end.lastArrival = at
        case (.lastPublish, nil, nil, nil, nil, let at?, nil): self.ledger.end.lastPublish = at
        case (.probed, nil, nil, nil, nil, let at?, nil): self.ledger.end.probed = at
        case (.ended, nil, nil, nil, nil, let at?, nil): self.ledger.end.ended = at
        case (.longest, nil, nil, nil, nil, let at?, nil): self.ledger.end.longest = at
        case (.unproved, nil, nil, nil, nil, nil, nil):
            return Self.insert(row, into: &self.ledger.end.unproved)
        case (.receivers, nil, nil, nil, nil, nil, nil):
            guard let numbers = row.numbers(atMost: Self.numberLimit - self.receivers) else { return false }
            self.receivers += numbers.count
            self.ledger.receivers += numbers
            return true
        case (.began, nil, nil, nil, nil, nil, nil):
            return Self.insert(row, into: &self.ledger.began)
        case (.granted, nil, nil, nil, let qos?, nil, nil):
            guard let numbers = row.numbers(atMost: Self.numberLimit - self.ledger.granted.count) else { return false }
            for number in numbers { self.ledger.granted[number] = qos }
            return true
        case (.placePublishers, let own, let first?, nil, nil, nil, let count?):
            return self.addPublishers(row, own, first, count)
        case (.placeReceivers, let first?, nil, nil, nil, nil, let count?):
            return self.addReceivers(row, first, count)
        case (.placeStage, nil, nil, nil, nil, nil, nil):
            guard self.ledger.places.stages.count < Self.stageLimit else { return false }
            let isMeasured = row.flags.contains(.measured)
            self.ledger.places.stages.append(LedgerPlaces.Stage(name: row.name, isMeasured: isMeasured))
            return true
        case (.audiences, nil, nil, nil, nil, nil, let count?):
            return self.addAudiences(count)
        case (.members, nil, nil, let audience?, let qos?, nil, let copies?):
            return self.addMembers(row, audience, qos, copies)
        case (.noLocal, nil, nil, nil, let qos?, nil, let count?):
            guard let last, let count = UInt16(exactly: count) else { return false }
            for member in last.members {
                self.published.audiences[last.audience][member].noLocal = count
                self.published.audiences[last.audience][member].ownQoS = qos
            }
            return true
        case (.publisher, nil, let publisher?, let audience?, let qos?, nil, let assigned?):
            return self.addPublisher(row, publisher, audience, qos, assigned)
        case (.unsent, nil, nil, nil, nil, nil, nil): return self.note(row, \.unsent)
        case (.outstanding, nil, nil, nil, nil, nil, nil): return self.note(row, \.outstanding)
        case (.neverSent, nil, nil, nil, nil, nil, let count?): return self.noteNeverSent(count)
        case (.due, nil, nil, let lane?, nil, let at?, let count?): return self.noteDue(Int(lane), at, count)
        case (.resent, nil, nil, nil, nil, nil, nil): return self.note(row, \.resent)
        case (.admitted, nil, nil, nil, nil, nil, nil): return self.note(row, \.admitted)
        case (.late, nil, nil, nil, nil, nil, nil):
            return Self.insert(row, into: &self.ledger.received.late)
        case (.absent, nil, nil, nil, nil, nil, nil):
            return Self.insert(row, into: &self.ledger.received.absent)
        default: return self.addArrivals(row)
        }
        return self.singles.insert(row.kind).inserted
    }

    private mutating func addArrivals(_ row: LedgerRow) -> Bool {
        switch (row.kind, row.receiver, row.publisher, row.audience, row.qos, row.at, row.count) {
        case (.distinct, nil, nil, nil, let qos?, nil, let count?):
            return self.total(count, in: \.counts[qos].distinct)
        case (.duplicated, nil, nil, nil, let qos?, nil, let count?):
            return self.total(count, in: \.counts[qos].duplicated)
        case (.reordered, nil, nil, nil, let qos?, nil, let count?):
            return self.total(count, in: \.counts[qos].reordered)
        case (.overlapped, nil, nil, nil, let qos?, nil, let count?):
            return self.total(count, in: \.counts[qos].overlapped)
        case (.foreign, nil, nil, nil, nil, nil, let count?):
            return self.total(count, in: \.foreign)
        case (.repeated, nil, nil, nil, nil, nil, let count?):
            return self.total(count, in: \.repeated)
        case (.overflowed, nil, nil, nil, nil, nil, nil):
            self.ledger.received.overflowed = true
            return self.singles.insert(row.kind).inserted
        case (.stream, let receiver?, let publisher?, let audience?, let qos?, nil, let next?):
            return self.addStream(row, StreamKey(receiver, publisher, audience), qos, next)
        case (.streamDuplicated, nil, nil, nil, nil, nil, let count?):
            return self.count(count, in: \.duplicated, row, \.duplicates)
        case (.streamPermitted, nil, nil, nil, nil, nil, let count?): return self.count(count, in: \.permitted)
        case (.streamOverlapped, nil, nil, nil, nil, nil, let count?): return self.count(count, in: \.overlapped)
        case (.streamReordered, nil, nil, nil, nil, nil, let count?):
            return self.count(count, in: \.reordered, row, \.overtaken)
        case (.streamExcused, nil, nil, nil, nil, nil, nil):
            guard let place = self.stream, let excused = row.set else { return false }
            return self.ledger.received.excused.updateValue(excused, forKey: place) == nil
        default: return false
        }
    }

    // MARK: - Places

    /// Sorted and disjoint, so that each number has one place.
    private mutating func addPublishers(_ row: LedgerRow, _ own: UInt32?, _ first: UInt32, _ count: UInt64) -> Bool {
        let end = self.ledger.places.streams.last?.publishers.upperBound ?? 0
        guard first >= end, let publishers = Self.range(first, count), own.map({ Self.range($0, count) != nil }) ?? true
        else { return false }
        self.ledger.places.streams.append(
            LedgerPlaces.Stream(publishers: publishers, own: own, group: row.group, name: row.name)
        )
        return true
    }

    private mutating func addReceivers(_ row: LedgerRow, _ first: UInt32, _ count: UInt64) -> Bool {
        let end = self.ledger.places.receivers.last?.numbers.upperBound ?? 0
        guard first >= end, row.name.isEmpty, let numbers = Self.range(first, count) else { return false }
        self.ledger.places.receivers.append(LedgerPlaces.Receivers(numbers: numbers, group: row.group))
        return true
    }

    private static func range(_ first: UInt32, _ count: UInt64) -> Range<UInt32>? {
        let end = UInt64(first) + count
        return end <= UInt64(UInt32.max) ? first..<UInt32(end) : nil
    }

    private static func insert(_ row: LedgerRow, into set: inout Set<UInt32>) -> Bool {
        guard let numbers = row.numbers(atMost: self.numberLimit - set.count) else { return false }
        set.formUnion(numbers)
        return true
    }

    // MARK: - Publishers

    /// Begins the publishers of one more event loop.
    private mutating func addAudiences(_ count: UInt64) -> Bool {
        guard count <= UInt64(StreamKey.audienceLimit), count <= UInt64(Self.numberLimit - self.audiences),
            self.ledger.published.count < Self.loopLimit
        else { return false }
        self.audiences += Int(count)
        self.ledger.published.append(PublishedExport(audiences: Array(repeating: [], count: Int(count))))
        return true
    }

    private mutating func addMembers(_ row: LedgerRow, _ audience: UInt32, _ qos: UInt8, _ copies: UInt64) -> Bool {
        let place = Int(audience)
        guard place < self.published.audiences.count, let copies = UInt16(exactly: copies),
            let numbers = row.numbers(atMost: Self.numberLimit - self.members)
        else { return false }
        self.members += numbers.count
        let start = self.published.audiences[place].count
        self.published.audiences[place] += numbers.map {
            AudienceMember(receiver: $0, copies: copies, qos: qos, isShared: row.flags.contains(.shared))
        }
        self.last = (place, start..<start + numbers.count)
        return true
    }

    private mutating func addPublisher(
        _ row: LedgerRow,
        _ publisher: UInt32,
        _ audience: UInt32,
        _ qos: UInt8,
        _ assigned: UInt64
    ) -> Bool {
        let audiences = self.published.audiences
        let members = Int(audience) < audiences.count ? audiences[Int(audience)].count : 1
        guard !self.ledger.published.isEmpty, publisher < StreamKey.publisherLimit, let unknown = row.set,
            self.take(assigned, times: members)
        else { return false }
        self.published.fates.append(
            PublisherFate(
                publisher: publisher,
                audience: audience,
                qos: qos,
                assigned: assigned,
                unknown: unknown,
                expires: row.flags.contains(.expires),
                isOrdered: row.flags.contains(.ordered),
                isAlone: row.flags.contains(.alone)
            )
        )
        return true
    }

    /// Adds what the row has to the publisher before it.
    private mutating func note(_ row: LedgerRow, _ part: WritableKeyPath<PublisherFate, SequenceRanges>) -> Bool {
        let fates = self.published.fates.count
        guard fates > 0, let set = row.set, !set.isEmpty, self.published.fates[fates - 1][keyPath: part].isEmpty
        else { return false }
        self.published.fates[fates - 1][keyPath: part] = set
        return true
    }

    private mutating func noteDue(_ lane: Int, _ at: Int64, _ count: UInt64) -> Bool {
        let place = self.published.fates.count - 1
        guard place >= 0, lane < 2 + self.ledger.places.stages.count else { return false }
        let fate = self.published.fates[place]
        // Few lanes: what was sent, and what was not, in the stages and beside them.
        guard fate.dues.count < 2 * (2 + self.ledger.places.stages.count), count > 0,
            count <= fate.assigned + fate.neverSent - fate.dues.messages
        else { return false }
        self.published.fates[place].dues.append(DueMark(lane: lane, count: count, last: at))
        return true
    }

    private mutating func noteNeverSent(_ count: UInt64) -> Bool {
        let fates = self.published.fates.count
        guard fates > 0, count > 0, self.published.fates[fates - 1].neverSent == 0 else { return false }
        let audience = Int(self.published.fates[fates - 1].audience)
        let members = audience < self.published.audiences.count ? self.published.audiences[audience].count : 0
        guard self.take(count, times: members) else { return false }
        self.published.fates[fates - 1].neverSent = count
        return true
    }

    // MARK: - Receivers

    /// The place of the stream that was added last.
    private var stream: Int? { self.ledger.received.keys.indices.last }

    private mutating func addStream(_ row: LedgerRow, _ key: StreamKey, _ qos: UInt8, _ next: UInt64) -> Bool {
        guard key.publisher < StreamKey.publisherLimit, key.audience < StreamKey.audienceLimit, let missing = row.set,
            missing.runs.last?.upperBound ?? 0 <= next, self.take(next)
        else { return false }
        self.ledger.received.keys.append(key)
        self.ledger.received.streams.append(
            StreamLedger(qos: qos, next: next, missing: missing, overflowed: row.flags.contains(.overflowed))
        )
        return true
    }

    private mutating func count(_ count: UInt64, in part: WritableKeyPath<Irregularity, UInt64>) -> Bool {
        guard let place = self.stream, self.take(count),
            self.ledger.received.irregular[place]?[keyPath: part] ?? 0 == 0
        else { return false }
        self.ledger.received.irregular[place, default: Irregularity()][keyPath: part] = count
        return true
    }

    /// The same with the sequence numbers of the row.
    private mutating func count(
        _ count: UInt64,
        in part: WritableKeyPath<Irregularity, UInt64>,
        _ row: LedgerRow,
        _ sequences: WritableKeyPath<Irregularity, SequenceRanges>
    ) -> Bool {
        guard let place = self.stream, let set = row.set,
            self.ledger.received.irregular[place]?[keyPath: sequences].isEmpty ?? true, self.count(count, in: part)
        else { return false }
        self.ledger.received.irregular[place]?[keyPath: sequences] = set
        return true
    }

    private mutating func total(_ count: UInt64, in part: WritableKeyPath<LedgerExport, UInt64>) -> Bool {
        guard self.ledger.received[keyPath: part] == 0, count > 0, self.take(count) else { return false }
        self.ledger.received[keyPath: part] = count
        return true
    }

    /// Counts messages; `false` if there are too many.
    private mutating func take(_ count: UInt64, times: Int = 1) -> Bool {
        let (messages, overflow) = count.multipliedReportingOverflow(by: UInt64(max(1, times)))
        guard !overflow, messages <= Self.messageLimit - self.messages else { return false }
        self.messages += messages
        return true
    }
}

extension StreamKey {
    fileprivate init(_ receiver: UInt32, _ publisher: UInt32, _ audience: UInt32) {
        self.init(subscription: receiver, publisher: publisher, audience: audience)
    }
}
