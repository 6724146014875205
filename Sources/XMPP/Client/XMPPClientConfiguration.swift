import DataEncodings
import NIOCore
package import SASL
public import XMPPCodec

/// The account of a client, and how the client reaches its server.
public struct XMPPClientConfiguration: Hashable, Sendable {
    /// When the stream is to be encrypted.
    public enum Encryption: String, Hashable, Sendable, CaseIterable {
        /// Never.
        case off
        /// Where the server requires it.
        case allowed
        /// Where the server offers it.
        case preferred
        /// TLS is mandatory: the client leaves a server without TLS before it sends any credentials.
        case required
        /// TLS from the first byte (XEP-0368).
        case direct
    }

    /// The address families to use, and the one that is tried first.
    public enum AddressPreference: Hashable, Sendable, CaseIterable {
        /// Both, IPv6 first (RFC 8305).
        case ipv6First
        /// Both, IPv4 first.
        case ipv4First
        /// IPv4 alone: a host without such an address cannot be connected to.
        case ipv4Only
        /// IPv6 alone: a host without such an address cannot be connected to.
        case ipv6Only
    }

    /// The account, `user@domain`, or with a resource to ask for `user@domain/resource`.
    public var jid: String
    /// The account's password.
    public var password: String
    /// The host to connect to; `nil` looks up the servers of the domain.
    public var host: String?
    /// The address families to use, and the one that is tried first.
    ///
    /// The addresses of a name compete (RFC 8305): 250 ms after an attempt, or when it has failed, the next one starts
    /// as well. The first connection is used, and the others are closed. The servers of a domain are tried one after
    /// the other, as the domain orders them.
    public var addressPreference = AddressPreference.ipv6First
    /// `nil` is 5222, or 5223 with ``Encryption/direct``; without ``host`` it has no meaning.
    public var port: UInt16?
    /// DNS servers for the domain's records, as `127.0.0.1:53`; empty: the system's.
    public var nameServers: [String] = []
    /// Path of a WebSocket at ``host`` and ``port`` to speak through, such as `/ws` (RFC 7395); `nil` uses none.
    ///
    /// The connection has TLS from its first byte, and port 443 by default. With ``Encryption/off`` it has no TLS, and
    /// port 80 by default.
    public var webSocketPath: String?
    /// When the stream is to be encrypted.
    public var encryption = Encryption.required
    /// PEM file of the authorities to trust; `nil` trusts the system's.
    public var authorityFile: String?
    /// `false` believes any certificate: for tests only.
    public var verifies = true
    /// PEM file of the client's certificate and chain, for EXTERNAL.
    public var certificateFile: String?
    /// PEM file of its key.
    public var keyFile: String?
    /// Mechanisms to log in with, the best first; `nil` takes the best that both sides have.
    public var mechanisms: [String]?
    /// Logs in by SASL2 where the server offers it (XEP-0388), which saves round trips; `nil` uses RFC 6120 alone.
    ///
    /// With Bind 2 the server makes the resource; ``XMPPSASL2Options/tag`` is its first part.
    public var sasl2: XMPPSASL2Options?
    /// A token of an earlier login, for ``XMPPSASL2Options/usesTokens``; see ``XMPPClient/token()``.
    public var token: XMPPFastToken?
    /// Allows sending the password in clear if the server offers only PLAIN and there is no TLS.
    public var allowsPlainWithoutTLS = false
    /// The identity to act as, if the account may act as another (RFC 4616 authzid); `nil` is the account itself.
    public var authorizationIdentity: String?
    /// Allows DIGEST-MD5 (RFC 6331: historic) where the server offers nothing better than PLAIN.
    public var allowsDigestMD5 = false
    /// Refuses every login that is not bound to the TLS session below it (SCRAM-PLUS).
    public var requiresChannelBinding = false
    /// Logs in by `jabber:iq:auth` where the server's stream has no version (XEP-0078: obsolete).
    public var allowsLegacyAuthentication = false
    /// Makes the account if it is not there yet (XEP-0077).
    public var registers = false
    /// Values for further fields of the registration, by their names in the server's form, such as `email`.
    ///
    /// A required field without a value ends the attempt.
    public var registrationFields: [String: String] = [:]
    /// Leaves out the session of RFC 3921, also where the server requires it.
    public var skipsSession = false
    /// The language of the stream (`xml:lang`) for texts of the server, such as `en`.
    public var language: String?
    /// Resumes a lost stream with the next connect, without losing a stanza, where the server can (XEP-0198).
    public var resumes = true
    /// The silence in both directions after which the client sends ``keepAliveCharacter``; zero is never.
    ///
    /// Less than 20 seconds count as 20. A WebSocket has none (RFC 7395 §3.8).
    public var keepAlive = Duration.seconds(120)
    /// The whitespace that shows that the client is alive (RFC 6120 §4.6.1).
    public var keepAliveCharacter = XMPPKeepAliveCharacter.space
    /// The answer to requests that no module handles (RFC 6120 §8.2.3).
    public var automaticReply = XMPPAutomaticReply()
    /// Namespaces of top-level elements that are no stanzas and go to the modules and ``XMPPClient/stanzas`` all the
    /// same.
    public var customNamespaces: Set<String> = []
    /// Ends the stream on an unknown top-level element, with `unsupported-stanza-type`; `false` ignores it.
    public var refusesUnknownElements = false
    /// The time for everything from the first lookup to the bound resource.
    public var connectTimeout = Duration.seconds(30)
    /// The time for the answer to a request.
    public var requestTimeout = Duration.seconds(30)
    /// How long the server's closing tag is waited for.
    public var closingTimeout = Duration.seconds(5)
    /// Bounds on memory and work.
    public var limits = XMPPClientLimits()
    /// A name for the client in log lines; the library makes no other use of it.
    public var tag: String?

