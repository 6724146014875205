import Foundation
import SASL
import TestSupport
import Testing

@Suite("SASLprep (RFC 4013)")
struct SASLPrepTests {
    @Test(
        "maps and normalizes",
        arguments: [
            // RFC 4013 §3, examples 1 to 5.
            ("I\u{AD}X", "IX"), ("user", "user"), ("USER", "USER"), ("\u{AA}", "a"), ("\u{2168}", "IX"),
            // §2.1: other spaces, and characters that are mapped to nothing; U+200B is a space.
            ("a b~!,=", "a b~!,="), ("a\u{A0}b\u{3000}c", "a b c"), ("a\u{200B}b\u{FE0F}c", "a bc"), ("", ""),
            // Compatibility forms: a ligature, a full-width letter, a superscript, a Kelvin sign, DZ with caron.
            ("\u{FB01}", "fi"), ("\u{FF21}", "A"), ("x\u{B2}", "x2"), ("\u{212A}", "K"), ("\u{1C4}", "D\u{17D}"),
            // Marks are ordered by class and composed; a blocked mark stays apart.
            ("e\u{301}", "\u{E9}"), ("a\u{301}\u{323}", "\u{1EA1}\u{301}"), ("\u{1100}\u{1161}\u{11A8}", "\u{AC01}"),
            ("\u{D55C}", "\u{D55C}"), ("\u{958}", "\u{915}\u{93C}"), ("a\u{315}\u{300}", "\u{E0}\u{315}"),
            // Letters that case folding would change, and NFKC does not.
            ("stra\u{DF}e", "stra\u{DF}e"), ("\u{3C2}", "\u{3C2}"),
            ("\u{E9}\u{C9}\u{3A9}\u{416}", "\u{E9}\u{C9}\u{3A9}\u{416}"),
            // §2.4: from right to left at both ends, with digits of either kind between.
            ("\u{627}1\u{628}", "\u{627}1\u{628}"), ("\u{5D0}", "\u{5D0}"),
        ]
    )
    func prepares(_ text: String, _ prepared: String) throws {
        #expect(try SASLPrep.prepare(text, as: .name) == Array(prepared.utf8))
        #expect(try SASLPrep.prepare(text, as: .password) == Array(prepared.utf8))
    }

    @Test(
        "characters newer than Unicode 3.2: kept in names (RFC 5802 §5.1), and in passwords as OpaqueString (RFC 8265)",
        arguments: [
            ("a\u{1F600}", "a\u{1F600}", "a\u{1F600}"), ("\u{1E9E}", "\u{1E9E}", "\u{1E9E}"),
            ("\u{221}", "\u{221}", "\u{221}"),
            // Only the name has compatibility forms mapped; both have spaces mapped and marks composed.
            ("\u{FB01}\u{1F600}", "fi\u{1F600}", "\u{FB01}\u{1F600}"),
            ("e\u{301}\u{A0}\u{1F600}", "\u{E9} \u{1F600}", "\u{E9} \u{1F600}"),
        ]
    )
    func newer(_ text: String, _ name: String, _ password: String) throws {
        #expect(try SASLPrep.prepare(text, as: .name) == Array(name.utf8))
        #expect(try SASLPrep.prepare(text, as: .password) == Array(password.utf8))
        #expect(throws: SASLPrep.Refusal.self) { try SASLPrep.prepare(text + "\u{7}", as: .password) }
    }

