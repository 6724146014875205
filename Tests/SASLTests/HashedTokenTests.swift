import DataEncodings
import SASL
import Testing

/// The codes were computed with Python's `hmac`.
@Suite("Logins by hashed tokens")
struct HashedTokenTests {
    struct Vector: Sendable, CustomTestStringConvertible {
        let kind: HashedTokenMechanism.Kind
        let user: String
        let token: String
        var available: [SASLChannelBinding] = []
        let first: String
        let last: String

        var testDescription: String { "\(self.kind.rawValue) for \(self.user)" }
    }

    static let endPoint = SASLChannelBinding(.tlsServerEndPoint, Array(0..<32))
    private static let exporter = SASLChannelBinding(.tlsExporter, [7])

    static let vectors = [
        Vector(
            kind: .unbound,
            user: "juliet",
            token: "secret-token:fast-Zm9v",
            available: [Self.endPoint],
            first: "anVsaWV0AFTX+t1GV73kHHFFMcbLPtQ5btLOLR7pdXCXEEsOCQcQ",
            last: "TZzH0ffjLK7daECyd3jeMQt6hsxr1Eu9qXqkPb+vNME="
        ),
        Vector(
            kind: .endPoint,
            user: "juliet",
            token: "secret-token:fast-Zm9v",
            available: [Self.exporter, Self.endPoint],
            first: "anVsaWV0AGniUQPWyrvdjv8vXfJ3ttWeKFSaBSrHJtN3Y4e8YIr3",
            last: "09klSeYFSzRUkWbPaGX6fKCe85KGTLFyN4IWUmA3cr4="
        ),
        Vector(
            kind: .unbound,
            user: "zoë",
            token: "WXZzciBwYmFmdmZnZiBqdmd1IGp2eXFhcmZm",
            first: "em/DqwCQl3h0YaGE4PqE7ADBOBGQtsTRao7ERTx7KsXn/Pk17Q==",
            last: "TlE0CWMUdIY7mGyfPoweJ8op0derntQJfnr9YAe/nGI="
        ),
        Vector(
            kind: .unbound,
            user: "a",
            token: "ü",
            first: "YQDUFxmS3zR9+Yf2OUmUokArdOw/j0Y0wIuyGGxroe1cEQ==",
            last: "/bV+p0PphfPth+w87GHFGXmyw7tkJ9+DAGO45MUgE0s="
        ),
    ]

    private static func mechanism(_ vector: Vector) throws -> HashedTokenMechanism {
        try HashedTokenMechanism(vector.kind, user: vector.user, token: vector.token, available: vector.available)
    }

    @Test("[sasl-ht §3] user and code go out, and the server proves that it knows the token", arguments: vectors)
    func exchange(_ vector: Vector) throws {
        var mechanism = try Self.mechanism(vector)
        #expect(mechanism.name == vector.kind.rawValue)
        let first = try #require(try mechanism.begin())
        #expect(Base64.encode(first) == vector.first)
        try mechanism.finish(Base64.decode(vector.last.utf8))
        // Once: the proof of one login is none for the next.
        #expect(throws: SASLError.serverNotVerified) { try mechanism.finish(Base64.decode(vector.last.utf8)) }
    }

    @Test("[sasl-ht §3] nothing else is the server's proof", arguments: vectors)
    func refusesProof(_ vector: Vector) throws {
        let proof = try #require(Base64.decode(vector.last.utf8))
        var wrong: [[UInt8]?] = [nil, [], Array(proof.dropLast()), proof + [0]]
        for place in proof.indices {
            var other = proof
            other[place] ^= 1
            wrong.append(other)
        }
        for data in wrong {
            var mechanism = try Self.mechanism(vector)
            _ = try mechanism.begin()
            #expect(throws: SASLError.serverNotVerified) { try mechanism.finish(data) }
        }
        var early = try Self.mechanism(vector)
        #expect(throws: SASLError.serverNotVerified) { try early.finish(proof) }
        #expect(throws: SASLError.malformed("a challenge comes, and \(vector.kind.rawValue) has none")) {
            try early.respond(to: [1])
        }
    }

    @Test(
        "refuses what it cannot send",
        arguments: [
            (.unbound, "", "t", "HT-SHA-256-NONE needs a user name without U+0000"),
            (.unbound, "a\0b", "t", "HT-SHA-256-NONE needs a user name without U+0000"),
            (.endPoint, "a", "", "HT-SHA-256-ENDP needs a token, and it is empty"),
            (.endPoint, "a", "t", "HT-SHA-256-ENDP needs a channel binding, and the connection has none"),
        ] as [(HashedTokenMechanism.Kind, String, String, String)]
    )
    func refuses(_ kind: HashedTokenMechanism.Kind, _ user: String, _ token: String, _ words: String) {
        #expect(throws: SASLError.credentials(words)) {
            try HashedTokenMechanism(kind, user: user, token: token, available: [Self.exporter])
        }
    }

    @Test(
        "[XEP-0484 §6] a bound one is preferred where the connection has its binding",
        arguments: [
            (["HT-SHA-256-NONE", "HT-SHA-256-ENDP"], true, false, .endPoint),
            (["HT-SHA-256-NONE", "HT-SHA-256-ENDP"], false, false, .unbound),
            (["HT-SHA-256-NONE", "HT-SHA-256-ENDP"], false, true, nil),
            (["HT-SHA-256-NONE"], true, false, .unbound), (["HT-SHA-256-NONE"], true, true, nil),
            (["HT-SHA-256-ENDP"], true, true, .endPoint), (["HT-SHA-512-EXPR", "PLAIN"], true, false, nil),
            ([], true, false, nil),
        ] as [([String], Bool, Bool, HashedTokenMechanism.Kind?)]
    )
    func best(_ offered: [String], hasBinding: Bool, requires: Bool, _ kind: HashedTokenMechanism.Kind?) {
        let available = hasBinding ? [Self.endPoint] : [Self.exporter]
        #expect(HashedTokenMechanism.Kind.best(of: offered, available: available, requiresBinding: requires) == kind)
    }
}
