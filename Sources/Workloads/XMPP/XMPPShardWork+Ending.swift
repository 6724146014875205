import LoadEngine
import LoopContext
import Measurement
package import NIOCore
package import XMPP

// A client from the end of a connection to the next one, or to its own end; and its timer.
extension XMPPShardWork {
    package func ending(_ place: Int, unsent: Int) {
        self.accountEnding(place)
        self.settleUnsent(place, bytes: unsent)
    }

    package func ended(_ place: Int, _ end: XMPPConnectionEnd, now: NIODeadline) {
        let stage = self.clients[place].stage
        self.clients[place].connection = nil
        self.clients[place].timerAt = .distantFuture
        self.context.timers.cancel(self.clients[place].timer)
        if self.clients[place].isLive {
            self.clients[place].isLive = false
            self.live -= 1
        }
        self.connectionEnded(place, isConfirmed: end == .answered)
        if self.clients[place].tls == .underWay, stage == .connecting, end == .lost {
            self.clients[place].tls = .lost
            return
        }
        let isToldOf = self.load.work.isOfAccounts && self.accountEnded(place, end)
        if end != .answered, end != .aborted, !isToldOf { self.count(place, end) }
        switch stage {
        case .connecting:
            let isOpen = self.load.work.isOfAccounts && self.isOpen(place)
            self.connectFailed(place, canRetry: end.retry != .never || isOpen)
        // Whether to come back when this side gave up is its own matter.
        case .joining: self.joinEnded(place, canRetry: end == .aborted || end.retry != .never)
        case .up: self.connectionLost(place, canReturn: end.retry != .never)
        case .leaving: self.left(place)
        case .finishing: self.finished(place)
        case .idle, .waiting, .away, .finished: break
        }
    }

    private func connectionLost(_ place: Int, canReturn: Bool) {
        if let groups = self.groups { self.leaves(place, groups, saysSo: false) }
        let returns =
            canReturn && self.clients[place].reconnects < self.load.reconnects && self.clients[place].attempts != .max
        self.clients[place].stage = returns ? .waiting : .idle
        if returns {
            self.clients[place].reconnects += 1
            self.schedule(place, at: self.context.now + self.load.reconnectPeriod)
        }
        self.shard.lost(place, returns: returns)
    }

    /// An end that nobody asked for, as an error and as a disconnect.
    func count(_ place: Int, _ end: XMPPConnectionEnd) {
        self.error(end.kind, "\(end)")
        // Who was told to leave is counted as such already.
        let stage = self.clients[place].stage
        let wasUp = stage != .connecting && stage != .joining && stage != .leaving
        if wasUp, let id = self.metrics.traffic.disconnects[end.reason] { self.meter.add(id) }
    }

    package func finish(_ place: Int) {
        switch self.clients[place].stage {
        case .up, .joining:
            self.sayGoodbye(place)
            self.clients[place].stage = .finishing
            self.clients[place].connection?.finish()
        case .connecting:
            self.clients[place].stage = .finishing
            if self.clients[place].hasStream { self.clients[place].connection?.abort() }
        case .leaving:
            self.clients[place].stage = .finishing
        case .idle, .waiting, .away:
            self.context.timers.cancel(self.clients[place].timer)
            self.finished(place)
        case .finishing, .finished:
            break
        }
    }

    package func abort(_ place: Int) {
        guard self.clients[place].stage != .finished else { return }
        if let connection = self.clients[place].connection, self.clients[place].stage != .connecting {
            self.clients[place].stage = .finishing
            connection.abort()
        } else {
            self.finish(place)
        }
        if self.clients[place].stage != .finished { self.finished(place) }
    }

    func finished(_ place: Int) {
        self.clients[place].stage = .finished
        self.settleAccount(place)
        self.shard.settled(place, up: false)
        self.shard.finished(place)
    }

    // MARK: - One timer a client, for whatever it waits for

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
        case .connecting, .up, .finishing:
            self.clients[place].connection?.timerFired(now: self.context.now)
        case .joining: self.joinTimer(place, now: self.context.now)
        case .leaving:
            // Nobody waits for the server's closing tag longer than that.
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
}

extension XMPPConnectionEnd {
    /// What it counts as among the disconnects.
    var reason: DisconnectReason {
        switch self {
        case .answered, .aborted, .closedByPeer, .lost: .closed
        case .failed, .insecure, .notConnected, .webSocket: .reset
        case .timedOut, .closingTimedOut: .timeout
        case .streamError, .redirected, .notAuthenticated, .bindRefused, .sessionRefused, .registrationRefused,
            .legacyRefused, .tlsRefused:
            .server
        default: .protocol
        }
    }
}
