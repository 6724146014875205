/// The messages that the publishers of one event loop sent to each of their audiences.
///
/// For publishers whose topic, and so whose audience, changes from message to message. Belongs to its shard. It takes
/// 40 bytes per publisher and audience, plus the ``StreamIndex``.
package struct PublisherLedger: ~Copyable {
    struct Row {
        /// The sequence number of the next message, and of the first one on this connection.
        var next: UInt64 = 0
        var first: UInt64 = 0
        /// Messages with unknown fate.
        var unknown = SequenceRanges()
        /// When the last message was due.
        var last: Int64 = 0
        let publisher: UInt32
        /// The lane above the bits of the audience, for which a header has fewer bits than there are above them.
        private var audienceAndLane: UInt32

        init(publisher: Int, audience: UInt32) {
            self.publisher = UInt32(publisher)
            self.audienceAndLane = audience
        }

        var audience: UInt32 { self.audienceAndLane & (StreamKey.audienceLimit - 1) }
        var lane: Int {
            get { Int(self.audienceAndLane >> StreamKey.audienceBits) }
            set { self.audienceAndLane = self.audience | UInt32(newValue) << StreamKey.audienceBits }
        }
    }

    private var index = StreamIndex()
    private var rows = RawList<Row>()
    /// By row, for the rows that have any.
    package var exceptions: [Int: PublishExceptions] = [:]
    /// By publisher: the number of its latest message at QoS 1 or 2.
    private var numbers = RawList<UInt64>()

    package init() {}

    /// Adds a publisher and returns its index on this loop: 0, 1, 2...
    package mutating func addPublisher() -> Int {
        self.numbers.append(0)
        return self.index.addSubscription()
    }

    /// The row of a publisher's messages to an audience.
    package mutating func row(publisher: Int, audience: UInt32) -> Int {
        let slot = self.index.slot(subscription: publisher, publisher: 0, audience: audience)
        if slot == self.rows.count { self.rows.append(Row(publisher: publisher, audience: audience)) }
        return slot
    }

    /// The number of rows.
    package var count: Int { self.rows.count }
    package func publisher(ofRow row: Int) -> Int { Int(self.rows.base[row].publisher) }
    package func audience(ofRow row: Int) -> UInt32 { self.rows.base[row].audience }
    /// The sequence number of the row's next message.
    package func next(_ row: Int) -> UInt64 { self.rows.base[row].next }

    /// Assigns the next sequence number to a message that was due then, in this lane of the load.
    package mutating func take(_ row: Int, due: Int64 = 0, lane: Int = 0) -> UInt64 {
        let sequence = self.rows.base[row].next
        if self.rows.base[row].lane != lane { self.begin(lane, row) }
        self.rows.base[row].last = due
        self.rows.base[row].next = sequence + 1
        return sequence
    }

    private mutating func begin(_ lane: Int, _ index: Int) {
        let row = self.rows.base[index]
        if row.next > 0 {
            self.exceptions[index, default: PublishExceptions()].end(row.lane, before: row.next, last: row.last)
        }
        self.rows.base[index].lane = lane
    }

    /// A message in flight as one number: its row, and the lower bits of its sequence number and of its number among
    /// those of its publisher.
    ///
    /// A publisher has fewer than 65,536 messages in flight (MQTT 5.0 §4.9), so the lower bits tell them apart.
    package mutating func flight(_ row: Int, sequence: UInt64, number: UInt64) -> UInt64 {
        self.numbers.base[Int(self.rows.base[row].publisher)] = number
        return UInt64(row) << (2 * Self.flightBits) | (sequence & Self.flightMask) << Self.flightBits
            | number & Self.flightMask
    }

    /// The parts of ``flight(_:sequence:number:)``.
    package func parts(ofFlight flight: UInt64) -> (row: Int, sequence: UInt64, number: UInt64) {
        let row = Int(flight >> (2 * Self.flightBits))
        let last = self.numbers.base[Int(self.rows.base[row].publisher)]
        return (
            row,
            Self.whole(flight >> Self.flightBits, below: self.rows.base[row].next &- 1),
            Self.whole(flight, below: last)
        )
    }

    private static let flightBits: UInt64 = 21
    private static let flightMask: UInt64 = (1 << 21) - 1

    /// The highest number up to `last` with these lower bits.
    private static func whole(_ lower: UInt64, below last: UInt64) -> UInt64 {
        last &- ((last &- lower) & self.flightMask)
    }

    package mutating func noteUnknown(_ row: Int, _ sequence: UInt64) { self.rows.base[row].unknown.insert(sequence) }
    package mutating func noteUnsent(_ row: Int, _ sequence: UInt64) {
        self.rows.base[row].unknown.insert(sequence)
        self.exceptions[row, default: PublishExceptions()].unsent.insert(sequence)
    }

    /// The end of a connection decides about its QoS 0 messages.
    package enum ConnectionFate: Hashable, Sendable {
        /// The server has read them.
        case confirmed
        case broken
        /// The run ended before the server had read them.
        case outstanding
    }

    /// The publisher's connection has ended: settles its QoS 0 messages.
    ///
    /// `settled` gets the number of messages of each row, and how many of them were never written.
    package mutating func endConnection(
        publisher: Int,
        _ fate: ConnectionFate,
        settled: (_ row: Int, _ count: UInt64, _ unsent: UInt64) -> Void
    ) {
        var rows: [Int] = []
        self.index.forEachSlot(of: publisher) { rows.append($0) }
        for row in rows {
            let (first, next) = (self.rows.base[row].first, self.rows.base[row].next)
            guard next > first else { continue }
            self.rows.base[row].first = next
            if fate != .confirmed { self.rows.base[row].unknown.insert(first..<next) }
            let unsent = self.exceptions[row]?.unsent.clamped(to: first..<next) ?? SequenceRanges()
            if fate == .outstanding {
                for run in SequenceRanges([first..<next]).subtracting(unsent).runs {
                    self.exceptions[row, default: PublishExceptions()].outstanding.insert(run)
                }
            }
            settled(row, next - first, unsent.count)
        }
    }

    /// One fate per row; `describe` begins it with what the publisher's stream has, `nil` for no fate.
    package func fates(_ describe: (_ publisher: Int, _ audience: UInt32) -> PublisherFate?) -> [PublisherFate] {
        (0..<self.rows.count).compactMap { index in
            let row = self.rows.base[index]
            guard var fate = describe(Int(row.publisher), row.audience) else { return nil }
            fate.audience = row.audience
            fate.assigned = row.next
            fate.unknown = row.unknown
            fate.take(self.exceptions[index], lane: row.lane, last: row.last)
            return fate
        }
    }
}
