/// Widths of text as the widest of the usual fonts without serifs has them, so that nothing is ever clipped.
enum TextWidth {
    /// The width of bold text, beside the same text in the usual weight.
    static let bold = 1.14

    static func of(_ text: String, size: Double = 11) -> Double {
        text.unicodeScalars.reduce(0) { $0 + self.em($1) } * size
    }

    private static func em(_ scalar: Unicode.Scalar) -> Double {
        switch scalar {
        case "i", "j", "l", ".", ",", ":", ";", "'", "|", "!", " ", "I": 0.36
        case "f", "t", "r", "(", ")", "[", "]", "-", "/", "\"", "·": 0.43
        case "m", "w", "M", "W", "@", "%", "…", "→", "−": 0.95
        case "0"..."9", "a"..."z": 0.63
        case "A"..."Z": 0.74
        default: scalar.value < 0x2E80 ? 0.75 : 1.05
        }
    }

    /// The longest beginning that fits, with an ellipsis if something is missing; empty if not even that fits.
    static func fitted(_ text: String, width: Double, size: Double = 11) -> String {
        if self.of(text, size: size) <= width { return text }
        var rest = width - self.of("…", size: size)
        guard rest > 0 else { return "" }
        var fitted = ""
        for character in text {
            rest -= self.of(String(character), size: size)
            if rest < 0 { break }
            fitted.append(character)
        }
        while fitted.last == " " { fitted.removeLast() }
        return fitted.isEmpty ? "" : fitted + "…"
    }
}
