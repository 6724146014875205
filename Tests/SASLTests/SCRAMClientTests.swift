import SASL
import TestSupport
import Testing

@Suite("SCRAM, the client")
struct SCRAMClientTests {
    @Test("[RFC 5802 §3] runs through the whole exchange", arguments: SCRAMExchange.all)
    func exchange(_ exchange: SCRAMExchange) throws {
        var client = try exchange.client()
        #expect(client.name == exchange.hash.rawValue)
        // Twice: a re-authentication starts anew.
        for _ in 1...2 {
            #expect(try client.begin() == exchange.clientFirst.bytes)
            #expect(try client.respond(to: exchange.serverFirst.bytes) == exchange.clientFinal.bytes)
            try client.finish(exchange.serverFinal.bytes)
        }
    }

    @Test("[RFC 5802 §7] ignores extensions behind what it knows", arguments: SCRAMExchange.all)
    func extensions(_ exchange: SCRAMExchange) throws {
        var client = try exchange.client()
        _ = try client.begin()
        // The extension is part of what is signed, so the vector's proof does not hold any more.
        let answer = try client.respond(to: (exchange.serverFirst + ",x=1,y==,").bytes.dropLast())
        let nonces = "c=biws,r=\(exchange.clientNonce)\(exchange.serverNonce),p="
        #expect(answer.starts(with: nonces.utf8) && answer != exchange.clientFinal.bytes)
    }

