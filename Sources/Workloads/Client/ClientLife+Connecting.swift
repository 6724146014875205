package import LoadEngine
import LoopContext
import Measurement
package import NIOCore
package import Transport

// A client from the start of a connect until it is up.
extension ClientLife {
    package func connect(_ place: Int, due: NIODeadline) {
        self.meter.record(self.metrics.connect.lag, (self.context.now - due).nanoseconds)
        guard self.admit(place, due: due) else { return self.connectFailed(place, canRetry: false) }
        self.beginConnect(place)
    }

    func beginConnect(_ place: Int) {
        let now = self.context.refresh()
        self.clients[place].stage = .connecting
        self.clients[place].hasLink = false
        self.clients[place].isLoggedIn = false
        self.clients[place].begun = now
        self.prepareConnect(place)
        let deadline = now + self.load.connectTimeout
        let turn = Int(self.clients[place].targetTurn)
        self.connector.connect(client: self.number(place), place: place, turn: turn, deadline: deadline, for: self)
    }

    package func makeHandler(_ place: Int) -> any ChannelHandler {
        let link = self.makeLink(place)
        self.clients[place].connection = link
        return link.makeHandler()
    }

    package func connectEnded(_ place: Int, _ result: Result<ConnectedChannel, ConnectError>, deadline: NIODeadline) {
        self.context.refresh()
        switch result {
        case .success(let connected):
            self.meter.record(connected.phases, self.connectMetrics(place))
            if let channel = connected.channel, connected.phases.tls != nil { self.countTLS(channel) }
            guard let link = self.clients[place].connection else { return }
            if self.clients[place].stage != .connecting { return link.abort() }
            self.clients[place].hasLink = true
            self.logIn(place, link, connected, deadline: deadline)
        case .failure(let error):
            self.clients[place].connection = nil
            self.error(error.kind, error.description)
            self.connectFailed(place, canRetry: true)
        }
    }

    /// Counts what a handshake that has succeeded negotiated.
    func countTLS(_ channel: any Channel) {
        if let version = channel.tlsVersion { self.meter.count(tlsVersion: version) }
    }

    /// The metrics of the current connect: a first connect or a reconnect.
    func connectMetrics(_ place: Int) -> ConnectMetrics {
        self.tallies[place].connectNanoseconds == 0 ? self.metrics.connect : self.metrics.reconnect
    }

    func connectFailed(_ place: Int, canRetry: Bool) {
        // The connector may report after the run has given the client up.
        if self.clients[place].stage == .finished { return }
        if self.clients[place].stage == .finishing { return self.finished(place) }
        let isFirst = self.tallies[place].connectNanoseconds == 0
        let isLeft =
            isFirst
            ? self.clients[place].attempts < self.load.connectRetries
            : self.clients[place].reconnects < self.load.reconnects
        guard canRetry, isLeft, self.clients[place].attempts != .max else {
            self.recordUnconnected(place, as: .failed)
            self.recordDowntime(place, as: .failed)
            self.clients[place].stage = .idle
            self.clients[place].attempts = .max
            self.handleGivenUp(place)
            self.shard.settled(place, up: false)
            self.shard.checkDrained(place)
            return
        }
        if isFirst { self.clients[place].attempts += 1 } else { self.clients[place].reconnects += 1 }
        self.clients[place].stage = .waiting
        self.shard.returnEnded(place)
        self.waitToReturn(place)
    }

    private func waitToReturn(_ place: Int) {
        if self.load.failsOver { self.clients[place].targetTurn &+= 1 }
        let attempts = self.clients[place].waits
        self.clients[place].waits = min(attempts, .max - 1) + 1
        let delay = self.load.backoff.delay(after: Int(attempts), of: self.number(place), seed: self.load.seed)
        self.schedule(place, at: self.context.now + delay)
    }

    /// Records a connect, or what follows it before the client is up, at its age.
    ///
    /// A connect that is tried again is one operation: its last attempt alone is recorded.
    func recordUnconnected(_ place: Int, as end: UnansweredEnd) {
        guard !self.clients[place].isLoggedIn else { return self.recordNotUp(place, as: end) }
        let age = self.age(since: self.clients[place].begun, end)
        self.meter.recordUnanswered(self.connectMetrics(place).total, age, lane: MetricLane.measured, as: end)
    }

    /// The client has not come back from a loss, or not before the end of the run.
    private func recordDowntime(_ place: Int, as end: UnansweredEnd) {
        guard let lost = self.clients[place].lostAt, let id = self.metrics.downtime else { return }
        self.clients[place].lostAt = nil
        self.meter.recordUnanswered(id, self.age(since: lost, end), lane: MetricLane.measured, as: end)
    }

