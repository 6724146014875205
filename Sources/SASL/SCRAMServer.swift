import DataEncodings

/// The data that a server stores for a password: enough to verify it, not enough to log in (RFC 5802 §3).
package struct SCRAMCredentials: Hashable, Sendable {
    package let salt: [UInt8]
    package let iterations: Int
    package let storedKey: [UInt8]
    package let serverKey: [UInt8]

    /// Takes the keys from what was kept.
    package init(salt: [UInt8], iterations: Int, storedKey: [UInt8], serverKey: [UInt8]) {
        self.salt = salt
        self.iterations = iterations
        self.storedKey = storedKey
        self.serverKey = serverKey
    }

    /// From a password.
    ///
    /// - Parameters:
    ///   - hash: the mechanism's; the keys serve no other.
    ///   - password: not empty, prepared by ``SASLPrep``.
    ///   - salt: random, at least one byte.
    ///   - iterations: at least 1; clients refuse fewer than 4,096.
    /// - Throws: ``SASLError/credentials(_:)`` for a password that cannot be prepared.
    package init(_ hash: SCRAMHash, password: String, salt: [UInt8], iterations: Int = 4_096) throws(SASLError) {
        precondition(!salt.isEmpty && iterations >= 1, "a salt of nothing, or no rounds")
        let keys = SCRAMKeys(
            hash,
            password: try SCRAMClient.prepare(password, "password", as: .password),
            salt: salt,
            iterations: iterations
        )
        self.init(salt: salt, iterations: iterations, storedKey: keys.storedKey, serverKey: keys.serverKey)
    }
}

/// The server's reason for a refusal, sent in `e=`.
///
/// Spec: RFC 5802 §7.
package enum SCRAMServerError: String, Error, Hashable, Sendable, CaseIterable, CustomStringConvertible {
    case invalidEncoding = "invalid-encoding"
    case extensionsNotSupported = "extensions-not-supported"
    case invalidProof = "invalid-proof"
    case channelBindingsDontMatch = "channel-bindings-dont-match"
    case channelBindingNotSupported = "channel-binding-not-supported"
    case unknownUser = "unknown-user"
    case invalidUserNameEncoding = "invalid-username-encoding"
    case otherError = "other-error"

    package var description: String {
        switch self {
        case .invalidEncoding: "the message is malformed"
        case .extensionsNotSupported: "the message has an unknown extension that must be understood"
        case .invalidProof: "the client's proof is wrong"
        case .channelBindingsDontMatch: "the channel binding is not that of this connection"
        case .channelBindingNotSupported: "the server has no channel binding"
        case .unknownUser: "the user is unknown"
        case .invalidUserNameEncoding: "the user name is malformed"
        case .otherError: "the exchange failed for another reason"
        }
    }

    /// The server's last message, where the protocol can carry one.
    package var message: [UInt8] { Array("e=\(self.rawValue)".utf8) }
}

