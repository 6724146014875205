import NIOCore
import Transport
package import XMPP

// The stream options of a load, and their check.
extension XMPPLoad {
    /// One value for all clients of an event loop, with its cache of derived keys.
    var streamOptions: XMPPStreamOptions {
        var options = XMPPStreamOptions()
        options.tlsPolicy =
            switch self.tls {
            case .allowed: .allowed
            case .preferred: .preferred
            case .required: .required
            case .direct: .direct
            case .off: .off
            }
        options.framing = self.layers.contains(.webSocket) ? .webSocket : .stream
        options.mechanisms = self.mechanism.map { [$0] }
        options.allowsPlainWithoutTLS = self.allowsPlainWithoutTLS
        options.registration = self.work == .register ? .only : .none
        options.management = self.streamManagement ? .acknowledge : .off
        // One `<r/>` after each write.
        options.acknowledgesEvery = self.streamManagement ? 1 : 0
        return options
    }

    package func account(_ number: Int) -> XMPPAccount {
        let user = self.user(number)
        guard let jid = try? JID(user.full) else { preconditionFailure("problem() refuses what is no JID") }
        return XMPPAccount(jid, password: user.password)
    }

    /// A description of the load's first invalid setting.
    package func problem() -> String? {
        var seen: Set<JID> = []
        for number in 0..<self.clients {
            let user = self.user(number)
            do throws(JIDError) {
                let jid = try JID(user.full)
                guard seen.insert(self.work.isOfAccounts ? jid.bare : jid).inserted else {
                    return self.work.isOfAccounts
                        ? "two clients would register \(jid.bare); put %i before the @, or give each a user of its own"
                        : "two clients would be \(jid), and the server lets one of them go; "
                            + "put %i into the JID, or give each a user of its own"
                }
            } catch {
                return "'\(user.full)' is no JID: \(error)"
            }
        }
        return nil
    }
}
