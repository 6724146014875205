import DequeModule
import FaultInjection
import MQTTCodec
package import NIOCore

extension Broker {
    /// The time of the next call of `advance`.
    package var nextDeadline: NIODeadline {
        // Read after each socket read; mutating because the compiler copies a borrowed non-copyable struct.
        mutating get {
            var next = min(self.scanDue, self.debtsDue)
            if self.statisticsSubscriptions > 0 { next = min(next, self.statisticsDue) }
            if let due = self.stallDue { next = min(next, due) }
            if let due = self.disconnectDue { next = min(next, due) }
            if let first = self.refusals.first { next = min(next, first.due) }
            if let due = self.sessionsDue.nextDue { next = min(next, due) }
            if !self.delayed.isEmpty { next = min(next, self.delayed[0].due) }
            if !self.reorderTimeouts.isEmpty { next = min(next, self.reorderTimeouts[0].due) }
            return next
        }
    }

    /// Performs everything that is due.
    package mutating func advance(to now: NIODeadline) {
        self.clock = now
        if let due = self.stallDue, let stall = self.faults.stall, due <= now {
            self.stallDue = nil
            self.actions.append(.stall(until: due + stall.length))
        }
        self.releaseDelayed(now: now)
        self.releaseReordered(now: now)
        self.sendRefusals(now: now)
        self.advanceSessions(now: now)
        self.sendOwed(now: now)
        if let due = self.disconnectDue, let period = self.faults.disconnectEvery, due <= now {
            self.disconnectDue = max(due + period, now)
            self.disconnectNext(now: now)
        }
        if self.scanDue <= now {
            self.scanDue = now + Self.scanInterval
            self.scanSilence(now: now)
            self.frames.trim()
        }
        if self.statisticsDue <= now {
            self.statisticsDue = now + self.configuration.statisticsInterval
            if self.statisticsSubscriptions > 0 { self.publishStatistics(now: now) }
        }
    }

    /// A stall has ended; both times are CLOCK_REALTIME in nanoseconds.
    package mutating func stalled(from begin: Int64, to end: Int64, now: NIODeadline) {
        self.tally.stalls.append(BrokerCounters.Stall(begin: begin, end: end))
        // The broker read nothing during the stall, so no client counts as silent.
        for index in self.connections.indices { self.connections[index].lastHeard = now }
    }

    /// The broker itself had stopped reading the connection until now.
    package mutating func heard(_ connection: ConnectionID, now: NIODeadline) {
        self.connections[connection].lastHeard = now
    }

    /// Ends every connection because the broker stops.
    package mutating func shutDown(now: NIODeadline) {
        for connection in self.connections.indices where self.connections[connection].state == .open {
            self.disconnect(connection, .serverShuttingDown, cause: .shutdown, now: now)
        }
    }

    /// Starts the timers of stall and disconnects at the first CONNECT.
    mutating func beginFaults(now: NIODeadline) {
        guard self.firstConnect == nil else { return }
        self.firstConnect = now
        if let stall = self.faults.stall { self.stallDue = now + stall.after }
        if let period = self.faults.disconnectEvery { self.disconnectDue = now + period }
    }

    /// Resets the next open connection, round robin.
    ///
    /// It leaves the tree immediately. The output of a client that reads is still written, so every copy counted as
    /// delivered reaches it before the reset.
    private mutating func disconnectNext(now: NIODeadline) {
        for offset in 0..<self.connections.count {
            let connection = (self.disconnectCursor + offset) % self.connections.count
            guard self.connections[connection].state == .open else { continue }
            self.disconnectCursor = connection + 1
            self.tally.disconnected += 1
            self.end(connection, .injected, now: now)
            self.actions.append(.reset(connection))
            return
        }
    }

    /// Ends clients that were silent for 1.5 keep-alives [MQTT-3.1.2-22], and connections without CONNECT.
    private mutating func scanSilence(now: NIODeadline) {
        for connection in self.connections.indices {
            let silence = now - self.connections[connection].lastHeard
            switch self.connections[connection].state {
            case .open:
                guard let limit = self.connections[connection].silenceLimit, silence > limit,
                    !self.connections[connection].isPaused
                else { continue }
                self.disconnect(connection, .keepAliveTimeout, cause: .keepalive, now: now)
            case .awaitingConnect where silence > self.configuration.connectDeadline:
                self.connections[connection].state = .closing
                self.actions.append(.close(connection))
            case .authenticating where silence > self.configuration.connectDeadline:
                self.fail(connection, .notAuthorized, now: now)
            default: continue
            }
        }
    }

    // MARK: Counters

    /// Memory that is bounded: bytes of cached routes, of shared frames, and of the entries for sessions and wills that
    /// are due later.
    package var routeBytes: Int { self.cache.byteCount }
    package var frameBytes: Int { self.frames.capacity }
    package var dueEntries: Int { self.sessionsDue.count }

    package var counters: BrokerCounters {
        var counters = self.tally
        counters.delayHolds = self.holdTimes.summary
        counters.subscriptions = UInt64(self.subscriptions.count { $0.isLive && !$0.filter.isEmpty })
        counters.retained = UInt64(self.retained.count)
        counters.sessionsAway = UInt64(self.sessionsAway)
        counters.storedBytes = UInt64(self.storedBytes)
        return counters
    }
}
