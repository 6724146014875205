import DequeModule
import LoopContext
import MQTTCodec
import NIOCore

// Messages that have an identifier, and are not going to be sent under it.
extension ClientCore {
    /// It has an identifier, and was never written.
    func isUnsent(_ sequence: UInt64) -> Bool {
        guard let outgoing = self.outgoing[sequence], case .published = outgoing.stage else { return false }
        return outgoing.writtenOn == 0
    }

    /// Puts messages whose identifiers are free again in front of those that came later.
    func requeue(_ sequences: [UInt64]) {
        guard !sequences.isEmpty else { return }
        for sequence in sequences {
            self.outgoing[sequence]?.stage = .queued
            self.outgoing[sequence]?.isCommitted = false
        }
        self.queue = Deque((sequences + self.queue).sorted())
    }

    /// The server is another one than the session's: what that one has not taken goes to this one, as if never sent.
    ///
    /// What it has taken, with PUBREC, is done with.
    func takeAlong() {
        self.session.pointee.isOfAnotherServer = false
        let discarded = self.discarded
        self.discarded = []
        for sequence in discarded {
            guard let outgoing = self.outgoing[sequence] else { continue }
            switch outgoing.stage {
            case .queued, .received: break
            case .published:
                self.outgoing[sequence]?.writtenOn = 0
                self.discarded.append(sequence)
            case .released(let id):
                var result = MQTTPublishResult(packetID: id)
                if let recorded = outgoing.recorded { result.add(recorded) }
                if !outgoing.isGivenUp { self.configuration.hooks.delivered?(outgoing.message, id) }
                self.finish(sequence, .success(result), forgets: true)
            }
        }
    }

    /// Ends what is not going to be sent, and sends again what the receive maximum has room for then.
    ///
    /// An answer makes room too, and the connection sees to that; here nothing has come, and perhaps nothing will.
    func settleWindow() {
        self.giveUpUntakeable()
        guard self.session.pointee.window.heldBack > 0, self.state == .connected, let connection = self.connection
        else { return }
        var hasMore = true
        while hasMore {
            connection.sendHeldBack(now: self.context.now)
            hasMore = !self.untakeable.isEmpty
            self.giveUpUntakeable()
        }
        connection.flushUnlessReading()
    }

    /// Ends what the server does not take any more, though it did when the session began ([MQTT-3.2.2-15]).
    ///
    /// A QoS 2 message that may have been sent leaves its identifier with PUBCOMP, for the server may have it too. It
    /// goes the way of one whose PUBREC came, and its payload need not be kept for that.
    private func giveUpUntakeable() {
        guard !self.untakeable.isEmpty else { return }
        let untakeable = self.untakeable
        self.untakeable = []
        for (sequence, reason) in untakeable {
            guard var outgoing = self.outgoing[sequence], case .published(let id) = outgoing.stage else { continue }
            let mayBeKnown = outgoing.message.qos == .exactlyOnce && outgoing.writtenOn != 0
            guard mayBeKnown, self.session.pointee.giveUp(id) else {
                self.session.pointee.withdraw(publish: id)
                self.finish(sequence, .failure(.notAllowed(reason)), forgets: true)
                continue
            }
            self.outgoingBytes -= outgoing.message.payload.count
            outgoing.message.payload = []
            outgoing.isGivenUp = true
            outgoing.stage = .released(id)
            outgoing.end(.failure(.notAllowed(reason)))
            self.outgoing[sequence] = outgoing
            self.change(.advance(sequence: sequence, to: .released(id)), then: .release(sequence, id))
        }
    }
}
