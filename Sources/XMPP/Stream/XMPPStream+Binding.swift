import NIOCore
import XMPPCodec

// Resource and session (RFC 6120 §7, RFC 3921 §3).
extension XMPPStream {
    /// The requested resource, an alternative, and then the server's choice.
    private static let bindingAttempts = 3

    mutating func beginBinding(now: NIODeadline, into out: inout ByteBuffer) -> Action? {
        guard self.offered("bind", XMPPNamespace.bind) != nil else {
            return self.end(.featureMissing("resource binding"), into: &out)
        }
        self.enter(.bind, now: now)
        self.negotiation?.resource = self.account.jid.resource
        return self.bind(into: &out)
    }

    private mutating func bind(into out: inout ByteBuffer) -> Action {
        self.state = .binding
        self.negotiation?.bindings += 1
        var bind = XMPPElement("bind", namespace: XMPPNamespace.bind)
        bind.add("resource", text: self.negotiation?.resource)
        self.ask("set", bind, into: &out)
        return .none
    }

    mutating func receivedAboutBinding(_ element: XMPPElement, now: NIODeadline, into out: inout ByteBuffer) -> Action {
        switch self.answer(in: element) {
        case .result(let answer):
            // §7.6: a full JID.
            guard let text = answer.child("bind", XMPPNamespace.bind)?.child("jid")?.text,
                let jid = try? JID(received: text),
                jid.resource != nil
            else { return self.end(.bindUnreadable, into: &out) }
            self.jid = jid
            self.facts.insert(.bound)
            self.negotiation?.awaitedID = ""
            return self.negotiate(now: now, into: &out)
        case .error(let error):
            guard let negotiation = self.negotiation, negotiation.bindings < Self.bindingAttempts,
                let resource = negotiation.resource
            else { return self.end(.bindRefused(error), into: &out) }
            switch error.condition {
            // §7.7.2.2: another session has the resource, and the server lets it keep the resource.
            case .conflict where negotiation.bindings == 1:
                negotiation.resource = "\(resource)-\(self.makeID().prefix(8))"
            case .conflict, .badRequest: negotiation.resource = nil
            // §7.6.2.1, §7.6.2.2: another resource changes nothing.
            default: return self.end(.bindRefused(error), into: &out)
            }
            return self.bind(into: &out)
        case .foreign: return .none
        case .unexpected:
            return element.name == "presence" || element.name == "message"
                ? .none : self.unexpected(element, into: &out)
        }
    }

    mutating func beginSession(into out: inout ByteBuffer) -> Action? {
        guard self.options.startsSession, let offer = self.offered("session", XMPPNamespace.session),
            offer.child("optional") == nil
        else { return nil }
        self.state = .startSession
        self.ask("set", XMPPElement("session", namespace: XMPPNamespace.session), into: &out)
        return Action.none
    }

    mutating func receivedAboutSession(_ element: XMPPElement, now: NIODeadline, into out: inout ByteBuffer) -> Action {
        switch self.answer(in: element) {
        case .result:
            self.facts.insert(.session)
            self.negotiation?.awaitedID = ""
            return self.negotiate(now: now, into: &out)
        case .error(let error): return self.end(.sessionRefused(error), into: &out)
        case .foreign: return .none
        case .unexpected: return self.unexpected(element, into: &out)
        }
    }

    // MARK: - An account is made before it is used (XEP-0077 §3.1)

    mutating func beginRegistration(now: NIODeadline, into out: inout ByteBuffer) -> Action? {
        guard self.options.registration != .none else { return nil }
        self.enter(.register, now: now)
        self.state = .registering
        // Servers need not announce registration, so the client asks.
        self.ask("get", XMPPElement("query", namespace: XMPPNamespace.register), into: &out)
        return Action.none
    }

    mutating func receivedAboutRegistration(
        _ element: XMPPElement,
        now: NIODeadline,
        into out: inout ByteBuffer
    ) -> Action {
        switch self.answer(in: element) {
        case .result(let answer):
            if self.hasAskedForAccount { return self.finishRegistration(now: now, into: &out) }
            guard let query = answer.child("query", XMPPNamespace.register), !query.elements.isEmpty else {
                // A registration without any required field creates no account.
                if self.options.registration == .only { return self.end(.registrationImpossible(.nothing), into: &out) }
                return self.finishRegistration(now: now, into: &out)
            }
            return self.submit(query, now: now, into: &out)
        case .error(let error):
            if error.condition == .conflict, self.options.registration == .createIfMissing {
                return self.finishRegistration(now: now, into: &out)
            }
            return self.end(.registrationRefused(error), into: &out)
        case .foreign: return .none
        case .unexpected: return self.unexpected(element, into: &out)
        }
    }