/// The server's side of one SCRAM authentication, without channel binding.
///
/// A name that is not known is refused at once, so names can be guessed: it is a server for tests.
///
/// Spec: RFC 5802, RFC 7677.
package struct SCRAMServer: Sendable {
    package enum Step: Hashable, Sendable {
        case challenge([UInt8])
        /// The client knows the password; the bytes prove that this side knows it too.
        case accepted(user: String, [UInt8])
        case refused(SCRAMServerError)
    }

    private struct Challenged {
        let user: String
        let credentials: SCRAMCredentials
        let header: [UInt8]
        let nonce: [UInt8]
        /// Both first messages, each followed by a comma.
        let transcript: [UInt8]
    }

    private enum State {
        case awaitsFirst
        case awaitsFinal(Challenged)
        case ended
    }

    private let hash: SCRAMHash
    private let nonce: @Sendable () -> String
    private let credentials: @Sendable (String) -> SCRAMCredentials?
    private var state = State.awaitsFirst

    package var name: String { self.hash.mechanism }

    /// - Parameters:
    ///   - hash: which SCRAM.
    ///   - nonce: this side's part of it: printable ASCII without commas.
    ///   - credentials: what is kept for a user.
    package init(
        _ hash: SCRAMHash,
        nonce: @escaping @Sendable () -> String = SCRAMNonce.random,
        credentials: @escaping @Sendable (_ user: String) -> SCRAMCredentials?
    ) {
        self.hash = hash
        self.nonce = nonce
        self.credentials = credentials
    }

    package mutating func received(_ message: [UInt8]) -> Step {
        let state = self.state
        self.state = .ended
        do {
            switch state {
            case .awaitsFirst: return try self.first(message)
            case .awaitsFinal(let challenged): return try self.final(message, challenged)
            case .ended: return .refused(.otherError)
            }
        } catch {
            return .refused(error)
        }
    }

    private mutating func first(_ message: [UInt8]) throws(SCRAMServerError) -> Step {
        let (header, bare) = try Self.header(message)
        let attributes = try Self.attributes(bare[...])
        guard !SCRAMMessage.hasMandatoryExtension(attributes) else { throw .extensionsNotSupported }
        let user = try Self.user(try Self.value("n", at: 0, of: attributes))
        let clientNonce = try Self.value("r", at: 1, of: attributes)
        guard SCRAMMessage.isNonce(clientNonce) else { throw .otherError }
        // Other headers than `n,,` and `y,,` name an identity to act as: only the user itself is allowed here.
        if let identity = header.actsFor, identity != Array(user.utf8) { throw .otherError }
        guard let credentials = self.credentials(user) else { throw .unknownUser }

        let nonce = Array(clientNonce) + Array(self.nonce().utf8)
        let challenge =
            Array("r=".utf8) + nonce + Array(",s=".utf8) + Base64.digits(credentials.salt)
            + Array(",i=\(credentials.iterations)".utf8)
        let comma = [UInt8(ascii: ",")]
        self.state = .awaitsFinal(
            Challenged(
                user: user,
                credentials: credentials,
                header: header.bytes,
                nonce: nonce,
                transcript: bare + comma + challenge + comma
            )
        )
        return .challenge(challenge)
    }

    private func final(_ message: [UInt8], _ challenged: Challenged) throws(SCRAMServerError) -> Step {
        let attributes = try Self.attributes(message[...])
        guard let last = attributes.last, last.name == UInt8(ascii: "p"), attributes.count >= 3 else {
            throw .otherError
        }
        guard !SCRAMMessage.hasMandatoryExtension(attributes) else { throw .extensionsNotSupported }
        guard let binding = Base64.decode(try Self.value("c", at: 0, of: attributes)),
            let proof = Base64.decode(last.value)
        else { throw .invalidEncoding }
        guard binding == challenged.header else { throw .channelBindingsDontMatch }
        guard try Self.value("r", at: 1, of: attributes).elementsEqual(challenged.nonce) else { throw .otherError }

        // Everything before `,p=`.
        let authMessage = challenged.transcript + message.dropLast(last.value.count + 3)
        let keys = challenged.credentials
        guard proof.count == self.hash.byteCount else { throw .invalidProof }
        let clientKey = proof.xor(self.hash.authenticationCode(of: authMessage, key: keys.storedKey))
        guard self.hash.digest(clientKey).equalsInConstantTime(keys.storedKey) else { throw .invalidProof }
        let signature = self.hash.authenticationCode(of: authMessage, key: keys.serverKey)
        return .accepted(user: challenged.user, Array("v=".utf8) + Base64.digits(signature))
    }

    private struct Header {
        let bytes: [UInt8]
        let actsFor: [UInt8]?
    }

    /// Reads the GS2 header and the message after it (§7: `gs2-header`).
    private static func header(_ message: [UInt8]) throws(SCRAMServerError) -> (Header, bare: [UInt8]) {
        do { try SCRAMMessage.check(message) } catch { throw .invalidEncoding }
        let parts = message.split(separator: UInt8(ascii: ","), maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3 else { throw .otherError }
        if parts[0].starts(with: "p=".utf8) { throw .channelBindingNotSupported }
        guard parts[0].elementsEqual("n".utf8) || parts[0].elementsEqual("y".utf8) else { throw .otherError }
        var actsFor: [UInt8]?
        if !parts[1].isEmpty {
            guard parts[1].starts(with: "a=".utf8), let name = SCRAMMessage.unescape(parts[1].dropFirst(2)) else {
                throw .otherError
            }
            actsFor = name
        }
        return (Header(bytes: Array(message[..<parts[2].startIndex]), actsFor: actsFor), Array(parts[2]))
    }

    private static func user(_ value: ArraySlice<UInt8>) throws(SCRAMServerError) -> String {
        guard let name = SCRAMMessage.unescape(value) else { throw .invalidUserNameEncoding }
        do {
            let prepared = try SASLPrep.prepare(String(decoding: name, as: UTF8.self), as: .name)
            return String(decoding: prepared, as: UTF8.self)
        } catch {
            throw .invalidUserNameEncoding
        }
    }

    private static func attributes(_ message: ArraySlice<UInt8>) throws(SCRAMServerError) -> [SCRAMAttribute] {
        do {
            try SCRAMMessage.check(Array(message))
            return try SCRAMMessage.attributes(message)
        } catch {
            throw .otherError
        }
    }

    private static func value(
        _ name: Unicode.Scalar,
        at index: Int,
        of attributes: [SCRAMAttribute]
    ) throws(SCRAMServerError) -> ArraySlice<UInt8> {
        do { return try SCRAMMessage.value(name, at: index, of: attributes) } catch { throw .otherError }
    }
}