    @Test("[RFC 4422 §3.5] takes the signature in a challenge of its own, and then wants no other")
    func signatureInChallenge() throws {
        let exchange = SCRAMExchange.rfc7677
        for data in [nil, []] as [[UInt8]?] {
            var client = try exchange.client()
            _ = try client.begin()
            _ = try client.respond(to: exchange.serverFirst.bytes)
            #expect(try client.respond(to: exchange.serverFinal.bytes) == [])
            try client.finish(data)
        }
        var client = try exchange.client()
        _ = try client.begin()
        _ = try client.respond(to: exchange.serverFirst.bytes)
        _ = try client.respond(to: exchange.serverFinal.bytes)
        #expect(throws: SASLError.malformed("data follows the server's signature")) {
            try client.finish(exchange.serverFinal.bytes)
        }
    }

    @Test(
        "[RFC 5802 §5.1] refuses a first message of the server that is not right, and says why",
        arguments: [
            ("", .malformed("\"\" is no attribute")),
            ("r", .malformed("\"r\" is no attribute")),
            ("\(SCRAMExchange.nonces),s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,", .malformed("\"\" is no attribute")),
            ("\(SCRAMExchange.nonces),s=,i=4096", .malformed("\"s=\" is no attribute")),
            ("\(SCRAMExchange.nonces),s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,1=2", .malformed("\"1=2\" is no attribute")),
            ("\(SCRAMExchange.nonces),s=AAAA", .malformed("i= is not where it belongs")),
            ("\(SCRAMExchange.nonces),i=4096,s=AAAA", .malformed("s= is not where it belongs")),
            ("s=AAAA,\(SCRAMExchange.nonces),i=4096", .malformed("r= is not where it belongs")),
            ("x=y,\(SCRAMExchange.nonces),s=AAAA,i=4096", .malformed("r= is not where it belongs")),
            ("m=x,\(SCRAMExchange.nonces),s=AAAA,i=4096", .malformed("it requires an unknown extension (m=)")),
            ("\(SCRAMExchange.nonces),s=AAAA,i=4096,m=x", .malformed("it requires an unknown extension (m=)")),
            ("r=rOprNGfwEbeRWgbNEkqO,s=AAAA,i=4096", .malformed("the server adds nothing to the nonce")),
            ("r=ROprNGfwEbeRWgbNEkqO1,s=AAAA,i=4096", .malformed("the nonce does not start with the client's")),
            ("r=rOprNGfwEbeRWgbNEkq,s=AAAA,i=4096", .malformed("the nonce does not start with the client's")),
            ("r=rOprNGfwEbeRWgbNEkqO 1,s=AAAA,i=4096", .malformed("the nonce does not start with the client's")),
            ("\(SCRAMExchange.nonces),s=AA=A,i=4096", .malformed("the salt is not base64")),
            ("\(SCRAMExchange.nonces),s=AAB=,i=4096", .malformed("the salt is not base64")),
            ("\(SCRAMExchange.nonces),s=AA A,i=4096", .malformed("the salt is not base64")),
            ("\(SCRAMExchange.nonces),s=AAAA,i=0", .malformed("the number of iterations is no positive number")),
            ("\(SCRAMExchange.nonces),s=AAAA,i=-1", .malformed("the number of iterations is no positive number")),
            ("\(SCRAMExchange.nonces),s=AAAA,i=04096", .malformed("the number of iterations is no positive number")),
            ("\(SCRAMExchange.nonces),s=AAAA,i=4096a", .malformed("the number of iterations is no positive number")),
            (
                "\(SCRAMExchange.nonces),s=AAAA,i=9999999999999999999",
                .malformed("the number of iterations is no positive number")
            ),
            ("\(SCRAMExchange.nonces),s=AAAA,i=4095", .iterations(4_095, allowed: 4_096...600_000)),
            ("\(SCRAMExchange.nonces),s=AAAA,i=600001", .iterations(600_001, allowed: 4_096...600_000)),
            ("\(SCRAMExchange.nonces),s=AAAA,i=4096\0", .malformed("it contains U+0000")),
            ("e=unknown-user", .refused("unknown-user")),
            ("e=other-error,x=1", .refused("other-error")),
        ] as [(String, SASLError)]
    )
    func refusesFirst(_ message: String, _ error: SASLError) throws {
        var client = try SCRAMExchange.rfc7677.client()
        _ = try client.begin()
        #expect(throws: error) { try client.respond(to: message.bytes) }
        // Nothing that comes later can make it good.
        #expect(throws: SASLError.serverNotVerified) { try client.finish(SCRAMExchange.rfc7677.serverFinal.bytes) }
    }

    @Test("refuses bytes that are not UTF-8, and too many of them")
    func refusesBytes() throws {
        var client = try SCRAMExchange.rfc7677.client()
        _ = try client.begin()
        #expect(throws: SASLError.malformed("it is not UTF-8")) { try client.respond(to: "r=".bytes + [0xC0, 0x80]) }
        _ = try client.begin()
        let long = "x=" + String(repeating: "y", count: 2_047)
        #expect(throws: SASLError.malformed("2049 bytes are more than 2048")) { try client.respond(to: long.bytes) }
    }

    @Test(
        "[RFC 5802 §3] wants the server's proof before anything else is sent",
        arguments: [
            (nil, .serverNotVerified), ("", .serverNotVerified), ("x=1", .serverNotVerified),
            ("x=1,v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=", .serverNotVerified),
            ("v=7rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=", .serverNotVerified),
            ("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95A==", .serverNotVerified),
            ("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4", .malformed("the signature is not base64")),
            ("v=", .malformed("\"v=\" is no attribute")),
            ("v=AAAA,m=1", .malformed("it requires an unknown extension (m=)")),
            ("e=invalid-proof", .refused("invalid-proof")),
        ] as [(String?, SASLError)]
    )
    func refusesFinal(_ message: String?, _ error: SASLError) throws {
        var client = try SCRAMExchange.rfc7677.client()
        _ = try client.begin()
        _ = try client.respond(to: SCRAMExchange.rfc7677.serverFirst.bytes)
        #expect(throws: error) { try client.finish(message?.bytes) }
        #expect(throws: SASLError.serverNotVerified) { try client.finish(SCRAMExchange.rfc7677.serverFinal.bytes) }
    }

    @Test("[RFC 5802 §3] a server that is content too early has proved nothing")
    func earlySuccess() throws {
        var client = try SCRAMExchange.rfc7677.client()
        #expect(throws: SASLError.malformed("a challenge comes when none is expected")) {
            try client.respond(to: SCRAMExchange.rfc7677.serverFirst.bytes)
        }
        _ = try client.begin()
        #expect(throws: SASLError.serverNotVerified) { try client.finish(SCRAMExchange.rfc7677.serverFinal.bytes) }
    }

    @Test("no byte of the server's messages can be changed, left out or cut off without being noticed")
    func everyMutation() throws {
        let exchange = SCRAMExchange.rfc7677
        let cache = SCRAMKeyCache()
        var client = try exchange.client(cache: cache)
        var generator = SeededGenerator(seed: 7)
        let first = exchange.serverFirst.bytes
        for index in first.indices {
            var changed = first
            changed[index] ^= UInt8.random(in: 1...255, using: &generator)
            // A larger count of rounds is what the server may ask for; it would only take its time here.
            guard !changed.suffix(4).allSatisfy({ (0x30...0x39).contains($0) }) || changed.suffix(4) == first.suffix(4)
            else { continue }
            for message in [changed, Array(first[..<index]), Array(first[..<index] + first[(index + 1)...])] {
                _ = try client.begin()
                // If the message is accepted, the proof is for other bytes, and the server's signature does not match.
                let answer = try? client.respond(to: message)
                if let answer { #expect(answer != exchange.clientFinal.bytes) }
                #expect(throws: SASLError.self) { try client.finish(exchange.serverFinal.bytes) }
            }
        }
        let last = exchange.serverFinal.bytes
        for index in last.indices {
            var changed = last
            changed[index] ^= UInt8.random(in: 1...255, using: &generator)
            for message in [changed, Array(last[..<index]), Array(last[..<index] + last[(index + 1)...])] {
                _ = try client.begin()
                _ = try client.respond(to: first)
                #expect(throws: SASLError.self) { try client.finish(message) }
            }
        }
    }

    @Test(
        "refuses names and passwords that it cannot prepare",
        arguments: [
            ("", "p", "SCRAM needs a user name, and it is empty"), ("u", "", "SCRAM needs a password, and it is empty"),
            ("u", "\u{AD}", "SCRAM needs a password, and it is empty"),
            ("u\0", "p", "the user name holds U+0000, which SCRAM cannot use here"),
            ("u", "a\u{E000}", "the password holds U+E000, which SCRAM cannot use here"),
        ]
    )
    func refusesCredentials(_ user: String, _ password: String, _ words: String) {
        #expect(throws: SASLError.credentials(words)) {
            try SCRAMClient(.sha256, user: user, password: password, cache: SCRAMKeyCache())
        }
    }

    @Test(
        "an error is one line, whatever the server says",
        arguments: [
            ("e=x\nall is well", #"the server refused the authentication: x\u{A}all is well"#),
            ("e=a\u{202E}b\u{2028}\u{9B}\u{E9}", #"the server refused the authentication: a\u{202E}b\u{2028}\u{9B}é"#),
            ("no\r\n", #"the server's authentication data is wrong: "no\u{D}\u{A}" is no attribute"#),
        ]
    )
    func oneLine(_ message: String, _ words: String) throws {
        var client = try SCRAMExchange.rfc7677.client()
        _ = try client.begin()
        do throws(SASLError) {
            _ = try client.respond(to: message.bytes)
            Issue.record("accepted")
        } catch {
            #expect(error.words == words)
        }
    }

    @Test("the allowed rounds can be set")
    func rounds() throws {
        let message = "\(SCRAMExchange.nonces),s=AAAA,i=1".bytes
        var client = try SCRAMExchange.rfc7677.client(iterations: 1...2)
        _ = try client.begin()
        #expect(try client.respond(to: message).starts(with: "c=biws,".utf8))
        #expect(SASLError.iterations(1, allowed: 4...9).words.hasSuffix("fewer than 4 are unsafe"))
        #expect(SASLError.iterations(10, allowed: 4...9).words.hasSuffix("more than 9 are refused"))
    }

    @Test("nonces of its own have 32 printable characters and do not repeat")
    func nonces() {
        let nonces = (0..<1_000).map { _ in SCRAMNonce.random() }
        #expect(Set(nonces).count == 1_000)
        #expect(nonces.allSatisfy { $0.utf8.count == 32 && !$0.utf8.contains(0x2C) })
    }

    @Test("derives keys once for the same password, salt and rounds, and keeps no more than it may")
    func cache() throws {
        let exchange = SCRAMExchange.rfc7677
        let cache = SCRAMKeyCache(capacity: 2)
        var client = try exchange.client(cache: cache)
        func login(salt: String, expecting derivations: Int) throws {
            _ = try client.begin()
            _ = try client.respond(to: "\(SCRAMExchange.nonces),s=\(salt),i=4096".bytes)
            #expect(cache.derivations == derivations)
        }
        for _ in 0..<10 { try login(salt: "AAAA", expecting: 1) }
        try login(salt: "BBBB", expecting: 2)
        try login(salt: "AAAA", expecting: 2)
        // The third pushes the oldest out, however often that one was used.
        try login(salt: "CCCC", expecting: 3)
        try login(salt: "BBBB", expecting: 3)
        try login(salt: "AAAA", expecting: 4)
        #expect(cache.count == 2)
    }
}
