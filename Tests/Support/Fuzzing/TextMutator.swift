/// Changes the text of a result file so that most of it is still read: it knows numbers, fields and lines.
struct TextMutator {
    private static let numbers: [[UInt8]] = [
        "0", "-1", "1", "0.5", "-0", "1e15", "9e15", "9007199254740993", "9.3e18", "1e19", "-1e19", "1e300", "-1e300",
        "1e-300",
        "9223372036854775807", "-9223372036854775808", "18446744073709551615", "4294967296", "65536", "2147483648",
        "Infinity", "-Infinity", "NaN", "null", "\"x\"", "true", "[]", "{}", "00", "1e400", "999999999999999999999999",
    ].map { Array($0.utf8) }

    private static let marks: [UInt8] =
        Array(",;:=\"'{}[]()#\n\r\t \\/.%-+0x".utf8) + [0, 1, 0x1B, 0x7F, 0x80, 0xC3, 0xFF]

    func change(_ text: inout [UInt8], with other: [UInt8], _ dice: inout Dice) {
        guard !text.isEmpty else { return text = other }
        let place = dice.below(text.count)
        switch dice.below(16) {
        case let kind where ByteChange.kinds.contains(kind):
            ByteChange.apply(kind, to: &text, at: place, marks: Self.marks, most: 12, &dice)
        case 5: self.changeLine(&text, at: place, &dice)
        case 6:
            let part = Array(text[place..<min(text.count, place + 1 + dice.below(60))])
            text.insert(contentsOf: part, at: dice.below(text.count))
        default: self.changeNumber(&text, at: place, &dice)
        }
    }

    private static func isOfNumber(_ byte: UInt8) -> Bool {
        byte >= 0x30 && byte <= 0x39 || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "-")
    }

    /// The first number behind the place, or the first one of all.
    private func changeNumber(_ text: inout [UInt8], at place: Int, _ dice: inout Dice) {
        guard
            let start = text[place...].firstIndex(where: Self.isOfNumber) ?? text.firstIndex(where: Self.isOfNumber)
        else { return }
        let end = text[start...].firstIndex { !Self.isOfNumber($0) } ?? text.count
        text.replaceSubrange(start..<end, with: Self.numbers[dice.below(Self.numbers.count)])
    }

    /// Leaves a line out, or repeats it.
    private func changeLine(_ text: inout [UInt8], at place: Int, _ dice: inout Dice) {
        let newline = UInt8(ascii: "\n")
        let start = text[..<place].lastIndex(of: newline).map { $0 + 1 } ?? 0
        let end = text[place...].firstIndex(of: newline).map { $0 + 1 } ?? text.count
        guard dice.below(2) == 0 else { return text.insert(contentsOf: Array(text[start..<end]), at: start) }
        text.removeSubrange(start..<end)
    }
}
