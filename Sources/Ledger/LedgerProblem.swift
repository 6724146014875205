/// Why the books of a run are not exact.
package enum LedgerProblem: Hashable, Sendable {
    /// Streams had more gaps than a ledger keeps.
    case tooManyGaps(streams: Int)
    /// All streams of a ledger together had more gaps than it keeps.
    case outOfMemory
    /// Messages of the run came with a header that cannot be.
    case damagedHeaders(messages: UInt64)
    /// Sequences arrived that were never sent.
    case neverSent(streams: Int)
    /// Subscriptions received from a publisher that does not feed them.
    case strayed(streams: Int)
    /// Streams were kept twice, or under another QoS than their publisher's.
    case mixed(streams: Int)
    /// As many were counted on arrival, and as many are in the streams.
    case miscounted(qos: UInt8, arrived: UInt64, inStreams: UInt64)
    /// Expected is not received + lost.
    case unbalanced(qos: UInt8, expected: UInt64, received: UInt64, lost: UInt64)

    // Of a run in segments. A message that arrived in several of them was each time recorded as a first arrival.

    /// The durations of deliveries hold those of duplicates too.
    case durationsOfDuplicates(messages: UInt64)
    /// Which of the reordered messages are duplicates is not known.
    case orderUnknown(messages: UInt64, reordered: UInt64)
    /// As many as are lost: counted twice, they may have let the subscribers leave too early.
    case leftBehindDuplicates(messages: UInt64, lost: UInt64)
    /// A subscription came into effect when it was no longer known what publishers elsewhere had sent.
    case subscribedLate(streams: Int)
    /// Subscribers left before the last publisher elsewhere had ended; segments are counted from 1.
    case leftEarly(subscribers: Int, publishers: Int, nanoseconds: Int64)
}
