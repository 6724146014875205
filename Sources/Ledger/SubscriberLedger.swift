/// The ledgers of all ordinary subscriptions of one event loop.
///
/// Belongs to its shard. It takes 32 bytes per ordered stream, plus the ``StreamIndex``.
package struct SubscriberLedger: ~Copyable {
    private var index = StreamIndex()
    private var numbers: [UInt32] = []
    private var streams = RawList<StreamLedger>()
    private let publishers: UInt32
    private let limits: StreamLedger.Limits
    private var gapsLeft: Int
    private var overflowed = false
    private var foreign: UInt64 = 0
    /// The arrivals so far, by the publisher's QoS.
    package private(set) var counts = PerQoS(repeating: DeliveryCounts())

    /// - Parameters:
    ///   - publishers: ids are below this; `nil` if the publishers are not in this run.
    ///   - limits: limits of each stream.
    ///   - gaps: runs of missing sequence numbers over all streams together, 16 bytes each.
    package init(publishers: UInt32? = nil, limits: StreamLedger.Limits = .standard, gaps: Int = 4_194_304) {
        self.publishers = publishers ?? .max
        self.limits = limits
        self.gapsLeft = gaps
    }

    /// Reserves space for the planned load, so that nothing large moves during the run.
    package mutating func reserve(subscriptions: Int, streams: Int) {
        self.index.reserve(subscriptions: subscriptions, streams: streams)
        self.numbers.reserveCapacity(subscriptions)
        self.streams.reserve(streams)
    }

    /// Adds a subscription under its number in the whole run and returns its index on this loop: 0, 1, 2...
    package mutating func addSubscription(_ number: UInt32) -> Int {
        self.numbers.append(number)
        return self.index.addSubscription()
    }

    /// Records one arrival of this run; `nil` if its header names an impossible publisher or QoS.
    package mutating func arrived(
        subscription: Int,
        publisher: UInt32,
        qos: UInt8,
        sequence: UInt64
    ) -> StreamLedger.Arrival? {
        guard publisher < self.publishers, qos <= 2 else {
            self.foreign += 1
            return nil
        }
        let slot = self.index.slot(subscription: subscription, publisher: publisher)
        if slot == self.streams.count { self.streams.append(StreamLedger(qos: qos)) }
        if (self.streams.base + slot).pointee.arrivedInOrder(sequence) {
            self.counts[qos].distinct &+= 1
            return .new
        }
        let arrival = self.arrivedIrregularly(slot, sequence)
        self.counts[qos].add(arrival)
        return arrival
    }

    @inline(never)
    private mutating func arrivedIrregularly(_ slot: Int, _ sequence: UInt64) -> StreamLedger.Arrival {
        let stream = self.streams.base + slot
        let before = stream.pointee.gapRuns
        let arrival = stream.pointee.arrived(sequence, limits: self.limits)
        self.gapsLeft -= stream.pointee.gapRuns - before
        if self.gapsLeft < 0 { self.overflowed = true }
        return arrival
    }

    /// The ledger's contents as values, for the end of a run.
    package mutating func export() -> LedgerExport {
        let numbers = self.numbers
        return LedgerExport(
            keys: self.index.pairs.map {
                StreamKey(subscription: numbers[Int($0.subscription)], publisher: $0.publisher)
            },
            streams: Array(UnsafeBufferPointer(start: self.streams.base, count: self.streams.count)),
            counts: self.counts,
            foreign: self.foreign,
            overflowed: self.overflowed
        )
    }
}
