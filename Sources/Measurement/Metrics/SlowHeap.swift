/// The end that a slow message was measured at.
public enum SlowKind: Int, CaseIterable, Sendable {
    /// The server's answer to the sender.
    case answer
    /// The arrival at a receiver.
    case arrival
}

/// A slow message as its event loop knows it: without names, times in monotonic nanoseconds.
package struct SlowEntry: Hashable, Sendable {
    package var kind: SlowKind
    /// The metric that it was recorded in, of the catalog of its group.
    package var metric: DurationID
    /// From due to the answer or the arrival.
    package var duration: Int64
    package var due: Int64
    package var written: Int64?
    /// How late the loop was for its next timer then.
    package var loopLag: Int64?
    /// The sender, by the number that its workload has for it.
    package var sender: UInt32
    /// The receiver's number in its group.
    package var receiver: UInt32?
    /// Together with the sender these tell its messages apart.
    package var audience: UInt32
    package var sequence: UInt64

    package init(
        _ kind: SlowKind,
        _ metric: DurationID,
        duration: Int64,
        due: Int64,
        sender: UInt32,
        audience: UInt32 = 0,
        sequence: UInt64,
        written: Int64? = nil,
        receiver: Int? = nil
    ) {
        self.kind = kind
        self.metric = metric
        self.duration = duration
        self.due = due
        self.sender = sender
        self.audience = audience
        self.sequence = sequence
        self.written = written
        self.receiver = receiver.map { UInt32(truncatingIfNeeded: $0) }
    }
}

/// The slowest of any number of messages, in memory of a fixed size: a heap with the least slow of them at its root.
package struct SlowHeap: Sendable {
    package private(set) var entries: [SlowEntry] = []
    private let limit: Int

    /// Memory for `limit` messages is allocated here, and none later.
    package init(limit: Int = RunRecord.slowestLimit) {
        self.limit = limit
        self.entries.reserveCapacity(limit)
    }

    /// Only slower messages are kept.
    package var floor: Int64 { self.entries.count < self.limit ? .min : self.entries.first?.duration ?? .max }

    /// Keeps the message if it is slower than the floor; without room the least slow one goes.
    package mutating func add(_ entry: SlowEntry) {
        guard entry.duration > self.floor else { return }
        if self.entries.count < self.limit {
            self.entries.append(entry)
            self.rise(from: self.entries.count - 1)
        } else {
            self.entries[0] = entry
            self.sink()
        }
    }

    private mutating func rise(from place: Int) {
        var place = place
        while place > 0 {
            let parent = (place - 1) / 2
            guard self.entries[place].duration < self.entries[parent].duration else { return }
            self.entries.swapAt(place, parent)
            place = parent
        }
    }

    private mutating func sink() {
        var place = 0
        while true {
            var least = place
            for child in 2 * place + 1...2 * place + 2 where child < self.entries.count {
                if self.entries[child].duration < self.entries[least].duration { least = child }
            }
            guard least != place else { return }
            self.entries.swapAt(place, least)
            place = least
        }
    }
}
