import RunControl
import Scenario
import Testing
import Workloads
import clamor

@Suite("The command line of rooms and contacts")
struct XMPPGroupOptionsTests {
    private static let who = "-h a --jid u%i@example.org --password p"

    private func options(_ line: String) throws -> XMPPOptions {
        let invocation = Invocation.parse(line.split(separator: " ").map(String.init))
        guard let options = invocation.xmpp else { throw Unexpected(what: "\(invocation)") }
        return options
    }

    private struct Unexpected: Error {
        let what: String
    }

    @Test(
        "clients, rooms and their size follow from one another",
        arguments: [
            ("", 1, 1), ("-c 12", 12, 12), ("-c 12 --rooms 3", 12, 4), ("-c 12 --room-size 3", 12, 3),
            ("--rooms 3 --room-size 5", 15, 5), ("--rooms 3", 3, 1), ("--room-size 5", 5, 5),
            ("-c 15 --rooms 3 --room-size 5", 15, 5),
        ]
    )
    func rooms(_ flags: String, _ clients: Int, _ size: Int) throws {
        let options = try self.options("xmpp muc \(Self.who) \(flags)")
        #expect(options.operators == clients)
        #expect(options.groupSize == size)
        #expect(options.deliveries == size)
    }

    @Test("rooms are at conference.DOMAIN, unless something else is said")
    func service() throws {
        let usual = try self.options("xmpp muc \(Self.who)")
        #expect(usual.service == "conference.example.org")
        #expect(usual.room == "clamor%r")
        #expect(usual.nick == "clamor%i")
        #expect(usual.window == 1)
        #expect(usual.name == "xmpp-muc")
        #expect(try self.options("xmpp muc \(Self.who) --service muc.x").service == "muc.x")
        let whole = try self.options("xmpp muc \(Self.who) --room r%r@rooms.x --nick n%i")
        #expect(whole.service == "rooms.x")
        #expect(whole.room == "r%r")
        #expect(whole.nick == "n%i")
        #expect(try self.options("xmpp muc \(Self.who) --room hall").service == "conference.example.org")
    }

    @Test(
        "circles are contacts and oneself",
        arguments: [("", 10, 9), ("-c 20", 20, 9), ("--contacts 3", 4, 3), ("-c 8 --contacts 3", 8, 3)]
    )
    func contacts(_ flags: String, _ clients: Int, _ contacts: Int) throws {
        let options = try self.options("xmpp presence \(Self.who) \(flags)")
        #expect(options.operators == clients)
        #expect(options.groupSize == contacts + 1)
        #expect(options.deliveries == contacts)
        #expect(options.hasLedger)
    }

    struct Refusal: Sendable, CustomTestStringConvertible {
        let line: String
        let answer: String
        var testDescription: String { self.line }

        init(_ line: String, _ answer: String) {
            self.line = line
            self.answer = answer
        }
    }

    static let refusals = [
        Refusal("muc -c 10 --room-size 4", "-c: 10 clients do not fill rooms of 4; use -c 8 or -c 12"),
        Refusal("muc -c 3 --room-size 4", "-c: 3 clients do not fill rooms of 4; use -c 4"),
        Refusal("muc -c 10 --rooms 3", "-c: 10 clients cannot be spread evenly over 3 rooms; use -c 9 or -c 12"),
        Refusal("muc -c 2 --rooms 3", "-c: 2 clients cannot be spread evenly over 3 rooms; use -c 3"),
        Refusal(
            "muc -c 10 --rooms 3 --room-size 4",
            "-c: 10 is not 3 rooms of 4, which are 12; leave -c out"
        ),
        Refusal("muc -c 20000", "-c: a room of 20000 is too large; 10000 at most: add --rooms"),
        Refusal("muc --rooms 0", "--rooms: '0' is not a whole number of 1 to 10000000"),
        Refusal("muc --room-size many", "--room-size: 'many' is not a whole number of 1 to 10000"),
        Refusal(
            "muc --room hall@x --service y",
            "--service: --room says it already; leave one of the two out"
        ),
        Refusal("muc --service a@b", "--service: 'a@b' is no domain; write it like conference.example.org"),
        Refusal("muc --room @x", "--room: '@x' is no room; write it like 'clamor%r@conference.example.org'"),
        Refusal("muc --room a/b", "--room: 'a/b' is no room; write it like 'clamor%r@conference.example.org'"),
        Refusal("muc --rooms 2 --room hall", "--room: 'hall' is the same for all 2 rooms; put %r into it"),
        Refusal("muc -c 2 --nick me", "--nick: 'me' is the same for all occupants of a room; put %i into it"),
        Refusal(
            "muc -s 20",
            "-s: without the ledger's header of 44 bytes no sender knows when all receivers have it, so it needs a pace; "
                + "add --rate or -I"
        ),
        Refusal(
            "muc -m hi",
            "-m: without the ledger's header of 44 bytes no sender knows when all receivers have it, so it needs a pace; "
                + "add --rate or -I"
        ),
        Refusal(
            "presence -c 25",
            "-c: 25 clients are no whole circles of 10, oneself and 9 --contacts; use -c 20 or -c 30"
        ),
        Refusal("muc -F 5000", "-F: so many stanzas to a group are not kept apart; 4096 at most"),
        Refusal("presence --contacts 0", "--contacts: '0' is not a whole number of 1 to 9999"),
        Refusal(
            "presence --mechanism ANONYMOUS",
            "--mechanism: ANONYMOUS users have no roster, and so no contacts; choose another one"
        ),
        Refusal("presence --pairing random", "Unknown option '--pairing'; see clamor xmpp presence --help"),
    ]

    @Test("each mistake has its line", arguments: refusals)
    func refuses(_ refusal: Refusal) {
        let command = refusal.line.prefix { $0 != " " }
        let words = "xmpp \(refusal.line) \(Self.who)".split(separator: " ").map(String.init)
        guard case .refused(let lines) = Invocation.parse(words) else {
            Issue.record("it was taken")
            return
        }
        #expect(lines.first == "clamor xmpp \(command): \(refusal.answer)")
    }

    @Test("contacts with one account for all are refused")
    func accounts() {
        let words = "xmpp presence -h a --jid u@example.org/r%i --password p".split(separator: " ").map(String.init)
        guard case .refused(let lines) = Invocation.parse(words) else {
            Issue.record("it was taken")
            return
        }
        #expect(
            lines.first == "clamor xmpp presence: --jid: each contact is a user of its own; put %i in front of the @"
        )
    }
}
