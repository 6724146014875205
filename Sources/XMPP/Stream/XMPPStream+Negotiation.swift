package import NIOCore
import XMPPCodec

// The loop over the features.
extension XMPPStream {
    /// Starts the next step, or completes the negotiation.
    mutating func negotiate(now: NIODeadline, into out: inout ByteBuffer) -> Action {
        if self.options.peerRole != nil { return self.becomeReady(now: now) }
        self.state = .negotiating
        for step in XMPPStep.allCases {
            guard step.needs.isSubset(of: self.facts), step == .custom || self.facts.isDisjoint(with: step.gives)
            else { continue }
            // After SASL, TLS and registration no longer apply.
            if self.facts.contains(.authenticated), step == .tls || step == .register { continue }
            if let action = self.begin(step, now: now, into: &out) { return action }
        }
        if let feature = self.unknownRequiredFeature { return self.end(.featureRequired(feature), into: &out) }
        return self.becomeReady(now: now)
    }

    /// - Returns: `nil` for a step that is not to be taken here.
    private mutating func begin(_ step: XMPPStep, now: NIODeadline, into out: inout ByteBuffer) -> Action? {
        switch step {
        case .tls: self.beginTLS(now: now, into: &out)
        case .custom: self.beginCustom(into: &out)
        case .register: self.beginRegistration(now: now, into: &out)
        case .sasl: self.beginAuthentication(now: now, into: &out)
        case .resume: self.beginResumption(now: now, into: &out)
        case .bind: self.beginBinding(now: now, into: &out)
        case .session: self.beginSession(into: &out)
        case .enable: self.beginManagement(into: &out)
        }
    }

    mutating func receivedWhileNegotiating(
        _ element: XMPPElement,
        now: NIODeadline,
        into out: inout ByteBuffer
    ) -> Action {
        switch self.state {
        case .opening:
            // A WebSocket has no root that they could not come before.
            guard self.negotiation?.hasHeader ?? false, element.name == "features",
                element.namespace == XMPPNamespace.stream
            else {
                return self.unexpected(element, into: &out)
            }
            self.negotiation?.features = element
            let offers = XMPPStreamOffers(features: element).intersection(.beforeLogin)
            self.negotiation?.offers.formUnion(offers)
            return self.negotiate(now: now, into: &out)
        case .startTLS1: return self.receivedAboutTLS(element, into: &out)
        case .registering: return self.receivedAboutRegistration(element, now: now, into: &out)
        case .auth where self.options.isComponent:
            return self.receivedAboutHandshake(element, now: now, into: &out)
        case .auth: return self.receivedAboutAuthentication(element, now: now, into: &out)
        case .binding: return self.receivedAboutBinding(element, now: now, into: &out)
        case .startSession: return self.receivedAboutSession(element, now: now, into: &out)
        case .managing: return self.receivedAboutManagement(element, now: now, into: &out)
        case .negotiating where self.negotiation?.current != nil:
            return self.receivedAboutCustom(element, now: now, into: &out)
        default: return self.unexpected(element, into: &out)
        }
    }

    mutating func becomeReady(now: NIODeadline) -> Action {
        self.enter(nil, now: now)
        self.state = .connected
        self.redirects = 0
        if !self.facts.contains(.resumed) { self.isPresent = false }
        self.keepAlive.begin(self.options.framing == .stream ? self.options.keepAlive : .zero, now: now)
        let negotiation = self.negotiation
        self.negotiation = nil
        let (offers, enabled) = self.keepFacts(of: negotiation)
        return .ready(
            XMPPReadiness(
                resumed: self.facts.contains(.resumed),
                acknowledged: negotiation?.acknowledged ?? 0,
                lost: negotiation?.lost ?? 0,
                phases: negotiation?.phases ?? XMPPPhases(),
                offers: offers,
                enabled: enabled
            )
        )
    }

    /// The facts about the session, which later streams may resume.
    private func keepFacts(of negotiation: XMPPNegotiation?) -> (XMPPStreamOffers, XMPPInlineFeatures) {
        let isResumed = self.facts.contains(.resumed)
        var offers = negotiation?.features.map { XMPPStreamOffers(features: $0) }
        if isResumed { offers = offers ?? self.management?.offers }
        let all = (offers ?? []).union(negotiation?.offers ?? [])
        // XEP-0352 §5.2: inactivity is not restored.
        let enabled = isResumed ? self.management?.enabled.subtracting(.inactive) : negotiation?.enabled
        self.management?.offers = all
        self.management?.enabled = enabled ?? []
        return (all, enabled ?? [])
    }

    // MARK: TLS

    private mutating func beginTLS(now: NIODeadline, into out: inout ByteBuffer) -> Action? {
        let offer = self.offered("starttls", XMPPNamespace.tls)
        let isRequired = offer?.child("required") != nil
        // RFC 7395 §3.9: a WebSocket has its TLS below.
        let canStart = offer != nil && self.options.framing == .stream
        switch self.options.tlsPolicy {
        case .off: return isRequired ? self.end(.tlsRequired, into: &out) : nil
        case .allowed: if !isRequired { return nil }
        case .preferred: if !canStart { return nil }
        case .required, .direct: if !canStart { return self.end(.tlsNotOffered, into: &out) }
        }
        guard canStart else { return self.end(.tlsRequired, into: &out) }
        self.enter(.tls, now: now)
        self.state = .startTLS1
        self.append(XMPPElement("starttls", namespace: XMPPNamespace.tls), into: &out)
        return Action.none
    }

