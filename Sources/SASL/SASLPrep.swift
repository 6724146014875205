/// Prepares user names and passwords, so that the same characters are the same bytes on both sides.
///
/// Characters outside the implemented part are refused: the standard library has no NFKC, so any character that NFKC
/// might change is refused. ASCII is unchanged, soft hyphens are removed, and spaces of other widths become spaces.
/// Other accepted letters are those that no normalisation changes: composed Latin, Greek, Cyrillic, kana, Chinese
/// characters and Hangul syllables. Combining marks, compatibility forms, right-to-left scripts and characters newer
/// than Unicode 3.2 are refused.
///
/// Spec: RFC 4013, as stored strings (RFC 3454 §7).
package enum SASLPrep {
    /// The reason why a string cannot be prepared.
    package struct Refusal: Error, Hashable, Sendable, CustomStringConvertible {
        package let scalar: UInt32

        /// The code point in Unicode's notation: `U+00AA`.
        package var codePoint: String {
            let digits = String(self.scalar, radix: 16, uppercase: true)
            return "U+" + String(repeating: "0", count: max(0, 4 - digits.count)) + digits
        }

        package var description: String { "the character \(self.codePoint) cannot be prepared" }
    }

    /// Letters of these blocks do not join with what follows, and run from left to right.
    private static let blocks: [ClosedRange<UInt32>] = [
        0xC0...0x24F, 0x370...0x3FF, 0x400...0x52F, 0x1E00...0x1EFF, 0x3041...0x30FF, 0x4E00...0x9FA5, 0xAC00...0xD7A3,
    ]

    package static func prepare(_ text: String) throws(Refusal) -> [UInt8] {
        var prepared: [UInt8] = []
        for scalar in text.unicodeScalars {
            switch scalar.value {
            case 0x20...0x7E: prepared.append(UInt8(scalar.value))
            // §2.1: commonly mapped to nothing.
            case 0xAD: continue
            // §2.1: non-ASCII spaces are mapped to U+0020.
            case 0xA0, 0x1680, 0x2000...0x200A, 0x202F, 0x205F, 0x3000: prepared.append(0x20)
            // Sharp s and final sigma: folding would change them, and NFKC alone does not.
            case 0xDF, 0x3C2: prepared += String(scalar).utf8
            default:
                guard self.isStable(scalar) else { throw Refusal(scalar: scalar.value) }
                prepared += String(scalar).utf8
            }
        }
        return prepared
    }

    /// Whether NFKC leaves the letter unchanged in any context.
    private static func isStable(_ scalar: Unicode.Scalar) -> Bool {
        guard self.blocks.contains(where: { $0.contains(scalar.value) }), let age = scalar.properties.age,
            (age.major, age.minor) <= (3, 2)
        else { return false }
        switch scalar.properties.generalCategory {
        case .lowercaseLetter, .otherLetter: return !scalar.properties.changesWhenNFKCCaseFolded
        case .uppercaseLetter:
            // Folding changes each capital letter. NFKC alone does not if its small letter is stable and has no other.
            let small = scalar.properties.lowercaseMapping.unicodeScalars
            guard let letter = small.first, small.count == 1 else { return false }
            return !letter.properties.changesWhenNFKCCaseFolded
                && letter.properties.uppercaseMapping.unicodeScalars.elementsEqual([scalar])
        default: return false
        }
    }
}
