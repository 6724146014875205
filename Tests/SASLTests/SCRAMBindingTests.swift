import DataEncodings
import SASL
import Testing

@Suite("SCRAM with channel binding and an identity to act for")
struct SCRAMBindingTests {
    struct Vector: Sendable, CustomTestStringConvertible {
        let hash: SCRAMHash
        let binding: SCRAMBinding
        var identity = ""
        let name: String
        let header: String
        let proof: String
        let signature: String

        var testDescription: String { "\(self.name) with \(self.header)" }
    }

    static let data = (0..<32).map { UInt8($0) }

    /// Made with Python's hashlib and hmac, over the nonces, salt and password of RFC 7677 §3.
    static let vectors = [
        Vector(
            hash: .sha256,
            binding: .bound(SASLChannelBinding(.tlsServerEndPoint, data)),
            name: "SCRAM-SHA-256-PLUS",
            header: "p=tls-server-end-point,,",
            proof: "nY1Wus9a+gM2DrbQ1msXFgyhW6KM5ktOxWiU+/P/EGY=",
            signature: "RwppMGddhz/J0lFYaRReBjXcQeNUFP5Qc76Lo5Exrig="
        ),
        Vector(
            hash: .sha1,
            binding: .bound(SASLChannelBinding(.tlsExporter, data)),
            name: "SCRAM-SHA-1-PLUS",
            header: "p=tls-exporter,,",
            proof: "/QKgZNBHelOsjZPTvucb5s4VtQE=",
            signature: "tK3UShY5jkJWC9Q52aNEU6Ba6Is="
        ),
        Vector(
            hash: .sha256,
            binding: .notOffered,
            name: "SCRAM-SHA-256",
            header: "y,,",
            proof: "FoqiHTtQEDE8lz1CdaEe3tK4mS+iMDTl77SPyDS53DY=",
            signature: "dI4KpiQJwBr1+V+K6U1dA6l6I4I9DUNXWND4pcpRU3U="
        ),
        Vector(
            hash: .sha256,
            binding: .unsupported,
            identity: "ad,min=",
            name: "SCRAM-SHA-256",
            header: "n,a=ad=2Cmin=3D,",
            proof: "FDci71ROd2pcOJq1UINSTd2Z3ggApWHGyckrkJweG6s=",
            signature: "xKqlyp5FBlX2Sz7/7fjzB8E+/J4XDnfVDmZ5hJQJLcM="
        ),
        Vector(
            hash: .sha512,
            binding: .bound(SASLChannelBinding(.tlsServerEndPoint, data)),
            identity: "admin",
            name: "SCRAM-SHA-512-PLUS",
            header: "p=tls-server-end-point,a=admin,",
            proof:
                "QyAiW3H996BgAEU9iaDBn9u7l/RX2yh/qn7ECA09FQH29LXLegOB3vTHnymK/ue7uYpcIRCh5yy2HgOB/9ObYQ==",
            signature:
                "LxG3vd5Cy0sfpH1ZH9LBaK559n7ZxagLoHY9cRRslwFLWHRi2yi0ylETgvF1e59tZMR2CZVOn3VrnogPQNfLHg=="
        ),
    ]

    private static func client(_ vector: Vector) throws -> SCRAMClient {
        let nonce = SCRAMExchange.rfc7677.clientNonce
        return try SCRAMClient(
            vector.hash,
            user: "user",
            password: "pencil",
            authorizationIdentity: vector.identity,
            binding: vector.binding,
            cache: SCRAMKeyCache(capacity: 1),
            nonce: { nonce }
        )
    }

    @Test("[RFC 5802 §6] the header goes first, and under the proof with the binding's data", arguments: vectors)
    func exchange(_ vector: Vector) throws {
        let exchange = SCRAMExchange.rfc7677
        var client = try Self.client(vector)
        #expect(client.name == vector.name)
        let first = "\(vector.header)n=user,r=\(exchange.clientNonce)"
        #expect(try client.begin() == first.bytes)
        let isBound = vector.name.hasSuffix("-PLUS")
        let binding = Base64.encode(vector.header.bytes + (isBound ? Self.data : []))
        let nonces = "r=\(exchange.clientNonce)\(exchange.serverNonce)"
        let last = "c=\(binding),\(nonces),p=\(vector.proof)"
        #expect(try client.respond(to: exchange.serverFirst.bytes) == last.bytes)
        try client.finish("v=\(vector.signature)".bytes)
    }

    @Test("[RFC 5802 §3] the signature of an exchange without the binding proves nothing", arguments: vectors)
    func otherSignature(_ vector: Vector) throws {
        guard vector.hash == .sha256 else { return }
        var client = try Self.client(vector)
        _ = try client.begin()
        _ = try client.respond(to: SCRAMExchange.rfc7677.serverFirst.bytes)
        #expect(throws: SASLError.serverNotVerified) { try client.finish(SCRAMExchange.rfc7677.serverFinal.bytes) }
    }

    @Test("[RFC 5802 §7] the server's error about the binding is reported unchanged")
    func refusal() throws {
        var client = try Self.client(Self.vectors[0])
        _ = try client.begin()
        _ = try client.respond(to: SCRAMExchange.rfc7677.serverFirst.bytes)
        #expect(throws: SASLError.refused("channel-bindings-dont-match")) {
            try client.finish("e=channel-bindings-dont-match".bytes)
        }
    }

    @Test("an identity that cannot be prepared is refused before anything is sent")
    func identity() {
        #expect(throws: SASLError.credentials("the identity to act for holds U+0007, which SCRAM cannot use here")) {
            try SCRAMClient(
                .sha1,
                user: "u",
                password: "p",
                authorizationIdentity: "a\u{7}",
                cache: SCRAMKeyCache(capacity: 1)
            )
        }
    }
}
