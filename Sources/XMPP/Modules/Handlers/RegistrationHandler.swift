package import XMPPCodec

/// Changes to the account that is logged in.
///
/// Spec: XEP-0077 §3.2, §3.3.
package final class RegistrationHandler: XMPPHandler {
    private var removals: [UInt64: (Result<Void, XMPPRequestError>) -> Void] = [:]
    private var calls: UInt64 = 0

    package init() {}

    package static func password(_ password: String, of user: String, at server: JID) -> XMPPElement {
        var query = XMPPElement("query", namespace: XMPPNamespace.register)
        query.add(XMPPElement("username", namespace: XMPPNamespace.register, text: user))
        query.add(XMPPElement("password", namespace: XMPPNamespace.register, text: password))
        return .iq("set", to: server, query)
    }

    package static func removal(at service: JID? = nil) -> XMPPElement {
        var query = XMPPElement("query", namespace: XMPPNamespace.register)
        query.add(XMPPElement("remove", namespace: XMPPNamespace.register))
        return .iq("set", to: service, query)
    }

    /// Removes the account; the answer comes once.
    package func remove(in context: XMPPModuleContext, _ answer: @escaping (Result<Void, XMPPRequestError>) -> Void) {
        self.calls += 1
        let call = self.calls
        self.removals[call] = answer
        context.request(Self.removal()) { [weak self] result in
            // The connection's end, which follows, tells more than this.
            if case .failure(.connectionLost) = result { return }
            self?.removals.removeValue(forKey: call)?(result.map { _ in })
        }
    }

    /// The server may end the stream in place of an answer, also one that could be resumed.
    package func ended(_ end: XMPPClientEnd) {
        // `conflict` is also the end of a client whose resource another one takes; ejabberd tells them apart by the text.
        let isRemoved = end.kind == "not-authorized" || end.kind == "conflict" && end.words.contains("User removed")
        let removals = self.removals
        self.removals = [:]
        for answer in removals.values { answer(isRemoved ? .success(()) : .failure(.connectionLost)) }
    }
}
