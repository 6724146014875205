import LoopContext
import MQTTCodec
import NIOCore

// Messages that have an identifier, and are not going to be sent under it.
extension ClientCore {
    /// The server is another one than the session's: what that one has not taken goes to this one, as if never sent.
    ///
    /// What it has taken, with PUBREC, is done with.
    func takeAlong() {
        self.session.pointee.isOfAnotherServer = false
        let discarded = self.discarded
        self.discarded = []
        for sequence in discarded {
            guard let flow = self.flows.flows[sequence] else { continue }
            switch flow.stage {
            case .queued, .received: break
            case .published:
                self.flows.wrote(sequence, false)
                self.discarded.append(sequence)
            case .released(let id):
                var result = MQTTPublishResult(packetID: id)
                if let recorded = self.callers[sequence]?.recorded { result.add(recorded) }
                if !flow.isGivenUp { self.configuration.hooks.delivered?(flow.message, id) }
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
            hasMore = self.flows.hasUntakeable
            self.giveUpUntakeable()
        }
        connection.flushUnlessReading()
    }

    /// Ends what the server does not take any more, though it did when the session began ([MQTT-3.2.2-15]).
    private func giveUpUntakeable() {
        guard self.flows.hasUntakeable else { return }
        for (sequence, reason) in self.flows.takeUntakeable()
        where self.flows.flows[sequence]?.stage.isPublished ?? false {
            self.callers[sequence]?.end(.failure(.notAllowed(reason)))
            if self.flows.giveUp(sequence, &self.session.pointee) { self.callers[sequence] = nil }
        }
    }
}
