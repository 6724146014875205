import NIOCore
import Testing
import XMPP

@Suite("Rooms")
struct RoomTests {
    /// A room that has been asked for, and the end of the join.
    private final class Hall {
        var events: [XMPPRooms.Event] = []
        var outcomes: [Result<XMPPRooms.Joined, XMPPRequestError>] = []
        private(set) var rooms = RoomsHandler { _ in }
        let jid: JID
        let rig: ConnectionRig

        init(rejoins: Bool = true, most: Int = 10, options: XMPPStreamOptions = ConnectionRig.options()) throws {
            self.jid = try JID("hall@muc.example.com")
            let box = Box()
            let rooms = RoomsHandler(rejoins: rejoins, maximumOccupants: most) { box.hall?.events.append($0) }
            self.rooms = rooms
            self.rig = try ConnectionRig.ready(options, modules: [rooms])
            box.hall = self
        }

        private final class Box { weak var hall: Hall? }

        func join(_ nick: String = "jul", password: String? = nil, history: XMPPRooms.History = .none) {
            self.rooms.join(
                self.jid,
                .init(nick: nick, password: password, history: history),
                in: self.rig.module
            ) { self.outcomes.append($0) }
        }

        /// A presence of the room.
        func tell(_ nick: String, _ inner: String = "", type: String? = nil) throws {
            let type = type.map { " type='\($0)'" } ?? ""
            try self.rig.receive(
                "<presence from='\(self.jid)/\(nick)'\(type)><x xmlns='\(XMPPNamespace.mucUser)'>\(inner)</x></presence>"
            )
        }

        func refuse(_ nick: String, _ condition: String, id: String = "") throws {
            let id = id.isEmpty ? "" : " id='\(id)'"
            try self.rig.receive(
                """
                <presence from='\(self.jid)/\(nick)' type='error'\(id)><error type='cancel'>\
                <\(condition) xmlns='\(XMPPNamespace.stanzas)'/></error></presence>
                """
            )
        }

        var nicks: [String] { self.rooms.occupants(of: self.jid).map(\.nick) }
    }

    private static let stamp = "2026-01-01T00:00:00Z"
    private static let own = "<status code='110'/>"

    private static func joined(_ hall: Hall) throws -> XMPPRooms.Joined {
        try #require(try hall.outcomes.first?.get())
    }

    // MARK: Joining

