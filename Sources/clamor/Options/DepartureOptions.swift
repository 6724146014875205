/// Clients leave at a steady rate.
package struct ChurnOption: Hashable, Sendable {
    /// Clients a second, over all.
    package var perSecond: Double
    /// Without a DISCONNECT.
    package var cuts = false

    package init(perSecond: Double) {
        self.perSecond = perSecond
    }
}

/// Clients subscribe and unsubscribe at a steady rate.
package struct SubscriptionChurnOption: Hashable, Sendable {
    /// Clients a second, over all.
    package var perSecond: Double
    /// May hold placeholders; nobody publishes to what it hears.
    package var filter = "clamor-churn/%c"

    package init(perSecond: Double) {
        self.perSecond = perSecond
    }
}

/// A share of all clients leaves at once.
package struct StormOption: Hashable, Sendable {
    /// 0 to 1.
    package var share: Double
    /// Nanoseconds since the load began.
    package var at: Int64
    /// Nanoseconds within which they leave one by one; 0: all at once.
    package var over: Int64 = 0
    /// Without a DISCONNECT.
    package var cuts = true
    /// Of subscribers alone, who stay away so long, in nanoseconds since the load began; `nil`: of all clients.
    package var until: Int64?

    package init(share: Double, at: Int64) {
        self.share = share
        self.at = at
    }
}
