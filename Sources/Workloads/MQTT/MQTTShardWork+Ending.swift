import LoadEngine
import LoopContext
package import MQTT
import MQTTCodec
import Measurement
package import NIOCore

// A client from the end of a connection to the next one, or to its own end.
extension MQTTShardWork {
    package func ending(_ place: Int, unsent: Int) {
        self.settleUnsent(place, bytes: unsent)
    }

    package func ended(_ place: Int, _ end: ConnectionEnd, now: NIODeadline) {
        let stage = self.clients[place].stage
        self.clients[place].connection = nil
        self.clients[place].timerAt = .distantFuture
        self.context.timers.cancel(self.clients[place].timer)
        if self.clients[place].isLive {
            self.clients[place].isLive = false
            self.live -= 1
        }
        self.connectionEnded(place, isConfirmed: end == .answered)
        if end != .answered, end != .aborted { self.count(place, end, now: now) }
        self.endTurn(place, isLost: stage == .up)
        switch stage {
        case .connecting: self.connectFailed(place)
        case .up: self.connectionLost(place)
        case .leaving: self.left(place)
        case .flushing, .finishing: self.finished(place)
        case .idle, .waiting, .away, .finished: break
        }
    }

    func connectionLost(_ place: Int) {
        let returns = self.clients[place].reconnects < self.load.reconnects && self.clients[place].attempts != .max
        self.clients[place].stage = returns ? .waiting : .idle
        if returns {
            self.clients[place].reconnects += 1
            self.schedule(place, at: self.context.now + self.load.reconnectPeriod)
        }
        self.shard.lost(place, returns: returns)
    }

    /// An end that nobody asked for, as an error and as a disconnect.
    func count(_ place: Int, _ end: ConnectionEnd, now: NIODeadline) {
        let (kind, reason, words) = end.account(version: self.load.version)
        self.meter.error(kind, at: Int64(now.uptimeNanoseconds)) { words }
        // Who was told to leave is counted as such already.
        let wasUp = self.clients[place].stage != .connecting && self.clients[place].stage != .leaving
        if wasUp, let id = self.metrics.traffic.disconnects[reason] { self.meter.add(id) }
    }

    package func finish(_ place: Int) {
        self.noteClosing(place)
        switch self.clients[place].stage {
        case .up where !self.places.isOperator(place) && self.load.subscribers > 0:
            // What the broker had queued before the PINGRESP is read before it.
            self.clients[place].stage = .flushing
            self.clients[place].connection?.ping()
        case .up:
            self.sayGoodbye(place)
        case .connecting:
            self.clients[place].stage = .finishing
            if self.clients[place].tcpUp > self.clients[place].begun { self.clients[place].connection?.abort() }
        case .leaving:
            self.clients[place].stage = .finishing
        case .idle, .waiting, .away:
            self.context.timers.cancel(self.clients[place].timer)
            self.finished(place)
        case .flushing, .finishing, .finished:
            break
        }
    }

    func sayGoodbye(_ place: Int) {
        self.clients[place].stage = .finishing
        self.clients[place].connection?.finish()
    }

    package func abort(_ place: Int) {
        guard self.clients[place].stage != .finished else {
            self.store?.abort(place)
            return
        }
        if let connection = self.clients[place].connection, self.clients[place].stage != .connecting {
            if self.clients[place].stage != .flushing { self.clients[place].stage = .finishing }
            connection.abort()
        } else {
            self.finish(place)
        }
        if self.clients[place].stage != .finished { self.finished(place) }
        self.store?.abort(place)
    }

    func finished(_ place: Int) {
        self.clients[place].stage = .finished
        // What a session of its own still holds for a next connection has no answer in this run.
        let now = self.context.now
        self.sessions[place].discardState { publish, timedOut in
            if let store = self.store {
                store.left(place, publish, timedOut: timedOut, now: now)
            } else {
                self.abandoned(place, publish, .connectionLost(timedOutBefore: timedOut), now: now)
            }
        }
        self.shard.settled(place, up: false)
        if let store = self.store { return store.finished(place) }
        self.shard.finished(place)
    }

    package func pingAnswered(_ place: Int, after: TimeAmount, now: NIODeadline) {
        self.meter.record(self.metrics.ping, after.nanoseconds)
        if self.clients[place].stage == .flushing { self.sayGoodbye(place) }
    }
}
