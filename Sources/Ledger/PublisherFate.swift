/// The fate of one publisher's messages to one audience, as the publisher knows it.
///
/// Every sequence number below ``assigned`` that is not in ``unknown`` was acknowledged (QoS 1, 2) or confirmed (QoS
/// 0).
package struct PublisherFate: Hashable, Sendable {
    package var publisher: UInt32
    /// The publisher's number for the set of receivers; see ``PublishedExport``.
    package var audience: UInt32
    package var qos: UInt8
    /// Sequence numbers 0..<assigned were used.
    package var assigned: UInt64
    /// Unconfirmed, in flight, timed out, failed or never written: expected only if they arrive.
    package var unknown: SequenceRanges
    /// Numbered and never written, a part of ``unknown``: their deliveries are outstanding, and not missing.
    package var unsent: SequenceRanges
    /// Neither acknowledged nor failed when the drain ended, a part of ``unknown``: the server owes their deliveries.
    package var outstanding: SequenceRanges
    /// Due and never written, and without a sequence number: the client could not send them.
    package var neverSent: UInt64
    /// When they were due: first those with a sequence number, in its order, then those without one.
    ///
    /// Messages beyond the marks have no known due time.
    package var dues: [DueMark] = []
    /// Sent more than once, after a reconnect.
    package var resent: SequenceRanges
    /// Acknowledged with 0x10, No matching subscribers (MQTT 5.0 §3.4.2.1).
    package var admitted: SequenceRanges
    /// The messages expire within run and drain: the server may drop any of them (MQTT 5.0 §3.3.2.3.3).
    package var expires: Bool
    /// All have one topic, so that the server keeps their order (MQTT 5.0 §4.6).
    package var isOrdered: Bool
    /// The publisher has no other audience, and its headers do not name this one: streams and marks have 0 for it.
    package var isAlone: Bool

    package init(
        publisher: UInt32,
        audience: UInt32 = 0,
        qos: UInt8,
        assigned: UInt64,
        unknown: SequenceRanges = SequenceRanges(),
        unsent: SequenceRanges = SequenceRanges(),
        outstanding: SequenceRanges = SequenceRanges(),
        neverSent: UInt64 = 0,
        resent: SequenceRanges = SequenceRanges(),
        admitted: SequenceRanges = SequenceRanges(),
        expires: Bool = false,
        isOrdered: Bool = true,
        isAlone: Bool = false
    ) {
        self.publisher = publisher
        self.audience = audience
        self.qos = qos
        self.assigned = assigned
        self.unknown = unknown
        self.unsent = unsent
        self.outstanding = outstanding
        self.neverSent = neverSent
        self.resent = resent
        self.admitted = admitted
        self.expires = expires
        self.isOrdered = isOrdered
        self.isAlone = isAlone
    }
}

extension PublisherFate {
    /// The stream of the messages at one of their receivers.
    package func key(_ receiver: UInt32) -> StreamKey {
        StreamKey(subscription: receiver, publisher: self.publisher, audience: self.isAlone ? 0 : self.audience)
    }
}

/// The fates of one event loop's publishers, with the receivers of their audiences.
package struct PublishedExport: Hashable, Sendable {
    /// The members by the audience's number.
    package var audiences: [[AudienceMember]]
    package var fates: [PublisherFate]

    package init(audiences: [[AudienceMember]] = [], fates: [PublisherFate] = []) {
        self.audiences = audiences
        self.fates = fates
    }

    /// The same by another clock, which is ahead by so many nanoseconds.
    package func shifted(by offset: Int64) -> PublishedExport {
        var export = self
        for fate in export.fates.indices {
            for mark in export.fates[fate].dues.indices { export.fates[fate].dues[mark].last &+= offset }
        }
        return export
    }

    func members(of fate: PublisherFate) -> [AudienceMember] {
        Int(fate.audience) < self.audiences.count ? self.audiences[Int(fate.audience)] : []
    }
}

/// Consecutive publishers that feed one subscription; a subscription may have several such feeds.
package struct SubscriptionFeed: Hashable, Sendable {
    /// The subscription's number in the run; a share group is one subscription.
    package var subscription: UInt32
    package var publishers: Range<UInt32>
    /// By publisher, the messages sent while the subscription was away, or before its first SUBACK: their fate is
    /// unknown.
    package var missed: [UInt32: SequenceRanges]

    package init(subscription: UInt32, publishers: Range<UInt32>, missed: [UInt32: SequenceRanges] = [:]) {
        self.subscription = subscription
        self.publishers = publishers
        self.missed = missed
    }
}
