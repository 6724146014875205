package import NIOCore

/// The name servers to query.
package enum NameServers {
    /// The servers of `/etc/resolv.conf`, or this host if the file names none (resolv.conf(5)); reads a file.
    package static func system(_ path: String = "/etc/resolv.conf") -> [SocketAddress] {
        let text = (try? TLSFiles.load(path)).map { String(decoding: $0, as: UTF8.self) } ?? ""
        var servers: [SocketAddress] = []
        for line in text.split(whereSeparator: \.isNewline) {
            let words = line.split { $0 == " " || $0 == "\t" }
            guard words.count >= 2, words[0] == "nameserver" else { continue }
            if let server = try? SocketAddress(ipAddress: String(words[1]), port: 53) { servers.append(server) }
        }
        // At most three servers are used, as in the system's resolver (MAXNS).
        if !servers.isEmpty { return Array(servers.prefix(3)) }
        return (try? SocketAddress(ipAddress: "127.0.0.1", port: 53)).map { [$0] } ?? []
    }

    /// Parses `HOST:PORT`, `HOST` and `[IPv6]:PORT`; the host is an address, the default port is 53.
    ///
    /// - Returns: `nil` for any other text.
    package static func parse(_ text: String) -> SocketAddress? {
        if let whole = try? SocketAddress(ipAddress: text, port: 53) { return whole }
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]), port > 0 else {
            return text.hasPrefix("[") && text.hasSuffix("]") ? self.bracketed(text, 53) : nil
        }
        let host = String(text[..<colon])
        if host.hasPrefix("[") { return self.bracketed(host, Int(port)) }
        guard !host.contains(":") else { return nil }
        return try? SocketAddress(ipAddress: host, port: Int(port))
    }

    private static func bracketed(_ host: String, _ port: Int) -> SocketAddress? {
        guard host.hasPrefix("["), host.hasSuffix("]") else { return nil }
        return try? SocketAddress(ipAddress: String(host.dropFirst().dropLast()), port: port)
    }
}
