import Workloads

// Rooms, and circles of contacts.
extension OptionReader {
    /// A room of more, or a client with more contacts, costs memory by the square.
    private static let largestGroup = 10_000

    mutating func read(_ flags: RoomFlags, clients: String?, into options: inout XMPPOptions) {
        let rooms = self.number(flags.rooms, "--rooms", in: 1...10_000_000)
        let size = self.number(flags.roomSize, "--room-size", in: 1...Self.largestGroup)
        let given = clients.flatMap { Int($0) }
        switch (rooms, size) {
        case (let rooms?, let size?):
            options.operators = rooms * size
            options.groupSize = size
            guard let given, given != rooms * size else { return }
            self.report("-c", "\(given) is not \(rooms) rooms of \(size), which are \(rooms * size); leave -c out")
        case (let rooms?, nil):
            options.operators = given ?? rooms
            self.checkMultiple(options.operators, of: rooms, "cannot be spread evenly over \(rooms) rooms")
            options.groupSize = max(1, options.operators / rooms)
            self.checkGroup(options, "--rooms", "add some")
        case (nil, let size?):
            options.operators = given ?? size
            self.checkMultiple(options.operators, of: size, "do not fill rooms of \(size)")
            options.groupSize = size
        case (nil, nil):
            options.operators = given ?? 1
            options.groupSize = options.operators
            self.checkGroup(options, "-c", "add --rooms")
        }
    }

    private mutating func checkGroup(_ options: XMPPOptions, _ flag: String, _ remedy: String) {
        guard options.groupSize > Self.largestGroup else { return }
        self.report(flag, "a room of \(options.groupSize) is too large; \(Self.largestGroup) at most: \(remedy)")
    }

    private mutating func checkMultiple(_ clients: Int, of size: Int, _ words: String) {
        guard clients % size != 0 else { return }
        let lower = clients / size * size
        let remedy = lower > 0 ? "-c \(lower) or -c \(lower + size)" : "-c \(size)"
        self.report("-c", "\(clients) client\(clients == 1 ? "" : "s") \(words); use \(remedy)")
    }

    /// Where the rooms are and what they are called; behind the clients' own JIDs.
    mutating func readService(_ flags: RoomFlags, into options: inout XMPPOptions) {
        options.service = flags.service ?? "conference.\(options.domain)"
        if let service = flags.service, service.isEmpty || service.contains(where: { $0 == "@" || $0 == "/" }) {
            self.report("--service", "'\(service)' is no domain; write it like conference.example.org")
        }
        if let text = flags.room {
            let parts = text.split(separator: "@", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            options.room = parts[0]
            if parts.count == 2 {
                options.service = parts[1]
                if flags.service != nil {
                    self.report("--service", "--room says it already; leave one of the two out")
                }
            }
            if parts[0].isEmpty || text.contains("/") || parts.last?.isEmpty == true
                || parts.count == 2 && parts[1].contains("@")
            {
                self.report("--room", "'\(text)' is no room; write it like 'clamor%r@conference.example.org'")
            }
            if options.operators > options.groupSize, !parts[0].contains("%r") {
                let rooms = options.operators / max(1, options.groupSize)
                self.report("--room", "'\(text)' is the same for all \(rooms) rooms; put %r into it")
            }
        }
        guard let nick = flags.nick else { return }
        options.nick = nick
        if options.groupSize > 1, !nick.contains("%i") {
            self.report("--nick", "'\(nick)' is the same for all occupants of a room; put %i into it")
        }
        if nick.isEmpty { self.report("--nick", "is empty; leave it out for clamor%i") }
    }

    mutating func read(contacts: String?, clients: String?, into options: inout XMPPOptions) {
        let contacts = self.number(contacts, "--contacts", in: 1...Self.largestGroup - 1) ?? 9
        options.groupSize = contacts + 1
        options.operators = clients.flatMap { Int($0) } ?? options.groupSize
        self.checkMultiple(
            options.operators,
            of: options.groupSize,
            "are no whole circles of \(contacts + 1), oneself and \(contacts) --contacts"
        )
    }

    /// Contacts are accounts, and each needs one of its own.
    mutating func checkAccounts(_ options: XMPPOptions) {
        if options.mechanism == "ANONYMOUS" {
            self.report("--mechanism", "ANONYMOUS users have no roster, and so no contacts; choose another one")
        }
        if options.users.isEmpty, !options.local.isEmpty, !options.local.contains("%i") {
            self.report("--jid", "each contact is a user of its own; put %i in front of the @")
        }
    }

    /// In closed loop somebody has to know when everybody has a message.
    mutating func checkLedger(_ options: XMPPOptions) {
        if options.window > FanOutFlights.mostOpen {
            self.report("-F", "so many stanzas to a group are not kept apart; \(FanOutFlights.mostOpen) at most")
        }
        guard !options.hasLedger, options.pacing == .closedLoop else { return }
        let size = self.typed(["-s", "--size", "--payload-size"])
        self.report(
            self.isGiven(["-m", "--message"]) ? self.typed(["-m", "--message"]) : size,
            "without the ledger's header of \(XMPPBody.headerSize) bytes nobody knows when everybody has it, so it needs a "
                + "pace; add --rate or -I"
        )
    }
}
