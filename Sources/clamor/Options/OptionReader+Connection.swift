import Foundation
import Transport

extension OptionReader {
    mutating func read(_ flags: ConnectionFlags, into options: inout MQTTOptions) {
        let url = flags.url.flatMap { self.scheme(of: $0, into: &options.transport) }
        self.read(flags.transport, flags.certificates, flags.webSocket, into: &options)
        self.readTarget(flags, url: url, into: &options)
        self.read(rows: flags.rows, into: &options)
        self.readIdentity(flags, into: &options)
        // The length of client ids depends on -n.
        self.read(flags.clients, flags.departures, into: &options.common)
        self.read(flags.churn, into: &options)
        self.readCredentials(flags, into: &options)
        self.readSession(flags, into: &options)
        self.read(flags.auth, into: &options)
        self.read(flags.will, into: &options)
        self.read(flags.properties, into: &options)
    }

    private mutating func readTarget(_ flags: ConnectionFlags, url: Substring?, into options: inout MQTTOptions) {
        let port = self.number(flags.port, "-p", "--port", in: 1...65_535) ?? options.transport.defaultPort
        if flags.url != nil {
            if let url { self.read(url: url, into: &options) }
            for names in [["-h", "--host", "--hostname"], ["-p", "--port"]] where self.isGiven(names) {
                self.report(self.typed(names), "is part of --url already; leave one of the two out")
            }
        } else if flags.host == "embedded" {
            options.target = .embedded(arguments: self.arguments(inText: flags.broker ?? ""))
            for names in [["--cacertfile", "--ca"], ["--certfile", "--cert"], ["--pin"]]
            where self.isGiven(names) {
                self.report(
                    self.typed(names),
                    "the embedded broker has no use for it: its certificate is made for the run; leave it out"
                )
            }
            if flags.port != nil { self.report("-p", "the embedded broker takes a free port; leave -p out") }
        } else {
            let hosts = (flags.host ?? "127.0.0.1").split(separator: ",", omittingEmptySubsequences: false)
            let servers = hosts.compactMap {
                self.server(String($0), defaultPort: port, flag: self.typed(["-h", "--host", "--hostname"]))
            }
            if servers.contains(where: { $0.host == "embedded" }) {
                self.report("-h", "'embedded' stands alone; leave the other hosts out")
            }
            options.target = .servers(servers)
        }
        if flags.broker != nil, flags.host != "embedded" {
            self.report("--broker", "its faults are for -h embedded; add that, or leave --broker out")
        }
    }

    /// Reads `host`, `host:port`, `::1`, `[::1]` or `[::1]:port`.
    mutating func server(_ text: String, defaultPort: Int, flag: String) -> Target? {
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
        else {
            self.report(
                flag,
                "'\(text)' is not a host; write it like broker.example, 10.0.0.1:1884 or [::1]:1884"
            )
            return nil
        }
        return Target(host: String(host), port: number)
    }

    /// Reads the scheme of a URL, and the path of a WebSocket's.
    ///
    /// - Returns: user, host and port.
    private mutating func scheme(of url: String, into transport: inout TransportOptions) -> Substring? {
        guard let scheme = url.firstRange(of: "://") else {
            self.report("--url", "is not a URL; write it like mqtt://broker.example:1883/")
            return nil
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
            self.report("--url", "\(name):// is not in this build")
            return nil
        default:
            self.report("--url", "'\(name)' is no known scheme; use mqtt://, mqtts://, ws:// or wss://")
            return nil
        }
        let rest = url[scheme.upperBound...]
        let authority = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        let path = rest[authority.endIndex...]
        if transport.webSocket == nil, !["", "/"].contains(path) {
            self.report("--url", "\(name):// has nothing behind the port; end it there")
            return nil
        }
        if path.contains("#") { self.report("--url", "'#' has no place in a WebSocket's URL; write it as %23") }
        if !["", "/"].contains(path) { transport.webSocket?.path = path.hasPrefix("/") ? String(path) : "/\(path)" }
        return authority
    }

