/// The target of a redirect, from the Server Reference property.
///
/// Spec: MQTT 5.0 §4.11 (server redirection), §3.2.2.3.16.
package struct ServerReference: Hashable, Sendable {
    package let host: String
    /// `nil` uses the transport's default port.
    package let port: UInt16?

    package init(host: String, port: UInt16?) {
        self.host = host
        self.port = port
    }

    /// The first usable entry of a list: names or addresses, each with or without a port, separated by blanks.
    ///
    /// The standard does not define the form; this is the form of its examples.
    package init?(_ text: String) {
        for part in text.utf8.split(separator: UInt8(ascii: " ")) {
            guard let (host, port) = Self.parse(part) else { continue }
            self.host = host
            self.port = port
            return
        }
        return nil
    }

    private static func parse(_ part: Substring.UTF8View) -> (String, UInt16?)? {
        let host: Substring.UTF8View
        var rest: Substring.UTF8View
        if part.first == UInt8(ascii: "[") {
            guard let end = part.firstIndex(of: UInt8(ascii: "]")) else { return nil }
            host = part[part.index(after: part.startIndex)..<end]
            rest = part[part.index(after: end)...]
            guard host.contains(UInt8(ascii: ":")) else { return nil }
        } else {
            let end = part.firstIndex(of: UInt8(ascii: ":")) ?? part.endIndex
            host = part[..<end]
            rest = part[end...]
            // More than one colon is an IPv6 address, which needs brackets.
            guard rest.dropFirst().allSatisfy({ $0 != UInt8(ascii: ":") }) else { return nil }
        }
        guard !host.isEmpty, host.count <= 253, host.allSatisfy(Self.isHostByte) else { return nil }
        let name = String(Substring(host))
        guard let colon = rest.popFirst() else { return (name, nil) }
        guard colon == UInt8(ascii: ":"), rest.first != UInt8(ascii: "+"), let port = UInt16(Substring(rest)), port > 0
        else { return nil }
        return (name, port)
    }

    /// Letters, digits and the punctuation of names and addresses: schemes and paths are not supported.
    private static func isHostByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"),
            UInt8(ascii: ":"), UInt8(ascii: "%"):
            true
        default: false
        }
    }
}
