import Transport
import Workloads

extension OptionReader {
    mutating func read(_ flags: XMPPConnectionFlags, into options: inout XMPPOptions) {
        options.operators = self.number(flags.clients.count, "-c", "--count", in: 1...10_000_000) ?? options.operators
        self.read(flags.clients, flags.departures, into: &options.common)
        self.readUsers(flags, into: &options)
        self.readSecurity(flags, into: &options)
        self.readServers(flags, into: &options)
        options.streamManagement = flags.sm
        self.readAccounts(flags, into: &options)
    }

    mutating func read(_ flags: RunFlags, into options: inout XMPPOptions) {
        self.read(flags, hasLedger: options.hasLedger, into: &options.common)
        self.checkSegments(options)
    }

    mutating func read(_ flags: StanzaFlags, into options: inout XMPPOptions) {
        self.read(flags.pace, into: &options.common)
        self.read(flags.payload, atMost: Self.largestBody, of: "a stanza", into: &options.common)
        let bytes: [UInt8] =
            switch options.payload {
            case .message(let bytes), .template(let bytes, _), .file(let bytes): bytes
            case .generated: []
            }
        if !Self.isText(bytes) {
            self.report(
                self.typed(["-m", "--message"]),
                "is not text that XML can hold: UTF-8 without control characters but tab and line ends, nor U+FFFE and U+FFFF"
            )
        }
        if case .template = options.payload, bytes.contains(Array(Template.randomName.utf8)) {
            self.report(
                self.typed(["-m", "--message"]),
                "\(Template.randomName) is bytes of any value, which XML cannot hold; leave it out"
            )
        }
        self.read(flags.window, into: &options)
    }

    mutating func read(pairing: String?, into options: inout XMPPOptions) {
        guard let pairing else { return }
        guard let shape = XMPPLoad.Pairing(rawValue: pairing) else {
            let shapes = XMPPLoad.Pairing.allCases.map(\.rawValue).joined(separator: ", ")
            return self.report("--pairing", "'\(pairing)' is not one of \(shapes)")
        }
        options.pairing = shape
        if shape == .hotspot, options.pacing == .closedLoop {
            self.report("--pairing", "hotspot has no answers to go by, so it needs a pace; add --rate or -I")
        }
    }

    mutating func read(_ flag: WindowFlag, into options: inout XMPPOptions) {
        // Each ping under way is kept with its times, and its answer is looked for among them.
        let most = options.kind == .ping ? Self.mostPings : 65_535
        options.inflight = self.number(flag.inflight, "-F", "--inflight", in: 1...most)
    }

    private static let mostPings = 1_024

    /// What ejabberd takes by itself is a quarter of it; XML around it is small.
    private static let largestBody = 1_000_000

    /// XML 1.0 §2.2: a single character that it cannot hold kills a stream.
    static func isText(_ bytes: [UInt8]) -> Bool {
        guard let text = String(validating: bytes, as: UTF8.self) else { return false }
        return text.unicodeScalars.allSatisfy { scalar in
            switch scalar.value {
            case 0x09, 0x0A, 0x0D: true
            case 0..<0x20, 0xFFFE, 0xFFFF: false
            default: true
            }
        }
    }

    // MARK: - Who

    private mutating func readUsers(_ flags: XMPPConnectionFlags, into options: inout XMPPOptions) {
        if let path = flags.users {
            for names in [["--jid"], ["-P", "--password"], ["--password-file"]] where self.isGiven(names) {
                self.report(self.typed(names), "--users says it already; leave one of the two out")
            }
            guard let table = self.users(path) else { return }
            let first = options.startNumber
            guard table.count >= first + options.operators else {
                let words = first > 0 ? "-n \(first) and -c \(options.operators)" : "-c \(options.operators)"
                return self.report("--users", "\(path) has \(table.count) users, too few for \(words); add some")
            }
            options.users = Array(table[first..<first + options.operators])
            options.domain = options.users.first?.domain ?? ""
            if options.users.contains(where: { $0.domain != options.domain }) {
                self.report("--users", "\(path) has users of several domains; give one table for each")
            }
            return
        }
        self.readPassword(flags, into: &options)
        guard let jid = flags.jid else {
            return self.report("--jid", "is missing: whom to log in as, such as 'user%i@example.org'; or give --users")
        }
        guard let parts = Self.parts(of: jid) else {
            return self.report("--jid", "'\(jid)' is no user's JID; write it like 'user%i@example.org/clamor'")
        }
        (options.local, options.domain) = (parts.local, parts.domain)
        options.resource = parts.resource ?? options.resource
        if options.operators > 1, !options.local.contains("%i"), !options.resource.contains("%i") {
            self.report("--jid", "'\(jid)' is the same for all \(options.operators) clients; put %i into it")
        }
        if options.domain.contains("%") {
            self.report("--jid", "the domain is the same for all clients; leave placeholders out of it")
        }
    }

    private mutating func readPassword(_ flags: XMPPConnectionFlags, into options: inout XMPPOptions) {
        if flags.password.isGiven {
            options.password = self.password(flags.password) ?? ""
        } else if let password = self.environment["CLAMOR_PASSWORD"] {
            options.password = password
        } else if flags.mechanism != "ANONYMOUS", flags.mechanism != "EXTERNAL" {
            self.report("--password", "is missing; add it, or set CLAMOR_PASSWORD in the environment")
        }
    }

