import Transport
package import Workloads

// Options of the commands of `xmpp`, and of XMPP groups.
extension GivenOptions {
    /// The options of XMPP clients; with problems reported, not to be used.
    package mutating func xmpp(_ kind: XMPPLoad.Work) -> XMPPOptions {
        var options = XMPPOptions(kind: kind)
        self.store(into: &options)
        self.store(into: &options.common)
        self.readNumbers(into: &options)
        self.readClients(into: &options.common)
        self.readUsers(into: &options)
        self.readSecurity(into: &options)
        self.readServers(into: &options)
        self.checkAccounts(options)
        if kind == .muc { self.readRooms(into: &options) }
        if kind == .presence { self.checkContacts(options) }
        self.readPace(into: &options.common)
        if kind == .message || options.hasGroups { self.readStanzas(into: &options) }
        // Each ping under way is kept with its times, and its answer is looked for among them.
        if kind == .ping, let window = options.inflight, window > Self.mostPings {
            self.refuse(\.stanzaWindow, "'\(window)' is not a whole number of 1 to \(Self.mostPings)")
        }
        if kind == .message, options.pairing == .hotspot, options.pacing == .closedLoop {
            let words: OptionWords =
                "hotspot has no answers to go by, so it needs a pace; add \(\.rate) or \(\.messageInterval)"
            self.refuse(\.pairing, words)
        }
        if options.hasGroups { self.checkLedger(options) }
        // One registration for each: when they are spent the run is over, whatever the time.
        if kind == .register { options.limit = UInt64(options.operators) }
        self.readRun(hasLedger: options.hasLedger, into: &options.common)
        if kind == .register, self.isGiven(\.warmup) {
            self.refuse(\.warmup, "every registration is measured; leave it out")
        }
        self.checkSegments(options)
        self.checkMetrics(of: [self.command]) { ScenarioGroup.Work.xmpp(options).known }
        return options
    }

    // MARK: - How many

    private mutating func readNumbers(into options: inout XMPPOptions) {
        switch options.kind {
        case .muc: self.readRoomNumbers(into: &options)
        case .presence:
            let contacts = self[\.contacts] ?? 9
            options.groupSize = contacts + 1
            options.operators = self[\.count] ?? options.groupSize
            self.checkMultiple(
                options.operators,
                of: options.groupSize,
                "are no whole circles of \(contacts + 1), oneself and \(contacts) \(\.contacts)"
            )
        default: options.operators = self[\.count] ?? options.operators
        }
    }

    private mutating func readRoomNumbers(into options: inout XMPPOptions) {
        let given = self[\.count]
        switch (self[\.rooms], self[\.roomSize]) {
        case (let rooms?, let size?):
            options.operators = rooms * size
            options.groupSize = size
            guard let given, given != rooms * size else { return }
            self.refuse(
                \.count,
                "\(given) is not \(rooms) room\(rooms == 1 ? "" : "s") of \(size), which are \(rooms * size); leave \(\.count) out"
            )
        case (let rooms?, nil):
            options.operators = given ?? rooms
            self.checkMultiple(options.operators, of: rooms, "cannot be spread evenly over \(rooms) rooms")
            options.groupSize = max(1, options.operators / rooms)
            self.checkGroup(options, \.rooms, "add some")
        case (nil, let size?):
            options.operators = given ?? size
            self.checkMultiple(options.operators, of: size, "do not fill rooms of \(size)")
            options.groupSize = size
        case (nil, nil):
            options.operators = given ?? 1
            options.groupSize = options.operators
            self.checkGroup(options, \.count, "add \(\.rooms)")
        }
    }

    private mutating func checkGroup(_ options: XMPPOptions, _ option: AnyOptionKey, _ remedy: OptionWords) {
        let most = XMPPOptions.largestGroup
        guard options.groupSize > most else { return }
        self.refuse(option, "a room of \(options.groupSize) is too large; \(most) at most: \(remedy)")
    }

    private mutating func checkMultiple(_ clients: Int, of size: Int, _ words: OptionWords) {
        guard clients % size != 0 else { return }
        let lower = clients / size * size
        let remedy: OptionWords =
            lower > 0 ? "\(\.count, "\(lower)") or \(\.count, "\(lower + size)")" : "\(\.count, "\(size)")"
        self.refuse(\.count, "\(clients) client\(clients == 1 ? "" : "s") \(words); use \(remedy)")
    }

