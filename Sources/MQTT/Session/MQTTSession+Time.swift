package import NIOCore

extension MQTTSession {
    package enum TimerAction: Hashable, Sendable {
        case none
        case ping
        /// No PINGRESP in time: the connection is dead.
        case pingTimedOut
    }

    package mutating func pingAnswered(now: NIODeadline) -> TimeAmount? {
        defer { self.pingSent = nil }
        return self.pingSent.map { now - $0 }
    }

    /// The time of the next call of ``timerFired(now:expired:)``, if nothing is sent or received before.
    package var deadline: NIODeadline? {
        guard self.state == .connected || self.state == .disconnecting else { return nil }
        var next = self.ackDeadline
        guard self.state == .connected else { return next == .distantFuture ? nil : next }
        if let pingSent = self.pingSent {
            next = min(next, pingSent + self.pingTimeout)
        } else if self.limits.keepAlive > 0 {
            next = min(next, min(self.lastSent, self.lastReceived) + self.pingInterval)
        }
        return next == .distantFuture ? nil : next
    }

    /// Handles all timeouts that are due.
    ///
    /// - Parameters:
    ///   - now: the time.
    ///   - expired: called for each publish whose acknowledgement timed out.
    /// - Returns: the action for the connection.
    package mutating func timerFired(now: NIODeadline, expired: (InFlightPublish) -> Void) -> TimerAction {
        if now >= self.ackDeadline {
            let earliest = self.window.expire(writtenBefore: now - self.options.ackTimeout, expired)
            self.ackDeadline = earliest.map { $0 + self.options.ackTimeout } ?? .distantFuture
        }
        guard self.state == .connected else { return .none }
        if let pingSent = self.pingSent { return now >= pingSent + self.pingTimeout ? .pingTimedOut : .none }
        // The client pings if it sent nothing or received nothing. The second finds a half-open link of a client that
        // only sends.
        guard self.limits.keepAlive > 0, now >= min(self.lastSent, self.lastReceived) + self.pingInterval else {
            return .none
        }
        self.pingSent = now
        return .ping
    }

    /// Publishes to send again, in order, because no acknowledgement came in time; needs ``SessionOptions/dupTimeout``.
    package mutating func overdue(now: NIODeadline) -> [(id: UInt16, publish: InFlightPublish, released: Bool)] {
        guard let age = self.options.dupTimeout, self.state == .connected else { return [] }
        let overdue = self.window.repeats(now: now, every: age)
        if let next = self.window.nextRepeat(every: age) { self.ackDeadline = min(self.ackDeadline, next) }
        return overdue
    }

    /// Records a PINGREQ that the caller sends itself.
    ///
    /// The timeout runs from the first unanswered one: later ones do not extend it.
    package mutating func beginPing(now: NIODeadline) { self.pingSent = self.pingSent ?? now }

    /// Sends the next PINGREQ early, by a share of the keep-alive from 0 to 1, but not within its first second.
    ///
    /// Clients that connected together, and were idle since, then do not all send at the same time.
    package mutating func spreadPing(by share: Double) {
        self.pingEarly = UInt16(min(max(share, 0), 1) * Double(UInt16.max))
    }

    /// The time without a packet after which PINGREQ is due.
    package var pingInterval: TimeAmount {
        guard self.pingEarly > 0 else { return self.keepAlive }
        let early = self.keepAlive.nanoseconds / 65_536 * Int64(self.pingEarly)
        return max(self.keepAlive - .nanoseconds(early), .seconds(1))
    }

    var keepAlive: TimeAmount { .seconds(Int64(self.limits.keepAlive)) }

    var pingTimeout: TimeAmount {
        self.limits.keepAlive == 0 ? self.options.pingTimeout : min(self.keepAlive, self.options.pingTimeout)
    }
}
