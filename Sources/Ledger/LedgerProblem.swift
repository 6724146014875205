/// A reason why the books of a run are not exact.
package enum LedgerProblem: Hashable, Sendable {
    /// Streams had more gaps than a ledger stores.
    case tooManyGaps(streams: Int)
    /// All streams of a ledger together had more gaps than it stores.
    case outOfMemory
    /// A publisher had more audiences than a header can name.
    case tooManyAudiences
    /// Messages of the run had an impossible header.
    case damagedHeaders(messages: UInt64)
    /// Sequence numbers arrived that were never sent.
    case neverSent(streams: Int)
    /// Subscriptions received messages from a publisher that does not feed them.
    case strayed(streams: Int)
    /// Streams were recorded twice, or under another QoS than their publisher's.
    case mixed(streams: Int)
    /// The count at arrival differs from the count in the streams.
    case miscounted(qos: UInt8, arrived: UInt64, inStreams: UInt64)
    /// Expected differs from received + lost + outstanding.
    case unbalanced(qos: UInt8, expected: UInt64, received: UInt64, lost: UInt64, outstanding: UInt64)

    // For a run in segments: a message that arrived in several segments was recorded as a first arrival in each.

    /// The durations of deliveries include those of duplicates.
    case durationsOfDuplicates(messages: UInt64)
    /// As many messages are lost: counted twice, duplicates may have let the subscribers leave too early.
    case leftBehindDuplicates(messages: UInt64, lost: UInt64)
    /// Subscribers left before the last publisher of another segment had ended; segments are counted from 1.
    case leftEarly(subscribers: Int, publishers: Int, nanoseconds: Int64)
}
