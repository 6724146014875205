/// Private characters that stand for those of `${NAME}` in one file, one for one: YAML sees no braces, and places stay.
struct VariableMask: Sendable {
    /// Private Use Area and its two planes, in blocks of 128.
    private static let blocks = Array(0xE000 / 128..<0xF900 / 128) + Array(0xF0000 / 128..<0x10FF80 / 128)

    private let base: UInt32

    /// Characters that the text neither has nor spells as an escape; nothing where it has some of every kind.
    init?(for text: String) {
        let taken = Self.taken(in: text)
        guard let free = Self.blocks.first(where: { !taken.contains($0) }) else { return nil }
        self.base = UInt32(free) * 128
    }

    private static func taken(in text: String) -> Set<Int> {
        var taken: Set<Int> = []
        var escape = ""
        var left = 0
        for scalar in text.unicodeScalars {
            if scalar.value >= 0xE000 { taken.insert(Int(scalar.value) / 128) }
            if left > 0 {
                escape.unicodeScalars.append(scalar)
                left -= 1
                if left == 0, let value = Int(escape, radix: 16) { taken.insert(value / 128) }
            }
            // What looks like one is enough: `\uE041`, `\U0000E041`.
            if scalar == "u" || scalar == "U" { (escape, left) = ("", scalar == "u" ? 4 : 8) }
        }
        return taken
    }

    func mask(_ text: String) -> String {
        var result = String.UnicodeScalarView()
        var rest = text.unicodeScalars[...]
        var last: Unicode.Scalar?
        while let scalar = rest.first {
            if scalar == "$", last != "$", rest.dropFirst().first == "{",
                let end = rest.firstIndex(where: { ["}", "\n", "\"", "'"].contains($0) }), rest[end] == "}"
            {
                for scalar in rest[...end] {
                    result.append(scalar.isASCII ? Unicode.Scalar(self.base + scalar.value) ?? scalar : scalar)
                }
                rest = rest[rest.index(after: end)...]
                last = "}"
            } else {
                result.append(scalar)
                rest = rest.dropFirst()
                last = scalar
            }
        }
        return String(result)
    }

    func isMasked(_ scalar: Unicode.Scalar) -> Bool { (self.base..<self.base + 128) ~= scalar.value }

    func unmasked(_ scalar: Unicode.Scalar) -> Unicode.Scalar? {
        self.isMasked(scalar) ? Unicode.Scalar(scalar.value - self.base) : nil
    }

    /// A text as the file has it, for what is told of it.
    func shown(_ text: String) -> String {
        var result = String.UnicodeScalarView()
        for scalar in text.unicodeScalars { result.append(self.unmasked(scalar) ?? scalar) }
        return String(result)
    }
}
