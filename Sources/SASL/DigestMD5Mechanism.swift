/// Challenge and response over MD5: historic (RFC 6331), for servers without any better mechanism.
///
/// The server speaks first. Each ``begin()`` starts anew with a fresh client nonce.
///
/// Spec: RFC 2831.
package struct DigestMD5Mechanism: SASLMechanism {
    private enum State {
        case idle
        case awaitsChallenge
        case awaitsProof(String)
        case verified
    }

    private let user: String
    private let password: String
    private let host: String
    private let service: String
    private let authorizationIdentity: String
    private let nonce: @Sendable () -> String
    private var state = State.idle

    package var name: String { "DIGEST-MD5" }

    /// - Parameters:
    ///   - user: not empty; without U+0000.
    ///   - password: the same.
    ///   - host: the domain of the server; the realm too, where the server names none.
    ///   - service: the protocol's registered name.
    ///   - authorizationIdentity: the identity to act as; empty for the user's own.
    ///   - nonce: printable, not to be guessed and never the same.
    /// - Throws: ``SASLError/credentials(_:)`` for what is empty or holds U+0000.
    package init(
        user: String,
        password: String,
        host: String,
        service: String = "xmpp",
        authorizationIdentity: String = "",
        nonce: @escaping @Sendable () -> String = SCRAMNonce.random
    ) throws(SASLError) {
        for (what, text) in [("user name", user), ("password", password), ("domain", host)] {
            guard !text.isEmpty else { throw .credentials("DIGEST-MD5 needs a \(what), and it is empty") }
            guard !text.utf8.contains(0) else {
                throw .credentials("the \(what) holds U+0000, which DIGEST-MD5 cannot send")
            }
        }
        guard !authorizationIdentity.utf8.contains(0) else {
            throw .credentials("the authorization identity holds U+0000, which DIGEST-MD5 cannot send")
        }
        self.user = user
        self.password = password
        self.host = host
        self.service = service
        self.authorizationIdentity = authorizationIdentity
        self.nonce = nonce
    }

    /// §2.1: the server begins.
    package mutating func begin() throws(SASLError) -> [UInt8]? {
        self.state = .awaitsChallenge
        return nil
    }

    package mutating func respond(to challenge: [UInt8]) throws(SASLError) -> [UInt8] {
        let state = self.state
        self.state = .idle
        switch state {
        case .awaitsChallenge:
            return try self.answer(try DigestChallenge(challenge))
        case .awaitsProof(let proof):
            try Self.verify(challenge, proof)
            self.state = .verified
            return []
        case .idle, .verified:
            throw .malformed("a challenge comes when none is expected")
        }
    }

    package mutating func finish(_ data: [UInt8]?) throws(SASLError) {
        let state = self.state
        self.state = .idle
        switch state {
        case .awaitsProof(let proof):
            guard let data, !data.isEmpty else { throw .serverNotVerified }
            try Self.verify(data, proof)
        case .verified:
            guard (data ?? []).isEmpty else { throw .malformed("data follows the server's proof") }
        case .idle, .awaitsChallenge: throw .serverNotVerified
        }
    }

    /// §2.1.3: the server must prove that it knows the password too.
    private static func verify(_ message: [UInt8], _ proof: String) throws(SASLError) {
        let directives = try DigestDirectives(message)
        guard let told = try directives.only("rspauth") else { throw .serverNotVerified }
        guard told.equalsInConstantTime(Array(proof.utf8)) else { throw .serverNotVerified }
    }

    private mutating func answer(_ challenge: DigestChallenge) throws(SASLError) -> [UInt8] {
        // §2.1.1: a realm of ours if the server has it, else its first; none at all leaves the choice to the client.
        let known = challenge.realms.first { $0.elementsEqual(self.host.utf8) }
        let realm = known ?? challenge.realms.first ?? Array(self.host.utf8)
        let sentRealm = challenge.realms.isEmpty ? try self.sent(self.host, "domain", challenge) : realm
        let digest = DigestComputation(
            user: try self.hashed(self.user, "user name", challenge),
            // §2.1.2.1: name and password are converted, the realm is not.
            realm: sentRealm,
            password: try self.hashed(self.password, "password", challenge),
            nonce: challenge.nonce,
            clientNonce: Array(self.nonce().utf8),
            uri: Array("\(self.service)/\(self.host)".utf8),
            identity: Array(self.authorizationIdentity.utf8)
        )
        var answer: [UInt8] = challenge.isUTF8 ? Array("charset=utf-8,".utf8) : []
        answer += Self.quoted("username", try self.sent(self.user, "user name", challenge))
        answer += Self.quoted(",realm", sentRealm)
        answer += Self.quoted(",nonce", challenge.nonce)
        answer += Self.quoted(",cnonce", digest.clientNonce)
        answer += Array(",nc=00000001,qop=auth".utf8)
        answer += Self.quoted(",digest-uri", digest.uri)
        answer += Array(",response=\(digest.response)".utf8)
        if !digest.identity.isEmpty { answer += Self.quoted(",authzid", digest.identity) }
        // §2.1.2: longer ones may be refused.
        guard answer.count < 4_096 else { throw .credentials("the answer of DIGEST-MD5 has over 4,095 bytes") }
        self.state = .awaitsProof(digest.serverProof)
        return answer
    }

    /// §2.1.2.1: text within ISO 8859-1 is hashed in that encoding, whatever the encoding sent.
    private func hashed(_ text: String, _ what: String, _ challenge: DigestChallenge) throws(SASLError) -> [UInt8] {
        if let bytes = Latin1.encode(text) { return bytes }
        guard challenge.isUTF8 else { throw Self.unwritable(what) }
        return Array(text.utf8)
    }

    private func sent(_ text: String, _ what: String, _ challenge: DigestChallenge) throws(SASLError) -> [UInt8] {
        if challenge.isUTF8 { return Array(text.utf8) }
        guard let bytes = Latin1.encode(text) else { throw Self.unwritable(what) }
        return bytes
    }

    private static func unwritable(_ what: String) -> SASLError {
        .credentials("the \(what) is not in ISO 8859-1, the only encoding of the server's DIGEST-MD5")
    }

    /// §7.2: `\` escapes a quote and itself.
    private static func quoted(_ name: String, _ value: [UInt8]) -> [UInt8] {
        var text = Array(name.utf8) + Array("=\"".utf8)
        for byte in value {
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { text.append(UInt8(ascii: "\\")) }
            text.append(byte)
        }
        text.append(UInt8(ascii: "\""))
        return text
    }
}
