import FaultInjection
import NIOCore

/// One direction of a connection.
struct ProxyLane {
    /// How the connection to the receiver ends after the last byte.
    enum Ending {
        case finish
        case reset
    }

    var held = HeldBytes()
    var gate: RateGate?
    /// The receiver's kernel has no room; bytes wait in the channel.
    var isBlocked = false
    var isPaused = false
    var ending: Ending?
    /// The ending has been passed on.
    var isDone = false
    var isPumping = false

    /// When the next bytes may go that may not now; `nil` when only the receiver is waited for, or nothing.
    func nextDue(now: NIODeadline) -> NIODeadline? {
        guard !self.isBlocked, !self.isDone else { return nil }
        if self.held.free > 0 { return self.gate?.nextDue(for: self.held.free, now: now) }
        return self.held.nextDue
    }
}