    /// Whether the client is a component of a server (XEP-0114), see ``init(component:secret:host:port:)``.
    public private(set) var isComponent = false
    /// The other end, for a stream without a server.
    private(set) var peer: String?
    private(set) var peerRole: XMPPPeerRole?

    /// The defaults: the domain's server, TLS required, the system's authorities.
    ///
    /// - Parameters:
    ///   - jid: `user@domain` or `user@domain/resource`.
    ///   - password: the account's.
    public init(jid: String, password: String) {
        self.jid = jid
        self.password = password
    }
}

extension XMPPClientConfiguration {
    /// A component of a server: all addresses of one domain on one stream (XEP-0114).
    ///
    /// Stanzas reach the component for every address of its domain. A stanza that is sent without `from` gets the
    /// domain. The protocol has no STARTTLS and no resumption: ``encryption`` is `off`, or `direct` for a server that
    /// offers it.
    ///
    /// - Parameters:
    ///   - component: the domain, such as `chat.example.com`.
    ///   - secret: shared with the server.
    ///   - host: the server.
    ///   - port: the server's port for components.
    public init(component: String, secret: String, host: String, port: UInt16 = 5_347) {
        self.init(jid: component, password: secret)
        self.host = host
        self.port = port
        self.encryption = .off
        self.isComponent = true
        self.resumes = false
    }

    /// A stream to another client without a server (XEP-0174): no TLS, no login, no resource.
    ///
    /// The library finds no peers: the application knows host and port, for example from mDNS.
    ///
    /// - Parameters:
    ///   - jid: the own address, `user@machine`.
    ///   - peer: the other's address; `nil` takes the peer at its word.
    ///   - host: where the peer listens.
    ///   - port: the peer's port.
    public init(jid: String, peer: String?, host: String, port: UInt16) {
        self.init(jid: jid, password: "")
        self.peer = peer
        self.peerRole = .initiator
        self.host = host
        self.port = port
        self.encryption = .off
        self.resumes = false
    }

    /// The same for a stream that a peer opened.
    func accepted() -> XMPPClientConfiguration {
        var configuration = self
        configuration.peerRole = .recipient
        configuration.encryption = .off
        configuration.resumes = false
        return configuration
    }
}

/// The whitespace of a keep-alive.
public enum XMPPKeepAliveCharacter: String, Hashable, Sendable, CaseIterable {
    /// U+0020.
    case space = " "
    /// U+000A.
    case newline = "\n"
    /// U+0009.
    case tab = "\t"
}

/// The error that answers a request.
public struct XMPPAutomaticReply: Hashable, Sendable {
    /// `service-unavailable` by default (RFC 6120 §8.4).
    public var condition = StanzaErrorCondition.serviceUnavailable
    /// Whether the reply holds the contents of the request before the error (RFC 6120 §8.3.1: MAY).
    public var echoesContents = false

