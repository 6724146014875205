import NIOCore
import XMPPCodec

// An account is made before it is used (XEP-0077 §3.1).
extension XMPPStream {
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

    /// Whether the registration was sent and not refused, until the end of the stream is known.
    package var hasAskedForAccount: Bool { self.negotiation?.registersByForm ?? false }

    /// Fills in the registration: the server's form if it sends one, else its fields (§4).
    private mutating func submit(
        _ query: XMPPElement,
        now: NIODeadline,
        into out: inout ByteBuffer
    ) -> Action {
        if query.child("registered") != nil {
            guard self.options.registration == .only else { return self.finishRegistration(now: now, into: &out) }
            return self.end(.registrationRefused(StanzaError(.conflict)), into: &out)
        }
        // Registration sends the password in clear: this needs TLS, or TLS switched off, or explicit permission.
        guard self.facts.contains(.secure) || self.options.tlsPolicy == .off || self.options.allowsPlainWithoutTLS
        else { return self.end(.passwordInClear, into: &out) }
        do throws(XMPPRegistrationProblem) {
            let filled = try XMPPRegistrationForm.fill(
                query,
                user: self.account.jid.local ?? "",
                password: self.account.password
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
    private static let data = XMPPNamespace.dataForms

    static func fill(
        _ query: XMPPElement,
        user: String,
        password: String
    ) throws(XMPPRegistrationProblem) -> XMPPElement {
        let answers = ["username": user, "password": password, "email": "\(user)@invalid"]
        var filled = XMPPElement("query", namespace: XMPPNamespace.register)
        if let form = query.child("x", Self.data) {
            filled.add(try self.fill(form, answers))
            return filled
        }
        let wanted = query.elements.filter { $0.namespace == XMPPNamespace.register && $0.name != "instructions" }
        if wanted.isEmpty, let place = query.child("x", XMPPNamespace.outOfBand)?.child("url")?.text {
            throw .elsewhere(place)
        }
        for field in wanted {
            guard let answer = answers[field.name] else { throw .field(field.name) }
            var element = XMPPElement(field.name, namespace: XMPPNamespace.register)
            element.add(text: answer)
            filled.add(element)
        }
        return filled
    }

    private static func fill(
        _ form: XMPPElement,
        _ answers: [String: String]
    ) throws(XMPPRegistrationProblem) -> XMPPElement {
        var filled = XMPPElement("x", namespace: Self.data, attributes: ["type": "submit"])
        for field in form.elements where field.name == "field" {
            guard let name = field["var"] else { continue }
            // Values that the server filled in are returned unchanged (XEP-0004 §3.3).
            let given = field.child("value")?.text
            guard let answer = answers[name] ?? given else {
                if field.child("required") != nil { throw .field(name) }
                continue
            }
            var value = XMPPElement("value", namespace: Self.data)
            value.add(text: answer)
            var answered = XMPPElement("field", namespace: Self.data, attributes: ["var": name])
            answered.add(value)
            filled.add(answered)
        }
        return filled
    }
}