    // MARK: - Who

    private mutating func readUsers(into options: inout XMPPOptions) {
        if let path = self[\.users] { return self.readTable(path, into: &options) }
        self.readPassword(into: &options)
        guard let jid = self[\.jid] else {
            if self.isGiven(\.jid) || self.isGiven(\.users) { return }
            return self.refuse(\.jid, "is missing: whom to log in as, such as 'user%i@example.org'; or give \(\.users)")
        }
        guard let parts = XMPPUser.parts(of: jid) else {
            return self.refuse(\.jid, "'\(jid)' is no user's JID; write it like 'user%i@example.org/clamor'")
        }
        (options.local, options.domain) = (parts.local, parts.domain)
        options.resource = parts.resource ?? options.resource
        if options.operators > 1, !Template(parsing: "\(options.local)/\(options.resource)").hasClientNumber {
            self.refuse(\.jid, "'\(jid)' is the same for all \(options.operators) clients; put %i into it")
        }
        if options.domain.contains("%") {
            self.refuse(\.jid, "the domain is the same for all clients; leave placeholders out of it")
        }
    }

    private mutating func readTable(_ path: String, into options: inout XMPPOptions) {
        guard let table = self.users(path) else { return }
        let first = options.startNumber
        guard table.count >= first + options.operators else {
            let words: OptionWords =
                first > 0
                ? "\(\.startNumber) \(first) and \(\.count) \(options.operators)" : "\(\.count) \(options.operators)"
            let users = "\(table.count) user\(table.count == 1 ? "" : "s")"
            return self.refuse(\.users, "\(path) has \(users), too few for \(words); add some")
        }
        options.users = Array(table[first..<first + options.operators])
        options.domain = options.users.first?.domain ?? ""
        if options.users.contains(where: { $0.domain != options.domain }) {
            self.refuse(\.users, "\(path) has users of several domains; give one table for each")
        }
    }

    private mutating func readPassword(into options: inout XMPPOptions) {
        if self.isGiven(\.password) || self.isGiven(\.passwordFile) {
            options.password = self.password() ?? ""
        } else if let password = self.inherited(\.password) {
            options.password = Template.escaped(password)
        } else if options.mechanism != "ANONYMOUS", options.mechanism != "EXTERNAL" {
            self.refuse(\.password, "is missing; add it, or set CLAMOR_PASSWORD in the environment")
        }
    }

    private mutating func users(_ path: String) -> [XMPPUser]? {
        guard let bytes = self.contents(of: path, for: \.users) else { return nil }
        var users: [XMPPUser] = []
        for (number, line) in Self.lines(of: bytes) {
            guard line.first != UInt8(ascii: "\"") else {
                return self.refused(\.users, "line \(number) of \(path) is quoted; write JID,PASSWORD as they are")
            }
            // The password may hold commas: the first one is the end of the JID.
            guard let comma = line.firstIndex(of: UInt8(ascii: ",")),
                let jid = String(validating: line[..<comma], as: UTF8.self), let parts = XMPPUser.parts(of: jid),
                let password = String(validating: line[(comma + 1)...], as: UTF8.self)
            else {
                // Not echoed: it may be a password.
                return self.refused(\.users, "line \(number) of \(path) is not JID,PASSWORD")
            }
            let resource = parts.resource ?? "clamor"
            users.append(XMPPUser(local: parts.local, domain: parts.domain, resource: resource, password: password))
        }
        return users
    }

    // MARK: - Where to, and how

    private mutating func readSecurity(into options: inout XMPPOptions) {
        let hasWebSocket = self[\.ws] == true
        if hasWebSocket {
            options.tls = self[\.xmppTLS] ?? .direct
            if options.tls != .off, options.tls != .direct {
                self.refuse(
                    \.xmppTLS,
                    "a WebSocket has its TLS below it; use \(\.xmppTLS, "direct") or \(\.xmppTLS, "off") with \(\.ws, "true")"
                )
            }
        }
        if options.tls == .off {
            let words: OptionWords = "is a matter of TLS; leave it out, or leave \(\.xmppTLS, "off") out"
            self.refuse(with: .tls, because: words)
        } else {
            var settings = TransportOptions.TLS()
            self.readCertificates(into: &settings)
            // RFC 6120 §13.7.2: the certificate has to be the domain's, whatever the host is called.
            settings.domain = options.domain
            if options.tls == .direct, !hasWebSocket { settings.alpn = ["xmpp-client"] }
            self.checkCertificates(settings)
            options.transport.tls = settings
        }
        if hasWebSocket {
            options.transport.webSocket = TransportOptions.WebSocket()
            options.transport.webSocket?.path = "/ws"
        }
        self.readWebSocket(into: &options.transport.webSocket)
        if options.mechanism == "ANONYMOUS", options.kind == .message {
            self.refuse(\.mechanism, "with ANONYMOUS the server names the clients, so no client could write to another")
        }
        if options.mechanism == "EXTERNAL", !self.isGiven(\.certificateFile) {
            self.refuse(\.mechanism, "EXTERNAL shows a certificate; add \(\.certificateFile) and \(\.keyFile)")
        }
    }

