/// Whether a name with right-to-left letters can be read in only one way.
///
/// Directions are those of Unicode's blocks and categories, as far as names have them, because the standard library has
/// no Bidi_Class.
///
/// Spec: RFC 5893 §2; UnicodeData.txt, field 4.
enum BidiRule {
    private enum Direction {
        case left, right, arabicLetter, europeanNumber, arabicNumber, mark, neutral

        var isRight: Bool { self == .right || self == .arabicLetter }
    }

    /// Whether something in it runs from right to left; else there is no rule.
    static func concerns(_ text: some Sequence<Unicode.Scalar>) -> Bool {
        text.contains { scalar in
            guard scalar.value >= 0x590 else { return false }
            let direction = Self.direction(scalar)
            return direction.isRight || direction == .arabicNumber
        }
    }

    /// Whether one name, or one label of a domain some label of which runs from right to left, keeps the rule.
    static func holds(_ text: some Collection<Unicode.Scalar>) -> Bool {
        let directions = text.map(Self.direction)
        let last = directions.last { $0 != .mark }
        guard let first = directions.first, let last else { return false }
        if first.isRight {
            return !directions.contains(.left) && last != .neutral
                && !(directions.contains(.europeanNumber) && directions.contains(.arabicNumber))
        }
        return first == .left && !directions.contains { $0.isRight || $0 == .arabicNumber } && last != .neutral
    }

    private static func direction(_ scalar: Unicode.Scalar) -> Direction {
        switch scalar.value {
        case 0x30...0x39, 0x6F0...0x6F9: return .europeanNumber
        case 0x41...0x5A, 0x61...0x7A: return .left
        case 0..<0x80: return .neutral
        case 0x600...0x605, 0x660...0x669, 0x66B...0x66C, 0x6DD, 0x890...0x891, 0x8E2, 0x10D30...0x10D39,
            0x10E60...0x10E7E:
            return .arabicNumber
        default: break
        }
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .enclosingMark: return .mark
        case .lowercaseLetter, .uppercaseLetter, .titlecaseLetter, .otherLetter, .modifierLetter, .decimalNumber,
            .letterNumber, .spacingMark:
            break
        default: return .neutral
        }
        switch scalar.value {
        case 0x590...0x5FF, 0x7C0...0x85F, 0xFB1D...0xFB4F, 0x10800...0x10CFF, 0x10D40...0x10EBF, 0x10F00...0x10F2F,
            0x10F70...0x10FFF, 0x1E800...0x1EC6F, 0x1ECC0...0x1ECFF, 0x1ED50...0x1EDFF, 0x1EF00...0x1EFFF:
            return .right
        case 0x600...0x7BF, 0x860...0x8FF, 0xFB50...0xFDFF, 0xFE70...0xFEFF, 0x10D00...0x10D3F, 0x10EC0...0x10EFF,
            0x10F30...0x10F6F, 0x1EC70...0x1ECBF, 0x1ED00...0x1ED4F, 0x1EE00...0x1EEFF:
            return .arabicLetter
        default: return .left
        }
    }
}
