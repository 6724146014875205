/// The part of a plan that this process carries out, if several processes share it.
///
/// Client k belongs to segment k mod ``count``; for operators, this applies within every row of the plan
/// (``LoadPlan/row``). Operators and listeners are numbered separately: listener k is with operator k. Due times and
/// their clients come from the plan, which is the same in all segments. Each segment has the times, numbers and shares
/// that its clients would have in a single process. So rates, limits, storms and churn add up to the plan's.
package struct PlanSegment: Hashable, Sendable {
    /// The segment's number, from 0.
    package let index: Int
    package let count: Int

    package init(index: Int, of count: Int) {
        precondition(count > 0 && (0..<count).contains(index), "a segment is one of them")
        self.index = index
        self.count = count
    }

    package static let whole = PlanSegment(index: 0, of: 1)

    /// The number of this segment's members among `all` consecutive ones.
    package func share(of all: Int) -> Int { ShardClients.share(of: all, shard: self.index, of: self.count) }
    package func contains(_ number: Int) -> Bool { number % self.count == self.index }
}

extension LoadPlan {
    /// Operators of this process.
    package var ownOperators: Int {
        self.operators > 0 ? self.segment.share(of: self.width) * (self.operators / self.width) : 0
    }

    /// The smallest number of segments in which none has more clients than `most`, and which `fits` accepts; `nil` if
    /// there is none up to `limit`.
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
