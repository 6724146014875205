/// Why a stream ends (RFC 6120 §4.9.3).
public enum StreamErrorCondition: String, Hashable, Sendable, CaseIterable {
    /// XML that cannot be processed.
    case badFormat = "bad-format"
    /// A namespace prefix that is not supported, or none where one is needed.
    case badNamespacePrefix = "bad-namespace-prefix"
    /// A new stream took this one's place, or the resource is bound elsewhere.
    case conflict
    /// No data arrived for too long.
    case connectionTimeout = "connection-timeout"
    /// The server no longer serves the domain.
    case hostGone = "host-gone"
    /// The domain is not served here.
    case hostUnknown = "host-unknown"
    /// A stanza without address, or with a wrong one.
    case improperAddressing = "improper-addressing"
    /// The server is at fault.
    case internalServerError = "internal-server-error"
    /// `from` is not the peer's address.
    case invalidFrom = "invalid-from"
    /// A wrong namespace of the stream or its content.
    case invalidNamespace = "invalid-namespace"
    /// XML that a schema does not allow.
    case invalidXML = "invalid-xml"
    /// Something was sent before it was allowed.
    case notAuthorized = "not-authorized"
    /// The XML is not well-formed, by XML or its namespaces.
    case notWellFormed = "not-well-formed"
    /// A local rule was broken: limits of rate or size.
    case policyViolation = "policy-violation"
    /// Another server cannot be reached.
    case remoteConnectionFailed = "remote-connection-failed"
    /// Security has to be negotiated anew.
    case reset
    /// The server has no resources left.
    case resourceConstraint = "resource-constraint"
    /// A comment, processing instruction, document type or entity reference.
    case restrictedXML = "restricted-xml"
    /// Another host serves the domain; the text of the condition names it.
    case seeOtherHost = "see-other-host"
    /// The server goes down.
    case systemShutdown = "system-shutdown"
    /// None of the others, or an unknown condition.
    case undefinedCondition = "undefined-condition"
    /// The stream is not in UTF-8.
    case unsupportedEncoding = "unsupported-encoding"
    /// A mandatory feature that the server does not have.
    case unsupportedFeature = "unsupported-feature"
    /// A top-level element that is no stanza.
    case unsupportedStanzaType = "unsupported-stanza-type"
    /// A version of XMPP that is not spoken.
    case unsupportedVersion = "unsupported-version"
}

/// `<stream:error/>`: always the end of the stream.
///
/// Spec: RFC 6120 §4.9.
public struct StreamError: Error, Hashable, Sendable {
    /// Why.
    public var condition: StreamErrorCondition
    /// The text for people.
    public var text: String?
    /// The language of the text.
    public var language: String?
    /// Where to go instead, with `see-other-host`: a host, or host and port, IPv6 in brackets (RFC 6120 §4.9.3.19).
    public var otherHost: String?
    /// An application's own condition.
    public var application: XMPPElement?

    /// A stream error.
    public init(
        _ condition: StreamErrorCondition,
        text: String? = nil,
        language: String? = nil,
        otherHost: String? = nil,
        application: XMPPElement? = nil
    ) {
        self.condition = condition
        self.text = text
        self.language = language
        self.otherHost = otherHost
        self.application = application
    }

    /// Reads `<error/>` in the streams' namespace; `nil` for everything else.
    ///
    /// A condition that is not known, or none at all, is taken for `undefined-condition` (RFC 6120 §4.9.2).
    public init?(_ element: XMPPElement) {
        guard element.isNamed("error", XMPPNamespace.stream) else { return nil }
        self.init(.undefinedCondition)
        for child in element.elements {
            if child.namespace != XMPPNamespace.streams {
                self.application = self.application ?? child
            } else if child.name == "text" {
                self.text = child.text
                self.language = child.language
            } else if let condition = StreamErrorCondition(rawValue: child.name) {
                self.condition = condition
                if condition == .seeOtherHost, !child.text.isEmpty { self.otherHost = child.text }
            }
        }
    }

    /// The stream error as an element.
    public var element: XMPPElement {
        var error = XMPPElement("error", namespace: XMPPNamespace.stream)
        error.add(XMPPElement(self.condition.rawValue, namespace: XMPPNamespace.streams, text: self.otherHost ?? ""))
        if let text = self.text {
            var child = XMPPElement("text", namespace: XMPPNamespace.streams, text: text)
            child.language = self.language
            error.add(child)
        }
        if let application = self.application { error.add(application) }
        return error
    }
}

extension StreamError: CustomStringConvertible {
    /// The condition, the host that is named, and the text.
    public var description: String {
        let host = self.otherHost.map { " (\($0))" } ?? ""
        return "stream error \(self.condition.rawValue)\(host)" + (self.text.map { ": \($0)" } ?? "")
    }
}
