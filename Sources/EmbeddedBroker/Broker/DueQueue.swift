package import NIOCore

/// Events by due time, soonest and then oldest first: a binary heap.
///
/// An obsolete entry stays until it is due; its ticket identifies it.
package struct DueQueue {
    package struct Entry {
        package var due: NIODeadline
        var session: Int32
        package var ticket: UInt64

        package init(due: NIODeadline, session: Int32, ticket: UInt64) {
            self.due = due
            self.session = session
            self.ticket = ticket
        }

        fileprivate func precedes(_ other: Entry) -> Bool {
            (self.due, self.ticket) < (other.due, other.ticket)
        }
    }

    private var entries: [Entry] = []

    package init() {}

    package var isEmpty: Bool { self.entries.isEmpty }
    var count: Int { self.entries.count }
    /// Due time of the soonest entry; requires an entry.
    package var nextDue: NIODeadline { self.entries[0].due }

    package mutating func add(_ entry: Entry) {
        self.entries.append(entry)
        var index = self.entries.count - 1
        while index > 0 {
            let parent = (index - 1) / 2
            guard self.entries[index].precedes(self.entries[parent]) else { return }
            self.entries.swapAt(index, parent)
            index = parent
        }
    }

    /// The soonest entry, if it is due.
    package mutating func popDue(at now: NIODeadline) -> Entry? {
        guard let first = self.entries.first, first.due <= now else { return nil }
        let last = self.entries.removeLast()
        if !self.entries.isEmpty {
            self.entries[0] = last
            self.sink(from: 0)
        }
        return first
    }

    private mutating func sink(from start: Int) {
        var index = start
        while true {
            var least = index
            for child in (2 * index + 1)...(2 * index + 2) where child < self.entries.count {
                if self.entries[child].precedes(self.entries[least]) { least = child }
            }
            guard least != index else { return }
            self.entries.swapAt(index, least)
            index = least
        }
    }

    /// Drops obsolete entries.
    package mutating func keep(where isUseful: (Entry) -> Bool) {
        self.entries.removeAll { !isUseful($0) }
        for index in stride(from: self.entries.count / 2 - 1, through: 0, by: -1) { self.sink(from: index) }
    }
}
