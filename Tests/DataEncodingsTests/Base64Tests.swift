import DataEncodings
import Foundation
import Testing

@Suite("Base64 (RFC 4648)")
struct Base64Tests {
    @Test(
        "has the vectors of RFC 4648 §10 both ways",
        arguments: [
            ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ]
    )
    func vectors(_ plain: String, _ text: String) {
        #expect(Base64.encode(Array(plain.utf8)) == text)
        #expect(Base64.decode(Array(text.utf8)) == Array(plain.utf8))
    }

    @Test("has all 64 digits")
    func alphabet() {
        let bytes = Array(UInt8.min ... .max)
        #expect(Base64.decode(Base64.digits(bytes)) == bytes)
        #expect(Base64.encode([0xFB, 0xEF, 0xBE, 0xFF, 0xFF, 0xFF]) == "++++////")
    }

    @Test(
        "refuses every other text (§3.3, §3.5)",
        arguments: [
            "A", "AA", "AAA", "====", "A===", "Zg=", "Zg", "Zm9v\n", "Zm 9", "Zm9v ", "Zm-_", "Zh==", "Zm9=", "Z=g=",
            "=AAA", "Zg==Zg==", "Zg=A", "Zm9vA===",
        ]
    )
    func refuses(_ text: String) {
        #expect(Base64.decode(Array(text.utf8)) == nil)
    }

    @Test("is Foundation's", arguments: 0..<40)
    func foundation(_ length: Int) {
        let bytes = (0..<length).map { UInt8(truncatingIfNeeded: $0 * 73 + length * 151) }
        #expect(Base64.encode(bytes) == Data(bytes).base64EncodedString())
        #expect(Base64.decode(Base64.encode(bytes).utf8) == bytes)
    }
}
