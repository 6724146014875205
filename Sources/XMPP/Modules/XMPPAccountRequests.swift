package import NIOCore
import XMPPCodec

/// Changes to the account that is logged in; creating it comes before, see ``XMPPRegistration``.
///
/// Spec: XEP-0077 §3.2, §3.3.
package enum XMPPAccountRequests {
    /// Gives the account another password.
    ///
    /// - Precondition: the password is not empty; servers take that for the wish to have none.
    package static func changePassword(
        _ password: String,
        on connection: XMPPConnection,
        timeout: TimeAmount = .seconds(30),
        _ answer: @escaping (Result<Void, XMPPRequestError>) -> Void
    ) {
        guard !password.isEmpty, let jid = connection.jid, let user = jid.local.map({ String($0) }) else {
            return answer(.failure(.notSent))
        }
        var query = XMPPElement("query", namespace: XMPPNamespace.register)
        query.add(XMPPElement("username", namespace: XMPPNamespace.register, text: user))
        query.add(XMPPElement("password", namespace: XMPPNamespace.register, text: password))
        let iq = XMPPElement.iq("set", to: jid.domainOnly, query)
        connection.request(iq, timeout: timeout) { answer($0.map { _ in }) }
    }

    /// Removes the account.
    ///
    /// The server may end the stream with `not-authorized` or `conflict` instead of answering, or after its answer.
    /// Then both the connection and the account are gone.
    package static func remove(
        on connection: XMPPConnection,
        timeout: TimeAmount = .seconds(30),
        _ answer: @escaping (Result<Void, XMPPRequestError>) -> Void
    ) {
        var query = XMPPElement("query", namespace: XMPPNamespace.register)
        query.add(XMPPElement("remove", namespace: XMPPNamespace.register))
        connection.request(.iq("set", query), timeout: timeout) { answer($0.map { _ in }) }
    }
}
