import Testing
import Workloads

/// Counts up, so that what a draw gives is known: each call is the next multiple of a quarter of the range.
private struct Quarters: RandomNumberGenerator {
    var calls: UInt64 = 0

    mutating func next() -> UInt64 {
        defer { self.calls += 1 }
        return (self.calls % 4) << 62
    }
}

@Suite("Placeholders")
struct PlaceholdersTests {
    static let values = PlaceholderValues(
        clientNumber: 7,
        clientID: Array("c-7".utf8),
        username: Array("joe".utf8),
        messageNumber: 1_234_567_890_123,
        nanoseconds: 1_700_000_000_000_000_001
    )

    @Test(
        "are replaced, and any other % stands for itself",
        arguments: [
            ("", ""),
            ("plain", "plain"),
            ("%i", "7"),
            ("clamor/%i/x", "clamor/7/x"),
            ("%c|%u|%s|%t", "c-7|joe|1234567890123|1700000000000000001"),
            ("%i%i", "77"),
            ("100%", "100%"),
            ("%%", "%%"),
            ("%%i", "%7"),
            ("%x %I", "%x %I"),
            ("%rand_", "%rand_"),
            ("%rand_x", "%rand_x"),
            ("%rand_0", "%rand_0"),
            ("%rand_1/", "1/"),
            ("%rand_99999999999999999999", "%rand_99999999999999999999"),
            ("ü%iß", "ü7ß"),
        ]
    )
    func renders(_ text: String, _ expected: String) {
        var random = Quarters()
        let bytes = Template(parsing: text).rendered(Self.values, random: &random)
        #expect(String(decoding: bytes, as: UTF8.self) == expected)
    }

    @Test("keeps bytes that are no UTF-8, and appends to what is there")
    func bytes() {
        var random = Quarters()
        var bytes: [UInt8] = [1]
        Template(parsing: [0xFF, UInt8(ascii: "%"), UInt8(ascii: "i"), 0x00]).render(
            Self.values,
            random: &random,
            into: &bytes
        )
        #expect(bytes == [1, 0xFF, UInt8(ascii: "7"), 0x00])
    }

    @Test("%rand_N reaches 1 and N and nothing beyond, and is repeatable")
    func random() {
        let template = Template(parsing: "%rand_4")
        var random = Quarters()
        let texts = (0..<8).map { _ in String(decoding: template.rendered(Self.values, random: &random), as: UTF8.self)
        }
        #expect(Set(texts) == ["1", "2", "3", "4"])

        var again = Quarters()
        #expect(
            texts
                == (0..<8).map { _ in
                    String(decoding: template.rendered(Self.values, random: &again), as: UTF8.self)
                }
        )
    }

    @Test(
        "say how often a text must be rendered",
        arguments: [
            ("a", true, false, false), ("%i", false, true, false), ("%c", false, true, false),
            ("%u", false, true, false), ("%s", false, false, true), ("%t", false, false, true),
            ("%rand_9", false, false, true), ("%i/%s", false, true, true),
        ]
    )
    func varies(_ text: String, isConstant: Bool, perClient: Bool, perMessage: Bool) {
        let template = Template(parsing: text)
        #expect(template.isConstant == isConstant)
        #expect(template.variesPerClient == perClient)
        #expect(template.variesPerMessage == perMessage)
    }

    @Test(
        "in a topic become + in the filter that reads it",
        arguments: [
            ("clamor/%i", "clamor/7", "clamor/+"),
            ("one", "one", "one"),
            ("a/x%iy/b/%s", "a/x7y/b/+", "a/+/b/+"),
            ("%u/%rand_3%i/", "joe/+/", "+/+/"),
            ("/%i//", "/7//", "/+//"),
        ]
    )
    func filters(_ topic: String, ofOne: String, ofAll: String) {
        let template = Template(parsing: topic)
        #expect(template.filter(ofClient: Self.values) == ofOne)
        #expect(template.filterOfAllClients == ofAll)
    }
}
