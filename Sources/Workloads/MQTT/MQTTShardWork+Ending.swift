import LoadEngine
import LoopContext
package import MQTT
import MQTTCodec
import Measurement
package import NIOCore

// The end of a client's connection, and its timer.
extension MQTTShardWork {
    package func handleEnd(_ place: Int, _ end: ConnectionEnd) -> (isCounted: Bool, goesOn: Bool) {
        self.endTurn(place, isLost: self.clients[place].stage == .up)
        // The run's own end excuses nothing.
        switch self.clients[place].stage {
        case .finishing, .flushing: break
        default: if end == .pingTimedOut { self.noteSilence(place) } else { self.handleAbsent(place) }
        }
        return (isCounted: true, goesOn: true)
    }

    package func account(of end: ConnectionEnd) -> (kind: String, reason: DisconnectReason, words: String) {
        end.account(version: self.load.version)
    }

    package func close(_ place: Int) {
        guard self.subscribes(place) else { return self.closeLink(place) }
        // The subscriber reads the server's queued messages before it reads the PINGRESP.
        self.clients[place].stage = .flushing
        self.probed = min(self.probed ?? .distantFuture, self.context.refresh())
        self.clients[place].connection?.ping()
    }

    package func pingAnswered(_ place: Int, after: TimeAmount, now: NIODeadline) {
        self.meter.record(self.metrics.ping, after.nanoseconds)
        guard self.clients[place].stage == .flushing else { return }
        self.clients[place].own.isProved = true
        self.closeLink(place)
    }

    package func settle(_ place: Int) {
        self.settleMissedTurns(place)
        // No connection of this run will answer the messages that the session still holds.
        let now = self.context.now
        self.sessions[place].discardState { publish, timedOut in
            if let store = self.store {
                store.left(place, publish, timedOut: timedOut, now: now)
            } else {
                self.noteAbandoned(place, publish, .connectionLost(timedOutBefore: timedOut), now: now)
            }
        }
    }

    package func release(_ place: Int) {
        if let store = self.store { return store.finished(place) }
        self.shard.finished(place)
    }

    package func abandonStored(_ place: Int) { self.store?.abort(place) }

    package func afterEnd(_ place: Int) { self.store?.connectionEnded(place) }

    // MARK: - Time

    package func linkTimerFired(_ place: Int) {
        if self.clients[place].stage == .connecting, self.subscribeIsOverdue(place) {
            return self.refuse(place, "timeout", "no SUBACK within the acknowledgement timeout")
        }
        self.clients[place].connection?.timerFired(now: self.context.now)
        // SUBACK is awaited after CONNACK, for which this timer was set.
        if self.clients[place].stage == .connecting, self.isSubscribing(place) {
            let sent = self.clients[place].own.subscribeSent
            self.wantsTimer(place, at: sent + self.sessions[place].options.ackTimeout)
        }
    }

    func subscribeIsOverdue(_ place: Int) -> Bool {
        let sent = self.clients[place].own.subscribeSent
        return self.isSubscribing(place) && self.context.now >= sent + self.sessions[place].options.ackTimeout
    }

    /// Whether SUBSCRIBE was sent on this connection.
    func isSubscribing(_ place: Int) -> Bool {
        self.clients[place].own.subscribeSent >= self.clients[place].own.tcpUp
            && self.clients[place].own.tcpUp > .distantPast
    }
}
