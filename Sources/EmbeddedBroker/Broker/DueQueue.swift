import HeapModule
package import NIOCore

/// Events by due time, soonest and then oldest first.
///
/// An obsolete entry stays until it is due; its ticket identifies it.
package struct DueQueue {
    package struct Entry: Comparable {
        package var due: NIODeadline
        var session: Int32
        package var ticket: UInt64

        package init(due: NIODeadline, session: Int32, ticket: UInt64) {
            self.due = due
            self.session = session
            self.ticket = ticket
        }

        package static func < (one: Entry, other: Entry) -> Bool { (one.due, one.ticket) < (other.due, other.ticket) }
    }

    private var entries = Heap<Entry>()

    package init() {}

    var count: Int { self.entries.count }
    /// Due time of the soonest entry; `nil` without one.
    package var nextDue: NIODeadline? { self.entries.min?.due }
    package mutating func add(_ entry: Entry) { self.entries.insert(entry) }

    /// The soonest entry, if it is due.
    package mutating func popDue(at now: NIODeadline) -> Entry? {
        self.nextDue.map { $0 <= now } == true ? self.entries.popMin() : nil
    }

    /// Drops obsolete entries.
    package mutating func keep(where isUseful: (Entry) -> Bool) { self.entries.removeAll { !isUseful($0) } }
}
