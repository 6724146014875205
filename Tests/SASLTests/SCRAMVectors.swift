import DataEncodings
import SASL
import Testing

/// A whole exchange, as both sides write it.
struct SCRAMExchange: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let hash: SCRAMHash
    let user: String
    let password: String
    let clientNonce: String
    let serverNonce: String
    let salt: String
    let iterations: Int
    let clientFirst: String
    let serverFirst: String
    let clientFinal: String
    let serverFinal: String

    init(
        _ name: String,
        _ hash: SCRAMHash,
        user: (plain: String, escaped: String) = ("user", "user"),
        password: String = "pencil",
        nonces: (client: String, server: String) = ("rOprNGfwEbeRWgbNEkqO", "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"),
        salt: String = "W22ZaJ0SNY7soEsUEjb6gQ==",
        iterations: Int = 4_096,
        proof: String,
        signature: String
    ) {
        self.testDescription = name
        self.hash = hash
        self.user = user.plain
        self.password = password
        self.clientNonce = nonces.client
        self.serverNonce = nonces.server
        self.salt = salt
        self.iterations = iterations
        let both = nonces.client + nonces.server
        self.clientFirst = "n,,n=\(user.escaped),r=\(nonces.client)"
        self.serverFirst = "r=\(both),s=\(salt),i=\(iterations)"
        self.clientFinal = "c=biws,r=\(both),p=\(proof)"
        self.serverFinal = "v=\(signature)"
    }

    func client(
        iterations: ClosedRange<Int> = SCRAMClient.usualIterations,
        cache: SCRAMKeyCache = SCRAMKeyCache(capacity: 1)
    ) throws -> SCRAMClient {
        let nonce = self.clientNonce
        return try SCRAMClient(
            self.hash,
            user: self.user,
            password: self.password,
            iterations: iterations,
            cache: cache,
            nonce: { nonce }
        )
    }

    /// Knows the one user.
    func server() throws -> SCRAMServer {
        let salt = try #require(Base64.decode(Array(self.salt.utf8)))
        let kept = try SCRAMCredentials(
            self.hash,
            password: self.password,
            salt: salt,
            iterations: self.iterations
        )
        let (nonce, known) = (self.serverNonce, self.user)
        return SCRAMServer(self.hash, nonce: { nonce }) { $0 == known ? kept : nil }
    }

    /// The last two are from Python's hashlib.pbkdf2_hmac and hmac, which give the same figures for the first two.
    static let all = [
        SCRAMExchange(
            "RFC 5802 §5",
            .sha1,
            nonces: ("fyko+d2lbbFgONRv9qkxdawL", "3rfcNHYJY1ZVvWVs7j"),
            salt: "QSXCR+Q6sek8bf92",
            proof: "v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
            signature: "rmF9pqV8S7suAoZWja4dJRkFsKQ="
        ),
        SCRAMExchange(
            "RFC 7677 §3",
            .sha256,
            proof: "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
            signature: "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
        ),
        SCRAMExchange(
            "SHA-512",
            .sha512,
            proof: "gMGXRcevScNtxZ6/8lQYpGtnsNAc3mGcmNomv+xnoOMw+3R2xNJdMNnzMlTN8PPC6wdp6dybEmDYXYTxwnYPJQ==",
            signature: "ZQnYEgWQMFmmsM8aQMF0nDDCy/AgCzkwk8CmMZYcMg0vSVlKDanekLtifDSeVGT4+5ZxXnJq199RVG2rR7N7Zw=="
        ),
        SCRAMExchange(
            "an escaped name, a password that is not ASCII, 10,000 rounds",
            .sha256,
            user: ("a,b=c", "a=2Cb=3Dc"),
            password: "p\u{E4}ss",
            iterations: 10_000,
            proof: "5WFF5JMBiq74L7rMJo+4+imd9kw25mEiBoVba1AhHzM=",
            signature: "76h3WlpXLCIk2gSfjoLW9iATsrVHzD/w27oWc6iREiQ="
        ),
    ]

    static let rfc7677 = Self.all[1]
    /// Of RFC 7677's exchange.
    static let nonces = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    static let proof = "p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
}

extension String {
    var bytes: [UInt8] { Array(self.utf8) }
}
