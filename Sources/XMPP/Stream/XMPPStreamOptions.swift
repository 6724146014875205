package import NIOCore
package import SASL
package import XMPPCodec

/// When a stream is to be encrypted.
package enum XMPPTLSPolicy: String, Hashable, Sendable, CaseIterable {
    /// Never; a server that requires it is left.
    case off
    /// Where the server requires it.
    case allowed
    /// Where the server offers it.
    case preferred
    /// TLS is mandatory: the client leaves a server without STARTTLS before it sends any credentials.
    case required
    /// TLS from the first byte (XEP-0368), without STARTTLS.
    case direct
}

/// The use of stream management (XEP-0198).
package enum XMPPManagement: Hashable, Sendable {
    case off
    /// Stanzas are counted and acknowledged; a lost connection is not resumed.
    case acknowledge
    /// A lost connection is resumed: every unacknowledged stanza is kept until then.
    case resume

    package var isOn: Bool { self != .off }
}

/// Creating the account before logging in to it (XEP-0077 §3.1).
package enum XMPPRegistration: Hashable, Sendable {
    case none
    /// The account may not be there yet.
    case create
    /// An existing account is accepted.
    case createIfMissing
    /// Registers the account only, without a login; the account must not exist yet.
    case only
}

/// How the streams of a group of clients behave.
///
/// Their differences are in ``XMPPAccount``.
package struct XMPPStreamOptions: Sendable {
    package var tlsPolicy: XMPPTLSPolicy = .required
    package var framing: XMPPReader.Framing = .stream
    package var login: XMPPLogin = .sasl
    /// Mechanisms that may be used, the best first; `nil`: the usual ones, see `SASLMechanismChoice`.
    package var mechanisms: [String]?
    package var allowsDigestMD5 = false
    /// Refuses every login that is not bound to the TLS session below it.
    package var requiresChannelBinding = false
    /// Lets PLAIN, and the plain form of XEP-0078, send the password for everyone to read.
    package var allowsPlainWithoutTLS = false
    /// The TLS settings contain a client certificate, so EXTERNAL is preferred.
    package var hasClientCertificate = false
    /// Logs in by jabber:iq:auth where the server's stream has no version (XEP-0078, obsolete).
    package var allowsLegacyAuthentication = false
    package var registration: XMPPRegistration = .none
    /// Values for fields of the registration beyond user name and password, by name.
    package var registrationFields: [String: String] = [:]
    /// The RFC 3921 session where it is offered: `false` leaves it out even if the server requires it.
    package var startsSession = true
    package var management: XMPPManagement = .off
    /// Requests an acknowledgement after every this many stanzas; 0: only on demand.
    package var acknowledgesEvery = 0
    /// Requests an acknowledgement this long after the last unrequested stanza; zero or less: never.
    package var acknowledgesAfter = TimeAmount.zero
    /// Stanzas sent and not acknowledged at most.
    package var maximumUnacknowledged = 1_000
    /// Bytes kept for a resumption, from which on no more is taken; at twice as many of them, or of stanzas, for the
    /// answers go on, the resumption is given up.
    package var maximumUnacknowledgedBytes = 4 << 20
    /// The time without a byte in either direction after which a space is sent; zero or less: never.
    ///
    /// Less than 20 seconds count as 20.
    package var keepAlive = TimeAmount.seconds(120)
    package var keepAliveCharacter = XMPPKeepAliveCharacter.space
    /// The answer to requests that are handled nowhere.
    package var automaticReply = XMPPAutomaticReply()
    /// How long the server's closing tag is waited for.
    package var closingTime = TimeAmount.seconds(5)
    /// The time for the answer to a request that names none of its own.
    package var requestTimeout = TimeAmount.seconds(30)
    /// Redirects (`see-other-host`) that are followed before a stream becomes ready.
    package var maximumRedirects = 3
    package var language: String?
    /// Namespaces of top-level elements that are no stanzas and go to the owner all the same.
    package var customNamespaces: Set<String> = []
    /// Ends the stream on an unknown top-level element instead of counting it.
    package var refusesUnknownElements = false
    package var limits = XMPPLimits()
    /// A stream between two clients: no TLS, no login, no resource, and no WebSocket.
    ///
    /// ``XMPPAccount/peer`` is the other one.
    package var peerRole: XMPPPeerRole?
    /// A stream of a server's component (XEP-0114), whose password is the shared secret: no STARTTLS, no SASL.
    package var isComponent = false
    /// Rounds of the password's hash that a server may ask for.
    package var iterations = SCRAMClient.usualIterations
    package var keyCache: SCRAMKeyCache
    /// Further features, in the order in which they are negotiated where several can be.
    package var features: [any XMPPStreamFeature] = []
    /// Random numbers for stanza ids.
    package var random: @Sendable () -> UInt64 = { UInt64.random(in: .min ... .max) }
    /// Nonces for SCRAM.
    package var nonce: @Sendable () -> String = SCRAMNonce.random
    /// Seconds since 1970, for the expiry of tokens.
    package var wallClock: @Sendable () -> Int64 = { XMPPTimestamp.now.seconds }

    /// - Parameter keyCache: one for all clients of an event loop is best.
    package init(keyCache: SCRAMKeyCache = SCRAMKeyCache()) { self.keyCache = keyCache }
}

