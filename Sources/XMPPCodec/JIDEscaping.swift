extension JID {
    /// The characters that a local part does not have, and the backslash.
    private static let escapes: [(character: UInt8, code: StaticString)] = [
        (0x20, "\\20"), (0x22, "\\22"), (0x26, "\\26"), (0x27, "\\27"), (0x2F, "\\2f"), (0x3A, "\\3a"), (0x3C, "\\3c"),
        (0x3E, "\\3e"), (0x40, "\\40"), (0x5C, "\\5c"),
    ]

    /// Escapes a name with characters that local parts exclude.
    ///
    /// A backslash is escaped only where it would be read as an escape (XEP-0106 §4.2). The name must not begin or end
    /// with a space; the initializer of ``JID`` refuses such a name.
    ///
    /// Spec: XEP-0106.
    public static func escape(local name: String) -> String {
        let bytes = Array(name.utf8)
        var escaped: [UInt8] = []
        for (index, byte) in bytes.enumerated() {
            let escape = Self.escapes.first { $0.character == byte }
            let isAtEnd = byte == 0x20 && (index == 0 || index == bytes.count - 1)
            let isPlainBackslash = byte == 0x5C && Self.escape(in: bytes, at: index) == nil
            if let escape, !isAtEnd, !isPlainBackslash {
                escape.code.withUTF8Buffer { escaped += $0 }
            } else {
                escaped.append(byte)
            }
        }
        return String(decoding: escaped, as: UTF8.self)
    }

    /// The name of an escaped local part, for display only, never as an address.
    ///
    /// Spec: XEP-0106.
    public static func unescape(local: String) -> String {
        let bytes = Array(local.utf8)
        var name: [UInt8] = []
        var index = 0
        while index < bytes.count {
            let character = Self.escape(in: bytes, at: index)
            // A space at either end is never escaped, so this is not an escape.
            let isAtEnd = character == 0x20 && (index == 0 || index + 3 == bytes.count)
            name.append(isAtEnd ? bytes[index] : character ?? bytes[index])
            index += character == nil || isAtEnd ? 1 : 3
        }
        return String(decoding: name, as: UTF8.self)
    }

    /// The character whose escape begins at `index`.
    private static func escape(in bytes: [UInt8], at index: Int) -> UInt8? {
        Self.escapes.first { escape in
            escape.code.withUTF8Buffer { bytes[index...].starts(with: $0) }
        }?.character
    }
}
