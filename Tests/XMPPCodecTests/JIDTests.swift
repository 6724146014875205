import Foundation
import TestSupport
import Testing
import XMPPCodec

@Suite("Addresses")
struct JIDTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let text: String
        let local: String?
        let domain: String
        let resource: String?

        var testDescription: String { self.text }
        var prepared: String {
            (self.local.map { $0 + "@" } ?? "") + self.domain + (self.resource.map { "/" + $0 } ?? "")
        }
    }

    private static func jid(_ text: String, _ local: String?, _ domain: String, _ resource: String? = nil) -> Case {
        Case(text: text, local: local, domain: domain, resource: resource)
    }

    static let cases: [Case] = [
        // RFC 7622 §3.5, table 1.
        jid("juliet@example.com", "juliet", "example.com"),
        jid("juliet@example.com/foo", "juliet", "example.com", "foo"),
        jid("juliet@example.com/foo bar", "juliet", "example.com", "foo bar"),
        jid("juliet@example.com/foo@bar", "juliet", "example.com", "foo@bar"),
        jid("foo\\20bar@example.com", "foo\\20bar", "example.com"),
        jid("fussball@example.com", "fussball", "example.com"),
        jid("fußball@example.com", "fußball", "example.com"),
        jid("π@example.com", "π", "example.com"),
        jid("Σ@example.com/foo", "σ", "example.com", "foo"),
        jid("σ@example.com/foo", "σ", "example.com", "foo"),
        jid("ς@example.com/foo", "ς", "example.com", "foo"),
        jid("example.com", nil, "example.com"),
        jid("example.com/foobar", nil, "example.com", "foobar"),
        jid("a.example.com/b@example.net", nil, "a.example.com", "b@example.net"),
        // ASCII.
        jid("Juliet@Example.COM/Balcony", "juliet", "example.com", "Balcony"),
        jid("a@b.", "a", "b"),
        jid("user1@localhost/clamor", "user1", "localhost", "clamor"),
        jid("!#$%()*+,-.;=?[\\]^_`{|}~@a", "!#$%()*+,-.;=?[\\]^_`{|}~", "a"),
        jid("a/b/c", nil, "a", "b/c"),
        jid("a/@", nil, "a", "@"),
        jid("a/ ", nil, "a", " "),
        jid("127.0.0.1", nil, "127.0.0.1"),
        jid("a@[::1]", "a", "[::1]"),
        jid("[2001:DB8::1]/x", nil, "[2001:db8::1]", "x"),
        jid("[1:2:3:4:5:6:7:8]", nil, "[1:2:3:4:5:6:7:8]"),
        jid("[::ffff:192.0.2.1]", nil, "[::ffff:192.0.2.1]"),
        jid("[::]", nil, "[::]"),
        jid("xn--bcher-kva.example", nil, "bücher.example"),
        // Beyond ASCII.
        jid("ÄÖÜ@Bücher.example/Größe ÀÉ", "äöü", "bücher.example", "Größe ÀÉ"),
        jid("ПРИВЕТ@пример.рф/Дом", "привет", "пример.рф", "Дом"),
        jid("名前@例え/部屋", "名前", "例え", "部屋"),
        jid("한국@a/서울", "한국", "a", "서울"),
        jid("a@b/x\u{A0}y\u{3000}z", "a", "b", "x y z"),
        jid("a@b/😀", "a", "b", "😀"),
        // Wide, decomposed, from right to left.
        jid("Ａｌｉｃｅ@a", "alice", "a", nil), jid("ｶﾞ@a", "\u{30AC}", "a", nil),
        jid("JOSE\u{301}@cafe\u{301}.example/Zoe\u{308}", "jos\u{E9}", "caf\u{E9}.example", "Zo\u{EB}"),
        jid("o\u{302}\u{323}@a", "\u{1ED9}", "a", nil),
        jid("אברהם@דוגמה.example/\u{5D0}a", "אברהם", "דוגמה.example", "אa"),
        jid("\u{627}\u{62D}\u{645}\u{62F}\u{661}@a", "\u{627}\u{62D}\u{645}\u{62F}\u{661}", "a", nil),
        jid("a@b/\u{103BF}\u{301}\u{323}", "a", "b", "\u{103BF}\u{323}\u{301}"),
        jid("สวัสดี@a/हिन्दी", "สวัสดี", "a", "हिन्दी"), jid("İ@a", "i\u{307}", "a", nil),
        jid("ΟΔΟΣ@a/ΟΔΟΣ", "οδος", "a", "ΟΔΟΣ"), jid("STRAẞE@a", "straße", "a", nil),
        jid("col\u{B7}lectiu@a", "col\u{B7}lectiu", "a", nil), jid("\u{30D2}\u{30FB}@a", "\u{30D2}\u{30FB}", "a", nil),
        jid("a@b/\u{212B} \u{2163} ♚", "a", "b", "\u{C5} \u{2163} ♚"), jid("क्\u{200D}ष@a", "क्\u{200D}ष", "a", nil),
    ]

    @Test("[RFC 7622 §3] are taken apart and prepared", arguments: cases)
    func parses(_ example: Case) throws {
        let jid = try JID(example.text)
        #expect(jid.local == example.local)
        #expect(jid.domain == example.domain)
        #expect(jid.resource == example.resource)
        // Strings that are equal may be composed in different ways.
        #expect(Array(jid.description.utf8) == Array(example.prepared.utf8))
        #expect(jid.isBare == (example.resource == nil))
        // Prepared once is prepared for good.
        let again = try JID(jid.description)
        #expect(again == jid)
        #expect(again.hashValue == jid.hashValue)
        let made = try JID(local: example.local, domain: example.domain, resource: example.resource)
        #expect(made == jid)
        #expect(try jid.bare == JID(local: example.local, domain: example.domain))
        #expect(try jid.domainOnly == JID(domain: example.domain))
        #expect(
            try jid.bare.with(resource: "other") == JID(local: example.local, domain: example.domain, resource: "other")
        )
    }

    static let refusals: [(String, JIDError)] = [
        ("", .empty(.domain)), ("@", .empty(.local)), ("@a", .empty(.local)), ("a@", .empty(.domain)),
        ("a/", .empty(.resource)), ("a@b/", .empty(.resource)), ("/a", .empty(.domain)), ("a@/b", .empty(.domain)),
        (".", .domain), ("a..b", .domain), (".a", .domain), ("-a", .domain), ("a-", .domain), ("a-.b", .domain),
        ("a_b", .character(.domain, 0x5F)), ("a b", .character(.domain, 0x20)), ("a:1", .character(.domain, 0x3A)),
        ("a@b@c", .character(.domain, 0x40)), ("a b@c", .character(.local, 0x20)),
        ("\"juliet\"@example.com", .character(.local, 0x22)), ("a&b@c", .character(.local, 0x26)),
        ("a'b@c", .character(.local, 0x27)), ("a:b@c", .character(.local, 0x3A)), ("a<b@c", .character(.local, 0x3C)),
        ("a>b@c", .character(.local, 0x3E)), ("a\u{7F}@c", .character(.local, 0x7F)),
        ("a\u{0}@c", .character(.local, 0)), ("a@b/\u{7}", .character(.resource, 7)),
        ("a@b/\u{7F}", .character(.resource, 0x7F)),
        // RFC 7622 §3.5, table 2: a letter of compatibility, a symbol, a roman numeral.
        ("henryⅣ@example.com", .character(.local, 0x2163)), ("♚@example.com", .character(.local, 0x265A)),
        // Compatibility forms: the sign of the Kelvin, wide signs that are separators, a superscript, Greek theta symbol.
        ("\u{212A}@a", .character(.local, 0x212A)), ("a\u{FF0F}b@c", .character(.local, 0x2F)),
        ("a\u{FF20}b@c", .character(.local, 0x40)), ("x²@a", .character(.local, 0xB2)),
        ("\u{3F4}@a", .character(.local, 0x3F4)), ("ﬁ@a", .character(.local, 0xFB01)),
        ("a@☃.example", .character(.domain, 0x2603)), ("a@\u{301}b", .character(.domain, 0x301)),
        ("\u{AD}@a", .character(.local, 0xAD)), ("a@b/\u{FE0F}", .character(.resource, 0xFE0F)),
        ("a@b/\u{E000}", .character(.resource, 0xE000)), ("a@b/\u{378}", .character(.resource, 0x378)),
        ("a@b/\u{202E}x", .character(.resource, 0x202E)), ("\u{1100}\u{1161}@a", .character(.local, 0x1100)),
        // RFC 5892 appendix A.
        ("a·b@c", .character(.local, 0xB7)), ("\u{30FB}@c", .character(.local, 0x30FB)),
        ("a\u{200D}b@c", .character(.local, 0x200D)), ("a\u{375}b@c", .character(.local, 0x375)),
        ("\u{627}\u{661}\u{6F1}@c", .character(.local, 0x661)), ("a\u{5F3}@c", .character(.local, 0x5F3)),
        // RFC 5893 §2: rules 1, 2, 3 and 4.
        ("1א@a", .direction(.local)), ("aא@b", .direction(.local)), ("אa@b", .direction(.local)),
        ("א-@b", .direction(.local)), ("\u{627}1\u{661}@b", .direction(.local)), ("א.1b.c", .direction(.domain)),
        ("[::1", .domain), ("[]", .domain), ("[:1]", .domain), ("[1:2]", .domain), ("[1::2::3]", .domain),
        ("[12345::]", .domain), ("[1:2:3:4:5:6:7:8:9]", .domain), ("[g::]", .domain), ("[::256.0.0.1]", .domain),
        ("[1.2.3.4]", .domain), ("[1:2:3:4:5:6:7:8::]", .domain), ("[1:]", .domain),
        (String(repeating: "a", count: 64), .domain), (String(repeating: "a", count: 1_024) + "@b", .tooLong(.local)),
        ("a@b/" + String(repeating: "ä", count: 512), .tooLong(.resource)),
        (String(repeating: "abc.", count: 256) + "d", .tooLong(.domain)),
    ]

    @Test("[RFC 7622 §3] are refused with the reason", arguments: refusals)
    func refuses(_ text: String, _ error: JIDError) {
        #expect(throws: error) { try JID(text) }
        #expect(!error.description.isEmpty)
    }

    static let received: [(String, String)] = [
        // Names that a server allows to others: heart and flag with their selectors, a family with joiners.
        ("room@muc.a/❤\u{FE0F} \u{1F468}\u{200D}\u{1F469}", "room@muc.a/❤\u{FE0F} \u{1F468}\u{200D}\u{1F469}"),
        ("a@b/\u{F900}", "a@b/\u{8C48}"), ("אa@b/x", "אa@b/x"), ("Henry\u{2163}@a", "henry\u{2163}@a"),
        ("♚@A.example/E\u{301}", "♚@a.example/\u{C9}"), ("\u{212A}@a", "\u{212A}@a"), ("Ａ\u{212B}B@a", "a\u{212B}b@a"),
        ("JOSE\u{301}@b", "jos\u{E9}@b"),
        ("a\u{A0}b@c", "a\u{A0}b@c"), ("A@B/C", "a@b/C"),
        // A-labels, and what only looks like one.
        ("a@xn--bcher-kva.b", "a@bücher.b"), ("a@XN--N3H.b", "a@xn--n3h.b"),
        ("a\u{200C}b@c", "a\u{200C}b@c"),
    ]

    @Test("[RFC 7622 §3] of others are taken as they may be, and in one form", arguments: received)
    func takesReceived(_ text: String, _ prepared: String) throws {
        let jid = try JID(received: text)
        #expect(Array(jid.description.utf8) == Array(prepared.utf8))
        #expect(try JID(received: jid.description) == jid)
        if let own = try? JID(text) { #expect(own == jid) }
    }

    @Test(
        "[RFC 7622 §3] of others are refused where they are no addresses at all",
        arguments: [
            ("", .empty(.domain)), ("@a", .empty(.local)), ("a@b/", .empty(.resource)),
            ("a@b@c", .character(.domain, 0x40)),
            ("a@b/\u{7}", .character(.resource, 7)), ("a@b/\u{85}", .character(.resource, 0x85)),
            ("a b@c", .character(.local, 0x20)), ("a\u{7F}@c", .character(.local, 0x7F)),
            ("\u{FF20}@c", .character(.local, 0x40)), ("a@b..c", .domain),
            ("a@b/" + String(repeating: "ä", count: 512), .tooLong(.resource)),
        ] as [(String, JIDError)]
    )
    func refusesReceived(_ text: String, _ error: JIDError) {
        #expect(throws: error) { try JID(received: text) }
    }

    @Test(
        "[RFC 7622 §3.1] what is too long in any case is refused before anything is done with it",
        arguments: ["\u{661}", "\u{30FB}", "\u{301}", "a", "\u{212A}"]
    )
    func tooLong(_ character: String) {
        let part = String(repeating: character, count: 1 << 20)
        #expect(throws: JIDError.tooLong(.local)) { try JID(received: part + "@b") }
        #expect(throws: JIDError.tooLong(.local)) { try JID(part + "@b") }
        #expect(throws: JIDError.tooLong(.domain)) { try JID(received: "a@" + part) }
        #expect(throws: JIDError.tooLong(.resource)) { try JID(received: "a@b/" + part) }
        #expect(throws: JIDError.tooLong(.resource)) { try JID("a@b/" + part) }
    }

    @Test("[UAX #15] every character is composed as another implementation does it, alone and beside marks")
    func normalisation() throws {
        // Marks of several classes and ways to join: above, below, a Hebrew point, iota, kana, jamo.
        let marks: [Unicode.Scalar] = ["\u{301}", "\u{323}", "\u{5B7}", "\u{345}", "\u{3099}", "\u{1161}", "\u{11A8}"]
        var wrong: [String] = []
        for value in UInt32(0xA0)...0x2_FA1D {
            guard let scalar = Unicode.Scalar(value), Self.isCompared(scalar) else { continue }
            let isMany =
                value < 0x250 || value < 0x1_0000 && value % 31 == 0 || scalar.properties.isFullCompositionExclusion
            for text in [[scalar]] + (isMany ? marks.map { [scalar, $0, "\u{323}"] } : []) {
                let string = String(String.UnicodeScalarView(text))
                let expected = string.precomposedStringWithCanonicalMapping.unicodeScalars.map(\.value)
                if Normalization.composed(text).map(\.value) != expected {
                    wrong.append(text.map { String($0.value, radix: 16) }.joined(separator: " "))
                }
            }
        }
        #expect(wrong.isEmpty, "\(wrong.count), such as \(wrong.prefix(30))")
    }

    /// Not of all that are alike, nor of those that only one of the two knows.
    private static func isCompared(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        // An old jamo that Foundation joins into no syllable at all.
        case 0x1113: return false
        case 0xAC00...0xD7A3: return scalar.value % 97 == 0
        case 0x3400...0x9FFF, 0x1_3000...0x1_CFFF, 0x2_0000...0x2_F7FF: return scalar.value % 251 == 0
        default: break
        }
        // Later marks have no class for Foundation.
        return scalar.properties.age.map { $0.major < 15 } ?? false
    }

    @Test(
        "[RFC 8264 §9.17] a letter is refused in a name where another implementation's NFKC changes it, and only there"
    )
    func compatibility() throws {
        var wrong: [String] = []
        for value in UInt32(0xA0)...0x2_FA1D {
            guard let scalar = Unicode.Scalar(value), Self.isCompared(scalar), Self.isPlainLetter(scalar) else {
                continue
            }
            let text = String(scalar)
            let isKept = text.precomposedStringWithCompatibilityMapping.unicodeScalars.elementsEqual([scalar])
            var isTaken = true
            do throws(JIDError) { _ = try JID(local: text, domain: "a") } catch {
                if case .character = error { isTaken = false }
            }
            if isTaken != isKept { wrong.append(String(value, radix: 16)) }
        }
        #expect(wrong.isEmpty, "\(wrong.count), such as \(wrong.prefix(30))")
    }

    /// Whether nothing but NFKC decides about it: no width, no context, no name in RFC 8264 §9.6, §9.9 and §9.13.
    private static func isPlainLetter(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x640, 0x7FA, 0x302E...0x302F, 0x3031...0x3035, 0x303B, 0x660...0x669, 0x6F0...0x6F9, 0x1100...0x11FF,
            0xA960...0xA97C, 0xD7B0...0xD7FB, 0xFF00...0xFFEF:
            return false
        default: break
        }
        if scalar.properties.isDefaultIgnorableCodePoint { return false }
        switch scalar.properties.generalCategory {
        case .lowercaseLetter, .uppercaseLetter, .otherLetter, .modifierLetter, .decimalNumber, .nonspacingMark,
            .spacingMark:
            return true
        default: return false
        }
    }

    @Test("[RFC 7622 §3.1] parts of just 1,023 bytes are taken")
    func longest() throws {
        let local = String(repeating: "a", count: 1_023)
        let domain = String(repeating: "abcdefghi.", count: 102) + "jkl"
        let jid = try JID(local: local, domain: domain, resource: local)
        #expect(jid.description.utf8.count == 3 * 1_023 + 2)
        #expect(jid.local == local)
        #expect(jid.domain == domain)
        #expect(jid.resource == local)
    }

    @Test("[RFC 7622 §3.1] a text gives the same as its parts, whatever it is")
    func parts() throws {
        var random = SeededGenerator(seed: 1)
        let pieces = [
            "a", "B", "9", "-", ".", "_", "@", "/", "+", "\\", " ", ":", "[::1]", "ß", "\u{7F}", "ab.cd", "~",
        ]
        var addresses = 0
        for _ in 0..<10_000 {
            let text = (0..<Int.random(in: 0...8, using: &random))
                .map { _ in pieces[Int.random(in: 0..<pieces.count, using: &random)] }.joined()
            let (bare, resource) = Self.cut(text, at: "/")
            let (first, second) = Self.cut(bare, at: "@")
            let whole = Result { () throws(JIDError) in try JID(text) }
            let made = Result { () throws(JIDError) in
                try JID(local: second == nil ? nil : first, domain: second ?? first, resource: resource)
            }
            if whole != made { Issue.record("\(text): \(whole), and of its parts \(made)") }
            if case .success = whole { addresses += 1 }
        }
        #expect(addresses > 500)
    }

    private static func cut(_ text: String, at separator: Character) -> (String, String?) {
        guard let index = text.firstIndex(of: separator) else { return (text, nil) }
        return (String(text[..<index]), String(text[text.index(after: index)...]))
    }

    @Test("are ordered by their prepared form, and equal by their bytes")
    func order() throws {
        let texts = ["b@a", "a", "A@b/x", "a@b/X", "a@b"]
        let sorted = try texts.map { try JID($0) }.sorted()
        #expect(sorted.map(\.description) == ["a", "a@b", "a@b/X", "a@b/x", "b@a"])
        #expect(try JID("A@B") == JID("a@b"))
        #expect(try JID("a@b/R") != JID("a@b/r"))
    }

    // XEP-0106 §4.3 and its examples.
    static let escapes: [(String, String)] = [
        ("space cadet", "space\\20cadet"), ("call me \"ishmael\"", "call\\20me\\20\\22ishmael\\22"),
        ("at&t guy", "at\\26t\\20guy"), ("d'artagnan", "d\\27artagnan"), ("/.fanboy", "\\2f.fanboy"),
        ("::foo::", "\\3a\\3afoo\\3a\\3a"), ("<foo>", "\\3cfoo\\3e"), ("user@host", "user\\40host"),
        ("c:\\net", "c\\3a\\net"), ("c:\\\\net", "c\\3a\\\\net"), ("c:\\cool stuff", "c\\3a\\cool\\20stuff"),
        ("c:\\5commas", "c\\3a\\5c5commas"), ("plain", "plain"), ("\\3and\\2is\\5\\", "\\5c3and\\2is\\5\\"),
    ]

    @Test("[XEP-0106 §4] names are escaped and shown again", arguments: escapes)
    func escaping(_ name: String, _ escaped: String) throws {
        #expect(JID.escape(local: name) == escaped)
        #expect(JID.unescape(local: escaped) == name)
        #expect(try JID(local: escaped, domain: "a").local == escaped)
    }

    @Test("[XEP-0106 §4.2] a space at either end is left, and makes no address")
    func spaces() {
        #expect(JID.escape(local: " a ") == " a ")
        #expect(JID.unescape(local: "\\20a\\20") == "\\20a\\20")
        #expect(throws: JIDError.character(.local, 0x20)) { try JID(local: " a ", domain: "b") }
    }
}
