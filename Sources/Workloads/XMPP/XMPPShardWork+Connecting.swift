package import LoadEngine
import LoopContext
import Measurement
package import NIOCore
package import Transport
package import XMPP

// A client from the first connect of a connection until it is up.
extension XMPPShardWork {
    package func connect(_ place: Int, due: NIODeadline) {
        self.meter.record(self.metrics.connect.lag, (self.context.now - due).nanoseconds)
        self.accountBegins(place, due: due)
        if let refusal = self.load.refusal(of: self.number(place)) {
            self.error(refusal.kind, refusal.words)
            return self.connectFailed(place, canRetry: false)
        }
        self.begin(place)
    }

    func begin(_ place: Int) {
        let now = self.context.refresh()
        self.clients[place].stage = .connecting
        self.clients[place].hasStream = false
        self.clients[place].begun = now
        if self.load.work.isOfAccounts {
            self.accounts[place].isTimedOut = false
            self.accounts[place].isAborted = false
        }
        let deadline = now + self.load.connectTimeout
        self.connector.connect(
            client: self.number(place),
            deadline: deadline,
            handler: { [unowned self] in self.makeConnection(place) },
            done: { [unowned self] result in self.transportEnded(place, result, deadline: deadline) }
        )
    }

    private func makeConnection(_ place: Int) -> XMPPConnection {
        let connection = XMPPConnection(
            client: place,
            loop: self.context,
            stream: self.streams + place,
            observer: self,
            memory: self.readerMemory
        )
        self.clients[place].connection = connection
        if self.probe.place == place { self.probe.restart() }
        return connection
    }

    private func transportEnded(
        _ place: Int,
        _ result: Result<ConnectedChannel, ConnectError>,
        deadline: NIODeadline
    ) {
        self.context.refresh()
        switch result {
        case .success(let connected):
            self.meter.record(connected.phases, self.connectMetrics(place))
            guard let connection = self.clients[place].connection else { return }
            if self.clients[place].stage != .connecting { return connection.abort() }
            self.clients[place].hasStream = true
            connection.start(
                deadline: deadline,
                isBare: connected.isBare,
                isSecure: self.load.layers.contains(.tls)
            )
        case .failure(let error):
            self.clients[place].connection = nil
            self.error(error.kind, error.description)
            self.connectFailed(place, canRetry: true)
        }
    }

    /// Where the phases of the connect under way belong: to the first ones, or to those that come back.
    private func connectMetrics(_ place: Int) -> ConnectMetrics {
        self.tallies[place].connectNanoseconds == 0 ? self.metrics.connect : self.metrics.reconnect
    }

    /// The client could not come up this time.
    func connectFailed(_ place: Int, canRetry: Bool) {
        // Its connector may report only after the run gave it up.
        if self.clients[place].stage == .finished { return }
        if self.clients[place].stage == .finishing { return self.finished(place) }
        let isFirst = self.tallies[place].connectNanoseconds == 0
        let isLeft =
            isFirst
            ? self.clients[place].attempts < self.load.connectRetries
            : self.clients[place].reconnects < self.load.reconnects
        // RFC 6120 §6.4.6: a client that the server does not want must not hammer at it.
        guard canRetry, isLeft, self.clients[place].attempts != .max else {
            self.clients[place].stage = .idle
            self.clients[place].attempts = .max
            self.settleAccount(place)
            self.shard.settled(place, up: false)
            self.shard.checkDrained(place)
            return
        }
        if isFirst { self.clients[place].attempts += 1 } else { self.clients[place].reconnects += 1 }
        self.clients[place].stage = .waiting
        self.shard.returnEnded(place)
        self.schedule(place, at: self.context.now + self.load.reconnectPeriod)
    }

    package func needsTLS(
        _ place: Int,
        channel: any Channel,
        before connection: XMPPConnection,
        done: @escaping (Result<Void, ConnectError.Reason>) -> Void
    ) {
        guard let tls = self.tls else { return done(.failure(.tls(.handshake("this run has no TLS settings")))) }
        self.clients[place].tls = .underWay
        tls.begin(
            channel,
            client: self.number(place),
            target: self.identity,
            position: .before(connection)
        ) { [unowned self] result in
            let isLost = self.clients[place].tls == .lost
            self.clients[place].tls = .none
            guard isLost else { return done(result) }
            self.handshakeFailed(place, result)
        }
    }

