import DataEncodings
import NIOCore
import SASL
import XMPPCodec

// The extensible SASL profile (XEP-0388), with a resource (XEP-0386), stream management (XEP-0198 §9) and tokens
// (XEP-0484) within the login.
extension XMPPStream {
    private static let namespace = XMPPNamespace.sasl2

    // MARK: Tokens

    /// The token of the account for logins by XEP-0484, which the server gave out or the owner has kept.
    ///
    /// It changes with each login by it, with each new token, and where the server refuses it. An owner that keeps it
    /// takes it when the stream is ready and when its connection ends.
    package var token: XMPPFastToken? {
        get { self.loginMemory?.token }
        set {
            if newValue != nil, self.loginMemory == nil { self.loginMemory = XMPPLoginMemory() }
            self.loginMemory?.token = newValue
        }
    }

    /// Whether the next login by the token invalidates it, and no new one is requested meanwhile (XEP-0484 §3.6).
    ///
    /// `false` again when that has happened, or when there is no token any more.
    package var invalidatesToken: Bool {
        get { self.loginMemory?.invalidates ?? false }
        set {
            if newValue, self.loginMemory == nil { self.loginMemory = XMPPLoginMemory() }
            self.loginMemory?.invalidates = newValue
        }
    }

    // MARK: Beginning

    /// - Returns: `nil` where RFC 6120 is to be used.
    mutating func beginSASL2(now: NIODeadline, into out: inout ByteBuffer) -> Action? {
        guard case .sasl2(let login) = self.options.login, self.mayExposeSecrets,
            self.offeredMechanisms?.isEmpty == false
        else { return nil }
        self.enter(.sasl, now: now)
        return self.authenticate(login, now: now, into: &out)
    }

    private var offeredMechanisms: [String]? {
        self.offered("authentication", Self.namespace).map { Self.mechanisms(of: $0, Self.namespace) }
    }

    private static func mechanisms(of element: XMPPElement, _ namespace: String) -> [String] {
        element.elements.filter { $0.isNamed("mechanism", namespace) }.map(\.text)
    }

    /// Tries the token if there is one, and then the best mechanism that the server has not turned down.
    private mutating func authenticate(
        _ login: XMPPSASL2Options,
        now: NIODeadline,
        into out: inout ByteBuffer
    ) -> Action {
        guard let negotiation = self.negotiation else { return .none }
        let inline = self.offered("authentication", Self.namespace)?.child("inline", Self.namespace)
        var requests = XMPPInlineRequests()
        let mechanism: any SASLMechanism
        if let (byToken, kind) = self.tokenMechanism(login, inline) {
            mechanism = byToken
            requests.token = kind
            requests.invalidates = self.invalidatesToken
        } else {
            do throws(SASLChoiceError) {
                mechanism = try self.choose(self.offeredMechanisms ?? [], isSASL2: true)
            } catch {
                // If an earlier attempt was rejected, its reason is reported.
                if let failure = negotiation.failure { return self.end(.notAuthenticated(failure), into: &out) }
                return self.end(.noMechanism(error), into: &out)
            }
            requests.newToken = self.newTokenKind(login, inline)
        }
        return self.begin(mechanism, login, inline, &requests, now: now, into: &out)
    }

    private mutating func begin(
        _ mechanism: any SASLMechanism,
        _ login: XMPPSASL2Options,
        _ inline: XMPPElement?,
        _ requests: inout XMPPInlineRequests,
        now: NIODeadline,
        into out: inout ByteBuffer
    ) -> Action {
        var mechanism = mechanism
        var element = XMPPElement("authenticate", namespace: Self.namespace, attributes: ["mechanism": mechanism.name])
        do throws(SASLError) {
            // §2.2: an empty element is data of no bytes, and no element is no data.
            if let first = try mechanism.begin() {
                element.add(XMPPElement("initial-response", namespace: Self.namespace, text: Base64.encode(first)))
            }
        } catch {
            return self.end(.serverNotAuthentic(error), into: &out)
        }
        if let agent = login.userAgent { element.add(Self.element(agent)) }
        for request in self.inlineRequests(login, inline, &requests, now: now) { element.add(request) }
        self.negotiation?.mechanism = mechanism
        self.negotiation?.inline = requests
        self.state = .auth
        self.append(element, into: &out)
        return .none
    }

