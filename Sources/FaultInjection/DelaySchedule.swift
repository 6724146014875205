package import NIOCore

/// Which reads from a server are held: every Nth; one for each connection.
package struct DelaySchedule: Sendable {
    private let delay: TimeAmount
    private let every: UInt64
    private var count: UInt64 = 0

    package init(_ delay: TimeAmount, every: UInt64 = 1) {
        self.delay = delay
        self.every = max(1, every)
    }

    /// Bytes of the server came.
    ///
    /// - Returns: how long they are to be held; `nil` when they are none of those that are.
    package mutating func hold() -> TimeAmount? {
        self.count += 1
        guard self.count >= self.every else { return nil }
        self.count = 0
        return self.delay
    }
}
