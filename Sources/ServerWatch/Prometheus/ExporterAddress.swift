/// The address of an exporter: `http://host:port/path`; without a path `/metrics`.
package struct ExporterAddress: Hashable, Sendable, CustomStringConvertible {
    package let host: String
    package let port: Int
    package let path: String
    package let isSecure: Bool

    /// `nil` if the text is no such address.
    package init?(_ text: String) {
        var rest: Substring
        if text.lowercased().hasPrefix("http://") {
            (rest, self.isSecure) = (text.dropFirst(7), false)
        } else if text.lowercased().hasPrefix("https://") {
            (rest, self.isSecure) = (text.dropFirst(8), true)
        } else {
            return nil
        }
        // The text goes into a request line as it is.
        guard rest.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else { return nil }
        rest = rest.prefix { $0 != "#" }
        let authority = rest.prefix { $0 != "/" && $0 != "?" }
        let path = rest[authority.endIndex...]
        self.path = path.isEmpty ? "/metrics" : path.hasPrefix("?") ? "/\(path)" : String(path)
        var port: Substring?
        if authority.hasPrefix("[") {
            guard let close = authority.firstIndex(of: "]") else { return nil }
            self.host = String(authority[authority.index(after: authority.startIndex)..<close])
            let after = authority[authority.index(after: close)...]
            guard after.isEmpty || after.hasPrefix(":") else { return nil }
            port = after.isEmpty ? nil : after.dropFirst()
        } else {
            let parts = authority.split(separator: ":", omittingEmptySubsequences: false)
            guard parts.count <= 2, !authority.contains("@") else { return nil }
            self.host = String(parts[0])
            port = parts.count == 2 ? parts[1] : nil
        }
        guard !self.host.isEmpty else { return nil }
        guard let port else {
            self.port = self.isSecure ? 443 : 80
            return
        }
        guard port.first != "+", let number = UInt16(port), number > 0 else { return nil }
        self.port = Int(number)
    }

    /// Host and port, as in the Host field (RFC 9110 §7.2).
    var authority: String { self.host.contains(":") ? "[\(self.host)]:\(self.port)" : "\(self.host):\(self.port)" }

    /// The path without the query.
    var plainPath: Substring { self.path.prefix { $0 != "?" } }

    /// The address with `***` for the query, which may be a secret.
    package var description: String {
        let query = self.path.contains("?") ? "?***" : ""
        return "\(self.isSecure ? "https" : "http")://\(self.authority)\(self.plainPath)\(query)"
    }
}