    private static func element(_ agent: XMPPUserAgent) -> XMPPElement {
        var element = XMPPElement("user-agent", namespace: self.namespace, attributes: ["id": agent.id])
        element.add("software", text: agent.software)
        element.add("device", text: agent.device)
        return element
    }

    /// The elements for what else the login is to bring about, as far as the server offers it.
    private mutating func inlineRequests(
        _ login: XMPPSASL2Options,
        _ inline: XMPPElement?,
        _ requests: inout XMPPInlineRequests,
        now: NIODeadline
    ) -> [XMPPElement] {
        var elements: [XMPPElement] = []
        if let management = self.management, management.isOver(now: now) { self.loseSession(acknowledged: nil) }
        let resumable = self.options.management == .resume && self.canResume ? self.management : nil
        if let resumable, inline?.child("sm", XMPPNamespace.streamManagement) != nil {
            requests.resumes = true
            elements.append(self.resumeRequest(resumable))
        }
        // A resource of its own would make an ordinary resumption impossible.
        if let bind = inline?.child("bind", XMPPNamespace.bind2), resumable == nil || requests.resumes {
            elements.append(self.bindRequest(login, bind, &requests))
        }
        if let kind = requests.newToken {
            elements.append(
                XMPPElement("request-token", namespace: XMPPNamespace.fast, attributes: ["mechanism": kind.rawValue])
            )
        }
        if requests.token != nil, let memory = self.loginMemory {
            memory.token?.countLogin()
            elements.append(
                XMPPElement(
                    "fast",
                    namespace: XMPPNamespace.fast,
                    attributes: [
                        "count": memory.token.map { String($0.count) },
                        "invalidate": requests.invalidates ? "true" : nil,
                    ]
                )
            )
        }
        return elements
    }

    private func bindRequest(
        _ login: XMPPSASL2Options,
        _ offer: XMPPElement,
        _ requests: inout XMPPInlineRequests
    ) -> XMPPElement {
        let offered = (offer.child("inline", XMPPNamespace.bind2)?.elements ?? []).compactMap { $0["var"] }
        var bind = XMPPElement("bind", namespace: XMPPNamespace.bind2)
        requests.binds = true
        bind.add("tag", text: login.tag ?? self.account.jid.resource)
        if login.enablesCarbonsInline, offered.contains(XMPPNamespace.carbons) {
            requests.features.insert(.carbons)
            bind.add(XMPPElement("enable", namespace: XMPPNamespace.carbons))
        }
        if self.options.management.isOn, offered.contains(XMPPNamespace.streamManagement) {
            requests.enables = true
            bind.add(self.enableRequest)
        }
        if offered.contains(XMPPNamespace.clientState) {
            self.negotiation?.offers.insert(.clientState)
            if login.beginsInactive {
                requests.features.insert(.inactive)
                bind.add(XMPPElement("inactive", namespace: XMPPNamespace.clientState))
            }
        }
        return bind
    }

    // MARK: Tokens

    /// The mechanism for the kept token, where both sides can use it.
    private mutating func tokenMechanism(
        _ login: XMPPSASL2Options,
        _ inline: XMPPElement?
    ) -> (HashedTokenMechanism, HashedTokenMechanism.Kind)? {
        guard let token = self.token, let user = self.account.jid.local, let offered = self.offeredTokens(login, inline)
        else { return nil }
        if token.isExpired(now: self.options.wallClock()) {
            self.token = nil
            return nil
        }
        guard offered.contains(token.mechanism), let kind = HashedTokenMechanism.Kind(rawValue: token.mechanism),
            kind.isBound || !self.options.requiresChannelBinding,
            let mechanism = try? HashedTokenMechanism(
                kind,
                user: user,
                token: token.token,
                available: self.bindings(for: offered)
            )
        else { return nil }
        return (mechanism, kind)
    }

