import LoopContext
import MQTTCodec
import NIOCore

// Messages that have an identifier, and will not be sent under it.
extension ClientCore {
    /// Moves messages to another server: those that the session's server has not received are sent to the new one.
    ///
    /// Messages with a PUBREC are complete.
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

    /// Ends messages that will not be sent, and sends messages that then have room in the receive maximum.
    ///
    /// The connection does this after each answer. Here no answer has come, and perhaps none will.
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

    /// Ends messages that the server no longer accepts, though it did when the session started ([MQTT-3.2.2-15]).
    private func giveUpUntakeable() {
        guard self.flows.hasUntakeable else { return }
        for (sequence, reason) in self.flows.takeUntakeable()
        where self.flows.flows[sequence]?.stage.isPublished ?? false {
            self.callers[sequence]?.end(.failure(.notAllowed(reason)))
            if self.flows.giveUp(sequence, &self.session.pointee) { self.callers[sequence] = nil }
        }
    }
}