    private mutating func readServers(into options: inout XMPPOptions) {
        let usual =
            options.transport.webSocket != nil
            ? options.transport.defaultPort : options.tls == .direct ? 5_223 : 5_222
        guard self.isGiven(\.xmppHost) else {
            options.target = .service(domain: options.domain, resolver: self[\.resolver])
            guard let resolver = self[\.resolver], NameServers.parse(resolver) == nil else { return }
            return self.refuse(\.resolver, "'\(resolver)' is not an address; write it like 127.0.0.1:53")
        }
        let hosts = self[\.xmppHost] ?? []
        options.target = .servers(self.servers(hosts, port: self[\.xmppPort] ?? usual, \.xmppHost))
        if hosts.contains("embedded") {
            self.refuse(\.xmppHost, "the embedded broker speaks MQTT alone; name a server")
        }
    }

    // MARK: - Accounts that a run makes itself

    private mutating func checkAccounts(_ options: XMPPOptions) {
        if options.kind == .register { self.checkRegistering(options) }
        guard options.registers || options.kind == .register else { return }
        let option = options.kind == .register ? OptionTable[\.mechanism] : OptionTable[\.registers]
        if options.mechanism == "ANONYMOUS" {
            return self.refuse(option, "ANONYMOUS has no account that could be created")
        }
        // Not echoed.
        if !Self.isText([UInt8](options.password.utf8))
            || options.users.contains(where: { !Self.isText([UInt8]($0.password.utf8)) })
        {
            self.refuse(
                options.users.isEmpty ? \.password : \.users,
                "a password has characters that XML cannot hold, so no account can be created with it"
            )
        }
        let isMissing =
            options.users.isEmpty ? options.password.isEmpty : options.users.contains { $0.password.isEmpty }
        // Without a mechanism that needs none its absence has been reported already.
        let isReported =
            options.users.isEmpty && options.mechanism != "EXTERNAL" && !self.isGiven(\.password)
            && !self.isGiven(\.passwordFile)
        if isMissing, !isReported {
            self.refuse(option, "an account is created with a password; add one to each user")
        }
    }

    /// Refuses options without a meaning for registrations.
    private mutating func checkRegistering(_ options: XMPPOptions) {
        if options.registers { self.refuse(\.registers, "is what this command does anyway; leave it out") }
        if options.streamManagement { self.refuse(\.streamManagement, "no client stays logged in here; leave it out") }
        let words: OptionWords = "an account is created once, and its connection ends then; leave it out"
        if options.churn != nil { self.refuse(\.churn, words) }
        if !options.storms.isEmpty { self.refuse(\.storm, words) }
        if options.reconnects > 0 { self.refuse(\.reconnects, words) }
        if options.users.isEmpty, options.operators > 1, !Template(parsing: options.local).hasClientNumber,
            Template(parsing: options.resource).hasClientNumber
        {
            self.refuse(\.jid, "is one account for all \(options.operators) clients; put %i before the @")
        }
    }

    /// Contacts are accounts, and each needs one of its own.
    private mutating func checkContacts(_ options: XMPPOptions) {
        if options.mechanism == "ANONYMOUS" {
            self.refuse(\.mechanism, "ANONYMOUS users have no roster, and so no contacts; choose another one")
        }
        if options.users.isEmpty, !options.local.isEmpty, !Template(parsing: options.local).hasClientNumber {
            self.refuse(\.jid, "each contact is a user of its own; put %i in front of the @")
        }
    }

    // MARK: - Rooms

