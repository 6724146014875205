import ArgumentParser
import Workloads

struct XMPPMUC: LoadCommand {
    static let configuration = CommandConfiguration(
        commandName: "muc",
        abstract: "Messages in rooms (XEP-0045), each to everybody who is in; the first and the last who has it.",
        discussion: """
            Client 1 is in the first room, client 2 in the second, and so on, round and round. The first occupant of a room \
            makes it, as it is by default, and the others follow; it is gone with the last of them. Nobody asks for what was \
            said before. All occupants of a room share an event loop. In closed loop each of them sends -F messages and \
            then one for each that has come to everybody in the room.
            \(xmppUsers)
            """
    )

    @OptionGroup(title: "Rooms") var rooms: RoomFlags
    @OptionGroup(title: "Messages") var messages: StanzaFlags
    @OptionGroup(title: "Connection") var connection: XMPPConnectionFlags
    @OptionGroup(title: "Run") var run: RunFlags
    @OptionGroup(title: "Run") var scenario: ScenarioFlag

    func invocation(_ reader: inout OptionReader) -> Invocation {
        var options = XMPPOptions(kind: .muc)
        reader.read(self.rooms, clients: self.connection.clients.count, into: &options)
        reader.read(self.connection, into: &options)
        reader.readService(self.rooms, into: &options)
        reader.read(self.messages, into: &options)
        reader.checkLedger(options)
        reader.read(self.run, into: &options)
        return .xmpp(options)
    }
}

struct XMPPPresence: LoadCommand {
    static let configuration = CommandConfiguration(
        commandName: "presence",
        abstract: "Changes of presence, each to all contacts; the first and the last who has it.",
        discussion: """
            Clients make circles in which everybody is a contact of everybody else: of -c 20 with --contacts 9 the odd ones \
            are a circle and the even ones. Before the load begins each sees to it that its circle is in its roster, \
            subscribed both ways; what an earlier run left there is used again. Each change says chat or away in turn, with \
            a text of -s bytes. A circle shares an event loop. Logins cost the server the square of the contacts.
            \(xmppUsers)
            """
    )

    @Option(
        name: .long,
        help: ArgumentHelp("Contacts of each client; -c is a multiple of one more. (default: 9)", valueName: "n")
    ) var contacts: String?
    @OptionGroup(title: "Changes of presence") var messages: StanzaFlags
    @OptionGroup(title: "Connection") var connection: XMPPConnectionFlags
    @OptionGroup(title: "Run") var run: RunFlags
    @OptionGroup(title: "Run") var scenario: ScenarioFlag

    func invocation(_ reader: inout OptionReader) -> Invocation {
        var options = XMPPOptions(kind: .presence)
        reader.read(contacts: self.contacts, clients: self.connection.clients.count, into: &options)
        reader.read(self.connection, into: &options)
        reader.checkAccounts(options)
        reader.read(self.messages, into: &options)
        reader.checkLedger(options)
        reader.read(self.run, into: &options)
        return .xmpp(options)
    }
}

struct RoomFlags: ParsableArguments {
    @Option(
        name: .long,
        help: ArgumentHelp("Rooms; with --room-size they say -c. (default: -c by --room-size, else 1)", valueName: "n")
    ) var rooms: String?

    @Option(
        name: .long,
        help: ArgumentHelp("Occupants of each room. (default: -c by --rooms)", valueName: "n")
    ) var roomSize: String?

    @Option(
        name: .long,
        help: ArgumentHelp(
            "What the rooms are called, %r for the number of the room; with or without @SERVICE. (default: clamor%r)",
            valueName: "room"
        )
    ) var room: String?

    @Option(
        name: .long,
        help: ArgumentHelp(
            "Where the server has its rooms. (default: conference.DOMAIN, the domain of --jid)",
            valueName: "domain"
        )
    ) var service: String?

    @Option(
        name: .long,
        help: ArgumentHelp("A client's name in its room. (default: clamor%i)", valueName: "nick")
    ) var nick: String?
}