    @Test("[XEP-0045 §7.2] the own presence ends the flood of the others and the join; roles come with it")
    func joins() throws {
        let hall = try Hall()
        hall.join()
        #expect(
            try hall.rig.sent() == """
                <presence to='hall@muc.example.com/jul' id='00000000000000002'>\
                <x xmlns='http://jabber.org/protocol/muc'><history maxstanzas='0'/></x></presence>
                """
        )
        try hall.tell("a", "<item affiliation='owner' role='moderator' jid='a@b/c'/>")
        try hall.tell("b", "<item affiliation='strange' role='participant'/>")
        #expect(hall.outcomes.isEmpty)
        try hall.tell("jul", "<item affiliation='none' role='participant'/>\(Self.own)")
        let joined = try Self.joined(hall)
        #expect(joined.nick == "jul")
        #expect(!joined.isNew)
        #expect(joined.occupants.map(\.nick) == ["a", "b", "jul"])
        #expect(joined.occupants.map(\.affiliation) == [.owner, .none, .none])
        #expect(joined.occupants.map(\.role) == [.moderator, .participant, .participant])
        #expect(joined.occupants.first?.jid == (try JID("a@b/c")))
        #expect(hall.events == [.joined(joined)])
        try hall.rig.receive(
            "<message type='groupchat' from='hall@muc.example.com/a'><subject>hi</subject></message>"
        )
        #expect(hall.events.last == .subject(room: hall.jid, "hi", by: "a"))
        try hall.tell("c", "<item affiliation='member' role='visitor'/>")
        try hall.tell("c", "<item affiliation='member' role='participant'/>")
        try hall.tell("c", type: "unavailable")
        let (visitor, participant) = (hall.events[2], hall.events[3])
        guard case .entered(_, let before) = visitor, case .changed(_, let after) = participant else {
            Issue.record("\(hall.events)")
            return
        }
        #expect((before.role, after.role) == (.visitor, .participant))
        #expect(hall.events[4] == .exited(room: hall.jid, nick: "c", .left))
        #expect(hall.outcomes.count == 1)
    }

    @Test("[XEP-0045 §7.2.6, §7.2.13] a join has its password and its history, also with another nick")
    func wishes() throws {
        let hall = try Hall()
        hall.join(password: "pw", history: .init(messages: 5, age: .milliseconds(59_001)))
        let inner = "<history maxstanzas='5' seconds='60'/><password>pw</password>"
        #expect(try hall.rig.sent().contains(inner))
        try hall.refuse("jul", "conflict", id: "00000000000000002")
        #expect(try hall.rig.sent().contains(inner))
    }

    @Test("[XEP-0045 §7.2.8, §10.1] a nick assigned by the room is used, and a new room is reported")
    func changedNick() throws {
        let hall = try Hall()
        hall.join()
        try hall.tell("juliet", "\(Self.own)<status code='201'/><status code='210'/>")
        let joined = try Self.joined(hall)
        #expect(joined.nick == "juliet")
        #expect(joined.isNew)
    }

    @Test("[XEP-0045 §7.2.8] a nick in use is replaced by others, three tries in all")
    func nickConflict() throws {
        let hall = try Hall()
        hall.join()
        _ = try hall.rig.sent()
        try hall.refuse("jul", "conflict", id: "00000000000000002")
        #expect(try hall.rig.sent().contains("to='hall@muc.example.com/jul-1'"))
        // One that is late is for the join before.
        try hall.refuse("jul", "conflict", id: "00000000000000002")
        #expect(try hall.rig.sent() == "")
        try hall.refuse("jul-1", "conflict")
        #expect(try hall.rig.sent().contains("to='hall@muc.example.com/jul-2'"))
        try hall.refuse("jul-2", "conflict")
        #expect(try hall.rig.sent() == "")
        #expect(hall.events == [.refused(room: hall.jid, StanzaError(.conflict))])
        #expect(hall.outcomes == [.failure(.refused(StanzaError(.conflict)))])
    }

    @Test(
        "[XEP-0045 §7.2] a join ends once: refused, timed out, or with the connection",
        arguments: ["refused", "timed out", "lost", "impossible", "left"]
    )
    func endsOnce(_ end: String) throws {
        let hall = try Hall(options: ConnectionRig.options { $0.requestTimeout = .seconds(30) })
        if end == "impossible" {
            hall.join("a\u{1}")
            guard case .failure(.invalid)? = hall.outcomes.first else {
                Issue.record("\(hall.outcomes)")
                return
            }
        } else {
            hall.join()
            // Shares the outcome of the one that is under way.
            hall.join("other")
            #expect(try hall.rig.sent().split(separator: "<presence ").count == 1)
        }
        let expected: XMPPRequestError
        switch end {
        case "refused":
            try hall.refuse("jul", "registration-required")
            expected = .refused(StanzaError(.registrationRequired, type: .cancel))
        case "timed out":
            hall.rig.advance(.seconds(29))
            #expect(hall.outcomes.isEmpty)
            hall.rig.advance(.seconds(1))
            expected = .timedOut
        case "lost":
            hall.rig.channel.close(promise: nil)
            expected = .connectionLost
        case "left":
            try hall.tell("jul", "\(Self.own)<status code='301'/>", type: "unavailable")
            expected = .refused(StanzaError(.notAllowed))
        default: return
        }
        #expect(hall.outcomes == [.failure(expected), .failure(expected)])
        // Too late, and of no room.
        try hall.tell("jul", Self.own)
        #expect(hall.outcomes.count == 2)
        #expect(hall.rooms.joined.isEmpty)
    }

    @Test("a room that the client is in is joined at once; another nick is asked for first")
    func joinsAgain() throws {
        let hall = try Hall()
        hall.join()
        try hall.tell("jul", Self.own)
        _ = try hall.rig.sent()
        hall.join()
        #expect(try hall.rig.sent() == "")
        #expect(hall.outcomes.count == 2)
        hall.join("juliet")
        #expect(try hall.rig.sent() == "<presence to='hall@muc.example.com/juliet' id='00000000000000003'/>")
        try hall.tell("jul", "<item nick='juliet'/>\(Self.own)<status code='303'/>", type: "unavailable")
        try hall.tell("juliet", Self.own)
        #expect(try hall.outcomes.map { try $0.get().nick } == ["jul", "jul", "juliet"])
        #expect(hall.events.last == .renamed(room: hall.jid, from: "jul", to: "juliet"))
        #expect(hall.nicks == ["juliet"])
    }

    @Test("a room of many is kept up to its bound")
    func bounded() throws {
        let hall = try Hall(most: 10)
        hall.join()
        for number in 0..<100 { try hall.tell("n\(number)") }
        try hall.tell("jul", Self.own)
        for number in 100..<200 { try hall.tell("n\(number)") }
        #expect(try Self.joined(hall).occupants.count == 11)
        #expect(hall.nicks.count == 11)
        #expect(hall.events.count == 1)
    }

    @Test("a room whose every presence says that it is the own one is kept up to its bound too")
    func boundedOwn() throws {
        let hall = try Hall(most: 10)
        hall.join()
        for number in 0..<100 { try hall.tell("n\(number)", Self.own) }
        #expect(hall.nicks.count == 11)
        // Of the own nicks that are kept the first joined, and the others are events.
        #expect(hall.events.count == 11)
    }

    @Test("[XEP-0045 §7.2] a join during a leave joins again when the room has confirmed the leave, or has not in time")
    func joinsDuringLeave() throws {
        for isConfirmed in [true, false] {
            let hall = try Hall(options: ConnectionRig.options { $0.requestTimeout = .seconds(30) })
            hall.join()
            try hall.tell("jul", Self.own)
            var hasLeft: [Bool] = []
            hall.rooms.leave(hall.jid, in: hall.rig.module) { result in
                if case .success = result { hasLeft.append(true) } else { hasLeft.append(false) }
            }
            _ = try hall.rig.sent()
            hall.rig.advance(.seconds(1))
            hall.join("rom")
            #expect(try hall.rig.sent() == "")
            #expect(hall.outcomes.count == 1)
            if isConfirmed {
                try hall.tell("jul", Self.own, type: "unavailable")
                #expect(hall.events.last == .left(room: hall.jid, .left))
            } else {
                hall.rig.connection.requestAcknowledgement()
                try hall.rig.receive("<message/>")
                hall.rig.advance(.seconds(29))
                hall.rig.connection.flush()
            }
            #expect(hasLeft == [isConfirmed])
            #expect(try hall.rig.sent().contains("<presence to='hall@muc.example.com/rom' id="))
            #expect(hall.outcomes.count == 1)
            try hall.tell("rom", Self.own)
            #expect(try hall.outcomes.map { try $0.get().nick } == ["jul", "rom"])
            #expect(hall.rooms.joined == [hall.jid])
        }
    }

    @Test(
        "a join during a leave ends with another leave, the connection or its time",
        arguments: ["left", "lost", "timed out"]
    )
    func joinDuringLeaveEnds(_ end: String) throws {
        let hall = try Hall(options: ConnectionRig.options { $0.requestTimeout = .seconds(30) })
        hall.join()
        try hall.tell("jul", Self.own)
        hall.rooms.leave(hall.jid, in: hall.rig.module) { _ in }
        hall.join()
        _ = try hall.rig.sent()
        let expected: XMPPRequestError
        switch end {
        case "left":
            hall.rooms.leave(hall.jid, in: hall.rig.module) { _ in }
            expected = .refused(StanzaError(.notAllowed))
        case "lost":
            hall.rig.channel.close(promise: nil)
            expected = .connectionLost
        default:
            // Both at once: the room is not joined for a call that is over.
            hall.rig.advance(.seconds(30))
            expected = .timedOut
        }
        #expect(hall.outcomes.last == .failure(expected))
        _ = try hall.rig.sent()
        if end != "lost" { try hall.tell("jul", Self.own, type: "unavailable") }
        #expect(try hall.rig.sent() == "")
        #expect(hall.outcomes.count == 2)
    }

    // MARK: In a room

    @Test("[XEP-0045 §7.6] another nick may be refused, and the old one stays")
    func nickRefused() throws {
        let hall = try Hall()
        hall.join()
        try hall.tell("jul", Self.own)
        var outcomes: [Result<Void, XMPPRequestError>] = []
        hall.rooms.setNick("rom", of: hall.jid, in: hall.rig.module) { outcomes.append($0) }
        hall.rooms.setNick("tyb", of: hall.jid, in: hall.rig.module) { outcomes.append($0) }
        hall.rooms.setNick("rom", of: try JID("other@muc"), in: hall.rig.module) { outcomes.append($0) }
        try hall.refuse("rom", "conflict", id: "00000000000000003")
        let errors = outcomes.map { result -> XMPPRequestError? in
            if case .failure(let error) = result { error } else { nil }
        }
        #expect(
            errors == [
                .refused(StanzaError(.unexpectedRequest)), .refused(StanzaError(.itemNotFound)),
                .refused(StanzaError(.conflict)),
            ]
        )
        #expect(hall.nicks == ["jul"])
        #expect(hall.rooms.joined == [hall.jid])
    }

    @Test("[XEP-0045 §7.4, §8.1] a message comes back with its id, and a refusal is its sender's")
    func says() throws {
        let hall = try Hall()
        hall.join()
        try hall.tell("jul", Self.own)
        _ = try hall.rig.sent()
        var outcomes: [Result<String, XMPPRequestError>] = []
        let body = XMPPElement("body", namespace: XMPPNamespace.client, text: "hello")
        hall.rooms.say(body, in: hall.jid, in: hall.rig.module) { outcomes.append($0) }
        #expect(
            try hall.rig.sent() == """
                <message to='hall@muc.example.com' type='groupchat' id='00000000000000003'><body>hello</body></message>
                """
        )
        let said = { (id: String, nick: String, more: String) in
            "<message type='groupchat' id='\(id)' from='hall@muc.example.com/\(nick)'><body>x</body>\(more)</message>"
        }
        // Of another person, and of the history, with the same id.
        try hall.rig.receive(said("00000000000000003", "a", ""))
        try hall.rig.receive(said("00000000000000003", "jul", "<delay xmlns='urn:xmpp:delay' stamp='\(Self.stamp)'/>"))
        #expect(outcomes.isEmpty)
        try hall.rig.receive(said("00000000000000003", "jul", ""))
        #expect(outcomes == [.success("00000000000000003")])
        let messages = hall.events.compactMap { event in if case .message(let message) = event { message } else { nil }
        }
        #expect(messages.map(\.isOwn) == [false, true, true])
        #expect(messages.map(\.sent) == [nil, XMPPTimestamp(Self.stamp), nil])
        #expect(XMPPTimestamp(Self.stamp) != nil)
        hall.rooms.say(body, in: hall.jid, in: hall.rig.module) { outcomes.append($0) }
        try hall.rig.receive(
            """
            <message type='error' id='00000000000000004' from='hall@muc.example.com'><error type='auth'>\
            <forbidden xmlns='\(XMPPNamespace.stanzas)'/></error></message>
            """
        )
        hall.rooms.say(body, in: try JID("other@muc"), in: hall.rig.module) { outcomes.append($0) }
        #expect(
            outcomes.dropFirst() == [
                .failure(.refused(StanzaError(.forbidden))), .failure(.refused(StanzaError(.itemNotFound))),
            ]
        )
        // Told without its id.
        let subject = XMPPElement("subject", namespace: XMPPNamespace.client, text: "s")
        hall.rooms.say(subject, in: hall.jid, in: hall.rig.module) { outcomes.append($0) }
        for (nick, text) in [("a", "s"), ("jul", "t"), ("jul", "s"), ("jul", "s")] {
            #expect(outcomes.count == 3)
            try hall.rig.receive(
                "<message type='groupchat' from='hall@muc.example.com/\(nick)'><subject>\(text)</subject></message>"
            )
            if nick == "jul", text == "s" { break }
        }
        #expect(outcomes.last == .success("00000000000000005"))
        try hall.rig.receive("<message type='chat' from='hall@muc.example.com/a'><body>psst</body></message>")
        guard case .privateMessage(let message)? = hall.events.last else {
            Issue.record("\(hall.events)")
            return
        }
        #expect(message.body == "psst")
        #expect(message.nick == "a")
    }

    @Test(
        "[XEP-0045 §7.14, §9, §10.9] the reason of a leave is told",
        arguments: [
            ("", .left), ("<status code='307'/>", .kicked), ("<status code='301'/>", .banned),
            ("<status code='321'/>", .removed), ("<status code='322'/>", .removed),
            ("<status code='332'/>", .shutdown), ("<destroy/>", .destroyed),
        ] as [(String, XMPPRooms.Departure)]
    )
    func departures(_ inner: String, _ departure: XMPPRooms.Departure) throws {
        let hall = try Hall()
        hall.join()
        try hall.tell("a")
        try hall.tell("jul", Self.own)
        try hall.tell("a", inner, type: "unavailable")
        #expect(hall.events.last == .exited(room: hall.jid, nick: "a", departure))
        var hasLeft = false
        hall.rooms.leave(hall.jid, in: hall.rig.module) { if case .success = $0 { hasLeft = true } }
        #expect(try hall.rig.sent().hasSuffix("<presence to='hall@muc.example.com/jul' type='unavailable'/>"))
        #expect(!hasLeft)
        try hall.tell("jul", Self.own + inner, type: "unavailable")
        #expect(hall.events.last == .left(room: hall.jid, departure))
        #expect(hasLeft)
        #expect(hall.rooms.joined.isEmpty)
    }

    // MARK: Over losses

    @Test("[XEP-0198 §5] who resumes a stream is still in its rooms; on a new one the rooms are joined again")
    func overLosses() throws {
        let hall = try Hall()
        hall.join(password: "pw")
        try hall.tell("a")
        try hall.tell("jul", Self.own)
        let message = "<message type='groupchat' id='m1' from='hall@muc.example.com/a'><body>1</body></message>"
        try hall.rig.receive(message)
        _ = try hall.rig.sent()
        hall.rooms.ready(XMPPSession(jid: try JID("a@b/c"), isResumed: true), in: hall.rig.module)
        #expect(try hall.rig.sent() == "")
        #expect(hall.nicks == ["a", "jul"])
        hall.rig.advance(.milliseconds(2_500))
        hall.rooms.ready(XMPPSession(jid: try JID("a@b/c")), in: hall.rig.module)
        let again = try hall.rig.sent()
        #expect(again.contains("to='hall@muc.example.com/jul'"))
        #expect(again.contains("<history seconds='3'/><password>pw</password>"))
        #expect(hall.rooms.joined.isEmpty)
        let known = hall.events.count
        try hall.tell("jul", Self.own)
        // The last message comes again, and counts once.
        try hall.rig.receive(message.replacing("</body>", with: "</body><delay xmlns='urn:xmpp:delay' stamp='s'/>"))
        try hall.rig.receive(
            message.replacing("</body>", with: "</body><delay xmlns='urn:xmpp:delay' stamp='s'/>")
                .replacing("m1", with: "m2")
        )
        #expect(hall.events.count == known + 2)
        #expect(hall.rooms.joined == [hall.jid])
    }

    @Test("[C9] rooms are left with the stream where no one wants them back, or was leaving")
    func leavesWithStream() throws {
        for rejoins in [false, true] {
            let hall = try Hall(rejoins: rejoins)
            hall.join()
            try hall.tell("jul", Self.own)
            if rejoins { hall.rooms.leave(hall.jid, in: hall.rig.module) { _ in } }
            _ = try hall.rig.sent()
            hall.rooms.ready(XMPPSession(jid: try JID("a@b/c")), in: hall.rig.module)
            #expect(try hall.rig.sent() == "")
            #expect(hall.events.last == .left(room: hall.jid, rejoins ? .left : .connectionLost))
            #expect(hall.rooms.joined.isEmpty)
        }
    }

    @Test("[C9] a room that cannot be joined again, because its presence is not sent, is left")
    func notSentAgain() throws {
        let hall = try Hall()
        hall.join()
        try hall.tell("jul", Self.own)
        hall.rig.channel.close(promise: nil)
        hall.rooms.ready(XMPPSession(jid: try JID("a@b/c")), in: hall.rig.module)
        #expect(hall.events.last == .left(room: hall.jid, .connectionLost))
        hall.join()
        #expect(hall.outcomes.last == .failure(.notSent))
    }

    @Test("[C9] a room that does not let the client in again says so, or does not answer")
    func notAgain() throws {
        for isSilent in [false, true] {
            let hall = try Hall()
            hall.join()
            try hall.tell("jul", Self.own)
            hall.rooms.ready(XMPPSession(jid: try JID("a@b/c")), in: hall.rig.module)
            hall.rig.connection.flush()
            if isSilent {
                hall.rig.connection.requestAcknowledgement()
                try hall.rig.receive("<message/>")
                hall.rig.advance(.seconds(60))
            } else {
                try hall.refuse("jul", "forbidden")
            }
            let error = isSilent ? StanzaError(.remoteServerTimeout) : StanzaError(.forbidden, type: .cancel)
            #expect(hall.events.last == .refused(room: hall.jid, error))
            #expect(hall.outcomes.count == 1)
        }
    }
}
