import Foundation
import Transport

extension OptionReader {
    /// Reads TLS, WebSocket and PROXY; a URL may have said the first two already.
    mutating func read(
        _ flags: TransportFlags,
        _ certificates: CertificateFlags,
        _ webSocket: WebSocketFlags,
        into options: inout MQTTOptions
    ) {
        var transport = options.transport
        if let isSecure = self.boolean(flags.ssl, "-S", "--ssl") {
            if !isSecure, transport.tls != nil {
                self.report("-S", "--url asks for TLS already; leave '-S false' out, or use another scheme")
            }
            if isSecure { transport.tls = transport.tls ?? TransportOptions.TLS() }
        }
        if webSocket.ws { transport.webSocket = transport.webSocket ?? TransportOptions.WebSocket() }
        self.readTLS(flags, certificates, into: &transport.tls)
        self.readWebSocket(webSocket, into: &transport.webSocket)
        if let version = flags.proxyProtocol {
            transport.proxy = ProxyProtocol(rawValue: version)
            if transport.proxy == nil { self.report("--proxy-protocol", "'\(version)' is not v1 or v2") }
        }
        options.transport = transport
    }

    // MARK: - TLS

    private mutating func readTLS(
        _ flags: TransportFlags,
        _ certificates: CertificateFlags,
        into tls: inout TransportOptions.TLS?
    ) {
        guard var settings = tls else {
            for name in self.givenTLS() { self.report(name, "is a matter of TLS; add -S, or leave it out") }
            return
        }
        self.read(certificates, into: &settings)
        settings.psk = self.psk(flags)
        if let alpn = flags.alpn { settings.alpn = self.protocols(alpn) ?? [] }
        self.checkCertificates(settings)
        tls = settings
    }

    /// Whom TLS trusts, and what it shows.
    mutating func read(_ flags: CertificateFlags, into settings: inout TransportOptions.TLS) {
        settings.caFile = flags.cacertfile
        settings.certificateFile = flags.certfile
        settings.keyFile = flags.keyfile
        settings.isInsecure = flags.insecure
        settings.pins = flags.pin
        settings.serverName = flags.sni
        settings.ciphers = flags.ciphers
        settings.keyLogFile = self.environment["SSLKEYLOGFILE"]
        settings.versions = self.tlsVersions(flags.tlsVersion) ?? settings.versions
    }

    /// The TLS flags that were typed, by the names they were typed with.
    func givenTLS() -> [String] {
        [
            ["--cacertfile", "--ca"], ["--certfile", "--cert"], ["--keyfile", "--key"], ["--insecure"], ["--pin"],
            ["--psk"], ["--psk-file"], ["--tls-version"], ["--ciphers"], ["--alpn"], ["--sni"],
        ].filter { self.isGiven($0) }.map { self.typed($0) }
    }

    mutating func checkCertificates(_ settings: TransportOptions.TLS) {
        if settings.certificateFile != nil, settings.keyFile == nil {
            self.report(self.typed(["--certfile", "--cert"]), "a certificate needs its private key; add --keyfile")
        }
        if settings.keyFile != nil, settings.certificateFile == nil {
            self.report(self.typed(["--keyfile", "--key"]), "a private key needs its certificate; add --certfile")
        }
        if settings.isInsecure, settings.caFile != nil {
            self.report(
                self.typed(["--cacertfile", "--ca"]),
                "--insecure verifies nothing; leave one of the two out"
            )
        }
        if settings.psk != nil {
            let others = [["--cacertfile", "--ca"], ["--certfile", "--cert"], ["--pin"]].filter { self.isGiven($0) }
            if let other = others.first {
                self.report(
                    self.typed(other),
                    "a pre-shared key takes the place of certificates; leave one of the two out"
                )
            }
            if settings.versions.lowerBound > .v1_2 {
                self.report("--tls-version", "a pre-shared key is used with TLS 1.2; leave the flag out, or use 1.2")
            }
        }
    }