    private mutating func finishRegistration(now: NIODeadline, into out: inout ByteBuffer) -> Action {
        self.facts.insert(.registered)
        self.negotiation?.awaitedID = ""
        guard self.options.registration == .only else { return self.negotiate(now: now, into: &out) }
        self.enter(nil, now: now)
        self.state = .negotiating
        let (phases, sent) = (self.phases, self.negotiation?.formSent ?? now)
        self.negotiation = nil
        return .registered(phases, answer: now - sent)
    }

    /// Whether a secret may be sent as it is: inside TLS, or where TLS is switched off, or if it is allowed explicitly.
    var mayExposeSecrets: Bool {
        self.facts.contains(.secure) || self.options.tlsPolicy == .off || self.options.allowsPlainWithoutTLS
    }

    /// Whether the registration was sent and not refused, until the end of the stream is known.
    package var hasAskedForAccount: Bool { self.negotiation?.registersByForm ?? false }

    /// Fills in the registration: the server's form if it sends one, else its fields (§4).
    private mutating func submit(_ query: XMPPElement, now: NIODeadline, into out: inout ByteBuffer) -> Action {
        if query.child("registered") != nil {
            guard self.options.registration == .only else { return self.finishRegistration(now: now, into: &out) }
            return self.end(.registrationRefused(StanzaError(.conflict)), into: &out)
        }
        // Registration sends the password in clear.
        guard self.mayExposeSecrets else { return self.end(.passwordInClear, into: &out) }
        do throws(XMPPRegistrationProblem) {
            let filled = try XMPPRegistrationForm.fill(
                query,
                user: self.account.jid.local ?? "",
                password: self.account.password,
                fields: self.options.registrationFields
            )
            self.negotiation?.registersByForm = true
            self.negotiation?.formSent = now
            self.ask("set", filled, into: &out)
            return .none
        } catch {
            return self.end(.registrationImpossible(error), into: &out)
        }
    }
}

/// Why a registration form cannot be filled in.
package enum XMPPRegistrationProblem: Error, Hashable, Sendable, CustomStringConvertible {
    /// A required field that this client has no value for.
    case field(String)
    /// It is done on a page elsewhere (§5).
    case elsewhere(String)
    /// The server requires no field at all.
    case nothing

    package var description: String {
        switch self {
        case .field(let name): "it requires '\(name)', for which there is no value here"
        case .elsewhere(let place): "it is done at \(place)"
        case .nothing: "it has no fields"
        }
    }
}

/// The fields that a server requires for a registration.
enum XMPPRegistrationForm {
    static func fill(
        _ query: XMPPElement,
        user: String,
        password: String,
        fields: [String: String]
    ) throws(XMPPRegistrationProblem) -> XMPPElement {
        var answers = ["username": user, "password": password, "email": "\(user)@invalid"]
        answers.merge(fields) { $1 }
        var filled = XMPPElement("query", namespace: XMPPNamespace.register)
        if let form = query.child("x", XMPPNamespace.dataForms).flatMap({ XMPPDataForm($0) }) {
            filled.add(try self.fill(form, answers))
            return filled
        }
        let wanted = query.elements.filter { $0.namespace == XMPPNamespace.register && $0.name != "instructions" }
        if wanted.isEmpty, let place = query.child("x", XMPPNamespace.outOfBand)?.child("url")?.text {
            throw .elsewhere(place)
        }
        for field in wanted {
            guard let answer = answers[field.name] else { throw .field(field.name) }
            filled.add(field.name, text: answer)
        }
        return filled
    }

    private static func fill(
        _ form: XMPPDataForm,
        _ answers: [String: String]
    ) throws(XMPPRegistrationProblem) -> XMPPElement {
        var filled = XMPPDataForm(.submit)
        for field in form.fields {
            guard let name = field.name else { continue }
            // Values that the server filled in are returned unchanged (XEP-0004 §3.3).
            let values = answers[name].map { [$0] } ?? field.values
            if !values.isEmpty {
                filled.fields.append(XMPPDataForm.Field(name, values))
            } else if field.isRequired {
                throw .field(name)
            }
        }
        return filled.element
    }
}
