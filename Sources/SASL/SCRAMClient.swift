import DataEncodings

/// The client's side of SCRAM, with channel binding where the connection has one to offer.
///
/// Each ``begin()`` starts anew with a fresh nonce, so one value serves all connects of a client and its
/// re-authentications.
///
/// Spec: RFC 5802, RFC 7677.
package struct SCRAMClient: SASLMechanism {
    private enum State {
        case idle
        case awaitsFirst(nonce: [UInt8])
        case awaitsFinal(serverSignature: [UInt8])
        case verified
    }

    private static let unknownExtension = "it requires an unknown extension (m=)"

    /// The default limits of the server's iteration count.
    ///
    /// Fewer than 4,096 make guessing cheap (RFC 7677 §4); 600,000 are what is advised for passwords at rest.
    package static let usualIterations = 4_096...600_000

    private let hash: SCRAMHash
    private let binding: SCRAMBinding
    /// §7: `gs2-header`, which the proof covers.
    private let header: [UInt8]
    private let user: [UInt8]
    private let password: [UInt8]
    private let iterations: ClosedRange<Int>
    private let cache: SCRAMKeyCache
    private let nonce: @Sendable () -> String
    private var state = State.idle

    package var name: String { self.binding.data == nil ? self.hash.mechanism : "\(self.hash.mechanism)-PLUS" }

    /// - Parameters:
    ///   - hash: which SCRAM.
    ///   - user: not empty; prepared by ``SASLPrep``.
    ///   - password: the same.
    ///   - authorizationIdentity: the identity to act as; empty for the user's own.
    ///   - binding: the channel binding to the TLS session.
    ///   - iterations: the accepted iteration counts. They run on the event loop, where a hostile server with 10
    ///     million rounds would stop every other client for seconds.
    ///   - cache: of derived keys; best one for all clients of an event loop.
    ///   - nonce: printable ASCII without commas, not to be guessed and never the same.
    /// - Throws: ``SASLError/credentials(_:)`` for a user name or password that cannot be prepared.
    package init(
        _ hash: SCRAMHash,
        user: String,
        password: String,
        authorizationIdentity: String = "",
        binding: SCRAMBinding = .unsupported,
        iterations: ClosedRange<Int> = SCRAMClient.usualIterations,
        cache: SCRAMKeyCache,
        nonce: @escaping @Sendable () -> String = SCRAMNonce.random
    ) throws(SASLError) {
        precondition(iterations.lowerBound >= 1 && iterations.upperBound <= Int(UInt32.max), "rounds out of range")
        self.hash = hash
        self.binding = binding
        let identity =
            authorizationIdentity.isEmpty ? [] : try Self.prepare(authorizationIdentity, "identity to act for")
        self.header =
            Array("\(binding.flag),".utf8)
            + (identity.isEmpty ? [] : Array("a=".utf8) + SCRAMMessage.escape(identity)) + [UInt8(ascii: ",")]
        self.user = try Self.prepare(user, "user name")
        self.password = try Self.prepare(password, "password", as: .password)
        self.iterations = iterations
        self.cache = cache
        self.nonce = nonce
    }

    static func prepare(_ text: String, _ what: String, as use: SASLPrep.Use = .name) throws(SASLError) -> [UInt8] {
        let prepared: [UInt8]
        do {
            prepared = try SASLPrep.prepare(text, as: use)
        } catch {
            throw .credentials("the \(what) holds \(error.codePoint), which SCRAM cannot use here")
        }
        guard !prepared.isEmpty else { throw .credentials("SCRAM needs a \(what), and it is empty") }
        return prepared
    }

    package mutating func begin() throws(SASLError) -> [UInt8]? {
        let nonce = Array(self.nonce().utf8)
        precondition(SCRAMMessage.isNonce(nonce), "a nonce is printable and has no comma")
        self.state = .awaitsFirst(nonce: nonce)
        return self.header + self.firstBare(nonce)
    }

    package mutating func respond(to challenge: [UInt8]) throws(SASLError) -> [UInt8] {
        let state = self.state
        self.state = .idle
        switch state {
        case .awaitsFirst(let nonce):
            return try self.answerFirst(challenge, nonce)
        case .awaitsFinal(let signature):
            // RFC 4422 §3.5: if the protocol cannot send data with its success, the data comes in a challenge before.
            try Self.verify(challenge, signature)
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
        case .awaitsFinal(let signature):
            guard let data, !data.isEmpty else { throw .serverNotVerified }
            try Self.verify(data, signature)
        case .verified:
            guard (data ?? []).isEmpty else { throw .malformed("data follows the server's signature") }
        case .idle, .awaitsFirst:
            throw .serverNotVerified
        }
    }

    private func firstBare(_ nonce: [UInt8]) -> [UInt8] {
        Array("n=".utf8) + SCRAMMessage.escape(self.user) + Array(",r=".utf8) + nonce
    }

    /// Reads `r=`, `s=`, `i=` and writes `c=`, `r=`, `p=`.
    private mutating func answerFirst(_ challenge: [UInt8], _ nonce: [UInt8]) throws(SASLError) -> [UInt8] {
        try SCRAMMessage.check(challenge)
        let attributes = try SCRAMMessage.attributes(challenge[...])
        if let error = attributes.first, error.name == UInt8(ascii: "e") {
            throw .refused(String(decoding: error.value, as: UTF8.self))
        }
        guard !SCRAMMessage.hasMandatoryExtension(attributes) else { throw .malformed(Self.unknownExtension) }
        let combined = try SCRAMMessage.value("r", at: 0, of: attributes)
        guard SCRAMMessage.isNonce(combined), combined.starts(with: nonce) else {
            throw .malformed("the nonce does not start with the client's")
        }
        guard combined.count > nonce.count else { throw .malformed("the server adds nothing to the nonce") }
        guard let salt = Base64.decode(try SCRAMMessage.value("s", at: 1, of: attributes)) else {
            throw .malformed("the salt is not base64")
        }
        guard let rounds = SCRAMMessage.positiveNumber(try SCRAMMessage.value("i", at: 2, of: attributes)) else {
            throw .malformed("the number of iterations is no positive number")
        }
        guard self.iterations.contains(rounds) else { throw .iterations(rounds, allowed: self.iterations) }

        let keys = self.cache.keys(self.hash, password: self.password, salt: salt, iterations: rounds)
        let withoutProof =
            Array("c=".utf8) + Base64.digits(self.header + (self.binding.data ?? [])) + Array(",r=".utf8) + combined
        let comma = [UInt8(ascii: ",")]
        let authMessage = self.firstBare(nonce) + comma + challenge + comma + withoutProof
        let clientSignature = self.hash.authenticationCode(of: authMessage, key: keys.storedKey)
        let serverSignature = self.hash.authenticationCode(of: authMessage, key: keys.serverKey)
        self.state = .awaitsFinal(serverSignature: serverSignature)
        return withoutProof + Array(",p=".utf8) + Base64.digits(keys.clientKey.xor(clientSignature))
    }

    /// Reads `v=` or `e=`.
    private static func verify(_ message: [UInt8], _ signature: [UInt8]) throws(SASLError) {
        try SCRAMMessage.check(message)
        let attributes = try SCRAMMessage.attributes(message[...])
        guard !SCRAMMessage.hasMandatoryExtension(attributes) else { throw .malformed(Self.unknownExtension) }
        // There is always one: splitting nothing gives one empty part, which is refused.
        let first = attributes[0]
        switch first.name {
        case UInt8(ascii: "e"): throw .refused(String(decoding: first.value, as: UTF8.self))
        case UInt8(ascii: "v"):
            guard let told = Base64.decode(first.value) else { throw .malformed("the signature is not base64") }
            guard told.equalsInConstantTime(signature) else { throw .serverNotVerified }
        default: throw .serverNotVerified
        }
    }
}
