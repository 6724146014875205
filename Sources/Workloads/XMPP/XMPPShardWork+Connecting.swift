import Ledger
import LoopContext
import Measurement
package import NIOCore
package import Transport
package import XMPP

// A client's login.
extension XMPPShardWork {
    package func admit(_ place: Int, due: NIODeadline) -> Bool {
        self.beginAccount(place, due: due)
        guard let refusal = self.load.refusal(of: self.number(place)) else { return true }
        self.error(refusal.kind, refusal.words)
        return false
    }

    package func prepareConnect(_ place: Int) {
        guard self.load.work.isOfAccounts else { return }
        self.accounts[place].isTimedOut = false
        self.accounts[place].isAborted = false
    }

    package func makeLink(_ place: Int) -> XMPPConnection {
        if self.slab.probe.place == place { self.slab.probe.restart() }
        return XMPPConnection(
            client: place,
            loop: self.context,
            stream: self.streams + place,
            observer: self,
            memory: self.readerMemory
        )
    }

    package func logIn(
        _ place: Int,
        _ connection: XMPPConnection,
        _ connected: ConnectedChannel,
        deadline: NIODeadline
    ) {
        connection.start(deadline: deadline, isBare: connected.isBare, isSecure: self.load.layers.contains(.tls))
    }

    package func handleGivenUp(_ place: Int) { self.settleAccount(place) }

    package func needsTLS(
        _ place: Int,
        channel: any Channel,
        before wire: Wire,
        done: @escaping (Result<Void, ConnectError.Reason>) -> Void
    ) {
        guard let tls = self.tls else { return done(.failure(.tls(.handshake("this run has no TLS settings")))) }
        self.clients[place].own.tls = .underWay
        tls.begin(
            channel,
            client: self.number(place),
            target: self.identity,
            position: .before(wire)
        ) { [unowned self] result in
            let isLost = self.clients[place].own.tls == .lost
            self.clients[place].own.tls = .none
            if case .success = result { self.countTLS(channel) }
            guard isLost else { return done(result) }
            self.handshakeFailed(place, result)
        }
    }

    /// The connection ended with the handshake, and the reason of the failure was found afterwards.
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
        self.recordLogin(place, session: readiness.phases.session, now: now)
        self.clients[place].own.acknowledged = 0
        self.clients[place].own.writes = []
        self.clients[place].own.counted = self.streams[place].stanzasSent
        self.checkBinding(place, jid)
        if let groups = self.groups { return self.join(place, groups, now: now) }
        self.markUp(place, now: now)
    }

    /// The JID that the server assigns (RFC 6120 §7.6) must be the requested one, since peers send to that.
    private func checkBinding(_ place: Int, _ jid: JID) {
        let asked = self.streams[place].account.jid
        guard jid != asked, asked.resource != nil || jid.bare != asked, self.load.mechanism != "ANONYMOUS" else {
            return
        }
        self.error("bound elsewhere", "\(asked) was asked for, and the server made it \(jid)")
    }

    package func prepareDeparture(_ place: Int, cuts: Bool) {
        if let groups = self.groups { self.leaveGroup(place, groups, saysSo: !cuts) }
    }

    // MARK: - The end of a client's connection, and its timer

    package func prepareEnd(_ place: Int) { self.noteOpenRequest(place) }

    package func handleEnd(_ place: Int, _ end: XMPPConnectionEnd) -> (isCounted: Bool, goesOn: Bool) {
        if self.clients[place].own.tls == .underWay, self.clients[place].stage == .connecting, end == .lost {
            self.clients[place].own.tls = .lost
            return (isCounted: false, goesOn: false)
        }
        self.clients[place].own.isProved = end.isAnswered
        let isToldOf = self.load.work.isOfAccounts && self.settleAccountEnd(place, end)
        return (isCounted: !isToldOf, goesOn: true)
    }

    package func account(of end: XMPPConnectionEnd) -> (kind: String, reason: DisconnectReason, words: String) {
        (end.kind, end.reason, "\(end)")
    }

    package func mayRetry(_ place: Int, after end: XMPPConnectionEnd) -> Bool {
        // RFC 6120 §6.4.6: a client that the server rejects must not retry aggressively.
        end.allowsRetry || self.load.work.isOfAccounts && self.isOpen(place)
    }

    package func handleLoss(_ place: Int) {
        if let groups = self.groups { self.leaveGroup(place, groups, saysSo: false) }
    }

    package func noteClosing(_ place: Int) {
        self.deliveryEnd.probed = min(self.deliveryEnd.probed ?? .max, Int64(self.context.refresh().uptimeNanoseconds))
    }

    package func close(_ place: Int) {
        self.sayGoodbye(place)
        self.closeLink(place)
    }

    package func settle(_ place: Int) {
        self.settleAccount(place)
        if let groups = self.groups { self.giveUpFlights(place, groups, as: .outstanding) }
    }

    package func linkTimerFired(_ place: Int) {
        if self.clients[place].stage == .joining {
            self.joinTimer(place, now: self.context.now)
        } else {
            self.clients[place].connection?.timerFired(now: self.context.now)
        }
    }
}

extension XMPPConnectionEnd {
    /// The reason under which the disconnect is counted.
    var reason: DisconnectReason {
        switch self {
        case .answered, .aborted, .closedByPeer, .lost: .closed
        case .failed, .insecure, .notConnected, .webSocket: .reset
        case .timedOut, .closingTimedOut: .timeout
        case .streamError, .redirected, .notAuthenticated, .tokenRefused, .bindRefused, .sessionRefused,
            .registrationRefused,
            .legacyRefused, .tlsRefused:
            .server
        default: .protocol
        }
    }
}