    /// The defaults.
    public init() {}
}

/// Bounds on what a server can cost a client; less than 1 counts as 1.
public struct XMPPClientLimits: Hashable, Sendable {
    /// Bounds of the parser: a stream beyond them ends.
    public var parser = XMPPLimits()
    /// Rounds of the password's hash that a server may ask for (RFC 5802: at least 4,096).
    public var passwordIterations = 4_096...600_000
    /// Redirects to another host that are followed in a row (RFC 6120 §4.9.3.19).
    public var redirects = 3
    /// Stanzas sent and not acknowledged (XEP-0198); at the limit ``XMPPClient/send(_:until:)`` waits.
    public var unacknowledged = 1_000
    /// Bytes of those stanzas.
    public var unacknowledgedBytes = 4 << 20
    /// Stanzas after which the client requests an acknowledgement, and 1 second after the last of fewer.
    public var acknowledgesEvery = 10
    /// Stanzas that wait in ``XMPPClient/stanzas``; the oldest is dropped.
    public var inbox = 4_096
    /// Bytes of those stanzas.
    public var inboxBytes = 16 << 20

    /// The defaults.
    public init() {}
}

extension XMPPClientConfiguration {
    package func account() throws(XMPPClientError) -> XMPPAccount {
        if self.isComponent || self.peerRole != nil {
            guard self.encryption == .off || self.encryption == .direct, self.webSocketPath == nil else {
                throw .invalid(
                    "a component or a peer has neither STARTTLS nor WebSocket; set encryption to off or direct"
                )
            }
        }
        do throws(JIDError) {
            var account = XMPPAccount(
                try JID(self.jid),
                password: self.password,
                authorizationIdentity: self.authorizationIdentity
            )
            if let peer = self.peer { account.peer = try JID(peer) }
            return account
        } catch {
            let jids = [self.jid, self.peer].compactMap(\.self)
            let wrong = jids.first { (try? JID($0)) == nil } ?? self.jid
            throw .invalid("'\(OneLine.of(wrong))' is no JID: \(error.description)")
        }
    }

    package func streamOptions(_ keys: SCRAMKeyCache) -> XMPPStreamOptions {
        var options = XMPPStreamOptions(keyCache: keys)
        options.framing = self.webSocketPath == nil ? .stream : .webSocket
        options.tlsPolicy = XMPPTLSPolicy(rawValue: self.encryption.rawValue) ?? .required
        if self.webSocketPath != nil, self.encryption != .off { options.tlsPolicy = .direct }
        options.mechanisms = self.mechanisms
        options.allowsPlainWithoutTLS = self.allowsPlainWithoutTLS
        options.hasClientCertificate = self.certificateFile != nil
        options.login = self.sasl2.map { .sasl2($0) } ?? .sasl
        options.allowsDigestMD5 = self.allowsDigestMD5
        options.requiresChannelBinding = self.requiresChannelBinding
        options.allowsLegacyAuthentication = self.allowsLegacyAuthentication
        options.isComponent = self.isComponent
        options.peerRole = self.peerRole
        options.startsSession = !self.skipsSession
        options.language = self.language
        options.iterations = self.limits.passwordIterations
        options.registrationFields = self.registrationFields
        options.registration = self.registers ? .createIfMissing : .none
        options.management = self.resumes ? .resume : .off
        options.acknowledgesEvery = self.resumes ? max(1, self.limits.acknowledgesEvery) : 0
        options.acknowledgesAfter = self.resumes ? .seconds(1) : .zero
        options.requestTimeout = TimeAmount(self.requestTimeout)
        options.maximumUnacknowledged = max(1, self.limits.unacknowledged)
        options.maximumUnacknowledgedBytes = max(1, self.limits.unacknowledgedBytes)
        options.maximumRedirects = max(1, self.limits.redirects)
        options.limits = self.limits.parser
        options.keepAlive = TimeAmount(self.keepAlive)
        options.keepAliveCharacter = self.keepAliveCharacter
        options.automaticReply = self.automaticReply
        options.customNamespaces = self.customNamespaces
        options.refusesUnknownElements = self.refusesUnknownElements
        options.closingTime = TimeAmount(self.closingTimeout)
        return options
    }
}
