import SASL
import Testing

@Suite("PLAIN, EXTERNAL and ANONYMOUS")
struct PlainMechanismsTests {
    @Test("PLAIN is identity, user and password with NUL between (RFC 4616 §2)")
    func plain() throws {
        var mechanism = try PLAINMechanism(user: "tim", password: "tanstaaftanstaaf")
        #expect(mechanism.name == "PLAIN")
        #expect(try mechanism.begin() == Array("\0tim\0tanstaaftanstaaf".utf8))
        try mechanism.finish(nil)
        var acting = try PLAINMechanism(user: "Kurt", password: "xipj3plmq", authorizationIdentity: "Ursel")
        #expect(try acting.begin() == Array("Ursel\0Kurt\0xipj3plmq".utf8))
    }

    @Test(
        "PLAIN refuses what it cannot send",
        arguments: [
            ("", "p", "PLAIN needs a user name of 1 to 255 bytes, and it has 0"),
            ("u", "", "PLAIN needs a password of 1 to 255 bytes, and it has 0"),
            (String(repeating: "u", count: 256), "p", "PLAIN needs a user name of 1 to 255 bytes, and it has 256"),
            ("u\0", "p", "the user name holds U+0000, which PLAIN cannot send"),
            ("u", "\0p", "the password holds U+0000, which PLAIN cannot send"),
        ]
    )
    func plainRefuses(_ user: String, _ password: String, _ words: String) {
        #expect(throws: SASLError.credentials(words)) { try PLAINMechanism(user: user, password: password) }
    }

    @Test("EXTERNAL sends the identity to act as, or an empty one (RFC 4422 appendix A)")
    func external() throws {
        var derived = try EXTERNALMechanism()
        #expect(derived.name == "EXTERNAL")
        #expect(try derived.begin() == [])
        var named = try EXTERNALMechanism(authorizationIdentity: "fred@example.com")
        #expect(try named.begin() == Array("fred@example.com".utf8))
        let words = "the authorization identity holds U+0000, which EXTERNAL cannot send"
        #expect(throws: SASLError.credentials(words)) { try EXTERNALMechanism(authorizationIdentity: "\0") }
    }

    @Test("ANONYMOUS leaves a trace of 255 characters at most (RFC 4505 §2)")
    func anonymous() throws {
        var mechanism = try ANONYMOUSMechanism(trace: "sirhc")
        #expect(mechanism.name == "ANONYMOUS")
        #expect(try mechanism.begin() == Array("sirhc".utf8))
        #expect(throws: SASLError.credentials("ANONYMOUS allows 255 characters, and there are 256")) {
            try ANONYMOUSMechanism(trace: String(repeating: "a", count: 256))
        }
    }

    @Test("none of them answers a challenge")
    func noChallenge() throws {
        var plain = try PLAINMechanism(user: "u", password: "p")
        #expect(throws: SASLError.malformed("a challenge comes, and PLAIN has none")) { try plain.respond(to: []) }
        var external = try EXTERNALMechanism()
        #expect(throws: SASLError.malformed("a challenge comes, and EXTERNAL has none")) {
            try external.respond(to: [])
        }
        var anonymous = try ANONYMOUSMechanism()
        #expect(throws: SASLError.malformed("a challenge comes, and ANONYMOUS has none")) {
            try anonymous.respond(to: [])
        }
    }
}
