import SASL
import XMPPCodec

/// How a stream logs in.
package enum XMPPLogin: Hashable, Sendable {
    /// The login by RFC 6120 alone.
    case sasl
    /// By SASL2 (XEP-0388) where the server offers it, else by RFC 6120.
    ///
    /// SASL2 belongs inside TLS (XEP-0388 §3). It is used without where TLS is switched off, or where
    /// ``XMPPStreamOptions/allowsPlainWithoutTLS`` is set.
    case sasl2(XMPPSASL2Options)
}

/// Features that are negotiated together with a login by SASL2.
///
/// The resource is bound too where the server offers Bind 2 (XEP-0386), and stream management is enabled where the client
/// resumes streams (``XMPPClientConfiguration/resumes``). A stream that can be resumed asks for that in its login (XEP-0198 §9).
public struct XMPPSASL2Options: Hashable, Sendable {
    /// The description of the client for the server alone.
    public var userAgent: XMPPUserAgent?
    /// The first part of the resource that Bind 2 makes, which others see; `nil`: the resource of the account's JID.
    public var tag: String?
    /// Enables carbons (XEP-0280) with the resource.
    public var enablesCarbonsInline = false
    /// Begins a new session as inactive (XEP-0352).
    public var beginsInactive = false
    /// Requests tokens, keeps them and logs in by them (XEP-0484); it needs an ``XMPPUserAgent/id``.
    public var usesTokens = false

    /// A login without extras.
    public init(userAgent: XMPPUserAgent? = nil, tag: String? = nil) {
        self.userAgent = userAgent
        self.tag = tag
    }
}

/// A client's description of itself to its server (XEP-0388 §2.3).
public struct XMPPUserAgent: Hashable, Sendable {
    /// A version 4 UUID that stays the same for an installation of the client.
    public var id: String?
    /// The name of the software.
    public var software: String?
    /// The name of the device.
    public var device: String?

    /// A description; every part may be absent.
    public init(id: String? = nil, software: String? = nil, device: String? = nil) {
        self.id = id
        self.software = software
        self.device = device
    }
}

/// A token that the server gave out for later logins (XEP-0484): as secret as a password.
public struct XMPPFastToken: Hashable, Sendable {
    /// Bytes of a token that is kept; longer ones are ignored.
    ///
    /// Servers send fewer than 300.
    public static let sizeLimit = 1_024
    /// Bytes of an expiry that is kept.
    static let expiryLimit = 64

    /// The mechanism that it is for, such as `HT-SHA-256-NONE`.
    public var mechanism: String
    /// 1...1,024 bytes.
    public var token: String
    /// When it expires (XEP-0082), in at most 64 bytes; `nil`: unknown.
    public var expiry: String?
    /// Logins tried with it; each sends the next number, from 1 on.
    public var count: Int

    /// A token as it was kept.
    public init(mechanism: String, token: String, expiry: String? = nil, count: Int = 0) {
        self.mechanism = mechanism
        self.token = token
        self.expiry = expiry
        self.count = count
    }

    /// Whether its time is over, at `now` in seconds since 1970; a time that cannot be read counts as unknown.
    public func isExpired(now: Int64) -> Bool {
        guard let time = self.expiry.flatMap({ XMPPTimestamp($0) })?.seconds else { return false }
        return time <= now
    }

    /// The next login's count, which the schema bounds to 32 bits with a sign.
    mutating func countLogin() { self.count = max(0, min(self.count, Int(Int32.max) - 1)) + 1 }
}

extension XMPPFastToken: CustomStringConvertible {
    /// The mechanism without the secret.
    public var description: String { "a token for \(self.mechanism)" }
}

/// State of logins that only a client with tokens has; it outlives the connections.
final class XMPPLoginMemory {
    var token: XMPPFastToken?
    /// The next login by the token invalidates it.
    var invalidates = false
}

/// Features of the server, offered before or after the login.
public struct XMPPStreamOffers: OptionSet, Hashable, Sendable {
    /// One bit for each.
    public let rawValue: UInt8

    /// The set of these bits.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The roster has versions (RFC 6121 §2.6).
    public static let rosterVersioning = XMPPStreamOffers(rawValue: 1)
    /// Subscriptions can be approved beforehand (RFC 6121 §3.4).
    public static let preApproval = XMPPStreamOffers(rawValue: 2)
    /// The client may say that it is inactive (XEP-0352).
    public static let clientState = XMPPStreamOffers(rawValue: 4)
    /// STARTTLS, at any time of the negotiation (RFC 6120 §5).
    public static let startTLS = XMPPStreamOffers(rawValue: 8)
    /// Accounts can be registered, at any time of the negotiation (XEP-0077 §8).
    public static let registration = XMPPStreamOffers(rawValue: 16)

    /// Offers that a restarted stream does not repeat.
    static let beforeLogin: XMPPStreamOffers = [.startTLS, .registration]

    init(features: XMPPElement) {
        self = []
        for case .element(let feature) in features.children {
            switch feature.namespace {
            case XMPPNamespace.rosterVersioning: self.insert(.rosterVersioning)
            case XMPPNamespace.preApproval: self.insert(.preApproval)
            case XMPPNamespace.clientState: self.insert(.clientState)
            case XMPPNamespace.tls: self.insert(.startTLS)
            case XMPPNamespace.registerFeature: self.insert(.registration)
            default: break
            }
        }
    }
}

/// Features of a session that came with its resource (XEP-0386).
public struct XMPPInlineFeatures: OptionSet, Hashable, Sendable {
    /// One bit for each.
    public let rawValue: UInt8

    /// The set of these bits.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The server sends carbons (XEP-0280); a resumption keeps them.
    public static let carbons = XMPPInlineFeatures(rawValue: 1)
    /// The server takes the client for inactive (XEP-0352); after a resumption it counts as active (§5.2).
    public static let inactive = XMPPInlineFeatures(rawValue: 2)
}

/// Requests within one `<authenticate/>`: an answer to something else is a fault of the server.
struct XMPPInlineRequests {
    /// The login is by the kept token, which is for this.
    var token: HashedTokenMechanism.Kind?
    var invalidates = false
    /// A new token is requested, for this.
    var newToken: HashedTokenMechanism.Kind?
    var resumes = false
    var binds = false
    var enables = false
    var features: XMPPInlineFeatures = []
}
