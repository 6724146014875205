/// Consecutive messages of a publisher that were due in one lane of the load.
///
/// The ledger knows of a message that does not arrive only that it was due by the time of the last one.
package struct DueMark: Hashable, Sendable {
    /// A part of the load, by the caller's numbers.
    package var lane: Int
    /// The number of messages; those of the mark before come first.
    package var count: UInt64
    /// When the last of them was due, in nanoseconds.
    package var last: Int64

    package init(lane: Int, count: UInt64, last: Int64) {
        self.lane = lane
        self.count = count
        self.last = last
    }
}

extension [DueMark] {
    package var messages: UInt64 { self.reduce(0) { $0 + $1.count } }

    /// Adds messages that were due after all others.
    package mutating func add(_ count: UInt64 = 1, lane: Int, last: Int64) {
        guard count > 0 else { return }
        if let end = self.indices.last, self[end].lane == lane {
            self[end].count += count
            self[end].last = Swift.max(self[end].last, last)
        } else {
            self.append(DueMark(lane: lane, count: count, last: last))
        }
    }
}

/// The facts about a publisher's messages to one audience that few publishers have.
package struct PublishExceptions: Sendable {
    package var unsent = SequenceRanges()
    package var outstanding = SequenceRanges()
    package var resent = SequenceRanges()
    package var admitted = SequenceRanges()
    /// Messages of the lanes before the present one.
    package var ended: [DueMark] = []
    /// Messages that were due and have no sequence number.
    package var neverSent: [DueMark] = []

    package init() {}

    /// Ends a lane: its messages are those before this sequence number that no earlier lane has.
    package mutating func end(_ lane: Int, before sequence: UInt64, last: Int64) {
        self.ended.add(sequence - self.ended.messages, lane: lane, last: last)
    }
}

extension PublisherFate {
    /// Adds the exceptions, and the due times of all messages.
    ///
    /// `lane` and `last` are those of the latest message with a sequence number.
    package mutating func take(_ own: PublishExceptions?, lane: Int, last: Int64) {
        let own = own ?? PublishExceptions()
        (self.unsent, self.resent, self.admitted) = (own.unsent, own.resent, own.admitted)
        (self.outstanding, self.neverSent) = (own.outstanding, own.neverSent.messages)
        self.dues = own.ended
        self.dues.add(self.assigned - Swift.min(self.assigned, own.ended.messages), lane: lane, last: last)
        self.dues += own.neverSent
    }
}

/// Deliveries that did not come, of messages that were due by one time.
package struct AbsentDelivery: Hashable, Sendable {
    /// The label of their row, and the QoS of their publishers.
    package var label: Int
    package var qos: UInt8
    package var lane: Int
    package var last: Int64
    package var lost: UInt64 = 0
    package var outstanding: UInt64 = 0
}
