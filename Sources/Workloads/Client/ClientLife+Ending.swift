import LoadEngine
import LoopContext
import Measurement
package import NIOCore

// A client from the end of one connection to the next connection, or to its final end.
extension ClientLife {
    package func ending(_ place: Int, unsent: Int) {
        self.prepareEnd(place)
        self.settleUnsent(place, bytes: unsent)
    }

    package func ended(_ place: Int, _ end: End, now: NIODeadline) {
        defer { self.afterEnd(place) }
        let stage = self.clients[place].stage
        self.clients[place].connection = nil
        self.clients[place].timerAt = .distantFuture
        self.context.timers.cancel(self.clients[place].timer)
        if self.clients[place].isLive {
            self.clients[place].isLive = false
            self.slab.live -= 1
        }
        self.settleSent(place, isConfirmed: end.isAnswered)
        let fate = self.handleEnd(place, end)
        guard fate.goesOn else { return }
        if fate.isCounted, !end.isAnswered, !end.isAborted { self.count(place, end) }
        switch stage {
        case .connecting: self.connectFailed(place, canRetry: self.mayRetry(place, after: end))
        case .joining: self.joinEnded(place, end)
        case .up: self.connectionLost(place, canReturn: end.allowsRetry)
        case .leaving:
            self.clients[place].stage = .away
            self.shard.left(place)
        case .flushing, .finishing: self.finished(place)
        case .idle, .waiting, .away, .finished: break
        }
    }

    private func connectionLost(_ place: Int, canReturn: Bool) {
        self.handleLoss(place)
        let returns =
            canReturn && self.clients[place].reconnects < self.load.reconnects && self.clients[place].attempts != .max
        self.clients[place].stage = returns ? .waiting : .idle
        if returns {
            self.clients[place].reconnects += 1
            self.schedule(place, at: self.context.now + self.load.reconnectPeriod)
        }
        self.shard.lost(place, returns: returns)
    }

    /// Counts an end that the run did not request, as an error and as a disconnect.
    func count(_ place: Int, _ end: End) {
        let (kind, reason, words) = self.account(of: end)
        self.error(kind, words)
        switch self.clients[place].stage {
        // A departure by plan has already been counted.
        case .connecting, .joining, .leaving: break
        case .idle, .up, .waiting, .away, .flushing, .finishing, .finished:
            if let id = self.metrics.traffic.disconnects[reason] { self.meter.add(id) }
        }
    }

    /// Whether the connection ends with the run; one that the plan cuts before that excuses its messages.
    func isEndedByRun(_ place: Int) -> Bool {
        switch self.clients[place].stage {
        case .flushing, .finishing, .finished: true
        case .idle, .waiting, .connecting, .joining, .up, .leaving, .away: false
        }
    }

    package func finish(_ place: Int) {
        self.noteClosing(place)
        self.noteNotUp(place)
        switch self.clients[place].stage {
        case .up, .joining:
            self.close(place)
        case .connecting:
            self.clients[place].stage = .finishing
            if self.clients[place].hasLink { self.clients[place].connection?.abort() }
        case .leaving:
            self.clients[place].stage = .finishing
        case .idle, .waiting, .away:
            self.context.timers.cancel(self.clients[place].timer)
            self.finished(place)
        case .flushing, .finishing, .finished:
            break
        }
    }

    /// The run ends before the client is up.
    private func noteNotUp(_ place: Int) {
        switch self.clients[place].stage {
        case .connecting, .joining: self.recordUnconnected(place, as: .outstanding)
        // After an attempt; a client that has lost its connection waits for the time of its first one.
        case .waiting where !self.clients[place].isLoggedIn: self.recordUnconnected(place, as: .outstanding)
        case .idle, .up, .waiting, .leaving, .away, .flushing, .finishing, .finished: break
        }
    }

    /// Closes the client's connection gracefully and for good.
    func closeLink(_ place: Int) {
        self.clients[place].stage = .finishing
        self.clients[place].connection?.finishForGood()
    }

    package func abort(_ place: Int) {
        guard self.clients[place].stage != .finished else { return self.abandonStored(place) }
        if let link = self.clients[place].connection, self.clients[place].stage != .connecting {
            if self.clients[place].stage != .flushing { self.clients[place].stage = .finishing }
            link.abort()
        } else {
            self.finish(place)
        }
        if self.clients[place].stage != .finished { self.finished(place) }
        self.abandonStored(place)
    }

    func finished(_ place: Int) {
        self.clients[place].stage = .finished
        self.settle(place)
        self.shard.settled(place, up: false)
        self.release(place)
    }
}
