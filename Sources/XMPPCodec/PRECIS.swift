/// Which characters a name may have.
///
/// Spec: RFC 8264 §8, §9; for contexts RFC 5892 appendix A.
enum PRECIS {
    enum Verdict {
        case valid, disallowed
        /// The code point is allowed in some surroundings.
        case inContext
        /// The code point is allowed in a free text alone.
        case free
    }

    // RFC 8264 §9.6: exceptions.
    private static let exceptions: Set<UInt32> = [0xDF, 0x3C2, 0x6FD, 0x6FE, 0xF0B, 0x3007]
    private static let refused: Set<UInt32> = [
        0x640, 0x7FA, 0x302E, 0x302F, 0x3031, 0x3032, 0x3033, 0x3034, 0x3035, 0x303B,
    ]

    static func verdict(_ scalar: Unicode.Scalar) -> Verdict {
        let value = scalar.value
        if value < 0x80 { return value > 0x20 && value < 0x7F ? .valid : value == 0x20 ? .free : .disallowed }
        if Self.exceptions.contains(value) { return .valid }
        if Self.refused.contains(value) { return .disallowed }
        switch value {
        case 0xB7, 0x375, 0x5F3, 0x5F4, 0x30FB, 0x660...0x669, 0x6F0...0x6F9, 0x200C, 0x200D: return .inContext
        // §9.9: conjoining jamo.
        case 0x1100...0x11FF, 0xA960...0xA97C, 0xD7B0...0xD7FB: return .disallowed
        default: break
        }
        let properties = scalar.properties
        if properties.isDefaultIgnorableCodePoint || properties.isNoncharacterCodePoint { return .disallowed }
        switch properties.generalCategory {
        case .lowercaseLetter, .uppercaseLetter, .otherLetter, .decimalNumber, .modifierLetter, .nonspacingMark,
            .spacingMark:
            return Self.isCompatibility(scalar) ? .free : .valid
        case .titlecaseLetter, .letterNumber, .otherNumber, .enclosingMark, .spaceSeparator, .mathSymbol,
            .currencySymbol, .modifierSymbol, .otherSymbol, .connectorPunctuation, .dashPunctuation,
            .openPunctuation, .closePunctuation, .initialPunctuation, .finalPunctuation, .otherPunctuation:
            return .free
        default: return .disallowed
        }
    }

    /// Whether NFKC would change it (§9.17).
    ///
    /// The standard library knows only the combined effect of NFKC and case folding. The lower-case letter shows what
    /// case alone changes; the rest is decided by name.
    private static func isCompatibility(_ scalar: Unicode.Scalar) -> Bool {
        let properties = scalar.properties
        guard properties.changesWhenNFKCCaseFolded else { return false }
        if properties.isFullCompositionExclusion { return true }
        switch scalar.value {
        // Greek capital theta symbol, whose lower-case letter is an ordinary one.
        case 0x3F4: return true
        // Letters that fold into others: sharp s, final sigma, Cherokee, old Cyrillic, all that have an iota subscript.
        case 0xDF, 0x3C2, 0x345, 0x13F8...0x13FD, 0x1C80...0x1C88, 0x1C8A, 0x1F80...0x1FFC, 0xAB70...0xABBF:
            return false
        default: break
        }
        guard properties.generalCategory == .uppercaseLetter else { return true }
        let small = Array(properties.lowercaseMapping.unicodeScalars)
        return small == [scalar] || small.contains { Self.isCompatibility($0) }
    }

    // MARK: Contexts

