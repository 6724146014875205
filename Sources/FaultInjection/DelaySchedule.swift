package import NIOCore

/// How long what a server sends is held.
package enum FaultDelay: Hashable, Sendable {
    case time(TimeAmount)
    /// A share of the time since the client's last bytes, idle or not: 0.15 for 15 %.
    case share(Double)
}

/// Which reads from a server are held, and for how long; one for each connection.
///
/// A time holds every Nth read. A share holds every Nth answer, which is the first read behind bytes that went on to the
/// server; its time runs from when the last of them went on. What comes unasked, and the rest of an answer, is held for
/// the order's sake alone. Of several requests under way the time is that since the last, so a share is a lower bound
/// then.
///
/// Pure: the time is passed in.
package struct DelaySchedule: Sendable {
    private let delay: FaultDelay
    private let every: UInt64
    private var count: UInt64 = 0
    /// When the client's last bytes went on to the server, which has not answered since.
    private var asked: NIODeadline?

    package init(_ delay: FaultDelay, every: UInt64 = 1) {
        self.delay = delay
        self.every = max(1, every)
    }

    /// Bytes of the client went on to the server.
    package mutating func asked(at now: NIODeadline) { self.asked = now }

    /// Bytes of the server came.
    ///
    /// - Returns: how long they are to be held; `nil` when they are none of those that are.
    package mutating func hold(at now: NIODeadline) -> TimeAmount? {
        let asked = self.asked.take()
        switch self.delay {
        case .time(let time):
            return self.isNth() ? time : nil
        case .share(let share):
            guard let asked, self.isNth() else { return nil }
            return .nanoseconds(Int64((Double((now - asked).nanoseconds) * share).rounded()))
        }
    }

    private mutating func isNth() -> Bool {
        self.count += 1
        guard self.count >= self.every else { return false }
        self.count = 0
        return true
    }
}