    private func newTokenKind(_ login: XMPPSASL2Options, _ inline: XMPPElement?) -> HashedTokenMechanism.Kind? {
        guard !self.invalidatesToken, let offered = self.offeredTokens(login, inline) else { return nil }
        return HashedTokenMechanism.Kind.best(
            of: offered,
            available: self.bindings(for: offered),
            requiresBinding: self.options.requiresChannelBinding
        )
    }

    /// The server's mechanisms for tokens; `nil` where tokens are not to be used.
    ///
    /// A token is an account's own: it does not let act for another, and needs the name of its client (XEP-0484 §4.1).
    private func offeredTokens(_ login: XMPPSASL2Options, _ inline: XMPPElement?) -> [String]? {
        guard login.usesTokens, login.userAgent?.id != nil, self.account.jid.local != nil,
            self.account.authorizationIdentity == nil, let offer = inline?.child("fast", XMPPNamespace.fast)
        else { return nil }
        return Self.mechanisms(of: offer, XMPPNamespace.fast)
    }

    /// The bindings of the connection; to find them costs.
    private func bindings(for offered: [String]) -> [SASLChannelBinding] {
        guard self.facts.contains(.secure), offered.contains(HashedTokenMechanism.Kind.endPoint.rawValue) else {
            return []
        }
        return self.negotiation?.channelBindings?() ?? []
    }

    private mutating func keepToken(_ success: XMPPElement, _ requests: XMPPInlineRequests) {
        if requests.token != nil, requests.invalidates { self.token = nil }
        // XEP-0484 §3.6: an invalidated token gets no successor unasked.
        let kind = requests.newToken ?? (requests.invalidates ? nil : requests.token)
        if let kind, let given = success.child("token", XMPPNamespace.fast),
            let text = Self.short(given["token"], XMPPFastToken.sizeLimit), !text.isEmpty
        {
            let expiry = Self.short(given["expiry"], XMPPFastToken.expiryLimit)
            self.token = XMPPFastToken(mechanism: kind.rawValue, token: text, expiry: expiry)
        }
        if self.token == nil { self.loginMemory = nil }
    }

    // MARK: Answers

    mutating func receivedAboutSASL2(
        _ element: XMPPElement,
        _ requests: XMPPInlineRequests,
        now: NIODeadline,
        into out: inout ByteBuffer
    ) -> Action {
        guard element.namespace == Self.namespace, let negotiation = self.negotiation,
            var mechanism = negotiation.mechanism
        else { return self.unexpected(element, into: &out) }
        switch element.name {
        case "challenge":
            do throws(SASLError) {
                // §2.5: without whitespace, which the examples have.
                guard let challenge = Base64.decode(element.text.trimmed.utf8) else {
                    throw .malformed("a challenge is not base64")
                }
                let response = try mechanism.respond(to: challenge)
                negotiation.mechanism = mechanism
                self.append(
                    XMPPElement("response", namespace: Self.namespace, text: Base64.encode(response)),
                    into: &out
                )
                return .none
            } catch {
                self.append(XMPPElement("abort", namespace: Self.namespace), into: &out)
                return self.end(.serverNotAuthentic(error), into: &out)
            }
        case "success":
            do throws(SASLError) {
                let text = element.child("additional-data", Self.namespace)?.text
                let data = text.map { Base64.decode($0.trimmed.utf8) }
                if case .some(.none) = data { throw .malformed("its success is not base64") }
                try mechanism.finish(data ?? nil)
            } catch {
                return self.end(.serverNotAuthentic(error), into: &out)
            }
            negotiation.mechanism = nil
            negotiation.inline = nil
            negotiation.features = nil
            self.facts.insert(.authenticated)
            self.keepToken(element, requests)
            return self.succeeded(element, requests, now: now, into: &out)
        case "failure": return self.refused(XMPPAuthenticationFailure(element), requests, now: now, into: &out)
        case "continue":
            let tasks = (element.child("tasks", Self.namespace)?.elements ?? [])
                .filter { $0.isNamed("task", Self.namespace) }.map(\.text)
            self.append(XMPPElement("abort", namespace: Self.namespace), into: &out)
            return self.end(.tasksRequired(tasks), into: &out)
        default: return self.unexpected(element, into: &out)
        }
    }

