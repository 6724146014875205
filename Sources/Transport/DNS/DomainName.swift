import DataEncodings

/// Domain names in the form of DNS and TLS: lower-case ASCII, at most 253 bytes.
package enum DomainName {
    /// The name with non-ASCII labels as A-labels, without the root's dot.
    ///
    /// The name must be prepared (RFC 7622 §3.2): only the case of letters is mapped.
    ///
    /// - Parameter text: labels separated by dots, or by U+3002 as in IDNA.
    /// - Returns: `nil` if it is not a host name. Empty labels and labels over 63 bytes are errors. Letters, digits,
    ///   hyphens and underscores are allowed.
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
