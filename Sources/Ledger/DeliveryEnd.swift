/// How the deliveries of a run ended, from which follows whether the server withheld those that are absent.
///
/// Neither standard says when a server has delivered all that it will. By convention it has when it was quiet for a
/// second, or for as long as the longest delivery took, and then answered. Times are nanoseconds of one clock.
package struct DeliveryEnd: Hashable, Sendable {
    /// The last message at any subscription.
    package var lastArrival: Int64?
    /// The last write of a publisher, or the moment when the server had read it, as far as that is known.
    package var lastPublish: Int64?
    /// The first probe to a subscription's connection; `nil` without one.
    package var probed: Int64?
    /// The end of the drain: nothing that has not come by then has arrived at any subscription.
    package var ended: Int64?
    /// The longest delivery, in nanoseconds.
    package var longest: Int64 = 0
    /// Receivers whose connection, or that of a member, has not answered its probe.
    package var unproved: Set<UInt32> = []

    package static let leastQuiet: Int64 = 1_000_000_000

    package init() {}

    /// The same for all parts of a run, whose clocks are equal.
    package static func += (whole: inout DeliveryEnd, part: DeliveryEnd) {
        whole.lastArrival = [whole.lastArrival, part.lastArrival].compactMap(\.self).max()
        whole.lastPublish = [whole.lastPublish, part.lastPublish].compactMap(\.self).max()
        whole.probed = [whole.probed, part.probed].compactMap(\.self).min()
        whole.ended = [whole.ended, part.ended].compactMap(\.self).min()
        whole.longest = max(whole.longest, part.longest)
        whole.unproved.formUnion(part.unproved)
    }

    /// The same by another clock, which is ahead by so many nanoseconds.
    package func shifted(by offset: Int64) -> DeliveryEnd {
        var end = self
        end.lastArrival? &+= offset
        end.lastPublish? &+= offset
        end.probed? &+= offset
        end.ended? &+= offset
        return end
    }

    /// How long the server has to be quiet.
    package static func patience(longest: Int64) -> Int64 { max(self.leastQuiet, longest) }

    /// Whether the server was quiet for long enough before the probes.
    package var isQuiet: Bool { self.isQuiet(since: max(self.lastArrival ?? .min, self.lastPublish ?? .min)) }

    /// Whether it was quiet since a moment: retained copies come without a publisher's write.
    package func isQuiet(since last: Int64) -> Bool {
        guard let probed = self.probed else { return false }
        let (quiet, overflows) = probed.subtractingReportingOverflow(last)
        return overflows ? probed > last : quiet >= Self.patience(longest: self.longest)
    }

    /// Whether what a receiver has not received was withheld.
    func isWithheld(from receiver: UInt32) -> Bool { self.isQuiet && !self.unproved.contains(receiver) }
}
