package import NIOCore

// Publishes that take their identifier some time before they are written: their owner stores them in between.
extension OutboundWindow {
    /// Counts the time of a publish from here on; `false` if it must not be written now.
    mutating func writes(_ id: UInt16, sequence: UInt64, now: NIODeadline) -> Bool {
        guard let index = self.index(of: id), self.slots[index].sequence == sequence else { return false }
        switch self.slots[index].state {
        case .awaitingPubAck, .awaitingPubRec: break
        default: return false
        }
        self.slots[index].written = now
        self.slots[index].repeats = 0
        if self.slots[index].timedOut {
            // The time for an answer had not begun.
            self.slots[index].timedOut = false
            self.awaited += 1
        }
        return true
    }
}

extension MQTTSession {
    /// Notes that a publish is written now that took its identifier before; its acknowledgement is awaited from now on.
    ///
    /// - Parameters:
    ///   - id: its identifier.
    ///   - sequence: the caller's number for it.
    ///   - now: when the write begins.
    /// - Returns: `false` if its flow is over, or is held back by the server's receive maximum: then it is not to be
    ///   written.
    package mutating func writes(_ id: UInt16, sequence: UInt64, now: NIODeadline) -> Bool {
        guard self.window.writes(id, sequence: sequence, now: now) else { return false }
        self.ackDeadline = min(self.ackDeadline, now + self.options.firstCheck)
        return true
    }
}
