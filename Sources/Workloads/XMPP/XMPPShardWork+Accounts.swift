import LoadEngine
import LoopContext
import Measurement
package import NIOCore
import Transport
package import XMPP
import XMPPCodec

// Accounts that are made and removed (XEP-0077): one connection for each, of which nothing is left.
extension XMPPShardWork {
    /// Of clients that register or remove their account; others have none.
    struct Account {
        var fate = AccountFate.untouched
        /// When the plan wanted the connect begun.
        var due = NIODeadline.distantPast
        /// The request that matters was written; how the last one of them ended.
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

    /// The client's turn has come.
    func beginAccount(_ place: Int, due: NIODeadline) {
        guard self.load.work.isOfAccounts else { return }
        self.accounts[place].due = due
        self.offered(place, count: 1)
    }

    // MARK: - Making one

    package func registered(_ place: Int, _ phases: XMPPPhases, answer: TimeAmount, now: NIODeadline) {
        let total = now - self.clients[place].begun
        self.meter.record(self.metrics.connect.session, phases.session.nanoseconds)
        self.meter.record(self.metrics.connect.total, total.nanoseconds)
        self.tallies[place].connectNanoseconds = max(1, total.nanoseconds)
        self.completeAccount(place, .created, answer: answer, now: now)
    }

    // MARK: - Removing one

    /// Asks for it; the client is logged in.
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
        self.refuseAccount(
            place,
            "remove \(error.condition.rawValue)",
            words + (error.text.map { " (\($0))" } ?? "")
        )
        self.closeLink(place)
    }

    /// No answer in time: whoever asks again, asks on another connection.
    func removalUnanswered(_ place: Int, _ error: XMPPRequestError) {
        guard error == .timedOut else { return }
        self.accounts[place].fate = .unknown
        self.accounts[place].isTimedOut = true
        self.error("timeout", "no answer to the removal of an account within the acknowledgement timeout")
        self.clients[place].connection?.abort()
    }

    // MARK: - Ends

    /// The server has done it: nothing else is wanted of this client.
    private func completeAccount(_ place: Int, _ fate: AccountFate, answer: TimeAmount, now: NIODeadline) {
        self.accounts[place].fate = fate
        let response = (now - self.accounts[place].due).nanoseconds
        if let ids = self.metrics.ping {
            self.meter.record(ids.response, response)
            self.meter.record(ids.service, answer.nanoseconds)
        }
        self.tallies[place].longestAckNanoseconds = response
        self.settleAccount(place)
        self.markLive(place, now: now)
        self.closeLink(place)
    }

    /// Who registers many from one address meets a limit first.
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

    /// What the stream still knows, just before it forgets.
    func noteOpenRequest(_ place: Int) {
        guard self.load.work == .register, self.accounts[place].fate != .created else { return }
        let stream = self.streams + place
        if stream.pointee.negotiationPhase == .register { self.accounts[place].asked = true }
        // Until it is known to be refused. What one connection has left open another one cannot close.
        if stream.pointee.hasAskedForAccount { self.accounts[place].fate = .unknown }
    }

    /// Takes a connection's end, where it says something of the account.
    ///
    /// - Returns: whether the end is told of with this.
    func settleAccountEnd(_ place: Int, _ end: XMPPConnectionEnd) -> Bool {
        let fate = self.accounts[place].fate
        // However the server takes leave of one that has its answer.
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
        // Asked before, without an answer (XEP-0077 §3.2: the stream's end may be one): now nobody is there to log in as.
        case .notAuthenticated(let failure) where self.isOpen(place) && failure.condition == .notAuthorized:
            self.accounts[place].fate = .removed
            return true
        default:
            self.accounts[place].isTimedOut = end == .timedOut(.register)
            self.accounts[place].isAborted = end == .aborted
            if self.accounts[place].asked, self.load.work == .unregister { self.accounts[place].fate = .unknown }
            if self.accounts[place].fate == .unknown { self.accounts[place].wasOpen = true }
            self.accounts[place].refusal = AccountRefusal(kind: end.kind, words: "\(end)")
            return false
        }
    }

    /// Whether its removal was asked for, and nobody knows what came of it: another connection tells.
    func isOpen(_ place: Int) -> Bool { self.load.work == .unregister && self.accounts[place].fate == .unknown }

    /// Puts the account into the books, once, when nothing more is tried.
    func settleAccount(_ place: Int) {
        guard self.load.work.isOfAccounts, let operation = self.metrics.operation, !self.accounts[place].isCounted,
            self.accounts[place].due != .distantPast
        else { return }
        self.accounts[place].isCounted = true
        switch self.accounts[place].fate {
        case .created, .removed:
            self.countSent(place, operation.counts, 1)
            self.meter.add(operation.known)
            self.tallies[place].acked += 1
        case .untouched where !self.accounts[place].asked:
            self.meter.add(operation.counts.notSent)
        case .existed, .refused:
            self.countSent(place, operation.counts, 1)
            self.meter.add(operation.refused)
            self.books.failed += 1
        case .untouched, .unknown:
            self.countSent(place, operation.counts, 1)
            if self.accounts[place].isTimedOut {
                self.books.timedOut += 1
            } else if self.accounts[place].isAborted {
                self.books.inFlight += 1
            } else {
                self.books.failed += 1
            }
        }
    }

    /// Whether it has something under way that the end of a run should wait for.
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
