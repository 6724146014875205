import LoadEngine
import LoopContext
import MQTT
import Measurement
package import NIOCore

// One timer a client, for whatever it waits for.
extension MQTTShardWork {
    package func wantsTimer(_ place: Int, at time: NIODeadline) {
        guard time < self.clients[place].timerAt else { return }
        self.schedule(place, at: time)
    }

    func schedule(_ place: Int, at time: NIODeadline) {
        self.clients[place].timerAt = time
        self.context.timers.schedule(self.clients[place].timer, at: time)
    }

    func timerFired(_ place: Int) {
        self.clients[place].timerAt = .distantFuture
        switch self.clients[place].stage {
        case .waiting:
            if self.shard.isDraining, self.shard.checkDrained(place) { return }
            self.begin(place)
        case .connecting where self.subscribeIsOverdue(place):
            self.refuse(place, "timeout", "no SUBACK before --ack-timeout")
        case .connecting, .up, .flushing, .finishing:
            self.clients[place].connection?.timerFired(now: self.context.now)
            // A SUBACK is awaited longer than CONNACK, whose timer this was.
            if self.clients[place].stage == .connecting, self.isSubscribing(place) {
                let sent = self.clients[place].subscribeSent
                self.wantsTimer(place, at: sent + self.sessions[place].options.ackTimeout)
            }
        case .leaving:
            // Nobody waits for the server's FIN longer than that.
            if self.context.now >= self.clients[place].begun + Self.leaveGrace {
                self.clients[place].connection?.abort()
            } else {
                self.clients[place].connection?.timerFired(now: self.context.now)
                self.wantsTimer(place, at: self.clients[place].begun + Self.leaveGrace)
            }
        case .idle, .away, .finished:
            break
        }
    }

    func subscribeIsOverdue(_ place: Int) -> Bool {
        let sent = self.clients[place].subscribeSent
        return self.isSubscribing(place) && self.context.now >= sent + self.sessions[place].options.ackTimeout
    }

    /// Whether SUBSCRIBE went out on this connection.
    func isSubscribing(_ place: Int) -> Bool {
        self.clients[place].subscribeSent >= self.clients[place].tcpUp && self.clients[place].tcpUp > .distantPast
    }
}
