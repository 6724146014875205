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
