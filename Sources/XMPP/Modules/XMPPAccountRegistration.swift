public import XMPPCodec

/// Changes to the account that is logged in, and registrations with services such as gateways.
///
/// An account that does not exist yet is made by ``XMPPClientConfiguration/registers``.
///
/// Spec: XEP-0077.
public final class XMPPAccountRegistration: XMPPModule {
    /// The fields that a service requires for a registration (§3.1, §4).
    public struct Requirements: Hashable, Sendable {
        /// Whether the account is registered; then the fields have the values of its registration.
        public let isRegistered: Bool
        /// Instructions for people.
        public let instructions: String?
        /// The fields with their present values; empty if there is a ``form``.
        public let fields: [XMPPDataForm.Field]
        /// The form to fill in, in place of the fields.
        public let form: XMPPDataForm?
        /// The page to register at, where there is one (§5).
        public let page: String?
    }

    /// The way to the client.
    public let link = XMPPModuleLink()

    /// A module that has asked for nothing yet.
    public init() {}

    /// Makes the handler.
    public func makeHandler() -> any XMPPHandler { RegistrationHandler() }

    /// Gives the account another password (§3.3).
    ///
    /// The client's configuration keeps the old one: a later login needs a new client.
    ///
    /// - Parameter password: not empty; servers take that for the wish to have none.
    /// - Throws: as ``XMPPClient/request(_:)``; `invalid` for an empty password.
    public func changePassword(_ password: String) async throws(XMPPClientError) {
        guard !password.isEmpty else { throw .invalid("a password is not empty") }
        let jid: JID = try await self.ask { (_: RegistrationHandler, context, answer) in
            answer(context.jid.map { .success($0) } ?? .failure(.notSent))
        }
        guard let user = jid.local else { throw .invalid("'\(jid)' is no account: it has no local part") }
        try await self.link.request(RegistrationHandler.password(password, of: user, at: jid.domainOnly))
    }

    /// Removes the account (§3.2).
    ///
    /// The server ends the stream with the removal. An end by `not-authorized` in place of an answer counts as a
    /// success, and so does ejabberd's `conflict` with the English text `User removed`. A new connect fails then.
    ///
    /// - Throws: as ``XMPPClient/request(_:)``; `ended` for another end, which leaves open whether the account is gone.
    public func remove() async throws(XMPPClientError) {
        try await self.ask { (handler: RegistrationHandler, context, answer) in handler.remove(in: context, answer) }
    }

    /// Asks a service what it requires for a registration.
    ///
    /// - Parameter service: the service; `nil` is the own server.
    /// - Returns: the fields or the form, and whether there is a registration.
    /// - Throws: as ``XMPPClient/request(_:)``.
    public func requirements(of service: JID?) async throws(XMPPClientError) -> Requirements {
        let query = XMPPElement("query", namespace: XMPPNamespace.register)
        let answer = try await self.link.request(.iq("get", to: service, query))
        return Requirements(answer.child("query", XMPPNamespace.register) ?? query)
    }

    /// Registers with a service by fields, or changes the registration.
    ///
    /// - Parameters:
    ///   - service: the service.
    ///   - fields: values by name, such as `username`; a service may have names of its own.
    /// - Throws: as ``XMPPClient/request(_:)``; `refused` with `conflict` or `not-acceptable` for such values.
    public func register(with service: JID, fields: KeyValuePairs<String, String>) async throws(XMPPClientError) {
        var query = XMPPElement("query", namespace: XMPPNamespace.register)
        for (name, value) in fields { query.add(XMPPElement(name, namespace: XMPPNamespace.register, text: value)) }
        try await self.link.request(.iq("set", to: service, query))
    }

    /// Registers with a service by a form, or changes the registration.
    ///
    /// - Parameters:
    ///   - service: the service.
    ///   - form: filled in, as by ``XMPPDataForm/filled(_:)``.
    /// - Throws: as ``XMPPClient/request(_:)``.
    public func register(with service: JID, form: XMPPDataForm) async throws(XMPPClientError) {
        var query = XMPPElement("query", namespace: XMPPNamespace.register)
        query.add(form.element)
        try await self.link.request(.iq("set", to: service, query))
    }

    /// Ends a registration with a service.
    ///
    /// - Throws: as ``XMPPClient/request(_:)``.
    public func unregister(from service: JID) async throws(XMPPClientError) {
        try await self.link.request(RegistrationHandler.removal(at: service))
    }
}

extension XMPPAccountRegistration.Requirements {
    init(_ query: XMPPElement) {
        let own = query.elements.filter { $0.namespace == XMPPNamespace.register }
        let fields = own.filter { $0.name != "instructions" && $0.name != "registered" }
        self.isRegistered = own.contains { $0.name == "registered" }
        self.instructions = own.first { $0.name == "instructions" }?.text
        self.form = query.child("x", XMPPNamespace.dataForms).flatMap { XMPPDataForm($0) }
        self.page = query.child("x", XMPPNamespace.outOfBand)?.child("url")?.text
        // §4: a form replaces the fields, which are for older clients.
        self.fields =
            self.form == nil
            ? fields.map { XMPPDataForm.Field($0.name, $0.text.isEmpty ? [] : [$0.text], isRequired: true) } : []
    }
}

/// Changes to the account that is logged in.
///
/// Spec: XEP-0077 §3.2, §3.3.
package final class RegistrationHandler: XMPPHandler {
    private var removals: [UInt64: (Result<Void, XMPPRequestError>) -> Void] = [:]
    private var calls: UInt64 = 0

    package init() {}

    package static func password(_ password: String, of user: String, at server: JID) -> XMPPElement {
        var query = XMPPElement("query", namespace: XMPPNamespace.register)
        query.add("username", text: user)
        query.add("password", text: password)
        return .iq("set", to: server, query)
    }

    package static func removal(at service: JID? = nil) -> XMPPElement {
        var query = XMPPElement("query", namespace: XMPPNamespace.register)
        query.add(XMPPElement("remove", namespace: XMPPNamespace.register))
        return .iq("set", to: service, query)
    }

    /// Removes the account; the answer comes once.
    package func remove(in context: XMPPModuleContext, _ answer: @escaping Answer<Void>) {
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
