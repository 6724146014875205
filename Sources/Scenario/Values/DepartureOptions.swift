/// Clients subscribe and unsubscribe at a steady rate.
package struct SubscriptionChurnOption: Hashable, Sendable {
    /// Clients a second, over all.
    package var perSecond: Double
    /// May contain placeholders; no client publishes to these topics.
    package var filter = "clamor-churn/%c"

    package init(perSecond: Double) { self.perSecond = perSecond }
}
