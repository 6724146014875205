/// An entry of a ``TimeHeap``.
package protocol TimedEntry {
    /// A total order, so that equal times have one order too.
    func isBefore(_ other: Self) -> Bool
}

/// Entries by their time, the earliest first: a binary heap.
package struct TimeHeap<Entry: TimedEntry & Sendable>: Sendable {
    private var entries: [Entry]

    package init(_ entries: [Entry] = []) { self.entries = entries.sorted { $0.isBefore($1) } }

    package var first: Entry? { self.entries.first }

    package mutating func insert(_ entry: Entry) {
        var child = self.entries.count
        self.entries.append(entry)
        while child > 0, self.entries[child].isBefore(self.entries[(child - 1) / 2]) {
            self.entries.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    /// Puts another entry in place of the first one, of a heap that has one.
    package mutating func replaceFirst(_ entry: Entry) {
        self.entries[0] = entry
        self.sink()
    }

    package mutating func removeFirst() -> Entry? {
        guard let last = self.entries.popLast() else { return nil }
        guard let first = self.entries.first else { return last }
        self.replaceFirst(last)
        return first
    }

    private mutating func sink() {
        var parent = 0
        while true {
            var least = parent
            for child in (2 * parent + 1)..<(2 * parent + 3)
            where child < self.entries.count && self.entries[child].isBefore(self.entries[least]) {
                least = child
            }
            guard least != parent else { return }
            self.entries.swapAt(parent, least)
            parent = least
        }
    }
}
