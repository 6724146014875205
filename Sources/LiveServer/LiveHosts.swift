/// The names under which the server may be asked.
///
/// A page of any site can have its name resolve to 127.0.0.1 and then read what listens there (DNS rebinding). Its
/// requests keep the site's name in the Host header, so a server on loopback answers only to names of loopback.
struct LiveHosts: Hashable, Sendable {
    /// Nil for a server that other hosts can reach anyway.
    private let names: Set<String>?

    /// - `given`: the host as the user wrote it.
    /// - `address`: the IP address that it listens on.
    init(given: String, address: String) {
        let isLoopback = address.hasPrefix("127.") || address == "::1" || address.hasPrefix("::ffff:127.")
        guard isLoopback else {
            self.names = nil
            return
        }
        self.names = ["localhost", "127.0.0.1", "[::1]", Self.bracketed(given), Self.bracketed(address)]
    }

    /// Whether a Host header is answered; its port does not matter, as it may be that of a tunnel.
    func allows(_ header: String) -> Bool {
        guard let name = Self.name(of: header) else { return false }
        return self.names?.contains(name) ?? true
    }

    /// The name without the port, in lower case; nil if the header is malformed (RFC 9110 §7.2).
    private static func name(of header: String) -> String? {
        let name: Substring
        if header.hasPrefix("[") {
            guard let end = header.firstIndex(of: "]") else { return nil }
            name = header[...end]
        } else {
            name = header.prefix { $0 != ":" }
        }
        let port = header[name.endIndex...]
        let isPort = port.first == ":" && port.dropFirst().allSatisfy { $0.isASCII && $0.isNumber }
        guard !name.isEmpty, port.isEmpty || isPort else { return nil }
        return name.lowercased()
    }

    private static func bracketed(_ host: String) -> String {
        let name = host.lowercased()
        return name.contains(":") && !name.hasPrefix("[") ? "[\(name)]" : name
    }
}
