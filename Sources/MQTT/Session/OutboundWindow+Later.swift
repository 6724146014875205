package import NIOCore

// Publishes that take their identifier before they are written: the owner stores them in between.
extension OutboundWindow {
    /// Starts the timeout of a publish; `false` if it must not be written now.
    mutating func beginWrite(_ id: UInt16, sequence: UInt64, now: NIODeadline) -> Bool {
        guard let index = self.index(of: id), self.slots[index].sequence == sequence else { return false }
        switch self.slots[index].state {
        case .awaitingPubAck, .awaitingPubRec: break
        default: return false
        }
        self.slots[index].written = now
        self.slots[index].repeats = 0
        if self.slots[index].timedOut {
            // The acknowledgement timeout had not started.
            self.slots[index].timedOut = false
            self.awaited += 1
            self.adjust()
        }
        return true
    }
}

extension MQTTSession {
    /// Records that a publish with an identifier is written now; the wait for its acknowledgement starts here.
    ///
    /// - Parameters:
    ///   - id: its identifier.
    ///   - sequence: the caller's number for it.
    ///   - now: when the write begins.
    /// - Returns: `false` if its flow is over or held back by the server's receive maximum; then it must not be
    ///   written.
    package mutating func beginWrite(_ id: UInt16, sequence: UInt64, now: NIODeadline) -> Bool {
        guard self.window.beginWrite(id, sequence: sequence, now: now) else { return false }
        self.ackDeadline = min(self.ackDeadline, now + self.options.firstCheck)
        return true
    }
}
