/// Prepares user names and passwords, so that the same characters are the same bytes on both sides.
///
/// Spec: RFC 4013. A user name is a query string (RFC 5802 §5.1), which may have characters newer than Unicode 3.2 (RFC
/// 3454 §7). A password with such characters is prepared by the profile OpaqueString (RFC 8265 §4.2) instead.
package enum SASLPrep {
    package enum Use: Hashable, Sendable {
        case name
        case password
    }

    /// The reason why a string cannot be prepared.
    package struct Refusal: Error, Hashable, Sendable, CustomStringConvertible {
        package enum Reason: Hashable, Sendable {
            /// RFC 4013 §2.3.
            case prohibited
            /// Both directions in one string, or a string from right to left that does not begin and end so (§2.4).
            case direction
        }

        package let scalar: UInt32
        package let reason: Reason

        /// The code point in Unicode's notation: `U+00AA`.
        package var codePoint: String {
            let digits = String(self.scalar, radix: 16, uppercase: true)
            return "U+" + String(repeating: "0", count: max(0, 4 - digits.count)) + digits
        }

        package var description: String {
            switch self.reason {
            case .prohibited: "the character \(self.codePoint) is prohibited"
            case .direction: "the character \(self.codePoint) is not allowed there in text from right to left"
            }
        }
    }

    package static func prepare(_ text: String, as use: Use) throws(Refusal) -> [UInt8] {
        // Printable ASCII is unchanged.
        if text.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) { return Array(text.utf8) }
        let tables = SASLPrepTables.shared
        var mapped: [UInt32] = []
        for scalar in text.unicodeScalars {
            // §2.1. U+200B is in both tables: the first one is for it.
            if tables.spaces.contains(scalar.value) {
                mapped.append(0x20)
            } else if !tables.nothing.contains(scalar.value) {
                mapped.append(scalar.value)
            }
        }
        let normalized = tables.normalized(mapped)
        if let point = normalized.first(where: tables.prohibited.contains) {
            throw Refusal(scalar: point, reason: .prohibited)
        }
        if let point = self.misdirected(normalized, tables) { throw Refusal(scalar: point, reason: .direction) }
        if use == .password, normalized.contains(where: tables.unassigned.contains) { return self.opaque(text, tables) }
        var prepared = ""
        prepared.unicodeScalars.append(contentsOf: normalized.lazy.compactMap(Unicode.Scalar.init))
        return Array(prepared.utf8)
    }

    /// RFC 8265 §4.2.2: other spaces become U+0020, and the text NFC.
    private static func opaque(_ text: String, _ tables: SASLPrepTables) -> [UInt8] {
        var mapped = ""
        for scalar in text.unicodeScalars {
            let isSpace = scalar.value != 0x200B && tables.spaces.contains(scalar.value)
            mapped.unicodeScalars.append(isSpace ? " " : scalar)
        }
        return Array(mapped._nfcCodeUnits)
    }

    /// The first character that breaks RFC 3454 §6.
    private static func misdirected(_ text: [UInt32], _ tables: SASLPrepTables) -> UInt32? {
        guard text.contains(where: tables.rightToLeft.contains) else { return nil }
        if let point = text.first(where: tables.leftToRight.contains) { return point }
        return [text.first, text.last].lazy.compactMap(\.self).first { !tables.rightToLeft.contains($0) }
    }
}
