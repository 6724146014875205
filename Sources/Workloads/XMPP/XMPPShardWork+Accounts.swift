import Measurement
package import NIOCore
import Transport
package import XMPP
import XMPPCodec

// Registration and removal of accounts (XEP-0077): each uses a connection of its own, which ends afterwards.
extension XMPPShardWork {
    /// State of a client that registers or removes its account.
    struct Account {
        var fate = AccountFate.untouched
        /// Time when the connect was due.
        var due = NIODeadline.distantPast
        /// The decisive request was written; the next two say how the last one ended.
        var asked = false
        var isTimedOut = false
        var isAborted = false
        /// An earlier attempt had no answer.
        var wasOpen = false
        var isCounted = false
        var refusal: AccountRefusal?
    }

    private static let removal = Array("'><query xmlns='jabber:iq:register'><remove/></query></iq>".utf8)
    private static let head = Array("<iq type='set' id='".utf8)
    private static let headAlone = Array("<iq xmlns='jabber:client' type='set' id='".utf8)

    /// The client is due to start.
    func beginAccount(_ place: Int, due: NIODeadline) {
        guard self.load.work.isOfAccounts else { return }
        self.accounts[place].due = due
        self.offered(place, stream: 0, count: 1)
    }

    // MARK: - Registration

    package func registered(_ place: Int, _ phases: XMPPPhases, answer: TimeAmount, now: NIODeadline) {
        self.recordLogin(place, session: phases.session, now: now)
        self.completeAccount(place, .created, answer: answer, now: now)
    }

    // MARK: - Removal

    /// Requests the removal; the client is logged in.
    func removeAccount(_ place: Int, _ connection: XMPPConnection) {
        self.accounts[place].asked = true
        let isTaken = connection.request(
            0,
            to: nil,
            timeout: self.load.ackTimeout,
            before: self.load.layers.contains(.webSocket) ? Self.headAlone : Self.head,
            after: Self.removal
        )
        if !isTaken { connection.abort() }
    }

    func removalAnswered(_ place: Int, _ answer: borrowing ElementView, now: NIODeadline) {
        let isError = answer.withAttribute("type") { $0.elementsEqual("error".utf8) } ?? false
        guard isError else {
            return self.completeAccount(place, .removed, answer: now - self.clients[place].begun, now: now)
        }
        let error = StanzaError(answer.element()) ?? StanzaError(.undefinedCondition)
        let words = "the server refused to remove the account: \(error.condition.rawValue)"
        self.refuseAccount(place, "remove \(error.condition.rawValue)", words + (error.text.map { " (\($0))" } ?? ""))
        self.closeLink(place)
    }

    /// No answer in time; a retry uses another connection.
    func removalUnanswered(_ place: Int, _ error: XMPPRequestError) {
        guard error == .timedOut else { return }
        self.accounts[place].fate = .unknown
        self.accounts[place].isTimedOut = true
        self.error("timeout", "no answer to the removal of an account within the acknowledgement timeout")
        self.clients[place].connection?.abort()
    }

    // MARK: - Endings

    /// The server has carried out the request, so the client has finished.
    private func completeAccount(_ place: Int, _ fate: AccountFate, answer: TimeAmount, now: NIODeadline) {
        self.accounts[place].fate = fate
        let response = (now - self.accounts[place].due).nanoseconds
        if let ids = self.metrics.ping {
            self.meter.record(ids.response, response)
            self.meter.record(ids.service, answer.nanoseconds)
            self.keepIfSlow(place, ids.response, response, due: self.accounts[place].due, lane: MetricLane.measured)
        }
        self.tallies[place].longestAckNanoseconds = response
        self.settleAccount(place)
        self.markLive(place, now: now)
        self.closeLink(place)
    }

    /// Many registrations from one address reach a limit of the server first.
    private static func remedy(_ error: StanzaError) -> String {
        guard error.type == .wait || error.condition == .resourceConstraint else { return "" }
        return "; servers limit registrations by address: ejabberd by registration_timeout, prosody by "
            + "min_seconds_between_registrations"
    }

    private func refuseAccount(_ place: Int, _ kind: String, _ words: String) {
        let words = "\(words) [\(self.load.user(self.number(place)).bare)]"
        self.accounts[place].refusal = AccountRefusal(kind: kind, words: words)
        self.accounts[place].fate = .refused
        self.error(kind, words)
    }