    /// The age of an operation without an answer: now if it failed, and at the end of the drain if it is outstanding.
    func age(since begin: NIODeadline, _ end: UnansweredEnd) -> Int64 {
        let now = self.context.now
        return ((end == .outstanding ? min(now, self.shard.drainEnded ?? now) : now) - begin).nanoseconds
    }

    /// Whether an answer to the client comes after the end of the drain, where it changes no end.
    func isLate(_ place: Int, _ now: NIODeadline) -> Bool {
        self.isEndedByRun(place) && self.shard.drainEnded.map { now > $0 } ?? false
    }

    /// The login has ended; `session` is its duration.
    func recordLogin(_ place: Int, session: TimeAmount, now: NIODeadline) {
        self.clients[place].isLoggedIn = true
        let total = now - self.clients[place].begun
        let ids = self.connectMetrics(place)
        self.meter.record(ids.session, session.nanoseconds)
        self.meter.record(ids.total, total.nanoseconds)
        if self.tallies[place].connectNanoseconds == 0 {
            self.tallies[place].connectNanoseconds = max(1, total.nanoseconds)
        } else {
            self.meter.add(self.metrics.traffic.reconnects)
        }
        self.clients[place].connectionFirst = self.clients[place].sequence
        self.clients[place].unsent = 0
        self.clients[place].lost = 0
    }

    /// The client takes part in the load from now on.
    func markUp(_ place: Int, now: NIODeadline) {
        self.clients[place].stage = .up
        self.markLive(place, now: now)
    }

    /// Counts the client among the live ones.
    func markLive(_ place: Int, now: NIODeadline) {
        self.clients[place].isLive = true
        self.clients[place].waits = 0
        self.slab.live += 1
        if let lost = self.clients[place].lostAt, let id = self.metrics.downtime {
            self.meter.record(id, (now - lost).nanoseconds)
            self.clients[place].lostAt = nil
        }
        self.shard.up(place, at: now)
        self.shard.settled(place, up: true)
    }

    // MARK: - Leaving by plan

    /// How long the server has to answer the client's last packet and FIN.
    static var leaveGrace: TimeAmount { .seconds(2) }

    package func depart(_ place: Int, _ cause: DeparturePlan.Cause, cuts: Bool) {
        guard self.clients[place].stage == .up, let link = self.clients[place].connection else { return }
        let now = self.context.refresh()
        self.prepareDeparture(place, cuts: cuts)
        self.clients[place].stage = .leaving
        self.clients[place].begun = now
        self.clients[place].isLive = false
        self.slab.live -= 1
        if let id = self.metrics.departures[cause] { self.meter.add(id.left) }
        if cuts { return link.abort() }
        link.finish()
        if self.clients[place].stage == .leaving { self.wantsTimer(place, at: now + Self.leaveGrace) }
    }

    package func departureMissed(_ place: Int, _ cause: DeparturePlan.Cause) { self.departuresMissed(cause, count: 1) }

    package func departuresMissed(_ cause: DeparturePlan.Cause, count: UInt64) {
        if let id = self.metrics.departures[cause] { self.meter.add(id.missed, count) }
    }

    package func reconnect(_ place: Int, due: NIODeadline) {
        // A client that was idle from the start connects for the first time.
        if self.clients[place].stage == .idle, self.tallies[place].connectNanoseconds == 0 {
            return self.connect(place, due: due)
        }
        guard self.clients[place].stage == .away else { return self.shard.returnEnded(place) }
        self.meter.record(self.metrics.reconnect.lag, (self.context.now - due).nanoseconds)
        self.beginConnect(place)
    }

    // MARK: - A client from the end of one connection to the next connection, or to its final end

    package func ending(_ place: Int, unsent: Int) {
        self.prepareEnd(place)
        self.settleUnsent(place, bytes: unsent)
    }

    package func ended(_ place: Int, _ end: End, now: NIODeadline) {
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
        self.clients[place].lostAt = self.context.now
        if returns {
            self.clients[place].reconnects += 1
            self.waitToReturn(place)
        } else {
            self.recordDowntime(place, as: .failed)
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

    /// Whether the plan ends the connection, which excuses what has no answer then.
    func isEndedByPlan(_ place: Int) -> Bool { self.clients[place].stage == .leaving }

    /// Whether the connection ends with the run.
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
        self.recordDowntime(place, as: .outstanding)
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
        guard self.clients[place].stage != .finished else { return }
        if let link = self.clients[place].connection, self.clients[place].stage != .connecting {
            if self.clients[place].stage != .flushing { self.clients[place].stage = .finishing }
            link.abort()
        } else {
            self.finish(place)
        }
        if self.clients[place].stage != .finished { self.finished(place) }
    }

    func finished(_ place: Int) {
        self.clients[place].stage = .finished
        self.settle(place)
        self.shard.settled(place, up: false)
        self.shard.finished(place)
    }
}
