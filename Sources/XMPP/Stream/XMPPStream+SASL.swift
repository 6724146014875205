import DataEncodings
import NIOCore
package import SASL
import XMPPCodec

// Authentication (RFC 6120 §6).
extension XMPPStream {
    mutating func beginAuthentication(now: NIODeadline, into out: inout ByteBuffer) -> Action? {
        if let action = self.beginSASL2(now: now, into: &out) { return action }
        let offered = (self.offered("mechanisms", XMPPNamespace.sasl)?.elements ?? [])
            .filter { $0.name == "mechanism" }.map(\.text)
        if offered.isEmpty, self.options.allowsLegacyAuthentication,
            self.offered("auth", XMPPNamespace.authFeature) != nil
        {
            return self.beginLegacyAuthentication(now: now, into: &out)
        }
        self.enter(.sasl, now: now)
        return self.authenticate(offered, into: &out)
    }

    /// Tries the best mechanism that both sides know and the server has not turned down.
    private mutating func authenticate(_ offered: [String], into out: inout ByteBuffer) -> Action {
        guard let negotiation = self.negotiation else { return .none }
        do throws(SASLChoiceError) {
            let mechanism = try self.choose(offered, isSASL2: false)
            return self.begin(mechanism, into: &out)
        } catch {
            // If an earlier attempt was rejected, its reason is reported.
            if let failure = negotiation.failure { return self.end(.notAuthenticated(failure), into: &out) }
            return self.end(.noMechanism(error), into: &out)
        }
    }

    private mutating func begin(_ mechanism: any SASLMechanism, into out: inout ByteBuffer) -> Action {
        var mechanism = mechanism
        do throws(SASLError) {
            let first = try mechanism.begin()
            self.negotiation?.mechanism = mechanism
            self.state = .auth
            self.append(self.sasl("auth", first, mechanism: mechanism.name), into: &out)
            return .none
        } catch {
            return self.end(.serverNotAuthentic(error), into: &out)
        }
    }

    func choose(_ offered: [String], isSASL2: Bool) throws(SASLChoiceError) -> any SASLMechanism {
        let (options, account, negotiation) = (self.options, self.account, self.negotiation)
        let refused = negotiation?.refusedMechanisms ?? []
        var choice = SASLMechanismChoice()
        choice.allowsPlainWithoutTLS = options.allowsPlainWithoutTLS
        choice.allowsDigestMD5 = options.allowsDigestMD5
        choice.requiresChannelBinding = options.requiresChannelBinding
        choice.requiresBindingTypes = isSASL2
        choice.isAnonymous = account.jid.local == nil && !options.hasClientCertificate
        choice.iterations = options.iterations
        if let wanted = options.mechanisms {
            // If no wanted mechanism is offered, the first wanted one is reported as missing.
            choice.forced = wanted.first { offered.contains($0) && !refused.contains($0) } ?? wanted.first
            if let forced = choice.forced, refused.contains(forced) { throw .noneShared(offered: offered) }
        }
        let isSecure = self.facts.contains(.secure)
        let types = self.offered("sasl-channel-binding", XMPPNamespace.channelBinding)?.elements
            .compactMap { $0["type"] }
        // Only SCRAM can make use of it, and to find it costs.
        let mayBind = isSecure && offered.contains { $0.hasPrefix("SCRAM-") }
        return try choice.choose(
            from: SASLMechanismChoice.Offer(
                offered,
                bindings: types,
                isSecure: isSecure,
                available: mayBind ? negotiation?.channelBindings?() ?? [] : []
            ),
            for: SASLMechanismChoice.Credentials(
                user: account.jid.local ?? "",
                password: account.password.isEmpty ? nil : account.password,
                domain: account.jid.domain,
                authorizationIdentity: account.authorizationIdentity ?? "",
                hasCertificate: options.hasClientCertificate
            ),
            without: refused,
            cache: options.keyCache,
            nonce: options.nonce
        )
    }

    /// Sets the source of channel binding data, called when a mechanism could use it.
    package mutating func setChannelBindings(_ bindings: @escaping () -> [SASLChannelBinding]) {
        self.negotiation?.channelBindings = bindings
    }

    /// §6.4.2: `=` is data of no bytes, an empty element is no data.
    private func sasl(_ name: String, _ data: [UInt8]?, mechanism: String? = nil) -> XMPPElement {
        var element = XMPPElement(name, namespace: XMPPNamespace.sasl, attributes: ["mechanism": mechanism])
        if let data {
            // An empty response is an empty element; only an initial response needs `=` to distinguish it from none.
            let text = data.isEmpty ? (mechanism == nil ? "" : "=") : Base64.encode(data)
            if !text.isEmpty { element.add(text: text) }
        }
        return element
    }

