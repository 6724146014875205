/// Why a stanza was not processed (RFC 6120 §8.3.3).
public enum StanzaErrorCondition: String, Hashable, Sendable, CaseIterable {
    /// Malformed.
    case badRequest = "bad-request"
    /// The name is taken.
    case conflict
    /// The namespace is known, but the feature is not implemented.
    case featureNotImplemented = "feature-not-implemented"
    /// This sender is not allowed to do it.
    case forbidden
    /// The entity has moved or is gone; the text of the condition may name the new address.
    case gone
    /// The server is at fault.
    case internalServerError = "internal-server-error"
    /// No entity or item has this name.
    case itemNotFound = "item-not-found"
    /// The address is invalid.
    case jidMalformed = "jid-malformed"
    /// The stanza breaks the recipient's or the server's rules.
    case notAcceptable = "not-acceptable"
    /// No entity may do this.
    case notAllowed = "not-allowed"
    /// Credentials are required first.
    case notAuthorized = "not-authorized"
    /// A local rule was broken.
    case policyViolation = "policy-violation"
    /// The recipient is away.
    case recipientUnavailable = "recipient-unavailable"
    /// Another address is in use temporarily; the text of the condition names it.
    case redirect
    /// One has to be registered.
    case registrationRequired = "registration-required"
    /// No such server.
    case remoteServerNotFound = "remote-server-not-found"
    /// A server that does not answer.
    case remoteServerTimeout = "remote-server-timeout"
    /// The server is too busy.
    case resourceConstraint = "resource-constraint"
    /// The service does not exist.
    case serviceUnavailable = "service-unavailable"
    /// One has to be subscribed.
    case subscriptionRequired = "subscription-required"
    /// None of the others, or an unknown condition.
    case undefinedCondition = "undefined-condition"
    /// The request does not fit at this point.
    case unexpectedRequest = "unexpected-request"

    /// The type that RFC 6120 §8.3.3 gives it.
    public var usualType: StanzaError.ErrorType {
        switch self {
        case .badRequest, .jidMalformed, .notAcceptable, .policyViolation, .redirect: .modify
        case .forbidden, .notAuthorized, .registrationRequired, .subscriptionRequired: .auth
        case .recipientUnavailable, .remoteServerTimeout, .resourceConstraint, .unexpectedRequest: .wait
        default: .cancel
        }
    }
}

/// `<error/>` in a stanza of type `error`.
///
/// Spec: RFC 6120 §8.3.
public struct StanzaError: Error, Hashable, Sendable {
    /// The action open to the sender (RFC 6120 §8.3.2).
    public enum ErrorType: String, Hashable, Sendable, CaseIterable {
        /// Give credentials and try again.
        case auth
        /// Do not try again.
        case cancel
        /// Proceed: the error was a warning.
        case `continue`
        /// Change what was sent and try again.
        case modify
        /// Wait and try again.
        case wait
    }

    /// The action open to the sender.
    public var type: ErrorType
    /// Why.
    public var condition: StanzaErrorCondition
    /// The text for people.
    public var text: String?
    /// The language of the text.
    public var language: String?
    /// The entity that reports the error, if it is not the addressee of the stanza.
    public var by: String?
    /// The new address, with `gone` and `redirect`.
    public var address: String?
    /// An application's own condition.
    public var application: XMPPElement?

    /// A stanza error; of the condition's usual type if none is given.
    public init(
        _ condition: StanzaErrorCondition,
        type: ErrorType? = nil,
        text: String? = nil,
        language: String? = nil,
        by: String? = nil,
        address: String? = nil,
        application: XMPPElement? = nil
    ) {
        self.type = type ?? condition.usualType
        self.condition = condition
        self.text = text
        self.language = language
        self.by = by
        self.address = address
        self.application = application
    }

    /// Reads a stanza of type `error`, or the `<error/>` in it; `nil` for everything else.
    ///
    /// Unknown conditions and types are taken for `undefined-condition` and `cancel`; a stanza of type `error` without an
    /// `<error/>` too, for it is an error all the same.
    public init?(_ element: XMPPElement) {
        guard element.name == "error" || element["type"] == "error" else { return nil }
        self.init(.undefinedCondition, type: .cancel)
        guard let error = element.name == "error" ? element : element.child("error", element.namespace) else { return }
        self.by = error["by"]
        var isKnown = false
        for child in error.elements {
            if child.namespace != XMPPNamespace.stanzas {
                self.application = self.application ?? child
            } else if child.name == "text" {
                self.text = child.text
                self.language = child.language
            } else if let condition = StanzaErrorCondition(rawValue: child.name), !isKnown {
                isKnown = true
                self.condition = condition
                if !child.text.isEmpty { self.address = child.text }
            }
        }
        self.type = error["type"].flatMap(ErrorType.init) ?? (isKnown ? self.condition.usualType : .cancel)
    }

    /// `<error/>` as a child of a stanza of `namespace`.
    public func element(in namespace: String = XMPPNamespace.client) -> XMPPElement {
        var error = XMPPElement("error", namespace: namespace, attributes: ["type": self.type.rawValue, "by": self.by])
        error.add(XMPPElement(self.condition.rawValue, namespace: XMPPNamespace.stanzas, text: self.address ?? ""))
        if let text = self.text {
            var child = XMPPElement("text", namespace: XMPPNamespace.stanzas, text: text)
            child.language = self.language
            error.add(child)
        }
        if let application = self.application { error.add(application) }
        return error
    }

    /// The error reply to `stanza`: swapped addresses, the same id.
    ///
    /// - Returns: `nil` for a stanza that is an error itself, or the result of a request: these are never answered (RFC
    ///   6120 §8.3.1).
    public func reply(to stanza: XMPPElement, withContents: Bool = false) -> XMPPElement? {
        let type = stanza["type"]
        if type == "error" || stanza.name == "iq" && type == "result" { return nil }
        var reply = XMPPElement(
            stanza.name,
            namespace: stanza.namespace,
            attributes: ["from": stanza["to"], "to": stanza["from"], "id": stanza["id"], "type": "error"],
            children: withContents ? stanza.children : []
        )
        reply.add(self.element(in: stanza.namespace))
        return reply
    }
}

extension StanzaError: CustomStringConvertible {
    /// The condition, its type, and the text.
    public var description: String {
        "stanza error \(self.condition.rawValue) (\(self.type.rawValue))" + (self.text.map { ": \($0)" } ?? "")
    }
}