    /// Whether the character at `index` is allowed in its context (RFC 5892 appendix A).
    static func fits(_ text: [Unicode.Scalar], _ index: Int) -> Bool {
        let before = index > 0 ? text[index - 1] : nil
        let after = index + 1 < text.count ? text[index + 1] : nil
        switch text[index].value {
        case 0x200C: return Self.isVirama(before) || Joining.parts(text, index)
        case 0x200D: return Self.isVirama(before)
        case 0xB7: return before == "l" && after == "l"
        case 0x375: return after.map { Self.isGreek($0.value) } ?? false
        case 0x5F3, 0x5F4: return before.map { (0x591...0x5F4).contains($0.value) } ?? false
        case 0x30FB:
            return text.contains {
                switch $0.value {
                case 0x3005, 0x3007, 0x3041...0x3096, 0x309D...0x309F, 0x30A1...0x30FA, 0x30FD...0x30FF,
                    0x31F0...0x31FF, 0x3400...0x9FFF, 0x20000...0x323AF:
                    true
                default: false
                }
            }
        // Two sets of Arabic digits do not mix.
        case 0x660...0x669: return !text.contains { (0x6F0...0x6F9).contains($0.value) }
        case 0x6F0...0x6F9: return !text.contains { (0x660...0x669).contains($0.value) }
        default: return false
        }
    }

    private static func isVirama(_ scalar: Unicode.Scalar?) -> Bool {
        scalar?.properties.canonicalCombiningClass == .virama
    }

    private static func isGreek(_ value: UInt32) -> Bool {
        (0x370...0x3FF).contains(value) || (0x1F00...0x1FFF).contains(value)
    }

    // MARK: Mappings

    /// Wide and narrow forms of the usual characters (RFC 8265 §3.3.2 rule 1); the narrow kana by their order.
    static func ofUsualWidth(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
        switch scalar.value {
        case 0x3000: return " "
        case 0xFF01...0xFF5E: return Unicode.Scalar(scalar.value - 0xFEE0) ?? scalar
        case 0xFF61...0xFF9F: return Self.kana[Int(scalar.value) - 0xFF61]
        default: return scalar
        }
    }

    private static let kana = Array(
        ("\u{3002}\u{300C}\u{300D}\u{3001}\u{30FB}\u{30F2}\u{30A1}\u{30A3}\u{30A5}\u{30A7}\u{30A9}\u{30E3}\u{30E5}"
            + "\u{30E7}\u{30C3}\u{30FC}\u{30A2}\u{30A4}\u{30A6}\u{30A8}\u{30AA}\u{30AB}\u{30AD}\u{30AF}\u{30B1}\u{30B3}"
            + "\u{30B5}\u{30B7}\u{30B9}\u{30BB}\u{30BD}\u{30BF}\u{30C1}\u{30C4}\u{30C6}\u{30C8}\u{30CA}\u{30CB}\u{30CC}"
            + "\u{30CD}\u{30CE}\u{30CF}\u{30D2}\u{30D5}\u{30D8}\u{30DB}\u{30DE}\u{30DF}\u{30E0}\u{30E1}\u{30E2}\u{30E4}"
            + "\u{30E6}\u{30E8}\u{30E9}\u{30EA}\u{30EB}\u{30EC}\u{30ED}\u{30EF}\u{30F3}\u{3099}\u{309A}").unicodeScalars
    )

    /// Small letters, a sigma at the end of a word in its own form (Unicode §3.13, Final_Sigma).
    static func small(_ text: [Unicode.Scalar]) -> [Unicode.Scalar] {
        var small: [Unicode.Scalar] = []
        small.reserveCapacity(text.count)
        for (index, scalar) in text.enumerated() {
            if scalar.value < 0x80 {
                small.append(scalar.value &- 0x41 < 26 ? Unicode.Scalar(UInt8(scalar.value | 0x20)) : scalar)
            } else if scalar.value == 0x3A3 {
                small.append(Self.isAtEndOfWord(text, index) ? "\u{3C2}" : "\u{3C3}")
            } else {
                small += scalar.properties.lowercaseMapping.unicodeScalars
            }
        }
        return small
    }

    private static func isAtEndOfWord(_ text: [Unicode.Scalar], _ index: Int) -> Bool {
        func isCased(_ scalars: some Sequence<Unicode.Scalar>) -> Bool {
            scalars.first { !$0.properties.isCaseIgnorable }?.properties.isCased ?? false
        }
        return isCased(text[..<index].reversed()) && !isCased(text[(index + 1)...])
    }
}