    /// `nil` for text that is not base64 (§6.5: incorrect-encoding).
    private func data(in element: XMPPElement) -> [UInt8]? {
        let text = element.text
        return text == "=" || text.isEmpty ? [] : Base64.decode(text.utf8)
    }

    mutating func receivedAboutAuthentication(
        _ element: XMPPElement,
        now: NIODeadline,
        into out: inout ByteBuffer
    ) -> Action {
        guard let negotiation = self.negotiation else { return .none }
        if let inline = negotiation.inline { return self.receivedAboutSASL2(element, inline, now: now, into: &out) }
        guard element.namespace == XMPPNamespace.sasl, var mechanism = negotiation.mechanism else {
            if negotiation.mechanism == nil { return self.receivedAboutLegacy(element, now: now, into: &out) }
            return self.unexpected(element, into: &out)
        }
        switch element.name {
        case "challenge":
            do throws(SASLError) {
                guard let challenge = self.data(in: element) else { throw .malformed("a challenge is not base64") }
                let response = try mechanism.respond(to: challenge)
                negotiation.mechanism = mechanism
                self.append(self.sasl("response", response), into: &out)
                return .none
            } catch {
                self.append(self.sasl("abort", nil), into: &out)
                return self.end(.serverNotAuthentic(error), into: &out)
            }
        case "success":
            do throws(SASLError) {
                guard let data = self.data(in: element) else { throw .malformed("its success is not base64") }
                try mechanism.finish(element.text.isEmpty ? nil : data)
            } catch {
                // §6.4.6: after <success/> no closing tag is sent over the old stream.
                self.state = .disconnected
                return .end(.serverNotAuthentic(error))
            }
            negotiation.mechanism = nil
            self.facts.insert(.authenticated)
            self.state = .postNegotiation
            // §6.4.6: a new stream, independent of the old one.
            self.open(now: now, into: &out)
            return .restart
        case "failure": return self.authenticationFailed(element, into: &out)
        default: return self.unexpected(element, into: &out)
        }
    }

    private mutating func authenticationFailed(_ element: XMPPElement, into out: inout ByteBuffer) -> Action {
        let failure = XMPPAuthenticationFailure(element)
        guard let negotiation = self.negotiation else { return .none }
        // Other conditions concern the client, and another mechanism would not help.
        if failure.condition == .invalidMechanism || failure.condition == .mechanismTooWeak,
            let name = negotiation.mechanism?.name
        {
            negotiation.refusedMechanisms.insert(name)
            negotiation.mechanism = nil
            negotiation.failure = failure
            let offered = (self.offered("mechanisms", XMPPNamespace.sasl)?.elements ?? []).map(\.text)
            return self.authenticate(offered, into: &out)
        }
        return self.end(.notAuthenticated(failure), into: &out)
    }
}

/// The reason why a server rejected a login (RFC 6120 §6.5).
package struct XMPPAuthenticationFailure: Hashable, Sendable {
    package enum Condition: String, Hashable, Sendable, CaseIterable {
        case aborted
        case accountDisabled = "account-disabled"
        case credentialsExpired = "credentials-expired"
        case encryptionRequired = "encryption-required"
        case incorrectEncoding = "incorrect-encoding"
        case invalidAuthzid = "invalid-authzid"
        case invalidMechanism = "invalid-mechanism"
        case malformedRequest = "malformed-request"
        case mechanismTooWeak = "mechanism-too-weak"
        case notAuthorized = "not-authorized"
        case temporaryAuthFailure = "temporary-auth-failure"
    }

    package let condition: Condition
    package let text: String?

    package init(_ condition: Condition, text: String? = nil) {
        self.condition = condition
        self.text = text
    }

    /// An unknown condition counts as not-authorized (§6.5).
    init(_ failure: XMPPElement) {
        // Of SASL2 the conditions are in the namespace of RFC 6120 too, and other elements may be beside them.
        let conditions = failure.elements.lazy.filter {
            $0.namespace == XMPPNamespace.sasl || $0.namespace == failure.namespace
        }
        self.condition = conditions.compactMap { Condition(rawValue: $0.name) }.first ?? .notAuthorized
        self.text = failure.child("text", failure.namespace)?.text
    }
}
