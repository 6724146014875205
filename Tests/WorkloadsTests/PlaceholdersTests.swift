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
        "are replaced, and any other % stays literal",
        arguments: [
            ("", ""),
            ("plain", "plain"),
            ("%i", "7"),
            ("clamor/%i/x", "clamor/7/x"),
            ("%c|%u|%s|%t", "c-7|joe|1234567890123|1700000000000000001"),
            ("%i%i", "77"),
            ("100%", "100%"),
            ("%%", "%"),
            ("%%i", "%i"),
            ("%%%i", "%7"),
            ("50%% of %i%%", "50% of 7%"),
            ("%%%%{x}", "%%{x}"),
            ("%06i|%01i|%019i", "000007|7|0000000000000000007"),
            ("%0i %00i %020i %06x %06", "%0i %00i %020i %06x %06"),
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

    @Test(
        "a message template has the names of emqtt_bench, and no other text has them",
        arguments: [
            ("%TIMESTAMP%", "1700000000000"), ("%TIMESTAMPMS%", "1700000000000"),
            ("%TIMESTAMPUS%", "1700000000000000"), ("%TIMESTAMPNS%", "1700000000000000001"),
            ("[%TIMESTAMP%%TIMESTAMPNS%]", "[17000000000001700000000000000001]"), ("%i %TIMESTAMP", "7 %TIMESTAMP"),
            ("%timestamp%", "1700000000000000001imestamp%"), ("%OTHER%", "%OTHER%"),
        ]
    )
    func names(_ text: String, _ expected: String) {
        var random = Quarters()
        let template = Template(parsing: Array(text.utf8), randomSizes: 256...256)
        #expect(String(decoding: template.rendered(Self.values, random: &random), as: UTF8.self) == expected)
        #expect(!template.isConstant || text.hasPrefix("%OTHER"))
        let plain = String(decoding: Template(parsing: text).rendered(Self.values, random: &random), as: UTF8.self)
        let expectedPlain = text.replacing("%%", with: "%").replacing("%i", with: "7")
        #expect(plain == expectedPlain.replacing("%t", with: "1700000000000000001"))
    }

    @Test("%UNIQUE% is another number for each client and message")
    func unique() {
        let template = Template(parsing: Array("%UNIQUE%".utf8), randomSizes: 256...256)
        var random = Quarters()
        var texts: Set<[UInt8]> = []
        for client in 1...20 {
            for message in 0..<20 as Range<UInt64> {
                let values = PlaceholderValues(clientNumber: client, messageNumber: message)
                texts.insert(template.rendered(values, random: &random))
            }
        }
        #expect(texts.count == 400)
        #expect(texts.allSatisfy { UInt64(String(decoding: $0, as: UTF8.self)) != nil })
    }

    @Test("%RANDOM% is as many bytes as asked for, of any value", arguments: [0...0, 5...5, 3...9, 256...256])
    func randomBytes(_ sizes: ClosedRange<Int>) {
        let template = Template(parsing: Array("a%RANDOM%b".utf8), randomSizes: sizes)
        #expect(template.literalBytes == sizes.upperBound + 2)
        var random = SystemRandomNumberGenerator()
        let messages = (0..<200).map { _ in template.rendered(Self.values, random: &random) }
        #expect(Set(messages.map { $0.count - 2 }) == Set(sizes))
        #expect(messages.allSatisfy { $0.first == UInt8(ascii: "a") && $0.last == UInt8(ascii: "b") })
        // Of 200 messages of 256 bytes every value is among them.
        if sizes.lowerBound == 256 { #expect(Set(messages.joined()).count == 256) }
    }

    @Test(
        "names of that form that do not exist are found, and bytes of a URL are none",
        arguments: [
            ("%TIMESTAMPS% and %i", ["%TIMESTAMPS%"]), ("%UNIQUE%%RANDOM%", []), ("a%AB%CD", []),
            ("100%OFF%", ["%OFF%"]), ("%TIMESTAMPMS%MSG%UNIQUE%", []), ("%UNIQUE%SEP%UNIQUE%", []),
            ("50% OFF %", []), ("%%UUID%%", []), ("%%%UUID%", ["%UUID%"]), ("%TIMESTAMP", []),
        ]
    )
    func unknownNames(_ text: String, _ expected: [String]) {
        #expect(Template.draft(Array(text.utf8), randomSizes: 1...1).unknown == expected)
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
            ("%rand_9", false, false, true), ("%i/%s", false, true, true), ("%06i", false, true, false),
            ("%%i%%s", true, false, false),
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
            ("a%%i/%03i/b", "a%i/007/b", "a%i/+/b"),
        ]
    )
    func filters(_ topic: String, ofOne: String, ofAll: String) {
        let template = Template(parsing: topic)
        #expect(template.filter(ofClient: Self.values) == ofOne)
        #expect(template.filterOfAllClients == ofAll)
    }

    static let rows = RowTable(
        columns: ["id", "site", "a b"],
        cells: ["x1", "berlin", "", "x2", "ü/50%", "%i"].map { Array($0.utf8) },
        digest: "d"
    )

    @Test(
        "%{column} is the cell of the client's row, round and round; other names stay literal",
        arguments: [
            (1, "%{id}@%{site}", "x1@berlin"), (2, "%{id}@%{site}", "x2@ü/50%"), (3, "%{id}", "x1"), (4, "%{id}", "x2"),
            (1, "<%{a b}>", "<>"), (2, "%{a b}", "%i"), (1, "%{no}%{id}", "%{no}x1"), (1, "%{id", "%{id"),
            (1, "%{}", "%{}"),
            (1, "%%{id}}", "%{id}}"), (1, "%%%{id}}", "%x1}"),
        ]
    )
    func columns(_ client: Int, _ text: String, _ expected: String) {
        var random = Quarters()
        let template = Template(parsing: text, columns: Self.rows.columns)
        let values = PlaceholderValues(clientNumber: client, rows: Self.rows)
        #expect(String(decoding: template.rendered(values, random: &random), as: UTF8.self) == expected)
    }

    @Test("a column varies by client, so a filter for all has + there")
    func columnsInTopics() {
        let template = Template(parsing: "%{site}/a/x%{id}/%s", columns: Self.rows.columns)
        #expect(template.variesPerClient && template.variesPerMessage && template.columns == [0, 1])
        #expect(!template.needsIdentity)
        let values = PlaceholderValues(clientNumber: 1, rows: Self.rows)
        #expect(template.filter(ofClient: values) == "berlin/a/xx1/+")
        #expect(template.filterOfAllClients == "+/a/+/+")
    }

    @Test("an escaped text is sent as it is", arguments: ["", "a", "%i%%", "50%", "%{id}", "%06i %rand_9", "%%%"])
    func escaped(_ text: String) {
        var random = Quarters()
        let template = Template(parsing: Template.escaped(text), columns: Self.rows.columns)
        #expect(template.isConstant)
        #expect(String(decoding: template.rendered(Self.values, random: &random), as: UTF8.self) == text)
    }

    @Test(
        "a text has the client's number, padded or not",
        arguments: [("%i", true), ("a%06i", true), ("%%%i", true), ("%%i", false), ("%c%u%s", false), ("", false)]
    )
    func clientNumber(_ text: String, _ expected: Bool) {
        #expect(Template(parsing: text).hasClientNumber == expected)
    }

    @Test("a literal holds no placeholders")
    func literal() {
        var random = Quarters()
        let template = Template(literal: Array("%i%s".utf8))
        #expect(template.isConstant && template.literalBytes == 4)
        #expect(template.rendered(Self.values, random: &random) == Array("%i%s".utf8))
        #expect(Template(literal: []).rendered(Self.values, random: &random).isEmpty)
    }
}