    /// Where the rooms are and what they are called; behind the clients' own JIDs.
    private mutating func readRooms(into options: inout XMPPOptions) {
        options.service = self[\.service] ?? "conference.\(options.domain)"
        if let service = self[\.service], service.isEmpty || service.contains(where: { $0 == "@" || $0 == "/" }) {
            self.refuse(\.service, "'\(service)' is no domain; write it like conference.example.org")
        }
        if let text = self[\.room] {
            let parts = text.split(separator: "@", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            options.room = parts[0]
            if parts.count == 2 {
                options.service = parts[1]
                if self.isGiven(\.service) {
                    self.refuse(\.service, "\(\.room) says it already; leave one of the two out")
                }
            }
            if parts[0].isEmpty || text.contains("/") || parts.last?.isEmpty == true
                || parts.count == 2 && parts[1].contains("@")
            {
                self.refuse(\.room, "'\(text)' is no room; write it like 'clamor%r@conference.example.org'")
            }
            if options.operators > options.groupSize, !parts[0].contains("%r") {
                let rooms = options.operators / max(1, options.groupSize)
                self.refuse(\.room, "'\(text)' is the same for all \(rooms) rooms; put %r into it")
            }
        }
        guard let nick = self[\.nick] else { return }
        if options.groupSize > 1, !Template(parsing: nick).hasClientNumber {
            self.refuse(\.nick, "'\(nick)' is the same for all occupants of a room; put %i into it")
        }
        if nick.isEmpty { self.refuse(\.nick, "is empty; leave it out for clamor%i") }
    }

    // MARK: - Stanzas

    /// Four times ejabberd's default limit; the XML around a body is small.
    private static let largestBody = 1_000_000

    private mutating func readStanzas(into options: inout XMPPOptions) {
        self.readPayload(\.body, atMost: Self.largestBody, of: "a stanza", into: &options.common)
        let bytes: [UInt8] =
            switch options.payload {
            case .message(let bytes), .template(let bytes, _), .file(let bytes): bytes
            case .generated: []
            }
        let hasTextLines = options.lines.values.allSatisfy { rows in
            (0..<rows.count).allSatisfy { Self.isText(rows.cell(row: $0, column: 0)) }
        }
        if !Self.isText(bytes) || !hasTextLines {
            self.refuse(
                \.body,
                "is not text that XML can hold: UTF-8 without control characters but tab and line ends, nor U+FFFE and U+FFFF"
            )
        }
        if case .template = options.payload, bytes.contains(Array(Template.randomName.utf8)) {
            self.refuse(\.body, "\(Template.randomName) is bytes of any value, which XML cannot hold; leave it out")
        }
    }

    /// XML 1.0 §2.2: a single character that it cannot hold kills a stream.
    private static func isText(_ bytes: some Sequence<UInt8>) -> Bool {
        guard let text = String(validating: bytes, as: UTF8.self) else { return false }
        return text.unicodeScalars.allSatisfy { scalar in
            switch scalar.value {
            case 0x09, 0x0A, 0x0D: true
            case 0..<0x20, 0xFFFE, 0xFFFF: false
            default: true
            }
        }
    }

    private static let mostPings = 1_024

    /// In closed loop a sender has to know when all receivers have a message.
    private mutating func checkLedger(_ options: XMPPOptions) {
        if options.window > FanOutFlights.mostOpen {
            self.refuse(
                \.stanzaWindow,
                "so many stanzas to a group are not kept apart; \(FanOutFlights.mostOpen) at most"
            )
        }
        guard !options.hasLedger, options.pacing == .closedLoop else { return }
        let words: OptionWords =
            "without the ledger's header of \(XMPPBody.headerSize) bytes no sender knows when all receivers have it, so it needs a pace; add \(\.rate) or \(\.messageInterval)"
        self.refuse(first: \.body, \.size, because: words)
    }
}

extension XMPPUser {
    /// RFC 7622 §3.2: the first `/` begins the resource, the first `@` before it ends the local part.
    static func parts(of jid: String) -> (local: String, domain: String, resource: String?)? {
        let slash = jid.firstIndex(of: "/")
        let bare = slash.map { jid[..<$0] } ?? jid[...]
        guard let at = bare.firstIndex(of: "@"), at > bare.startIndex else { return nil }
        let domain = bare[bare.index(after: at)...]
        let resource = slash.map { String(jid[jid.index(after: $0)...]) }
        guard !domain.isEmpty, !domain.contains("@"), resource != "" else { return nil }
        return (String(bare[..<at]), XMPPLoad.prepared(domain: String(domain)), resource)
    }
}
