import DataEncodings
import Testing

@Suite("Punycode")
struct PunycodeTests {
    @Test(
        "[RFC 3492 §7.1] its samples are encoded and decoded",
        arguments: [
            ("他们为什么不说中文", "ihqwcrb4cv8a8dqg056pqjye"), ("3年b組金八先生", "3b-ww4c5e180e575a65lsy2b"),
            ("pročprostěnemluvíčesky", "proprostnemluvesky-uyb24dma41a"), ("bücher", "bcher-kva"), ("ü", "tda"),
            ("-> $1.00 <-", "-> $1.00 <--"), ("\u{10FFFF}", "dn32g"), ("a\u{80}", "a-ba"),
        ]
    )
    func samples(_ label: String, _ encoded: String) {
        #expect(Punycode.encode(Array(label.unicodeScalars)) == encoded)
        #expect(Punycode.decode(encoded.utf8) == Array(label.unicodeScalars))
    }

    @Test(
        "[RFC 3492 §6.2] what decodes to no character, has no end, or is longer than any label is nothing",
        arguments: [
            "99999999", "zzzzzzzzz", "bcher-kv9", "ib9b", "-", "-tda", "ü", "TDA", "a-b c",
            String(repeating: "9", count: 59), String(repeating: "a", count: 60),
            String(repeating: "z", count: 100_000),
        ]
    )
    func refuses(_ encoded: String) {
        #expect(Punycode.decode(encoded.utf8) == nil)
    }

    @Test("[RFC 3492 §6] whatever decodes encodes to the same")
    func roundTrip() {
        var state: UInt64 = 1
        var decoded = 0
        let digits = Array("abcdefghijklmnopqrstuvwxyz0123456789-".utf8)
        for _ in 0..<200_000 {
            var text: [UInt8] = []
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            for index in 0..<state >> 60 { text.append(digits[Int(state >> (4 * index % 48 + 3)) % digits.count]) }
            guard let label = Punycode.decode(text) else { continue }
            decoded += 1
            // A lone hyphen at the end parts ASCII from nothing.
            if label.allSatisfy(\.isASCII) { continue }
            #expect(Punycode.encode(label).map { Array($0.utf8) } == text)
        }
        #expect(decoded > 1_000)
    }
}
