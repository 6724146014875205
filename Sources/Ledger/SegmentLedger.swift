/// The records of one segment about messages whose publishers and subscribers may be in different segments.
///
/// Times are CLOCK_REALTIME nanoseconds of the segment's own host. A segment may be several processes on one host,
/// which ``init(joining:)`` joins. ``Reconciliation/init(joining:)`` joins the records of all segments. The size
/// depends on the plan and on missing messages, and not on the length of the run.
package struct SegmentLedger: Sendable {
    /// The times of a process.
    package struct Times: Hashable, Sendable {
        /// No publisher wrote before this time; `nil`: none ever did.
        package var loadBegan: Int64?
        /// Time when the last publisher closed.
        package var publishersEnded: Int64?
        /// Time when the first subscriber was asked to leave.
        package var subscribersLeft: Int64?

        package init() {}
    }

    /// One of each process of the segment, in order; never empty.
    package var times = [Times()]
    /// Receivers of the segment's clients; a share group is one, and may be in several segments.
    package var receivers: [UInt32] = []
    /// Those that ever had a subscription in effect.
    package var began: Set<UInt32> = []
    /// Receivers whose SUBACK granted a lower QoS than they asked for.
    package var granted: [UInt32: UInt8] = [:]
    /// How the segment's deliveries ended.
    package var end = DeliveryEnd()
    /// The label of each pair of publisher and receiver, and the receiver of a publisher's own client.
    package var places = LedgerPlaces()
    /// One for each event loop.
    package var published = [PublishedExport()]
    package var received: LedgerExport

    package init(received: LedgerExport) { self.received = received }

    /// Joins the ledgers of all processes of a segment, in order.
    package init(joining processes: [SegmentLedger]) {
        var joint = JointLedger(processes)
        self.init(received: joint.received())
        self.times = processes.flatMap(\.ownTimes)
        self.receivers = Set(processes.flatMap(\.receivers)).sorted()
        self.began = processes.reduce(into: []) { $0.formUnion($1.began) }
        for process in processes { self.granted.merge(process.granted, uniquingKeysWith: min) }
        self.end = processes.reduce(into: DeliveryEnd()) { $0 += $1.end }
        self.places = processes.first?.places ?? LedgerPlaces()
        self.published = processes.flatMap(\.published)
    }

    /// The times that are of clients: a process without publishers has none of their end.
    var ownTimes: [Times] {
        let publishes = self.published.contains { !$0.fates.isEmpty }
        return self.times.map { times in
            var times = times
            if !publishes { times.publishersEnded = nil }
            if self.receivers.isEmpty { times.subscribersLeft = nil }
            return times
        }
    }

    // MARK: - The times of a segment of a single process

    package var loadBegan: Int64? {
        get { self.times[0].loadBegan }
        set { self.times[0].loadBegan = newValue }
    }
    package var publishersEnded: Int64? {
        get { self.times[0].publishersEnded }
        set { self.times[0].publishersEnded = newValue }
    }
    package var subscribersLeft: Int64? {
        get { self.times[0].subscribersLeft }
        set { self.times[0].subscribersLeft = newValue }
    }
}

/// Which publishers and receivers of a run belong together, as ranges of their numbers.
package struct LedgerPlaces: Hashable, Sendable {
    /// Publishers of one stream of one group.
    package struct Stream: Hashable, Sendable {
        package var publishers: Range<UInt32>
        /// The receivers of the publishers' own clients, in the same order; `nil` if they have none.
        package var own: UInt32?
        /// The names that metrics carry.
        package var group: String
        package var name: String

        package init(publishers: Range<UInt32>, own: UInt32?, group: String, name: String) {
            self.publishers = publishers
            self.own = own
            self.group = group
            self.name = name
        }
    }

    /// Receivers of one group, or one share group.
    package struct Receivers: Hashable, Sendable {
        package var numbers: Range<UInt32>
        /// The group's name; a share group with members in several has their names joined by `+`.
        package var group: String

        package init(numbers: Range<UInt32>, group: String) {
            self.numbers = numbers
            self.group = group
        }
    }

    /// A stage of the load.
    package struct Stage: Hashable, Sendable {
        package var name: String
        package var isMeasured: Bool

        package init(name: String, isMeasured: Bool) {
            self.name = name
            self.isMeasured = isMeasured
        }
    }

    package var streams: [Stream]
    package var receivers: [Receivers]
    package var stages: [Stage] = []

    package init(streams: [Stream] = [], receivers: [Receivers] = []) {
        self.streams = streams
        self.receivers = receivers
    }

    /// The place of a publisher's stream; `nil` for a publisher of no stream.
    package func stream(of publisher: UInt32) -> Int? { Self.place(of: publisher, in: self.streams, \.publishers) }
    package func receivers(of receiver: UInt32) -> Int? { Self.place(of: receiver, in: self.receivers, \.numbers) }

    /// The row of a pair: its receivers' place, then its stream's; `nil` for a pair of no stream.
    package func label(_ publisher: UInt32, _ receiver: UInt32) -> Int? {
        guard let receivers = self.receivers(of: receiver), let stream = self.stream(of: publisher) else { return nil }
        return receivers * max(1, self.streams.count) + stream
    }

    /// The receiver of a publisher's own client.
    package func own(_ publisher: UInt32) -> UInt32? {
        guard let stream = self.stream(of: publisher), let own = self.streams[stream].own else { return nil }
        return own + (publisher - self.streams[stream].publishers.lowerBound)
    }

    /// Ranges are sorted and disjoint.
    private static func place<Part>(of number: UInt32, in all: [Part], _ range: (Part) -> Range<UInt32>) -> Int? {
        let place = all.partitionPoint { range($0).upperBound > number }
        return place < all.count && range(all[place]).contains(number) ? place : nil
    }
}

extension LedgerExport {
    package init() {
        self.init(keys: [], streams: [], counts: PerQoS(repeating: DeliveryCounts()), foreign: 0, overflowed: false)
    }
}