    private mutating func refused(
        _ failure: XMPPAuthenticationFailure,
        _ requests: XMPPInlineRequests,
        now: NIODeadline,
        into out: inout ByteBuffer
    ) -> Action {
        guard let negotiation = self.negotiation, case .sasl2(let login) = self.options.login else { return .none }
        if requests.token != nil, failure.condition != .temporaryAuthFailure {
            // XEP-0484 §4.1: the token is discarded, and another mechanism follows.
            self.token = nil
            negotiation.tokenFailure = failure
        } else if failure.condition == .invalidMechanism || failure.condition == .mechanismTooWeak,
            let name = negotiation.mechanism?.name
        {
            // A server that turns down what it offers keeps its view of this stream: the next stream has no token.
            if let first = negotiation.tokenFailure { return self.end(.tokenRefused(first), into: &out) }
            negotiation.refusedMechanisms.insert(name)
        } else {
            return self.end(.notAuthenticated(failure), into: &out)
        }
        negotiation.mechanism = nil
        negotiation.failure = failure
        return self.authenticate(login, now: now, into: &out)
    }

    // MARK: Success

    /// §2.6.1: no new stream follows, and features do, except after a resumption (XEP-0198 §9.2).
    private mutating func succeeded(
        _ success: XMPPElement,
        _ requests: XMPPInlineRequests,
        now: NIODeadline,
        into out: inout ByteBuffer
    ) -> Action {
        let bound = success.child("bound", XMPPNamespace.bind2)
        if bound != nil, !requests.binds {
            return self.violated("it bound a resource unasked", .undefinedCondition, into: &out)
        }
        if let resumed = success.child("resumed", XMPPNamespace.streamManagement) {
            guard requests.resumes, bound == nil, let management = self.management else {
                return self.violated("it resumed a stream unasked", .undefinedCondition, into: &out)
            }
            return self.resumed(management, by: resumed, now: now, into: &out)
        }
        if requests.resumes {
            let failed = success.child("failed", XMPPNamespace.streamManagement)
            // Without an answer, and without a resource, the ordinary resumption is still possible.
            if failed != nil || bound != nil { self.loseSession(acknowledged: failed?["h"].flatMap { UInt32($0) }) }
        }
        if let bound {
            let text = success.child("authorization-identifier", Self.namespace)?.text ?? ""
            guard let jid = try? JID(received: String(text.trimmed)), jid.resource != nil else {
                return self.end(.bindUnreadable, into: &out)
            }
            self.jid = jid
            self.facts.formUnion([.bound, .session])
            self.negotiation?.enabled = requests.features
            if requests.enables { self.enabledInline(bound) }
        }
        self.state = .opening
        self.enter(.stream, now: now)
        return .none
    }

    /// Counts from here on: no stanza can have come or gone before.
    private mutating func enabledInline(_ bound: XMPPElement) {
        if let enabled = bound.child("enabled", XMPPNamespace.streamManagement) {
            let management = self.newManagement
            self.management = management
            self.enabled(management, by: enabled)
        } else if bound.child("failed", XMPPNamespace.streamManagement) != nil {
            // Refused: the client does not ask again.
            self.facts.insert(.managed)
        }
    }
}