    /// The connection went with the handshake, and why that failed was found out behind it.
    private func handshakeFailed(_ place: Int, _ result: Result<Void, ConnectError.Reason>) {
        let end: XMPPConnectionEnd =
            switch result {
            case .success: .lost
            case .failure(.tls(let failure)): .insecure(failure)
            case .failure(let reason): .notConnected(reason)
            }
        self.context.refresh()
        self.count(place, end)
        if self.clients[place].stage == .connecting || self.clients[place].stage == .finishing {
            self.connectFailed(place, canRetry: end.retry != .never)
        }
    }

    package func phase(_ place: Int, _ phase: XMPPPhase, took: TimeAmount, now: NIODeadline) {
        let ids = self.connectMetrics(place)
        switch phase {
        case .stream: self.meter.record(ids.steps[0], took.nanoseconds)
        case .sasl, .register: self.meter.record(ids.steps[1], took.nanoseconds)
        case .bind: self.meter.record(ids.steps[2], took.nanoseconds)
        case .tls: if let id = ids.tls { self.meter.record(id, took.nanoseconds) }
        }
    }

    package func ready(_ place: Int, jid: JID, _ readiness: XMPPReadiness, now: NIODeadline) {
        if self.load.work == .unregister, let connection = self.clients[place].connection {
            return self.removeAccount(place, connection)
        }
        let total = now - self.clients[place].begun
        let ids = self.connectMetrics(place)
        self.meter.record(ids.session, readiness.phases.session.nanoseconds)
        self.meter.record(ids.total, total.nanoseconds)
        if self.tallies[place].connectNanoseconds == 0 {
            self.tallies[place].connectNanoseconds = max(1, total.nanoseconds)
        } else {
            self.meter.add(self.metrics.traffic.reconnects)
        }
        self.clients[place].connectionFirst = self.clients[place].sequence
        self.clients[place].acknowledged = 0
        self.clients[place].writes = []
        self.clients[place].counted = self.streams[place].stanzasSent
        self.clients[place].unsent = 0
        self.clients[place].lost = 0
        self.checkBinding(place, jid)
        if let groups = self.groups { return self.join(place, groups, now: now) }
        self.comesUp(place, now: now)
    }

    func comesUp(_ place: Int, now: NIODeadline) {
        self.clients[place].stage = .up
        self.clients[place].isLive = true
        self.live += 1
        self.shard.up(place, at: now)
        self.shard.settled(place, up: true)
    }

    /// The server's word for who a client is (RFC 6120 §7.6); peers write to the JID that was asked for.
    private func checkBinding(_ place: Int, _ jid: JID) {
        let asked = self.streams[place].account.jid
        guard jid != asked, asked.resource != nil || jid.bare != asked, self.load.mechanism != "ANONYMOUS" else {
            return
        }
        self.error("bound elsewhere", "\(asked) was asked for, and the server made it \(jid)")
    }

    // MARK: - Leaving by plan

    /// How long a server may take to answer the closing tag and FIN with its own.
    static var leaveGrace: TimeAmount { .seconds(2) }

    package func depart(_ place: Int, _ cause: DeparturePlan.Cause, cuts: Bool) {
        guard self.clients[place].stage == .up, let connection = self.clients[place].connection else { return }
        let now = self.context.refresh()
        if let groups = self.groups { self.leaves(place, groups, saysSo: !cuts) }
        self.clients[place].stage = .leaving
        self.clients[place].begun = now
        self.clients[place].isLive = false
        self.live -= 1
        if let id = self.metrics.departures[cause] { self.meter.add(id.left) }
        if cuts { return connection.abort() }
        connection.finish()
        if self.clients[place].stage == .leaving { self.wantsTimer(place, at: now + Self.leaveGrace) }
    }

    package func departureMissed(_ place: Int, _ cause: DeparturePlan.Cause) {
        if let id = self.metrics.departures[cause] { self.meter.add(id.missed) }
    }

    package func departuresMissed(_ cause: DeparturePlan.Cause, count: UInt64) {
        if let id = self.metrics.departures[cause] { self.meter.add(id.missed, count) }
    }

    func left(_ place: Int) {
        self.clients[place].stage = .away
        self.shard.left(place)
    }

    package func reconnect(_ place: Int, due: NIODeadline) {
        // Of those who took no part at first.
        if self.clients[place].stage == .idle, self.tallies[place].connectNanoseconds == 0 {
            return self.connect(place, due: due)
        }
        guard self.clients[place].stage == .away else { return self.shard.returnEnded(place) }
        self.meter.record(self.metrics.reconnect.lag, (self.context.now - due).nanoseconds)
        self.begin(place)
    }
}
