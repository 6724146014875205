/// Changes XML so that most of it stays XML: it knows tags, quotes, references and names.
struct XMLMutator {
    /// Elements to splice in.
    let elements: [[UInt8]]

    private static let splinters: [[UInt8]] = [
        "<", ">", "/>", "</", "=", "'", "\"", "&", ";", ":", " ", "\r\n", "\t", "]]>", "]", "<!--", "<!", "<!D",
        "<![CDATA[",
        "<?", "<?xml version='1.0'?>", "<?xml version='1.0' encoding='x'?>", "&lt;", "&amp;", "&#65;", "&#x1F600;",
        "&#0;",
        "&#xFFFE;", "&x;", "&am", "&#", "<a/>", "</a>", "<a>", "<p:a/>", " xmlns='u'", " xmlns:p='u'", " xmlns:q='u'",
        " xmlns:p=''", " p:a='1'", " q:a='1'", " a='1'", " a='2'", " a='<'", " xml:lang='en'", "é", "€", "😀",
        "\u{FFFE}",
        "</stream:stream>", "stream:", "p:", "aaaaaaaaaaaaaaaaaa", " b", "x",
    ].map { Array($0.utf8) }

    private static let bytes: [UInt8] = [
        0x00, 0x01, 0x09, 0x0D, 0x1F, 0x20, 0x26, 0x27, 0x3A, 0x3C, 0x3E, 0x5D, 0x7F, 0x80, 0xC0, 0xC3, 0xE2, 0xED,
        0xF0,
        0xF5, 0xFE, 0xFF,
    ]

    func change(_ stream: inout [UInt8], _ dice: inout Dice) {
        guard !stream.isEmpty else { return stream = self.elements[dice.below(self.elements.count)] }
        let place = dice.below(stream.count)
        switch dice.below(16) {
        case let kind where ByteChange.kinds.contains(kind):
            ByteChange.apply(kind, to: &stream, at: place, marks: Self.bytes, most: 4, &dice)
        case 5, 6: stream.insert(contentsOf: Self.splinters[dice.below(Self.splinters.count)], at: place)
        case 7, 8, 9:
            // Where a tag ends, so that attributes and children come to stand where they may.
            let ends = stream.indices.filter { stream[$0] == UInt8(ascii: ">") }
            guard !ends.isEmpty else { return }
            let end = ends[dice.below(ends.count)]
            let isInside = dice.below(2) == 0
            stream.insert(
                contentsOf: Self.splinters[dice.below(Self.splinters.count)],
                at: isInside && stream[max(0, end - 1)] != UInt8(ascii: "/") ? end : isInside ? end - 1 : end + 1
            )
        case 10, 11: self.repeatPart(&stream, place, &dice)
        default:
            let starts = stream.indices.filter { stream[$0] == UInt8(ascii: "<") } + [stream.count]
            stream.insert(
                contentsOf: self.elements[dice.below(self.elements.count)],
                at: starts[dice.below(starts.count)]
            )
        }
    }

    private func repeatPart(_ stream: inout [UInt8], _ place: Int, _ dice: inout Dice) {
        let part = Array(stream[place..<min(stream.count, place + 1 + dice.below(20))])
        let target = dice.below(stream.count)
        for _ in 0..<1 + dice.below(12) { stream.insert(contentsOf: part, at: target) }
    }
}