    /// RFC 7622 §3.2: the first `/` begins the resource, the first `@` before it ends the local part.
    private static func parts(of jid: String) -> (local: String, domain: String, resource: String?)? {
        let slash = jid.firstIndex(of: "/")
        let bare = slash.map { jid[..<$0] } ?? jid[...]
        guard let at = bare.firstIndex(of: "@"), at > bare.startIndex else { return nil }
        let domain = bare[bare.index(after: at)...]
        let resource = slash.map { String(jid[jid.index(after: $0)...]) }
        guard !domain.isEmpty, !domain.contains("@"), resource != "" else { return nil }
        return (String(bare[..<at]), XMPPLoad.prepared(domain: String(domain)), resource)
    }

    private mutating func users(_ path: String) -> [XMPPUser]? {
        guard let bytes = self.contents(of: path, flag: "--users") else { return nil }
        var users: [XMPPUser] = []
        for (index, line) in bytes.split(separator: 0x0A, omittingEmptySubsequences: false).enumerated() {
            let line = line.last == 0x0D ? line.dropLast() : line
            if line.isEmpty { continue }
            // The password may hold commas: the first one is the end of the JID.
            guard let comma = line.firstIndex(of: UInt8(ascii: ",")),
                let jid = String(validating: line[..<comma], as: UTF8.self), let parts = Self.parts(of: jid),
                let password = String(validating: line[(comma + 1)...], as: UTF8.self)
            else {
                // Not echoed: it may be a password.
                self.report("--users", "line \(index + 1) of \(path) is not JID,PASSWORD")
                return nil
            }
            users.append(
                XMPPUser(
                    local: parts.local,
                    domain: parts.domain,
                    resource: parts.resource ?? "clamor",
                    password: password
                )
            )
        }
        return users
    }

    // MARK: - Where to, and how

    private mutating func readSecurity(_ flags: XMPPConnectionFlags, into options: inout XMPPOptions) {
        if flags.webSocket.ws { options.tls = .direct }
        if let text = flags.tls {
            guard let policy = XMPPLoad.TLSPolicy(rawValue: text) else {
                return self.report("--tls", "'\(text)' is not one of required, preferred, allowed, direct, off")
            }
            options.tls = policy
            if flags.webSocket.ws, policy != .off, policy != .direct {
                self.report("--tls", "a WebSocket has its TLS below it; use --tls direct or --tls off with --ws")
            }
        }
        if options.tls == .off {
            for name in self.givenTLS() {
                self.report(name, "is a matter of TLS; leave it out, or leave --tls off out")
            }
        } else {
            var settings = TransportOptions.TLS()
            self.read(flags.certificates, into: &settings)
            // RFC 6120 §13.7.2: the certificate has to be the domain's, whatever the host is called.
            settings.domain = options.domain
            if options.tls == .direct, !flags.webSocket.ws { settings.alpn = ["xmpp-client"] }
            self.checkCertificates(settings)
            options.transport.tls = settings
        }
        if flags.webSocket.ws {
            options.transport.webSocket = TransportOptions.WebSocket()
            options.transport.webSocket?.path = "/ws"
        }
        self.readWebSocket(flags.webSocket, into: &options.transport.webSocket)
        guard let name = flags.mechanism else { return }
        let known = Self.mechanisms
        guard known.contains(name) else {
            return self.report("--mechanism", "'\(name)' is not one of \(known.joined(separator: ", "))")
        }
        options.mechanism = name
        if name == "ANONYMOUS", options.kind == .message {
            self.report("--mechanism", "ANONYMOUS leaves who a client is to the server, so nobody could write to it")
        }
        if name == "EXTERNAL", flags.certificates.certfile == nil {
            self.report("--mechanism", "EXTERNAL shows a certificate; add --certfile and --keyfile")
        }
    }

    private static let mechanisms = [
        "SCRAM-SHA-512-PLUS", "SCRAM-SHA-256-PLUS", "SCRAM-SHA-1-PLUS", "SCRAM-SHA-512", "SCRAM-SHA-256",
        "SCRAM-SHA-1", "PLAIN", "DIGEST-MD5", "EXTERNAL", "ANONYMOUS",
    ]

    private mutating func readServers(_ flags: XMPPConnectionFlags, into options: inout XMPPOptions) {
        let usual =
            options.transport.webSocket != nil
            ? options.transport.defaultPort : options.tls == .direct ? 5_223 : 5_222
        let port = self.number(flags.port, "-p", "--port", in: 1...65_535) ?? usual
        let name = self.typed(["-h", "--host", "--hostname"])
        guard let text = flags.host else { return self.readService(flags, into: &options) }
        if flags.resolver != nil { self.report("--resolver", "-h says where the server is; leave one of the two out") }
        let hosts = text.split(separator: ",", omittingEmptySubsequences: false)
        options.target = .servers(hosts.compactMap { self.server(String($0), defaultPort: port, flag: name) })
        if hosts.contains("embedded") { self.report(name, "the embedded broker speaks MQTT alone; name a server") }
    }

    private mutating func readService(_ flags: XMPPConnectionFlags, into options: inout XMPPOptions) {
        options.target = .service(domain: options.domain, resolver: flags.resolver)
        if flags.port != nil { self.report("-p", "without -h the DNS says the port; add -h, or leave -p out") }
        if flags.webSocket.ws { self.report("--ws", "the DNS tells of no WebSocket; add -h") }
        if let resolver = flags.resolver, NameServers.parse(resolver) == nil {
            self.report("--resolver", "'\(resolver)' is not an address; write it like 127.0.0.1:53")
        }
    }
}