    private mutating func read(url authority: Substring, into options: inout MQTTOptions) {
        var host = authority
        if let at = authority.lastIndex(of: "@") {
            host = authority[authority.index(after: at)...]
            let credentials = authority[..<at].split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            let decoded = credentials.map { String($0).removingPercentEncoding }
            guard !decoded.contains(nil) else {
                return self.report("--url", "the user or password has a wrong % sequence; write % itself as %25")
            }
            options.username = decoded.first ?? nil
            options.password = decoded.count > 1 ? decoded[1] : nil
            for names in [["-u", "--username"], ["-P", "--password"]] where self.isGiven(names) {
                self.report(self.typed(names), "is part of --url already; leave one of the two out")
            }
        }
        // Several, taken in turn, as with -h.
        options.target = .servers(
            host.split(separator: ",", omittingEmptySubsequences: false).compactMap {
                self.server(String($0), defaultPort: options.transport.defaultPort, flag: "--url")
            }
        )
    }

    private mutating func readIdentity(_ flags: ConnectionFlags, into options: inout MQTTOptions) {
        let count = self.number(flags.clients.count, "-c", "--count", in: 1...10_000_000) ?? 1
        options.publishers = options.kind == .sub ? 0 : count
        options.subscribers = options.kind == .sub ? count : 0
        options.protocolLevel = self.protocolLevel(flags.version.version) ?? options.protocolLevel
        options.publisherID = self.clientID(flags, role: options.kind == .conn ? "conn" : "pub")
        options.subscriberID = self.clientID(flags, role: "sub")
        if options.publisherID.hasPrefix(self.ownPrefix), flags.prefix == nil, flags.clientID == nil {
            options.drawnPrefix = self.ownPrefix
        }
        if let id = flags.clientID {
            if options.kind == .pubsub {
                self.report("--client-id", "would be the same for publishers and subscribers; use --prefix")
            } else if count > 1, !id.contains("%i"), options.rows == nil || !id.contains("%{") {
                self.report("--client-id", "'\(id)' is the same for all \(count) clients; put %i into it")
            }
            if id.contains("%c") { self.report("--client-id", "%c is the client id itself; use %i") }
            if flags.prefix != nil { self.report("--client-id", "is the whole id; leave --prefix out") }
        }
    }

    /// The level on the wire of a version as people write it.
    mutating func protocolLevel(_ version: String?) -> UInt8? {
        guard let version else { return nil }
        let levels: [String: UInt8] = ["3": 3, "3.1": 3, "4": 4, "3.1.1": 4, "5": 5, "5.0": 5]
        if let level = levels[version] { return level }
        self.report(
            self.typed(["-V", "--mqtt-version"]),
            "'\(version)' is not an MQTT version; it is 3 (3.1), 4 (3.1.1) or 5"
        )
        return nil
    }

    private mutating func clientID(_ flags: ConnectionFlags, role: String) -> String {
        if let id = flags.clientID { return id }
        if self.boolean(flags.shortIDs, "--shortids") == true {
            // Publishers and subscribers of one run must not take over each other.
            return "\(flags.prefix ?? "")\(role.prefix(1))%i"
        }
        return "\(flags.prefix ?? self.ownPrefix)-\(role)-%i"
    }

    private mutating func readCredentials(_ flags: ConnectionFlags, into options: inout MQTTOptions) {
        if let username = flags.username { options.username = username }
        if flags.password.isGiven {
            options.password = self.password(flags.password) ?? options.password
        } else if options.username != nil, options.password == nil {
            options.password = self.environment["CLAMOR_PASSWORD"]
        }
        if options.protocolLevel < 5, options.password != nil, options.username == nil {
            self.report("-P", "MQTT 3 has no password without a user name; add -u, or use -V 5")
        }
    }

    /// The password that the flags say; nothing, and a problem, where its file cannot be read.
    mutating func password(_ flags: PasswordFlags) -> String? {
        if let password = flags.password {
            if flags.passwordFile != nil { self.report("--password-file", "-P is given too; leave one of the two out") }
            return password
        }
        guard let path = flags.passwordFile else { return nil }
        return self.contents(of: path, flag: "--password-file").map { Self.password(in: $0) }
    }

