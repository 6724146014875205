import DataEncodings
import SASL
import TestSupport
import Testing

@Suite("SCRAM, the server")
struct SCRAMServerTests {
    @Test("[RFC 5802 §3] runs through the whole exchange", arguments: SCRAMExchange.all)
    func exchange(_ exchange: SCRAMExchange) throws {
        var server = try exchange.server()
        #expect(server.name == exchange.hash.rawValue)
        #expect(server.received(exchange.clientFirst.bytes) == .challenge(exchange.serverFirst.bytes))
        #expect(
            server.received(exchange.clientFinal.bytes)
                == .accepted(user: exchange.user, exchange.serverFinal.bytes)
        )
        #expect(server.received(exchange.clientFirst.bytes) == .refused(.otherError))
    }

    @Test(
        "agrees with the client on random nonces, and not with one who has another password",
        arguments: SCRAMHash.allCases
    )
    func bothSides(_ hash: SCRAMHash) throws {
        let kept = try SCRAMCredentials(hash, password: "right", salt: [1, 2, 3])
        let cache = SCRAMKeyCache()
        for password in ["right", "wrong"] {
            var server = SCRAMServer(hash) { _ in kept }
            var client = try SCRAMClient(hash, user: "u", password: password, cache: cache)
            guard case .challenge(let challenge) = server.received(try client.begin() ?? []) else {
                Issue.record("no challenge")
                return
            }
            switch server.received(try client.respond(to: challenge)) {
            case .accepted(let user, let signature):
                #expect((user, password) == ("u", "right"))
                try client.finish(signature)
            case .refused(let error): #expect((error, password) == (.invalidProof, "wrong"))
            case .challenge: Issue.record("a second challenge")
            }
        }
    }

    @Test(
        "[RFC 5802 §5.1] accepts other headers of clients without channel binding",
        arguments: ["n,,", "y,,", "n,a=user,", "y,a=user,"]
    )
    func headers(_ header: String) throws {
        let exchange = SCRAMExchange.rfc7677
        var server = try exchange.server()
        #expect(
            server.received((header + "n=user,r=rOprNGfwEbeRWgbNEkqO").bytes) == .challenge(exchange.serverFirst.bytes)
        )
        // The content of c= is signed too, so that only the header matters here.
        let final = "c=\(Base64.encode(header.bytes)),\(SCRAMExchange.nonces),\(SCRAMExchange.proof)"
        let expected: SCRAMServer.Step =
            header == "n,," ? .accepted(user: "user", exchange.serverFinal.bytes) : .refused(.invalidProof)
        #expect(server.received(final.bytes) == expected)
    }

    @Test(
        "[RFC 5802 §7] refuses a first message that is not right",
        arguments: [
            ("", .otherError), ("n", .otherError), ("n,", .otherError), ("n,,", .otherError),
            ("x,,n=user,r=abc", .otherError), ("n,b=x,n=user,r=abc", .otherError),
            ("n,a=other,n=user,r=abc", .otherError), ("n,a=u=ser,n=user,r=abc", .otherError),
            ("p=tls-unique,,n=user,r=abc", .channelBindingNotSupported),
            ("n,,m=x,n=user,r=abc", .extensionsNotSupported), ("n,,r=abc,n=user", .otherError),
            ("n,,n=user", .otherError), ("n,,n=user,r=", .otherError), ("n,,n=user,r=a b", .otherError),
            ("n,,n=,r=abc", .otherError), ("n,,n=us=er,r=abc", .invalidUserNameEncoding),
            ("n,,n=us=2cer,r=abc", .invalidUserNameEncoding), ("n,,n=us\u{7}er,r=abc", .invalidUserNameEncoding),
            ("n,,n=us\0er,r=abc", .invalidEncoding), ("n,,n=nobody,r=abc", .unknownUser),
        ] as [(String, SCRAMServerError)]
    )
    func refusesFirst(_ message: String, _ error: SCRAMServerError) throws {
        var server = try SCRAMExchange.rfc7677.server()
        #expect(server.received(message.bytes) == .refused(error))
        #expect(error.message == "e=\(error.rawValue)".bytes)
        #expect(server.received(SCRAMExchange.rfc7677.clientFinal.bytes) == .refused(.otherError))
    }

    @Test(
        "[RFC 5802 §7] refuses a last message that is not right",
        arguments: [
            ("", .otherError), ("c=biws,\(SCRAMExchange.nonces)", .otherError),
            ("\(SCRAMExchange.nonces),c=biws,\(SCRAMExchange.proof)", .otherError),
            ("c=biws,\(SCRAMExchange.proof)", .otherError),
            ("c=biws,\(SCRAMExchange.nonces),\(SCRAMExchange.proof),x=1", .otherError),
            ("c=eSws,\(SCRAMExchange.nonces),\(SCRAMExchange.proof)", .channelBindingsDontMatch),
            ("c=biw,\(SCRAMExchange.nonces),\(SCRAMExchange.proof)", .invalidEncoding),
            ("c=biws,\(SCRAMExchange.nonces),p=AAA", .invalidEncoding),
            ("c=biws,\(SCRAMExchange.nonces),p=AAAA", .invalidProof),
            ("c=biws,\(SCRAMExchange.nonces),p=eHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=", .invalidProof),
            ("c=biws,\(SCRAMExchange.nonces),x=1,\(SCRAMExchange.proof)", .invalidProof),
            ("c=biws,\(SCRAMExchange.nonces),m=1,\(SCRAMExchange.proof)", .extensionsNotSupported),
            ("c=biws,r=rOprNGfwEbeRWgbNEkqO,\(SCRAMExchange.proof)", .otherError),
        ] as [(String, SCRAMServerError)]
    )
    func refusesFinal(_ message: String, _ error: SCRAMServerError) throws {
        var server = try SCRAMExchange.rfc7677.server()
        _ = server.received(SCRAMExchange.rfc7677.clientFirst.bytes)
        #expect(server.received(message.bytes) == .refused(error))
        #expect(server.received(SCRAMExchange.rfc7677.clientFinal.bytes) == .refused(.otherError))
    }

    @Test("answers any bytes with a step, and accepts none of them")
    func hostileBytes() throws {
        let exchange = SCRAMExchange.rfc7677
        let fresh = try exchange.server()
        var generator = SeededGenerator(seed: 11)
        for round in 0..<2_000 {
            var server = fresh
            var message = round % 2 == 0 ? exchange.clientFirst.bytes : exchange.clientFinal.bytes
            if round % 2 == 1 { _ = server.received(exchange.clientFirst.bytes) }
            let index = Int.random(in: message.indices, using: &generator)
            message[index] ^= UInt8.random(in: 1...255, using: &generator)
            if case .accepted = server.received(message) { Issue.record("accepted \(message)") }
        }
    }
}