    @Test(
        "refuses prohibited characters, and mixed directions",
        arguments: [
            // RFC 4013 §3, examples 6 and 7.
            ("\u{7}", "U+0007", .prohibited), ("\u{627}1", "U+0031", .direction),
            // §2.3: controls, private use, noncharacters, replacement character, tags, description characters.
            ("a\u{0}", "U+0000", .prohibited), ("a\u{7F}", "U+007F", .prohibited), ("a\u{85}", "U+0085", .prohibited),
            ("a\u{E000}", "U+E000", .prohibited), ("a\u{FFFE}", "U+FFFE", .prohibited),
            ("a\u{FFFD}", "U+FFFD", .prohibited), ("a\u{E0041}", "U+E0041", .prohibited),
            ("a\u{2FF0}", "U+2FF0", .prohibited), ("a\u{202E}", "U+202E", .prohibited),
            // §2.4.
            ("\u{627}a", "U+0061", .direction), ("1\u{627}", "U+0031", .direction),
        ] as [(String, String, SASLPrep.Refusal.Reason)]
    )
    func refuses(_ text: String, _ codePoint: String, _ reason: SASLPrep.Refusal.Reason) throws {
        let refusal = #expect(throws: SASLPrep.Refusal.self) { try SASLPrep.prepare(text, as: .name) }
        #expect(refusal?.codePoint == codePoint)
        #expect(refusal?.reason == reason)
    }

    /// Reads one string a line, as hexadecimal code points; writes what it becomes, or `refused`.
    private static let oracle = """
        import stringprep as s, sys
        from unicodedata import ucd_3_2_0 as u
        banned = [s.in_table_c12, s.in_table_c21_c22, s.in_table_c3, s.in_table_c4, s.in_table_c5, s.in_table_c6,
                  s.in_table_c7, s.in_table_c8, s.in_table_c9]
        for line in open(sys.argv[1]):
            text = "".join(chr(int(point, 16)) for point in line.split())
            text = "".join(" " if s.in_table_c12(c) else c for c in text if s.in_table_c12(c) or not s.in_table_b1(c))
            text = u.normalize("NFKC", text)
            bad = any(table(c) for table in banned for c in text)
            if any(s.in_table_d1(c) for c in text):
                bad |= any(s.in_table_d2(c) for c in text)
                bad |= not s.in_table_d1(text[0]) or not s.in_table_d1(text[-1])
            # Python orders marks that are newer by their class of today.
            newer = any(s.in_table_a1(c) for c in text)
            print("newer" if newer else "refused" if bad else text.encode().hex())
        """

    @Test("is that of another implementation, for 20,000 strings")
    func agrees() throws {
        var random = SeededGenerator(seed: 4013)
        // Blocks in which characters compose, decompose, are prohibited, or run from right to left.
        let blocks: [ClosedRange<UInt32>] = [
            0x20...0x7E, 0x80...0x24F, 0x300...0x345, 0x370...0x58F, 0x590...0x6FF, 0x900...0xDFF, 0x1100...0x11FF,
            0x1E00...0x24FF, 0x3000...0x33FF, 0xAC00...0xAD00, 0xF900...0xFFFF, 0x1D15E...0x1D7FF, 0x2F800...0x2FA1D,
        ]
        let texts = (0..<20_000).map { _ in
            var text = String.UnicodeScalarView()
            // Two blocks in one string, so that many strings are accepted.
            let own = (0..<2).map { _ in blocks[Int(random.next() % UInt64(blocks.count))] }
            for _ in 0..<1 + random.next() % 6 {
                let block = own[Int(random.next() % 2)]
                let point = block.lowerBound + UInt32(random.next() % UInt64(block.count))
                if let scalar = Unicode.Scalar(point) { text.append(scalar) }
            }
            return String(text)
        }
        let file = FileManager.default.temporaryDirectory.appending(path: "saslprep-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: file) }
        let lines = texts.map { text in text.unicodeScalars.map { String($0.value, radix: 16) }.joined(separator: " ") }
        try Data((lines.joined(separator: "\n") + "\n").utf8).write(to: file)
        let python = ProcessInfo.processInfo.environment["CLAMOR_PYTHON"] ?? "python3"
        let ending = try RunningProgram.run("/usr/bin/env", [python, "-c", Self.oracle, file.path])
        let expected = ending.output.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
        try #require(expected.count == texts.count)
        var accepted = 0
        for (text, expected) in zip(texts, expected) where expected != "newer" {
            let prepared = try? SASLPrep.prepare(text, as: .name)
            let hex = prepared?.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined() ?? "refused"
            #expect(hex == expected, "\(text.unicodeScalars.map { String($0.value, radix: 16) })")
            accepted += prepared == nil ? 0 : 1
        }
        #expect(accepted > 4_000)
    }
}
