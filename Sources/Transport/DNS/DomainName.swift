import DataEncodings

/// The names of domains as the DNS and TLS have them: ASCII, small letters, at most 253 bytes.
package enum DomainName {
    /// The name with each label that is not ASCII as an A-label, without the root's dot.
    ///
    /// The name is taken for prepared (RFC 7622 §3.2): letters are made small, and nothing else is mapped.
    ///
    /// - Parameter text: labels between dots, or between U+3002 as IDNA has it.
    /// - Returns: `nil` for what is no host name: an empty label, one of over 63 bytes, a character that is none of
    ///   letter, digit, hyphen or underscore.
    package static func ascii(_ text: String) -> String? {
        var labels = text.lowercased().unicodeScalars
            .split(omittingEmptySubsequences: false) { $0 == "." || $0 == "\u{3002}" }
            .map { String(String.UnicodeScalarView($0)) }
        if labels.count > 1, labels.last == "" { labels.removeLast() }
        var ascii: [String] = []
        for label in labels {
            let encoded: String
            if label.utf8.allSatisfy({ $0 < 0x80 }) {
                encoded = label
            } else if let digits = Punycode.encode(Array(label.unicodeScalars)) {
                encoded = "xn--\(digits)"
            } else {
                return nil
            }
            guard (1...63).contains(encoded.utf8.count), encoded.utf8.allSatisfy(self.isAllowed) else { return nil }
            ascii.append(encoded)
        }
        let name = ascii.joined(separator: ".")
        return (1...253).contains(name.utf8.count) ? name : nil
    }

    private static func isAllowed(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"),
            UInt8(ascii: "_"):
            true
        default: false
        }
    }
}
