import SASL
import TestSupport
import Testing

@Suite("DIGEST-MD5")
struct DigestMD5Tests {
    struct Exchange: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var user = "chris"
        var password = "secret"
        var host = "elwood.innosoft.com"
        var service = "xmpp"
        var identity = ""
        let clientNonce: String
        let challenge: [UInt8]
        let answer: [UInt8]
        let proof: String

        func client() throws -> DigestMD5Mechanism {
            let nonce = self.clientNonce
            return try DigestMD5Mechanism(
                user: self.user,
                password: self.password,
                host: self.host,
                service: self.service,
                authorizationIdentity: self.identity,
                nonce: { nonce }
            )
        }
    }

    static let imap = Exchange(
        testDescription: "RFC 2831 §4, IMAP",
        service: "imap",
        clientNonce: "OA6MHXh6VqTrRk",
        challenge: #"""
            realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",qop="auth",algorithm=md5-sess,charset=utf-8
            """#.bytes,
        answer: (#"charset=utf-8,username="chris",realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh","#
            + #"cnonce="OA6MHXh6VqTrRk",nc=00000001,qop=auth,digest-uri="imap/elwood.innosoft.com","#
            + #"response=d388dad90d4bbd760a152321f2143af7"#).bytes,
        proof: "ea40f60335c427b5527b84dbabcdfffd"
    )

    /// The last two with figures of Python's hashlib.
    static let exchanges = [
        imap,
        Exchange(
            testDescription: "RFC 2831 §4, ACAP",
            service: "acap",
            clientNonce: "OA9BSuZWMSpW8m",
            challenge: #"""
                realm="elwood.innosoft.com",nonce="OA9BSXrbuRhWay",qop="auth",algorithm=md5-sess,charset=utf-8
                """#.bytes,
            answer: (#"charset=utf-8,username="chris",realm="elwood.innosoft.com",nonce="OA9BSXrbuRhWay","#
                + #"cnonce="OA9BSuZWMSpW8m",nc=00000001,qop=auth,digest-uri="acap/elwood.innosoft.com","#
                + #"response=6084c6db3fede7352c551284490fd0fc"#).bytes,
            proof: "2f0b3d7c3c2e486600ef710726aa2eae"
        ),
        Exchange(
            testDescription:
                "ISO 8859-1 under the hash but for the realm, quotes escaped, the realm of our own among several",
            user: "j\u{F6}rg",
            password: "p\"a\\\u{DF}",
            host: "w\u{F6}rld.test",
            clientNonce: "cnonce",
            challenge: #"""
                realm="other", realm="wörld.test" , nonce = "n\"o\\nce",qop="auth-int,auth",,charset=utf-8,x=y,algorithm=md5-sess,
                """#.bytes,
            answer: (#"charset=utf-8,username="jörg",realm="wörld.test",nonce="n\"o\\nce","#
                + #"cnonce="cnonce",nc=00000001,qop=auth,digest-uri="xmpp/wörld.test","#
                + #"response=28142b2df2a22303309de54c8ec10e4f"#).bytes,
            proof: "4810573222913782a94e49e45c8cfa71"
        ),
        Exchange(
            testDescription: "no realm: the domain; a name beyond ISO 8859-1; an identity to act for",
            user: "\u{17E}ofie",
            password: "\u{FE}\u{E4}",
            host: "x.test",
            identity: "other@x.test",
            clientNonce: "cnonce",
            challenge: #"nonce="nonce",algorithm=md5-sess,charset=utf-8"#.bytes,
            answer: (#"charset=utf-8,username="žofie",realm="x.test",nonce="nonce","#
                + #"cnonce="cnonce",nc=00000001,qop=auth,digest-uri="xmpp/x.test","#
                + #"response=9c32ff608b2601904323fc32ed767e40,authzid="other@x.test""#).bytes,
            proof: "28ac2e741cbe18b07604a85fc11fcdba"
        ),
    ]

    @Test("[RFC 2831 §2.1] lets the server begin, answers, and wants its proof", arguments: exchanges)
    func exchange(_ exchange: Exchange) throws {
        var client = try exchange.client()
        #expect(client.name == "DIGEST-MD5")
        // Twice: a second login starts anew. The proof may come with the success, or in a challenge before.
        for isChallenge in [true, false] {
            #expect(try client.begin() == nil)
            #expect(try client.respond(to: exchange.challenge) == exchange.answer)
            let proof = "rspauth=\(exchange.proof)".bytes
            if isChallenge {
                #expect(try client.respond(to: proof) == [])
                try client.finish(nil)
            } else {
                try client.finish(proof)
            }
        }
    }

    @Test("[RFC 2831 §2.1.1] without charset=utf-8 the name is sent in ISO 8859-1, or not at all")
    func latin() throws {
        var client = try DigestMD5Mechanism(user: "j\u{F6}rg", password: "p", host: "x.test")
        _ = try client.begin()
        let answer = try client.respond(to: #"nonce="n",algorithm=md5-sess"#.bytes)
        #expect(answer.starts(with: #"username=""#.bytes + [0x6A, 0xF6, 0x72, 0x67, 0x22]))
        client = try DigestMD5Mechanism(user: "\u{17E}", password: "p", host: "x.test")
        _ = try client.begin()
        let words = "the user name is not in ISO 8859-1, the only encoding of the server's DIGEST-MD5"
        #expect(throws: SASLError.credentials(words)) { try client.respond(to: #"nonce="n",algorithm=md5-sess"#.bytes) }
    }

    @Test(
        "[RFC 2831 §2.1.1] refuses a challenge that is not right, and says why",
        arguments: [
            ("", "it has no nonce"), (#"nonce="",algorithm=md5-sess"#, "it has no nonce"),
            (#"nonce="a",nonce="b",algorithm=md5-sess"#, "nonce occurs 2 times"),
            (#"nonce="a""#, "its algorithm is not md5-sess"),
            (#"nonce="a",algorithm=md5"#, "its algorithm is not md5-sess"),
            (#"nonce="a",algorithm=md5-sess,algorithm=md5-sess"#, "algorithm occurs 2 times"),
            (#"nonce="a",algorithm=md5-sess,qop="auth-conf""#, "it wants a layer of its own (qop without auth)"),
            (#"nonce="a",algorithm=md5-sess,charset=iso-8859-1"#, "its charset is not utf-8"),
            (#"nonce="a"#, "a quoted value has no end"), (#"nonce="a\"#, "a quoted value has no end"),
            (#"nonce"#, "a directive has no name, or no value"), (#"="a""#, "a directive has no name, or no value"),
            (#"nonce="a"b"#, "no comma follows the directive nonce"), ("nonce=", "a directive has no value"),
            ("nonce=\0", "it contains U+0000"),
            ("x=" + String(repeating: "y", count: 2_046), "2048 bytes are more than 2047"),
        ]
    )
    func refusesChallenge(_ challenge: String, _ words: String) throws {
        var client = try Self.imap.client()
        _ = try client.begin()
        #expect(throws: SASLError.malformed(words)) { try client.respond(to: challenge.bytes) }
        #expect(throws: SASLError.serverNotVerified) { try client.finish("rspauth=\(Self.imap.proof)".bytes) }
    }

    @Test(
        "[RFC 2831 §2.1.3] a server without the right proof has proved nothing",
        arguments: [
            (nil, .serverNotVerified), ("", .serverNotVerified), ("x=y", .serverNotVerified),
            ("rspauth=ea40f60335c427b5527b84dbabcdfffe", .serverNotVerified),
            ("rspauth=d388dad90d4bbd760a152321f2143af7", .serverNotVerified),
            ("rspauth=ea40f60335c427b5527b84dbabcdfff", .serverNotVerified),
            ("rspauth=ea40f60335c427b5527b84dbabcdfffd,rspauth=x", .malformed("rspauth occurs 2 times")),
        ] as [(String?, SASLError)]
    )
    func refusesProof(_ message: String?, _ error: SASLError) throws {
        var client = try Self.imap.client()
        _ = try client.begin()
        _ = try client.respond(to: Self.imap.challenge)
        #expect(throws: error) { try client.finish(message?.bytes) }
        #expect(throws: SASLError.serverNotVerified) { try client.finish("rspauth=\(Self.imap.proof)".bytes) }
        guard let message, !message.isEmpty else { return }
        _ = try client.begin()
        _ = try client.respond(to: Self.imap.challenge)
        #expect(throws: error) { try client.respond(to: message.bytes) }
    }

    @Test("[RFC 2831 §2.1] nothing out of turn is believed")
    func turns() throws {
        var client = try Self.imap.client()
        let early = SASLError.malformed("a challenge comes when none is expected")
        #expect(throws: early) { try client.respond(to: Self.imap.challenge) }
        _ = try client.begin()
        #expect(throws: SASLError.serverNotVerified) { try client.finish(nil) }
        _ = try client.begin()
        _ = try client.respond(to: Self.imap.challenge)
        _ = try client.respond(to: "rspauth=\(Self.imap.proof)".bytes)
        #expect(throws: SASLError.malformed("data follows the server's proof")) { try client.finish([1]) }
        #expect(throws: early) { try client.respond(to: Self.imap.challenge) }
    }

    @Test("no byte of the server's proof can be changed, and no cut of the challenge traps")
    func mutations() throws {
        var client = try Self.imap.client()
        let proof = "rspauth=\(Self.imap.proof)".bytes
        var generator = SeededGenerator(seed: 5)
        for index in proof.indices {
            var changed = proof
            changed[index] ^= UInt8.random(in: 1...255, using: &generator)
            // The name's case does not matter.
            if String(decoding: changed, as: UTF8.self).lowercased() == String(decoding: proof, as: UTF8.self),
                index < 7
            {
                continue
            }
            _ = try client.begin()
            _ = try client.respond(to: Self.imap.challenge)
            #expect(throws: SASLError.self) { try client.finish(changed) }
        }
        for cut in Self.imap.challenge.indices {
            _ = try client.begin()
            // Without its end a challenge may still be one, for another answer or the same.
            _ = try? client.respond(to: Array(Self.imap.challenge[..<cut]))
        }
    }

    @Test(
        "refuses what it cannot send",
        arguments: [
            ("", "p", "h", "DIGEST-MD5 needs a user name, and it is empty"),
            ("u", "", "h", "DIGEST-MD5 needs a password, and it is empty"),
            ("u", "p", "", "DIGEST-MD5 needs a domain, and it is empty"),
            ("u\0", "p", "h", "the user name holds U+0000, which DIGEST-MD5 cannot send"),
        ]
    )
    func credentials(_ user: String, _ password: String, _ host: String, _ words: String) {
        #expect(throws: SASLError.credentials(words)) {
            try DigestMD5Mechanism(user: user, password: password, host: host)
        }
    }

    @Test("[XEP-0078 §3] the digest of jabber:iq:auth")
    func legacy() {
        let digits = LegacyDigest.digits(streamID: "3EE948B0", password: "Calli0pe")
        #expect(digits == "48fc78be9ec8f86d8ce1c39c320c97c21d62334d")
    }
}
