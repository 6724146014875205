import NIOCore

/// When a space has to show that the connection is still there (RFC 6120 §4.6.1).
///
/// It looks four times in an interval, and so is late by a quarter at most; a look that can find nothing is left out.
struct KeepAlive {
    private static let shortest = TimeAmount.seconds(20)

    /// Zero: never.
    private var interval = TimeAmount.zero
    private var began = NIODeadline.uptimeNanoseconds(0)
    private(set) var lastActivity = NIODeadline.uptimeNanoseconds(0)

    mutating func begin(_ interval: TimeAmount, now: NIODeadline) {
        self.interval = interval > .zero ? max(interval, Self.shortest) : .zero
        self.began = now
        self.lastActivity = now
    }

    mutating func end() { self.interval = .zero }

    /// Bytes have gone one way or the other.
    mutating func noteActivity(now: NIODeadline) { self.lastActivity = now }

    /// The first look at which the silence is long enough.
    var deadline: NIODeadline? {
        guard self.interval > .zero else { return nil }
        let quarter = self.interval.nanoseconds / 4
        let silent = (self.lastActivity + self.interval - self.began).nanoseconds
        return self.began + .nanoseconds((silent + quarter - 1) / quarter * quarter)
    }

    func isDue(now: NIODeadline) -> Bool {
        guard self.interval > .zero else { return false }
        return now - self.lastActivity >= self.interval
    }
}
