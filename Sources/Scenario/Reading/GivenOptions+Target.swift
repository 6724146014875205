import Foundation
import Transport

// Where clients connect, and what lies between TCP and their protocol.
extension GivenOptions {
    mutating func readTarget(_ authority: Substring?, into options: inout MQTTOptions) {
        let port = self[\.port] ?? options.transport.defaultPort
        if self.isGiven(\.url) {
            if let authority { self.read(authority, into: &options) }
        } else if self[\.host] == ["embedded"] {
            options.target = .embedded(arguments: self.brokerArguments())
            let refused: OptionWords =
                "the embedded broker has no use for it: its certificate is made for the run; leave it out"
            self.refuse(given: \.caFile, \.certificateFile, \.pin, because: refused)
            self.refuse(given: \.port, because: "the embedded broker takes a free port; leave \(\.port) out")
        } else {
            let servers = self.servers(self[\.host] ?? ["127.0.0.1"], port: port, \.host)
            if servers.contains(where: { $0.host == "embedded" }) {
                self.refuse(\.host, "'embedded' stands alone; leave the other hosts out")
            }
            options.target = .servers(servers)
        }
        if self.isGiven(\.broker), self.isGiven(\.host) || self.isGiven(\.url), self[\.host] != ["embedded"] {
            self.refuse(\.broker, "its faults are for \(\.host, "embedded"); add that, or leave it out")
        }
    }

    mutating func servers(_ texts: [String], port: Int, _ option: AnyOptionKey) -> [Target] {
        var servers: [Target] = []
        for text in texts {
            if let server = Target(text, defaultPort: port) {
                servers.append(server)
            } else {
                self.refuse(
                    option,
                    "'\(text)' is not a host; write it like broker.example, 10.0.0.1:1884 or [::1]:1884"
                )
            }
        }
        return servers
    }

    // MARK: - URL

    /// Reads the scheme of a URL, and the path of a WebSocket's.
    ///
    /// - Returns: user, host and port.
    mutating func readURL(into transport: inout TransportOptions) -> Substring? {
        guard let url = self[\.url] else { return nil }
        guard let scheme = url.firstRange(of: "://") else {
            return self.refused(\.url, "is not a URL; write it like mqtt://broker.example:1883/")
        }
        let name = url[..<scheme.lowerBound].lowercased()
        switch name {
        case "mqtt": break
        case "mqtts": transport.tls = TransportOptions.TLS()
        case "ws": transport.webSocket = TransportOptions.WebSocket()
        case "wss":
            transport.tls = TransportOptions.TLS()
            transport.webSocket = TransportOptions.WebSocket()
        case "xmpp", "xmpps":
            return self.refused(\.url, "\(name):// is for clamor xmpp, whose servers are given with -h")
        default:
            return self.refused(\.url, "'\(name)' is no known scheme; use mqtt://, mqtts://, ws:// or wss://")
        }
        let rest = url[scheme.upperBound...]
        let authority = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        let path = rest[authority.endIndex...]
        // Nothing of it is echoed: what is left of the @ is a password.
        guard !path.contains("@") else {
            let words = "has an @ behind the first /, ? or #; write these in a password as %2F, %3F and %23"
            return self.refused(\.url, "\(words), and @ in a path as %40")
        }
        if transport.webSocket == nil, !["", "/"].contains(path) {
            return self.refused(\.url, "\(name):// has nothing behind the port; end it there")
        }
        if path.contains("#") { self.refuse(\.url, "'#' has no place in a WebSocket's URL; write it as %23") }
        if !["", "/"].contains(path) { transport.webSocket?.path = path.hasPrefix("/") ? String(path) : "/\(path)" }
        return authority
    }

    private mutating func read(_ authority: Substring, into options: inout MQTTOptions) {
        var host = authority
        if let at = authority.lastIndex(of: "@") {
            host = authority[authority.index(after: at)...]
            let credentials = authority[..<at].split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            let decoded = credentials.map { String($0).removingPercentEncoding }
            guard !decoded.contains(nil) else {
                return self.refuse(\.url, "the user or password has a wrong % sequence; write % itself as %25")
            }
            let words: OptionWords = "is part of \(\.url) already; leave one of the two out"
            self.refuse(given: \.username, \.password, because: words)
            options.username = decoded.first ?? nil
            options.password = decoded.count > 1 ? decoded[1] : nil
        }
        // Several, taken in turn, as with -h.
        let hosts = host.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        options.target = .servers(self.servers(hosts, port: options.transport.defaultPort, \.url))
    }

    // MARK: - TLS

    /// Reads TLS and WebSocket; a URL may have said so already.
    mutating func readTransport(into transport: inout TransportOptions) {
        if let isSecure = self[\.ssl] {
            if !isSecure, transport.tls != nil {
                self.refuse(
                    \.ssl,
                    "\(\.url) asks for TLS already; leave '\(\.ssl, "false")' out, or use another scheme"
                )
            }
            if isSecure { transport.tls = transport.tls ?? TransportOptions.TLS() }
        }
        if self[\.ws] == true { transport.webSocket = transport.webSocket ?? TransportOptions.WebSocket() }
        if var settings = transport.tls {
            self.readCertificates(into: &settings)
            settings.psk = self.preSharedKey()
            self.checkCertificates(settings)
            transport.tls = settings
        } else {
            self.refuse(with: .tls, because: "is a matter of TLS; add \(\.ssl, "true"), or leave it out")
        }
        self.readWebSocket(into: &transport.webSocket)
    }