    private mutating func psk(_ flags: TransportFlags) -> TransportOptions.PSK? {
        var text = flags.psk
        var flag = "--psk"
        if let path = flags.pskFile {
            if text != nil { self.report("--psk-file", "--psk is given too; leave one of the two out") }
            flag = "--psk-file"
            guard let bytes = self.contents(of: path, flag: flag) else { return nil }
            text = String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
        }
        guard let text else { return nil }
        guard let colon = text.lastIndex(of: ":"), colon > text.startIndex,
            let key = HexText.parse(text[text.index(after: colon)...]), !key.isEmpty
        else {
            // Not echoed: it is a secret.
            self.report(flag, "is not a pre-shared key; write it like IDENTITY:0123abcd, the key in hexadecimal")
            return nil
        }
        return TransportOptions.PSK(identity: String(text[..<colon]), key: key)
    }

    private mutating func tlsVersions(_ text: String?) -> ClosedRange<TLSProtocolVersion>? {
        guard let text else { return nil }
        // OpenSSL and mosquitto write `tlsv1.2`, and `tlsv1` for 1.0.
        let bounds = text.split(separator: "-", omittingEmptySubsequences: false).map { bound in
            let name = bound.lowercased()
            let number = name.hasPrefix("tlsv") ? name.dropFirst(4) : name[...]
            return TLSProtocolVersion(rawValue: name == "tlsv1" ? "1.0" : String(number))
        }
        if (1...2).contains(bounds.count), let low = bounds[0], let high = bounds[bounds.count - 1], low <= high {
            return low...high
        }
        self.report("--tls-version", "'\(text)' is not a version of TLS; write it like 1.2, 1.3 or 1.2-1.3")
        return nil
    }

    private mutating func protocols(_ text: String) -> [String]? {
        let names = text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        // RFC 7301 §3.1: 1 to 255 bytes each.
        if names.allSatisfy({ (1...255).contains($0.utf8.count) }) { return names }
        self.report("--alpn", "'\(text)' is not a list of protocols; write it like mqtt or mqtt,x-amzn-mqtt-ca")
        return nil
    }

    // MARK: - WebSocket

    mutating func readWebSocket(
        _ flags: WebSocketFlags,
        into webSocket: inout TransportOptions.WebSocket?
    ) {
        guard var settings = webSocket else {
            for names in [["--path"], ["--header", "--ws-headers"]] where self.isGiven(names) {
                self.report(self.typed(names), "is a matter of WebSocket; add --ws, or leave it out")
            }
            return
        }
        if let path = flags.path {
            if self.isGiven(["--url"]), settings.path != "/mqtt" {
                self.report("--path", "is part of --url already; leave one of the two out")
            }
            settings.path = path
        }
        if !settings.path.hasPrefix("/") || settings.path.contains(where: { $0.isWhitespace || !$0.isASCII }) {
            self.report(
                "--path",
                "'\(Redaction.hideQuery(in: settings.path))' is not a path; write it like /mqtt, other characters as %20"
            )
        }
        for header in flags.header { if let header = self.header(header) { settings.headers.append(header) } }
        webSocket = settings
    }

    private mutating func header(_ text: String) -> TransportOptions.Header? {
        let name = self.typed(["--header", "--ws-headers"])
        // RFC 9110 §5.6.2, §5.5: a token, a colon, and no line break; the value is not echoed, for it may be a secret.
        let tokens = Set("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, !parts[0].isEmpty, parts[0].allSatisfy(tokens.contains) else {
            self.report(name, "is not a header; write it like 'Authorization: Bearer abc'")
            return nil
        }
        guard !parts[1].utf8.contains(where: { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }) else {
            self.report(name, "\(parts[0]) has a line break or another control character in it; take it out")
            return nil
        }
        let own = ["host", "upgrade", "connection"]
        if own.contains(parts[0].lowercased()) || parts[0].lowercased().hasPrefix("sec-websocket-") {
            self.report(name, "\(parts[0]) is part of the handshake itself; leave it out")
            return nil
        }
        return TransportOptions.Header(String(parts[0]), parts[1].trimmingCharacters(in: .whitespaces))
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
