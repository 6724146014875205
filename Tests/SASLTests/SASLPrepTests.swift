import SASL
import Testing

@Suite("SASLprep (RFC 4013)")
struct SASLPrepTests {
    @Test(
        "prepares what it can do right",
        arguments: [
            // RFC 4013 §3, examples 1 to 3.
            ("I\u{AD}X", "IX"), ("user", "user"), ("USER", "USER"),
            ("a b~!,=", "a b~!,="), ("a\u{A0}b\u{3000}c", "a b c"), ("", ""),
            ("\u{E9}\u{C9}\u{3A9}\u{436}\u{416}", "\u{E9}\u{C9}\u{3A9}\u{436}\u{416}"),
            ("\u{4E2D}\u{6587}\u{3042}\u{30AB}\u{D55C}", "\u{4E2D}\u{6587}\u{3042}\u{30AB}\u{D55C}"),
            ("stra\u{DF}e", "stra\u{DF}e"),
        ]
    )
    func prepares(_ text: String, _ prepared: String) throws {
        #expect(try SASLPrep.prepare(text) == Array(prepared.utf8))
    }

    @Test(
        "refuses what is prohibited, or would need NFKC or the rules for scripts from right to left",
        arguments: [
            // RFC 4013 §3, examples 4 to 7: the first two would have to become "a" and "IX".
            (0xAA, "U+00AA"), (0x2168, "U+2168"), (0x07, "U+0007"), (0x627, "U+0627"),
            (0x00, "U+0000"), (0x7F, "U+007F"), (0x85, "U+0085"),
            // A combining acute, a capital that NFKC replaces (ohm sign), fullwidth A, the ligature fi, a tag.
            (0x301, "U+0301"), (0x2126, "U+2126"), (0xFF21, "U+FF21"), (0xFB01, "U+FB01"), (0xE0041, "U+E0041"),
            // DZ with caron (a compatibility form), I with a dot, the capital sharp s of Unicode 5.1.
            (0x1C4, "U+01C4"), (0x130, "U+0130"), (0x1E9E, "U+1E9E"),
            // A conjoining jamo would join a syllable; an emoji is newer than Unicode 3.2; private use.
            (0x11A8, "U+11A8"), (0x1F600, "U+1F600"), (0xE000, "U+E000"), (0xFFFD, "U+FFFD"), (0x200B, "U+200B"),
        ]
    )
    func refuses(_ scalar: UInt32, _ codePoint: String) throws {
        let character = try #require(Unicode.Scalar(scalar))
        let refusal = #expect(throws: SASLPrep.Refusal.self) { try SASLPrep.prepare("a\(character)") }
        #expect(refusal?.codePoint == codePoint)
    }
}