    /// The trust and the certificate of TLS.
    mutating func readCertificates(into settings: inout TransportOptions.TLS) {
        self.store(into: &settings)
        settings.keyLogFile = self.environment["SSLKEYLOGFILE"]
    }

    mutating func checkCertificates(_ settings: TransportOptions.TLS) {
        if settings.certificateFile != nil, settings.keyFile == nil {
            self.refuse(\.certificateFile, "a certificate needs its private key; add \(\.keyFile)")
        }
        if settings.keyFile != nil, settings.certificateFile == nil {
            self.refuse(\.keyFile, "a private key needs its certificate; add \(\.certificateFile)")
        }
        if settings.isInsecure, settings.caFile != nil {
            self.refuse(\.caFile, "\(\.insecure) verifies nothing; leave one of the two out")
        }
        guard settings.psk != nil else { return }
        let words: OptionWords = "a pre-shared key takes the place of certificates; leave one of the two out"
        let certificates: [AnyOptionKey] = [\.caFile, \.certificateFile, \.pin]
        if let option = certificates.first(where: { self.isGiven($0) }) { self.refuse(option, words) }
        if settings.versions.lowerBound > .v1_2 {
            self.refuse(\.tlsVersion, "a pre-shared key is used with TLS 1.2; leave it out, or use 1.2")
        }
    }

    private mutating func preSharedKey() -> TransportOptions.PSK? {
        if let text = self[\.preSharedKey] { return self.preSharedKey(text, \.preSharedKey) }
        guard let path = self[\.preSharedKeyFile], let bytes = self.contents(of: path, for: \.preSharedKeyFile) else {
            return nil
        }
        let text = String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
        return self.preSharedKey(text, \.preSharedKeyFile)
    }

    private mutating func preSharedKey(_ text: String, _ option: OptionKey<String>) -> TransportOptions.PSK? {
        guard let colon = text.lastIndex(of: ":"), colon > text.startIndex,
            let key = HexText.parse(text[text.index(after: colon)...]), !key.isEmpty
        else {
            // Not echoed: it is a secret.
            self.refuse(option, "is not a pre-shared key; write it like IDENTITY:0123abcd, the key in hexadecimal")
            return nil
        }
        return TransportOptions.PSK(identity: String(text[..<colon]), key: key)
    }

    // MARK: - WebSocket

    mutating func readWebSocket(into webSocket: inout TransportOptions.WebSocket?) {
        guard var settings = webSocket else {
            return self.refuse(
                with: .webSocket,
                because: "is a matter of WebSocket; add \(\.ws, "true"), or leave it out"
            )
        }
        if let path = self[\.path] {
            if self.isGiven(\.url), settings.path != "/mqtt" {
                self.refuse(\.path, "is part of \(\.url) already; leave one of the two out")
            }
            settings.path = path
        }
        if !settings.path.hasPrefix("/") || settings.path.contains(where: { $0.isWhitespace || !$0.isASCII }) {
            let shown = Redaction.hideQuery(in: settings.path)
            self.refuse(\.path, "'\(shown)' is not a path; write it like /mqtt, other characters as %20")
        }
        self.store(into: &settings)
        webSocket = settings
    }
}

extension Target {
    /// Reads `host`, `host:port`, `::1`, `[::1]` or `[::1]:port`.
    init?(_ text: String, defaultPort: Int) {
        var host = text[...]
        var port: Substring?
        if text.hasPrefix("["), let end = text.firstIndex(of: "]") {
            host = text[text.index(after: text.startIndex)..<end]
            let behind = text[text.index(after: end)...]
            if behind.hasPrefix(":") { port = behind.dropFirst() }
        } else if text.count(where: { $0 == ":" }) == 1, let colon = text.firstIndex(of: ":") {
            host = text[..<colon]
            port = text[text.index(after: colon)...]
        }
        let number = port.map { Int($0) ?? 0 } ?? defaultPort
        guard !host.isEmpty, !host.contains(where: { $0.isWhitespace || $0 == "/" }), (1...65_535).contains(number)
        else { return nil }
        self.init(host: String(host), port: number)
    }
}

/// Bytes in hexadecimal, blanks allowed between.
enum HexText {
    static func parse(_ text: some StringProtocol) -> [UInt8]? {
        let digits = text.filter { !$0.isWhitespace }
        guard digits.count.isMultiple(of: 2) else { return nil }
        var bytes: [UInt8] = []
        var high: UInt8?
        for digit in digits {
            guard digit.isASCII, let value = digit.hexDigitValue else { return nil }
            if let first = high {
                bytes.append(first << 4 | UInt8(value))
                high = nil
            } else {
                high = UInt8(value)
            }
        }
        return bytes
    }
}
