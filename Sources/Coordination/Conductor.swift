package import LoadEngine

/// The agreement among the segments of one run: they begin together, their loads begin together, and the drain ends
/// when all messages have arrived in all of them.
///
/// It is the same for processes of one host and for hosts. It knows neither times nor ways to the segments.
package struct Conductor: Sendable {
    package enum Decision: Hashable, Sendable {
        /// All segments are prepared.
        case start
        /// All clients of all segments that go on are up.
        case load
        /// All messages for a group have arrived.
        case complete(group: Int)
    }

    private let count: Int
    private let watches: Int
    private var ready: Set<Int> = []
    /// Segments that have all clients up.
    private var settled: Set<Int> = []
    /// Segments that have ended.
    private var ended: Set<Int> = []
    private var balances: [Int: [Int: DeliveryBalance]] = [:]
    private var complete: Set<Int> = []
    package private(set) var hasBegun = false
    package private(set) var hasLoad = false

    /// - Parameters:
    ///   - count: the number of segments, which are numbered from 0.
    ///   - watches: server watches that have to be ready too; their numbers are behind those of the segments.
    package init(segments count: Int, watches: Int = 0) {
        self.count = count
        self.watches = watches
    }

    package mutating func ready(_ index: Int) -> Decision? {
        self.ready.insert(index)
        let segments = self.ready.count { $0 < self.count }
        guard segments == self.count, self.ready.count - segments >= self.watches, !self.hasBegun else { return nil }
        self.hasBegun = true
        return .start
    }

    /// Takes back ``ready(_:)``, for a segment that is started anew.
    package mutating func notReady(_ index: Int) { self.ready.remove(index) }
    package func isReady(_ index: Int) -> Bool { self.ready.contains(index) }

    package mutating func settled(_ index: Int) -> Decision? {
        self.settled.insert(index)
        return self.load()
    }

    /// The load does not wait for segments that have not settled.
    package mutating func enough() -> Decision? {
        guard self.hasBegun, !self.hasLoad else { return nil }
        self.hasLoad = true
        return .load
    }

    package mutating func ended(_ index: Int) -> Decision? {
        self.ended.insert(index)
        return self.load()
    }

    package func hasEnded(_ index: Int) -> Bool { self.ended.contains(index) }

    private mutating func load() -> Decision? {
        guard !self.hasLoad, !self.settled.isEmpty, self.settled.union(self.ended).count == self.count else {
            return nil
        }
        self.hasLoad = true
        return .load
    }

    package mutating func balance(_ balance: DeliveryBalance, of group: Int, in index: Int) -> Decision? {
        self.balances[group, default: [:]][index] = balance
        guard !self.complete.contains(group), self.balance(of: group)?.isComplete == true else { return nil }
        self.complete.insert(group)
        return .complete(group: group)
    }

    /// The sum over all segments; `nil` until each has reported its own.
    package func balance(of group: Int) -> DeliveryBalance? {
        guard let parts = self.balances[group], parts.count == self.count else { return nil }
        return parts.values.reduce(into: DeliveryBalance()) { $0 += $1 }
    }
}