    /// Reads the stream's state just before the stream is gone.
    func noteOpenRequest(_ place: Int) {
        guard self.load.work == .register, self.accounts[place].fate != .created else { return }
        let stream = self.streams + place
        if stream.pointee.negotiationPhase == .register { self.accounts[place].asked = true }
        // Unknown until a refusal is known. A request that one connection left open stays open on the next one.
        if stream.pointee.hasAskedForAccount { self.accounts[place].fate = .unknown }
    }

    /// Handles the end of a connection if it concerns the account.
    ///
    /// - Returns: whether the end has thereby been reported.
    func settleAccountEnd(_ place: Int, _ end: XMPPConnectionEnd) -> Bool {
        let fate = self.accounts[place].fate
        // The request has its answer, so the way the server closes does not matter.
        if fate == .created || fate == .removed || fate == .refused && self.clients[place].stage == .finishing {
            return true
        }
        switch end {
        case .registrationRefused(let error):
            let wasOpen = self.accounts[place].wasOpen
            let isThere = error.condition == .conflict
            let words =
                isThere
                ? "the account exists already: the server answered \(error.condition.rawValue)"
                : "\(end)" + Self.remedy(error)
            self.refuseAccount(place, end.kind, words)
            self.accounts[place].fate = wasOpen ? .unknown : isThere ? .existed : .refused
            return true
        case .registrationImpossible:
            self.refuseAccount(place, end.kind, "\(end)")
            return true
        // The removal was requested before without an answer, and the stream's end may be one (XEP-0077 §3.2). Now the
        // account to log in to is gone.
        case .notAuthenticated(let failure) where self.isOpen(place) && failure.condition == .notAuthorized:
            self.accounts[place].fate = .removed
            return true
        default:
            // A removal that ran out of time has ended its connection itself.
            if !self.accounts[place].isTimedOut {
                self.accounts[place].isTimedOut = end == .timedOut(.register)
                self.accounts[place].isAborted = end == .aborted
            }
            if self.accounts[place].asked, self.load.work == .unregister { self.accounts[place].fate = .unknown }
            if self.accounts[place].fate == .unknown { self.accounts[place].wasOpen = true }
            self.accounts[place].refusal = AccountRefusal(kind: end.kind, words: "\(end)")
            return false
        }
    }

    /// Whether the removal was requested with an unknown outcome; another connection will show it.
    func isOpen(_ place: Int) -> Bool { self.load.work == .unregister && self.accounts[place].fate == .unknown }

    /// Counts the account once, when there will be no more attempts.
    func settleAccount(_ place: Int) {
        guard self.load.work.isOfAccounts, let operation = self.metrics.operation, !self.accounts[place].isCounted,
            self.accounts[place].due != .distantPast
        else { return }
        self.accounts[place].isCounted = true
        func record(_ end: UnansweredEnd) {
            guard let ids = self.metrics.ping else { return }
            let age = self.age(since: self.accounts[place].due, end)
            self.meter.recordUnanswered(ids.response, age, lane: MetricLane.measured, as: end)
        }
        switch self.accounts[place].fate {
        case .created, .removed:
            self.countSent(place, operation.counts, 1)
            self.meter.add(operation.known)
            self.tallies[place].acked += 1
        case .untouched where !self.accounts[place].asked:
            self.meter.add(operation.counts.notSent)
            record(.outstanding)
        case .existed, .refused:
            self.countSent(place, operation.counts, 1)
            self.meter.add(operation.refused)
            self.books.failed += 1
            record(.failed)
        case .untouched, .unknown:
            self.countSent(place, operation.counts, 1)
            record(self.accounts[place].isAborted && !self.accounts[place].isTimedOut ? .outstanding : .failed)
            if self.accounts[place].isTimedOut {
                self.books.timedOut += 1
            } else if self.accounts[place].isAborted {
                self.books.inFlight += 1
            } else {
                self.books.failed += 1
            }
        }
    }

    /// Whether the client has a request in flight that the end of a run should wait for.
    func isAtAccount(_ place: Int) -> Bool {
        self.load.work.isOfAccounts && self.clients[place].stage == .connecting && self.clients[place].hasLink
    }

    func takeAccounts() -> [AccountResult] {
        self.accounts.enumerated().map { place, account in
            AccountResult(
                number: self.number(place),
                fate: account.fate,
                isBegun: account.due != .distantPast,
                refusal: account.refusal
            )
        }
    }
}