/// A side of a stream between two clients without a server (XEP-0174).
package enum XMPPPeerRole: Hashable, Sendable {
    /// It has connected.
    case initiator
    /// It was connected to.
    case recipient
}

/// State shared by the streams of one event loop: their options, and the features of their server.
package final class XMPPStreamShared {
    package let options: XMPPStreamOptions
    /// `nil` for a stream by itself, which would keep some KiB for its next login.
    let features: FeatureTrees?

    package init(_ options: XMPPStreamOptions, features: FeatureTrees? = nil) {
        self.options = options
        self.features = features
    }
}

package struct XMPPAccount: Hashable, Sendable {
    /// The address with the resource to ask for, if any; only ANONYMOUS and EXTERNAL need no local part.
    package var jid: JID
    package var password: String
    /// The identity to act as, if it is not ``jid``.
    package var authorizationIdentity: String?
    /// The other end of a stream without a server, for the recipient; the initiator names itself.
    package var peer: JID?

    package init(_ jid: JID, password: String = "", authorizationIdentity: String? = nil, peer: JID? = nil) {
        self.jid = jid
        self.peer = peer
        self.password = password
        self.authorizationIdentity = authorizationIdentity
    }
}

/// The facts established on a stream: features require some and establish others.
package struct XMPPStreamFacts: OptionSet, Hashable, Sendable {
    package let rawValue: UInt16

    package init(rawValue: UInt16) { self.rawValue = rawValue }

    /// All data is encrypted.
    package static let secure = XMPPStreamFacts(rawValue: 1)
    package static let registered = XMPPStreamFacts(rawValue: 2)
    package static let authenticated = XMPPStreamFacts(rawValue: 4)
    package static let bound = XMPPStreamFacts(rawValue: 8)
    package static let session = XMPPStreamFacts(rawValue: 16)
    /// Stream management is on.
    package static let managed = XMPPStreamFacts(rawValue: 32)
    /// An earlier stream is resumed.
    package static let resumed = XMPPStreamFacts(rawValue: 64)
}

/// A stream feature implemented outside this module, negotiated once per stream when its needs are met.
///
/// It answers by values alone and keeps nothing of a stream: one value serves all of them.
package protocol XMPPStreamFeature: Sendable {
    var name: String { get }
    var namespace: String { get }
    /// The facts that must hold before.
    var needs: XMPPStreamFacts { get }

    /// The element to send; `nil` to ignore the feature.
    func begin(_ offered: XMPPElement, on streamID: String) -> XMPPElement?

    /// Answers what the server sends then.
    func received(_ element: XMPPElement) -> XMPPFeatureAnswer
}

package enum XMPPFeatureAnswer: Hashable, Sendable {
    case send(XMPPElement)
    case done
    /// The reason why the stream cannot continue.
    case failed(String)
}
