/// Which part of a plan this process carries out, where several share it.
///
/// Client k belongs to segment k mod ``count``, of operators so in every row of the plan (``LoadPlan/row``), and
/// operators and listeners are counted each by themselves: listener k is with operator k. What is due when, and for whom,
/// is the plan's, which is the same in all segments: each has the times, numbers and shares that its clients would have
/// in one process alone, so that rates, limits, storms and churn add up to the plan's by themselves.
package struct PlanSegment: Hashable, Sendable {
    /// From 0.
    package let index: Int
    package let count: Int

    package init(index: Int, of count: Int) {
        precondition(count > 0 && (0..<count).contains(index), "a segment is one of them")
        self.index = index
        self.count = count
    }

    package static let whole = PlanSegment(index: 0, of: 1)

    /// How many of so many in a row are this segment's.
    package func share(of all: Int) -> Int { ShardClients.share(of: all, shard: self.index, of: self.count) }

    package func contains(_ number: Int) -> Bool { number % self.count == self.index }
}

extension LoadPlan {
    /// Operators of this process.
    package var ownOperators: Int {
        self.operators > 0 ? self.segment.share(of: self.width) * (self.operators / self.width) : 0
    }

    /// Into how many segments it is to be divided at the least, so that none has more clients than `most`, and `fits` takes
    /// that number of them; `nil` where there is none up to `limit`.
    package func segments(of most: Int, upTo limit: Int, where fits: (_ count: Int) -> Bool) -> Int? {
        guard most > 0 else { return nil }
        let least = max(1, (self.clients + most - 1) / most)
        // Beyond that some are empty.
        let last = min(limit, self.clients)
        guard least <= last else { return nil }
        var plan = self
        return (least...last).first { count in
            // The first one is nowhere smaller than the others.
            plan.segment = PlanSegment(index: 0, of: count)
            return plan.ownClients <= most && fits(count)
        }
    }

    /// Clients of this process.
    package var ownClients: Int { self.ownOperators + self.segment.share(of: self.listeners) }
}
