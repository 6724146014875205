import NIOCore
import SASL

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

    /// The account, `user@domain`, or with a resource to ask for `user@domain/resource`.
    public var jid: String
    /// The account's password.
    public var password: String
    /// The host to connect to; `nil` looks up the servers of the domain.
    ///
    /// The addresses of a name are tried one after the other, IPv4 first.
    public var host: String?
    /// `nil` is 5222, or 5223 with ``Encryption/direct``; without ``host`` it has no meaning.
    public var port: UInt16?
    /// DNS servers for the domain's records, as `127.0.0.1:53`; empty: the system's.
    public var nameServers: [String] = []
    /// Path of a WebSocket at ``host`` and ``port`` to speak through, such as `/ws` (RFC 7395); `nil` uses none.
    ///
    /// With TLS from its first byte, and port 443 unless one is given, or with ``Encryption/off`` without, and 80.
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
    /// Allows sending the password in clear if the server offers only PLAIN and there is no TLS.
    public var allowsPlainWithoutTLS = false
    /// Makes the account if it is not there yet (XEP-0077).
    public var registers = false
    /// Resumes a lost stream with the next connect, without losing a stanza, where the server can (XEP-0198).
    public var resumes = true
    /// The silence after which the client sends a space to show that it is alive; zero: never.
    public var keepAlive = Duration.seconds(120)
    /// The time for everything from the first lookup to the bound resource.
    public var connectTimeout = Duration.seconds(30)
    /// The time for the answer to a request.
    public var requestTimeout = Duration.seconds(30)

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
    func account() throws(XMPPClientError) -> XMPPAccount {
        do throws(JIDError) {
            return XMPPAccount(try JID(self.jid), password: self.password)
        } catch {
            throw .invalid("'\(OneLine.of(self.jid))' is no JID: \(error.description)")
        }
    }

    func streamOptions(_ keys: SCRAMKeyCache) -> XMPPStreamOptions {
        var options = XMPPStreamOptions(keyCache: keys)
        options.framing = self.webSocketPath == nil ? .stream : .webSocket
        options.tlsPolicy = XMPPTLSPolicy(rawValue: self.encryption.rawValue) ?? .required
        if self.webSocketPath != nil, self.encryption != .off { options.tlsPolicy = .direct }
        options.mechanisms = self.mechanisms
        options.allowsPlainWithoutTLS = self.allowsPlainWithoutTLS
        options.hasClientCertificate = self.certificateFile != nil
        options.registration = self.registers ? .createIfMissing : .none
        options.management = self.resumes ? .resume : .off
        options.acknowledgesEvery = self.resumes ? 10 : 0
        options.acknowledgesAfter = self.resumes ? .seconds(1) : .zero
        options.keepAlive = TimeAmount(self.keepAlive)
        return options
    }
}
