package import SASL
package import Transport
package import XMPPCodec

#if canImport(Glibc)
import Glibc
#endif

/// How a connection came to its end: what was wrong, by name.
package enum XMPPConnectionEnd: Error, Hashable, Sendable {
    /// Our closing tag was answered by the server's.
    case answered
    /// The server closed its stream unasked, with its tag.
    case closedByPeer
    /// The connection ended, and the stream had not (RFC 6120 §4.4).
    case lost
    /// The socket failed with this error number.
    case failed(Int32)
    /// The stream was not ready in time; what it was waiting for.
    case timedOut(XMPPPhase)
    /// The server did not answer a ping in time.
    case pingTimedOut
    /// The server did not answer our closing tag in time.
    case closingTimedOut
    /// Closed by this side without waiting for an answer.
    case aborted
    /// TLS failed, in its handshake or after it.
    case insecure(TLSFailure)
    /// A layer added by STARTTLS failed for another reason.
    case notConnected(ConnectError.Reason)
    /// The WebSocket below ended with this.
    case webSocket(String)

    // MARK: Reported by the server

    case streamError(StreamError)
    case redirected(XMPPHost?)
    /// The server closes and names another WebSocket (RFC 7395 §3.6.1); one without TLS must not be followed from one with.
    case elsewhere(String)
    case notAuthenticated(XMPPAuthenticationFailure)
    /// The server refused the token and then the mechanisms that it offers; the next stream logs in without the token.
    case tokenRefused(XMPPAuthenticationFailure)
    /// The login succeeded, and the server requires one of these tasks too (XEP-0388 §2.6.3).
    case tasksRequired([String])
    case bindRefused(StanzaError)
    case sessionRefused(StanzaError)
    case registrationRefused(StanzaError)
    case legacyRefused(StanzaError)
    case tlsRefused

    // MARK: Found by this side

    /// The server's header is from another domain.
    case foreignServer(String)
    /// Another fault in the server's header.
    case header(String)
    case noVersion
    case tlsNotOffered
    case tlsRequired
    /// Bytes in clear followed `<proceed/>`.
    case plaintextInjected
    case passwordInClear
    case noMechanism(SASLChoiceError)
    /// The mechanism found the server's part of it wrong, or the credentials of no use.
    case serverNotAuthentic(SASLError)
    case bindUnreadable
    case featureMissing(String)
    case featureRequired(String)
    case featureFailed(String)
    case registrationImpossible(XMPPRegistrationProblem)
    case tooManyRedirects(Int)
    case malformed(XMPPReadError)
    /// An element that has no place where it came.
    case unexpected(String, in: XMPPState)
    /// The server broke a rule.
    case violation(StreamErrorCondition, String)
    case handledCountTooHigh(UInt32, sent: UInt32)
    /// The stanza contains characters that XML cannot represent.
    case unsendable(XMPPWriteError)
}

/// Where `see-other-host` points to (RFC 6120 §4.9.3.19).
package struct XMPPHost: Hashable, Sendable {
    package let name: String
    package let port: Int?

    package init(name: String, port: Int? = nil) {
        self.name = name
        self.port = port
    }

    /// `host`, `host:port`, and the same with an IPv6 address in brackets; `nil` for anything else.
    package init?(_ text: String) {
        var name = text[...]
        var port: Int?
        if text.hasPrefix("[") {
            guard let end = text.firstIndex(of: "]") else { return nil }
            name = text[text.index(after: text.startIndex)..<end]
            let rest = text[text.index(after: end)...]
            guard rest.isEmpty || rest.hasPrefix(":") else { return nil }
            if !rest.isEmpty {
                guard let number = Int(rest.dropFirst()) else { return nil }
                port = number
            }
        } else if let colon = text.lastIndex(of: ":") {
            // A bare IPv6 address has no port: the two could not be told apart.
            if text.firstIndex(of: ":") == colon {
                guard let number = Int(text[text.index(after: colon)...]) else { return nil }
                port = number
                name = text[..<colon]
            }
        }
        guard !name.isEmpty, port.map({ (1...65_535).contains($0) }) ?? true,
            name.utf8.allSatisfy({ $0 > 32 && $0 < 127 && $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "@") })
        else { return nil }
        self.init(name: String(name), port: port)
    }

    init?(seeOther error: StreamError) {
        guard let text = error.otherHost else { return nil }
        self.init(text)
    }
}
