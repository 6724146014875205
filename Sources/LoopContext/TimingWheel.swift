package import NIOCore

/// A timer of a ``TimingWheel``; recycled after `unregister`.
package struct TimerID: Hashable, Sendable {
    package let rawValue: Int32

    package init(rawValue: Int32) { self.rawValue = rawValue }
}

/// A hashed timing wheel: due times of any distance, scheduled, moved and cancelled in constant time.
///
/// Pure: the time is passed in. A timer costs 24 bytes, all in one array; lists run through it by index. A slot of
/// the wheel is 2¹⁸ ns wide (0.26 ms) and holds what hashes to it, whatever the revolution; due times stay exact to
/// the nanosecond. Timers come out in the order of their slots, within a slot in any order.
///
/// ``popDue(_:)`` returns one timer at a time, so its owner may schedule and cancel between two calls.
package struct TimingWheel: ~Copyable {
    private struct Node {
        var due: Int64
        /// In a slot's list or on the free list; -1 at the end.
        var next: Int32
        /// The one before in the slot's list, or ``headMark`` and the slot, or ``idle``, or ``unused``.
        var previous: Int32
        var owner: Int32
        var tag: Int32
    }

    package static var bytesPerTimer: Int { MemoryLayout<Node>.stride }

    private static let slotBits: Int64 = 18
    private static let slotCount = 4096
    private static let none: Int32 = -1
    private static let idle: Int32 = -1
    private static let unused = Int32.min
    /// A list's first node stores `headMark - slot` where others store their predecessor.
    private static let headMark: Int32 = -2

    private var nodes: [Node] = []
    private var firstFree = TimingWheel.none
    private var heads = [Int32](repeating: TimingWheel.none, count: TimingWheel.slotCount)
    /// One bit per slot that has a list.
    private var occupied = [UInt64](repeating: 0, count: TimingWheel.slotCount / 64)
    /// Timers scheduled now.
    package private(set) var count = 0

    /// Nothing that is due in an earlier tick is left.
    private var tick: Int64 = 0
    /// Next node of the current slot to look at, for the sweep at `sweptTo`.
    private var scan = TimingWheel.none
    private var sweptTo = Int64.min
    /// Nothing is due before; exact when `earliestIsExact`, else only a lower bound.
    private var earliest = Int64.max
    private var earliestIsExact = true

    package init() {}

    // MARK: Registration

    /// Takes a timer, not yet scheduled.
    ///
    /// - Parameters:
    ///   - owner: whose timer it is, for ``LoopTimers`` to find the handler.
    ///   - tag: the owner's own number for it, a client's index for instance.
    /// - Returns: its number.
    package mutating func register(owner: Int32 = 0, tag: Int32 = 0) -> TimerID {
        let node = Node(due: 0, next: Self.none, previous: Self.idle, owner: owner, tag: tag)
        guard self.firstFree != Self.none else {
            self.nodes.append(node)
            return TimerID(rawValue: Int32(self.nodes.count - 1))
        }
        let index = self.firstFree
        self.firstFree = self.nodes[Int(index)].next
        self.nodes[Int(index)] = node
        return TimerID(rawValue: index)
    }

    /// Gives a timer back, cancelled if it was scheduled; its number may be handed out again.
    package mutating func unregister(_ id: TimerID) {
        self.cancel(id)
        let index = Int(id.rawValue)
        precondition(self.nodes[index].previous == Self.idle, "a timer is unregistered once")
        self.nodes[index].previous = Self.unused
        self.nodes[index].next = self.firstFree
        self.firstFree = id.rawValue
    }

    package func owner(of id: TimerID) -> Int32 { self.nodes[Int(id.rawValue)].owner }
    package func tag(of id: TimerID) -> Int32 { self.nodes[Int(id.rawValue)].tag }

    package func isScheduled(_ id: TimerID) -> Bool {
        let previous = self.nodes[Int(id.rawValue)].previous
        return previous != Self.idle && previous != Self.unused
    }

    // MARK: Scheduling

    /// Sets when the timer fires, once; moves it if it was set already.
    ///
    /// A time that has passed fires next.
    package mutating func schedule(_ id: TimerID, at deadline: NIODeadline) {
        self.cancel(id)
        let index = Int(id.rawValue)
        precondition(self.nodes[index].previous == Self.idle, "only a registered timer is scheduled")
        let due = Self.nanoseconds(deadline)
        self.nodes[index].due = due
        let slot = Self.slot(max(Self.tick(due), self.tick))

        // A timer that is already due goes where the sweep under way will still meet it.
        if slot == Self.slot(self.tick), due <= self.sweptTo {
            self.insert(id.rawValue, slot: slot, before: self.scan)
            self.scan = id.rawValue
        } else {
            self.insert(id.rawValue, slot: slot, before: Self.none)
        }
        self.count += 1
        if due < self.earliest {
            self.earliest = due
            self.earliestIsExact = true
        }
    }

    /// Takes the due time away; nothing happens when there is none.
    package mutating func cancel(_ id: TimerID) {
        guard self.isScheduled(id) else { return }
        self.unlink(id.rawValue)
        if self.nodes[Int(id.rawValue)].due == self.earliest { self.earliestIsExact = false }
    }

    // MARK: Firing

    /// Takes out one timer that is due at `now`; `nil` when none is (left).
    package mutating func popDue(_ deadline: NIODeadline) -> TimerID? {
        let now = Self.nanoseconds(deadline)
        guard now >= self.earliest, self.count > 0 else { return nil }
        let last = Self.tick(now)
        // Nothing is due before `earliest`, so the slots up to there need no visit.
        let start = max(self.tick, min(Self.tick(self.earliest), last))
        if start != self.tick || now > self.sweptTo {
            self.tick = start
            self.scan = self.heads[Self.slot(start)]
        }
        self.sweptTo = max(now, self.sweptTo)

        while true {
            while self.scan != Self.none {
                let index = self.scan
                let node = self.nodes[Int(index)]
                self.scan = node.next
                guard node.due <= now, Self.tick(node.due) <= self.tick else { continue }
                self.unlink(index)
                self.earliestIsExact = false
                return TimerID(rawValue: index)
            }
            guard self.tick < last, self.count > 0 else { break }
            self.tick = min(last, self.tick + Int64(self.distanceToOccupiedSlot(after: Self.slot(self.tick))))
            self.scan = self.heads[Self.slot(self.tick)]
        }
        // All that was due is out.
        self.earliest = max(self.earliest, now + 1)
        self.earliestIsExact = false
        return nil
    }

    /// Fires all that is due at `now`, in the order of their slots.
    package mutating func advance(to now: NIODeadline, fire: (TimerID) -> Void) {
        while let id = self.popDue(now) { fire(id) }
    }

    /// When the next timer is due; `nil` when none is scheduled.
    package var nextDue: NIODeadline? {
        mutating get {
            guard self.count > 0 else {
                self.earliest = .max
                self.earliestIsExact = true
                return nil
            }
            if !self.earliestIsExact {
                self.earliest = self.findEarliest()
                self.earliestIsExact = true
            }
            return NIODeadline.uptimeNanoseconds(UInt64(max(0, self.earliest)))
        }
    }

    /// Walks from the current slot to the first that holds something for this revolution.
    ///
    /// Far timers alone make it walk them all, once: the answer is kept until one fires or the earliest is cancelled.
    private func findEarliest() -> Int64 {
        var smallest = Int64.max
        var tick = self.tick
        let end = tick + Int64(Self.slotCount)
        while tick < end {
            var index = self.heads[Self.slot(tick)]
            while index != Self.none {
                smallest = min(smallest, self.nodes[Int(index)].due)
                index = self.nodes[Int(index)].next
            }
            if smallest != .max, Self.tick(smallest) <= tick { break }
            tick += Int64(self.distanceToOccupiedSlot(after: Self.slot(tick)))
        }
        return smallest
    }

    // MARK: Lists

    private mutating func insert(_ index: Int32, slot: Int, before successor: Int32) {
        let next = successor == Self.none ? self.heads[slot] : successor
        let previous = next == Self.none ? Self.headMark - Int32(slot) : self.nodes[Int(next)].previous
        self.nodes[Int(index)].next = next
        self.nodes[Int(index)].previous = previous
        if next != Self.none { self.nodes[Int(next)].previous = index }
        if previous <= Self.headMark {
            self.heads[slot] = index
            self.occupied[slot >> 6] |= 1 << UInt64(slot & 63)
        } else {
            self.nodes[Int(previous)].next = index
        }
    }

    private mutating func unlink(_ index: Int32) {
        let node = self.nodes[Int(index)]
        if self.scan == index { self.scan = node.next }
        if node.next != Self.none { self.nodes[Int(node.next)].previous = node.previous }
        if node.previous <= Self.headMark {
            let slot = Int(Self.headMark - node.previous)
            self.heads[slot] = node.next
            if node.next == Self.none { self.occupied[slot >> 6] &= ~(1 << UInt64(slot & 63)) }
        } else {
            self.nodes[Int(node.previous)].next = node.next
        }
        self.nodes[Int(index)].previous = Self.idle
        self.nodes[Int(index)].next = Self.none
        self.count -= 1
    }

    /// Slots from `slot` to the next with a list, 1...4096.
    private func distanceToOccupiedSlot(after slot: Int) -> Int {
        var candidate = (slot + 1) & (Self.slotCount - 1)
        var distance = 1
        while distance < Self.slotCount {
            let bits = self.occupied[candidate >> 6] >> UInt64(candidate & 63)
            if bits != 0 { return min(Self.slotCount, distance + bits.trailingZeroBitCount) }
            let skipped = 64 - (candidate & 63)
            distance += skipped
            candidate = (candidate + skipped) & (Self.slotCount - 1)
        }
        return Self.slotCount
    }

    private static func nanoseconds(_ deadline: NIODeadline) -> Int64 { Int64(clamping: deadline.uptimeNanoseconds) }
    private static func tick(_ due: Int64) -> Int64 { due >> Self.slotBits }
    private static func slot(_ tick: Int64) -> Int { Int(tick & Int64(Self.slotCount - 1)) }
}
