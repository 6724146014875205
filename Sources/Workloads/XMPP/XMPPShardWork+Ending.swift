import Ledger
import LoadEngine
import LoopContext
import Measurement
import NIOCore
package import XMPP

// The end of a client's connection, and its timer.
extension XMPPShardWork {
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