    private mutating func receivedAboutTLS(_ element: XMPPElement, into out: inout ByteBuffer) -> Action {
        guard element.namespace == XMPPNamespace.tls else { return self.unexpected(element, into: &out) }
        switch element.name {
        case "proceed":
            self.state = .startTLS2
            return .startTLS
        case "failure": return self.end(.tlsRefused, into: &out)
        default: return self.unexpected(element, into: &out)
        }
    }

    /// The handshake is done: earlier features no longer apply (§5.4.3.3).
    package mutating func tlsReady(now: NIODeadline, into out: inout ByteBuffer) {
        self.facts = .secure
        self.open(now: now, into: &out)
    }

    // MARK: Features from elsewhere

    private mutating func beginCustom(into out: inout ByteBuffer) -> Action? {
        guard let negotiation = self.negotiation else { return nil }
        for (index, feature) in self.options.features.enumerated() {
            guard !negotiation.negotiated.contains(index), feature.needs.isSubset(of: self.facts),
                let offer = self.offered(feature.name, feature.namespace),
                let element = feature.begin(offer, on: negotiation.streamID)
            else { continue }
            negotiation.current = index
            self.append(element, into: &out)
            return Action.none
        }
        return nil
    }

    private mutating func receivedAboutCustom(
        _ element: XMPPElement,
        now: NIODeadline,
        into out: inout ByteBuffer
    ) -> Action {
        guard let negotiation = self.negotiation, let index = negotiation.current else {
            return self.unexpected(element, into: &out)
        }
        switch self.options.features[index].received(element) {
        case .send(let answer):
            self.append(answer, into: &out)
            return .none
        case .done:
            negotiation.negotiated.insert(index)
            negotiation.current = nil
            return self.negotiate(now: now, into: &out)
        case .failed(let words): return self.end(.featureFailed(words), into: &out)
        }
    }

    // MARK: Help

    /// The offered feature of this name on the stream in its current state.
    func offered(_ name: String, _ namespace: String) -> XMPPElement? {
        self.negotiation?.features?.child(name, namespace)
    }

    /// A feature that the server requires and that this client does not know.
    private var unknownRequiredFeature: String? {
        let known = [
            XMPPNamespace.tls, XMPPNamespace.sasl, XMPPNamespace.bind, XMPPNamespace.session,
            XMPPNamespace.streamManagement,
        ]
        for feature in self.negotiation?.features?.elements ?? [] {
            guard feature.child("required", feature.namespace) != nil, !known.contains(feature.namespace) else {
                continue
            }
            if !self.options.features.contains(where: { $0.namespace == feature.namespace }) {
                return "\(feature.name) (\(feature.namespace))"
            }
        }
        return nil
    }

    /// Ends the phase that is on, and begins the next.
    mutating func enter(_ phase: XMPPPhase?, now: NIODeadline) {
        guard let negotiation = self.negotiation else { return }
        if let last = negotiation.phase { negotiation.phases.add(now - negotiation.phaseBegan, to: last) }
        negotiation.phase = phase
        negotiation.phaseBegan = now
    }

    mutating func unexpected(_ element: XMPPElement, into out: inout ByteBuffer) -> Action {
        self.end(.unexpected("<\(element.name) xmlns='\(element.namespace)'>", in: self.state), into: &out)
    }

    /// Whether it is the answer that the negotiation waits for.
    func isAwaited(_ element: XMPPElement) -> Bool {
        guard element.name == "iq", let negotiation = self.negotiation, !negotiation.awaitedID.isEmpty else {
            return false
        }
        return element["id"] == negotiation.awaitedID
    }

    /// Appends an IQ of type set or get, and awaits its answer.
    mutating func ask(_ type: String, _ payload: XMPPElement, to: String? = nil, into out: inout ByteBuffer) {
        let id = self.makeID()
        self.negotiation?.awaitedID = id
        let iq = XMPPElement(
            "iq",
            namespace: XMPPNamespace.client,
            attributes: ["type": type, "id": id, "to": to],
            children: [.element(payload)]
        )
        self.append(iq, into: &out)
    }

    /// The result of an IQ that arrives while an answer is awaited.
    func answer(in element: XMPPElement) -> NegotiationAnswer {
        guard element.namespace == XMPPNamespace.client, element.name == "iq" else { return .unexpected }
        guard self.isAwaited(element), self.isFromServer(element["from"]) else { return .foreign }
        switch element["type"] {
        case "result": return .result(element)
        case "error": return .error(StanzaError(element) ?? StanzaError(.undefinedCondition))
        default: return .foreign
        }
    }

    /// Only the server itself may answer here (§8.1.2.1).
    private func isFromServer(_ from: String?) -> Bool {
        guard let from else { return true }
        guard let sender = try? JID(received: from) else { return false }
        // A server may use the JID it is about to bind.
        return sender == self.domainJID || sender.bare == self.account.jid.bare || sender.bare == self.jid?.bare
    }
}
