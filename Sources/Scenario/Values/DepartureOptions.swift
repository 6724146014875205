package import LoadEngine
import Measurement
import NIOCore

/// Clients that are online and offline by turns; times are in nanoseconds.
package struct CycleOption: Hashable, Sendable {
    package var online: Int64?
    package var offline: Int64?
    package var jitter = 0.0
    package var cuts = false
    package var due = Cycle.Due.queue
}

extension LoadOptions {
    /// `nil` of clients that stay.
    package var cycle: Cycle? {
        guard let online = self.sleep.online, let offline = self.sleep.offline else { return nil }
        return Cycle(
            online: .nanoseconds(online),
            offline: .nanoseconds(offline),
            jitter: self.sleep.jitter,
            cuts: self.sleep.cuts,
            due: self.sleep.due
        )
    }
}

/// A time in nanoseconds, and the share by which it is longer or shorter at most.
package struct SpreadOption: Hashable, Sendable {
    package var time: Int64 = 0
    package var share = 0.0

    var text: String {
        self.share == 0 ? DurationText.text(self.time) : "\(DurationText.text(self.time))±\(Words.percent(self.share))"
    }
}

/// The answers of clients to messages.
package struct ReplyOption: Hashable, Sendable {
    /// `p2p`: to the sender; `nil`: none.
    package var topic: String?
    package var filter: String?
    package var after = SpreadOption()
    package var probability = 1.0
}

/// Clients subscribe and unsubscribe at a steady rate.
package struct SubscriptionChurnOption: Hashable, Sendable {
    /// Clients a second, over all.
    package var perSecond: Double
    /// May contain placeholders; no client publishes to these topics.
    package var filter = "clamor-churn/%c"

    package init(perSecond: Double) { self.perSecond = perSecond }
}