    /// A file's only line, without its end: some editors put one there unasked, and some put CR LF.
    static func password(in bytes: [UInt8]) -> String {
        var line = bytes[...]
        if line.last == 0x0A {
            line = line.dropLast()
            if line.last == 0x0D { line = line.dropLast() }
        }
        return String(decoding: line, as: UTF8.self)
    }

    private mutating func readSession(_ flags: ConnectionFlags, into options: inout MQTTOptions) {
        options.keepAlive = self.number(flags.keepalive, "-k", "--keepalive", in: 0...65_535) ?? options.keepAlive
        options.clean = self.boolean(flags.clean, "-C", "--clean") ?? !flags.noClean
        if flags.noClean, flags.clean == "true" {
            self.report("--no-clean", "-C true says the opposite; leave one out")
        }
        options.sessionExpiry = self.number(
            flags.sessionExpiry,
            "-x",
            "--session-expiry",
            "--session-expiry-interval",
            in: 0...UInt32.max
        )
        if options.protocolLevel < 5, flags.sessionExpiry != nil {
            self.report("-x", "MQTT 3 has no session expiry; leave it out, or use -V 5")
        }
    }

    /// Values of `-R` that give no rate, as in `emqtt_bench`.
    static let noRates: Set = ["0", "0/s"]

    /// How fast clients connect, from where, and how often; how many they are depends on the command.
    mutating func read(_ flags: ClientFlags, _ departures: DepartureFlags, into options: inout LoadOptions) {
        self.read(departures, into: &options)
        options.startNumber = self.number(flags.startNumber, "-n", "--startnumber", in: 0...1_000_000_000) ?? 0
        let connectRate = flags.connectRate.flatMap { !self.isFile && Self.noRates.contains($0) ? nil : $0 }
        options.connectRate = self.value(connectRate, "-R", "--connrate", parse: RateText.parse)
        if let interval = self.milliseconds(flags.interval, "-i", "--interval") {
            if connectRate != nil {
                self.report("-i", "-R says the rate of connects too; leave one of the two out")
            }
            options.connectRate = interval > 0 ? 1e9 / Double(interval) : nil
        }
        if let timeout = self.duration(flags.connectTimeout, "--connect-timeout") {
            options.connectTimeout = timeout
            if timeout == 0 { self.report("--connect-timeout", "'0' leaves no time to connect; write it like 10s") }
        }
        options.connectRetries = self.number(flags.numRetryConnect, "--num-retry-connect", in: 0...1_000_000) ?? 0
        options.reconnects =
            self.number(flags.reconnect, "--reconnect", "--maximum-reconnect-times", in: 0...1_000_000_000) ?? 0
        options.reconnectPeriod =
            self.milliseconds(flags.reconnectPeriod, "--reconnect-period") ?? options.reconnectPeriod
        if let addresses = flags.ifaddr {
            options.sourceAddresses = addresses.split(separator: ",").map(String.init)
            for address in options.sourceAddresses where !self.isLiteral(address) {
                self.report("--ifaddr", "'\(address)' is not an IP address; write it like 10.0.0.5,10.0.0.6")
            }
        }
    }

    private func isLiteral(_ address: String) -> Bool {
        var four = in_addr()
        var six = in6_addr()
        return inet_pton(AF_INET, address, &four) == 1 || inet_pton(AF_INET6, address, &six) == 1
    }

    /// A file's bytes, or a problem that names it.
    mutating func contents(of path: String, flag: String) -> [UInt8]? {
        do {
            return try [UInt8](Data(contentsOf: URL(filePath: path)))
        } catch {
            let reason = (error as? CocoaError)?.code == .fileReadNoSuchFile ? "no such file" : "not readable"
            self.report(flag, "cannot read \(path) (\(reason)); check the path and its permissions")
            return nil
        }
    }
}
