import Ledger
import Report
import Testing

@Suite("A segment's ledger file is as large for an hour as for a minute")
struct LedgerSizeTests {
    /// A run of one plan: 12 publishers with 10 messages a second each, at each QoS, to 8 receivers and a share group.
    ///
    /// Publishers at QoS 0 reconnect every 10 s. Receivers are away every 20 s without missing anything, and get every
    /// hundredth message once more, as QoS 1 permits. In the end 3 messages of each publisher are in flight.
    private struct Run: ~Copyable {
        private static let rate: UInt64 = 10
        private static let publishers: UInt32 = 12
        private static let receivers: UInt32 = 8
        private static let group: UInt32 = 8

        private var table = AudienceTable()
        private var published = PublisherLedger()
        private var received = SubscriberLedger(publishers: Run.publishers)
        private var members = ShareMembers(publishers: Run.publishers)
        private var shares = ShareGroupLedger()
        private var isReordered = false

        init(isReordered: Bool = false) { self.isReordered = isReordered }

        mutating func ledger(seconds: UInt64) -> SegmentLedger {
            let audience = self.table.number(
                of: (0..<Self.receivers).map { AudienceMember(receiver: $0, qos: 2) } + [
                    AudienceMember(receiver: Self.group, qos: 2, isShared: true)
                ]
            )
            let rows = (0..<Self.publishers).map { _ in
                let publisher = self.published.addPublisher()
                return self.published.row(publisher: publisher, audience: audience)
            }
            let places = (0..<Self.receivers).map { self.received.addSubscription($0) }
            let share = (0..<4).map { _ in self.members.addMember(group: Self.group) }
            for second in 0..<seconds {
                for (publisher, row) in rows.enumerated() {
                    self.second(UInt32(publisher), row, audience, places, share)
                    guard second % 10 == 9, publisher % 3 == 0 else { continue }
                    self.published.endConnection(publisher: publisher, .confirmed) { _, _, _ in }
                }
                if second % 20 == 19 { for place in places { self.received.open(place) } }
                self.shares.merge([self.members.swap()])
            }
            for row in rows {
                for _ in 0..<3 {
                    let sequence = self.published.take(row)
                    self.published.noteUnknown(row, sequence)
                }
            }
            return self.export()
        }

        private mutating func second(
            _ publisher: UInt32,
            _ row: Int,
            _ audience: UInt32,
            _ places: [Int],
            _ share: [Int]
        ) {
            var sequences = (0..<Self.rate).map { _ in self.published.take(row) }
            if self.isReordered { sequences.swapAt(3, 4) }
            let qos = UInt8(publisher % 3)
            for sequence in sequences {
                for place in places {
                    for time in 0..<(qos == 1 && sequence % 100 == 99 ? 2 : 1) {
                        _ = self.received.arrived(
                            subscription: place,
                            publisher: publisher,
                            audience: audience,
                            qos: qos,
                            sequence: sequence,
                            mayRepeat: time == 1
                        )
                    }
                }
                let arrival = ShareBatch.Arrival(
                    publisher: publisher,
                    audience: audience,
                    qos: qos,
                    sequence: sequence,
                    lane: 0,
                    due: 0,
                    at: Int64(sequence)
                )
                self.members.arrived(member: share[Int(sequence) % share.count], arrival)
            }
        }

        private mutating func export() -> SegmentLedger {
            var received = self.received.export()
            let shares = self.shares.export()
            received.keys += shares.keys
            received.streams += shares.streams
            for qos: UInt8 in 0...2 { received.counts[qos] += shares.counts[qos] }
            var ledger = SegmentLedger(received: received)
            (ledger.loadBegan, ledger.publishersEnded, ledger.subscribersLeft) = (10, 20, 30)
            ledger.receivers = Array(0...Self.group)
            ledger.began = Set(ledger.receivers)
            ledger.published[0] = PublishedExport(
                audiences: self.table.audiences,
                fates: self.published.fates { publisher, audience in
                    PublisherFate(publisher: UInt32(publisher), qos: UInt8(publisher % 3), assigned: 0)
                }
            )
            return ledger
        }
    }

    private static func ledger(seconds: UInt64, isReordered: Bool = false) -> SegmentLedger {
        var run = Run(isReordered: isReordered)
        return run.ledger(seconds: seconds)
    }

    private func shape(_ text: String) -> [Substring] {
        text.split(separator: "\n").map { line in
            Substring(line.split { $0.isNumber }.joined(separator: "#"))
        }
    }

    @Test("the rows are the same but for the digits of counts")
    func hour() {
        let (one, other) = (Self.ledger(seconds: 60), Self.ledger(seconds: 3_600))
        let (short, long) = (LedgerCSV.text(one), LedgerCSV.text(other))
        #expect(self.shape(long) == self.shape(short))
        // 600 messages of each publisher become 36,000.
        let numbers = short.split { !$0.isNumber }.count
        #expect(long.utf8.count - short.utf8.count <= 2 * numbers)
        let books = Reconciliation(joining: [other])
        #expect(books.rows.map(\.lost) == [0, 0, 0])
        #expect(books.rows.map(\.received) == [1_296_000, 1_296_000, 1_296_000])
        #expect(books.rows.map(\.permitted) == [0, 11_520, 0] && books.problems.isEmpty)
    }

    @Test("a server that reorders all the time makes it no larger than its limit, and every late message counts")
    func reordered() {
        let one = Self.ledger(seconds: 300, isReordered: true)
        let other = Self.ledger(seconds: 900, isReordered: true)
        #expect(self.shape(LedgerCSV.text(other)) == self.shape(LedgerCSV.text(one)))
        let books = Reconciliation(joining: [other])
        #expect(books.rows.map(\.reordered) == [28_800, 28_800, 28_800])
        #expect(books.problems.isEmpty)
    }

    @Test("of several processes of a host it is as large as those of all together at most")
    func processes() {
        let (one, other) = (Self.ledger(seconds: 60), Self.ledger(seconds: 60))
        let joint = SegmentLedger(joining: [one, other])
        let size = LedgerCSV.text(joint).utf8.count
        #expect(size <= LedgerCSV.text(one).utf8.count + LedgerCSV.text(other).utf8.count)
    }
}
