import LoadEngine
import Measurement
import NIOCore
import RunResult
import Testing
import VirtualServers
import Workloads
import XMPPCodec

@Suite("XMPP clients in rooms")
struct XMPPClientRoomTests {
    private let message: Labels = ["stanza": "message"]
    private let first: Labels = ["receiver": "first"]
    private let last: Labels = ["receiver": "last"]

    private func run(_ setup: XMPPVirtualRun.Setup) -> XMPPVirtualRun {
        var setup = setup
        setup.work = .muc
        return XMPPVirtualRun(setup)
    }

    private func joins(_ run: XMPPVirtualRun) -> [VirtualXMPPServer.Heard] {
        run.server.heard("presence") { $0.element["to"] != nil && $0.element["type"] == nil }
    }

    @Test(
        "one occupant opens each room, the others follow, and each occupant hears all",
        arguments: [(4, 2), (6, 3), (3, 1)]
    )
    func fanOut(clients: Int, size: Int) {
        let run = self.run(.init(clients: clients, groupSize: size, rate: 20))
        run.perform()
        let rooms = clients / size
        // Presence and configuration for who opens it, presence alone for the others.
        let joined =
            Array(repeating: Int64(4_000_000), count: rooms)
            + Array(repeating: 2_000_000, count: clients - rooms)
        expectSame(run.histogram("muc_join_duration"), Histogram(of: joined))
        run.expect("connect_duration", ["phase": "total"], clients, times: .milliseconds(9))
        run.expect("muc_fanout_duration", self.first, 40, times: .milliseconds(2))
        run.expect("muc_fanout_duration", self.last, 40, times: .milliseconds(2))
        run.expect("delivery_duration", self.message, 40 * size, times: .milliseconds(2))
        let books = run.books
        #expect(books.sent == 40 && books.confirmed == 40)
        #expect(books.expected == UInt64(40 * size) && books.received == UInt64(40 * size) && books.lost == 0)
        #expect(books.imbalances == [])
        #expect(run.account.metrics.first { $0.name == "muc_fanout_unfinished" }?.counter?.value == 0)
        #expect(run.errorCounts == [:])
        // Each occupant leaves the room before its stream ends.
        #expect(run.server.heard("presence") { $0.element["type"] == "unavailable" }.count == clients)
    }

    @Test("the slowest occupant separates first from last")
    func slowOccupant() {
        let run = self.run(.init(clients: 3, groupSize: 3))
        run.server.delivery = { receiver, _ in receiver.client == 2 ? .late(.milliseconds(50)) : .usual }
        run.perform()
        run.expect("muc_fanout_duration", self.first, 20, times: .milliseconds(2))
        run.expect("muc_fanout_duration", self.last, 20, times: .milliseconds(52))
        #expect(run.books.received == 60 && run.books.lost == 0)
    }

    @Test("a message that does not come to one occupant never came to the last one")
    func lostForOne() {
        let run = self.run(.init(clients: 3, groupSize: 3))
        var count = 0
        run.server.delivery = { receiver, _ in
            guard receiver.client == 1 else { return .usual }
            count += 1
            return count % 5 == 0 ? .silent : .usual
        }
        run.perform()
        run.expect("muc_fanout_duration", self.first, 20, times: .milliseconds(2))
        run.expect("muc_fanout_duration", self.last, 16, times: .milliseconds(2))
        #expect(run.books.expected == 60 && run.books.received == 56 && run.books.lost == 4)
        #expect(run.account.metrics.first { $0.name == "muc_fanout_unfinished" }?.counter?.value == 4)
        #expect(run.books.imbalances == [])
    }

    @Test("the drain does not wait for a message that the room refuses")
    func bounced() {
        let run = self.run(.init())
        var count = 0
        run.server.script = { _, heard in
            guard heard.name == "message" else { return .usual }
            count += 1
            return count % 4 == 0 ? .says(VirtualXMPPServer.error(to: heard, "wait", "resource-constraint")) : .usual
        }
        run.perform()
        #expect(run.count("stanza_refused", self.message) == 5)
        #expect(run.books.expected == 30 && run.books.received == 30 && run.books.lost == 0)
        #expect(run.lastGoodbye < run.origin - run.began + .milliseconds(2_300))
    }

    private static let refusals: [(condition: String, tries: Int)] = [
        ("conflict", 1), ("forbidden", 1), ("registration-required", 1), ("not-authorized", 1), ("not-allowed", 1),
        ("service-unavailable", 3), ("item-not-found", 3), ("resource-constraint", 3),
    ]

    @Test("who is not let in tries again only where that may help", arguments: 0..<8)
    func refused(index: Int) {
        let (condition, tries) = Self.refusals[index]
        let run = self.run(.init(connectRetries: 2))
        run.server.script = { stream, heard in
            stream.client == 1 && heard.name == "presence" && heard["to"] != nil
                ? .says(VirtualXMPPServer.error(to: heard, "cancel", condition)) : .usual
        }
        run.perform()
        #expect(run.connects(1).count == tries)
        #expect(run.errorCounts == ["join \(condition)": tries])
        // The first one is alone in its room, and hears itself.
        #expect(run.books.expected == 10 && run.books.received == 10)
        #expect(run.books.imbalances == [])
    }

    @Test("the next one opens the room where the first could not")
    func nextOpens() {
        let run = self.run(.init(clients: 3, groupSize: 3))
        run.server.script = { stream, heard in
            stream.client == 0 && heard.name == "presence" && heard["to"] != nil
                ? .says(VirtualXMPPServer.error(to: heard, "auth", "forbidden")) : .usual
        }
        run.perform()
        #expect(run.errorCounts == ["join forbidden": 1])
        expectSame(run.histogram("muc_join_duration"), Histogram(of: [4_000_000, 2_000_000]))
        #expect(run.books.received == run.books.expected)
        #expect(run.books.lost == 0)
    }

    @Test("a room that does not answer is given up after --ack-timeout, by all who wait for it")
    func silentRoom() {
        let run = self.run(.init(clients: 3, groupSize: 3, ackTimeout: .seconds(2)))
        run.server.script = { _, heard in heard.name == "presence" ? .silent : .usual }
        run.perform()
        #expect(run.errorCounts == ["join timeout": 3])
        #expect(run.origin - run.began == .milliseconds(2_029))
        #expect(run.books.sent == 0)
    }

    @Test("a new room whose configuration is refused lets no client in")
    func refusedConfiguration() {
        let run = self.run(.init())
        run.server.script = { _, heard in
            heard.child("query", XMPPNamespace.mucOwner) != nil
                ? .says(VirtualXMPPServer.error(to: heard, "auth", "forbidden")) : .usual
        }
        run.perform()
        // The other one tries to open it too.
        #expect(run.errorCounts == ["join forbidden": 2])
        #expect(self.joins(run).count == 2)
    }

    @Test(
        "a client that comes back asks again every --reconnect-period while the room holds its nick",
        arguments: [1, 4]
    )
    func heldNick(times: Int) {
        let run = self.run(.init(reconnects: 1))
        var refusals = 0
        run.server.script = { stream, heard in
            guard stream.earlier == 1, heard.name == "presence", heard["to"] != nil, heard["type"] == nil,
                refusals < times
            else { return .usual }
            refusals += 1
            return .says(VirtualXMPPServer.error(to: heard, "cancel", "conflict"))
        }
        run.at(.milliseconds(550)) { [unowned run] in run.network.cut(1) }
        run.perform()
        #expect(run.returns(1) == [.milliseconds(850)])
        let asked = self.joins(run).filter { $0.client == 1 && $0.earlier == 1 }.map { $0.at - run.origin }
        // Logged in 9 ms after the connect was begun; each refusal takes two ways.
        #expect(asked == (0...times).map { .milliseconds(860 + 302 * Int64($0)) })
        #expect(run.errorCounts == ["reset": 1, "nick held": 1])
        #expect(run.count("reconnects") == 1)
        #expect(run.books.lost == 0)
        #expect(run.books.imbalances == [])
    }

    @Test("a nick that is held until --ack-timeout ends the attempt")
    func nickHeldForEver() {
        let run = self.run(.init(reconnects: 1, ackTimeout: .seconds(1)))
        run.server.script = { stream, heard in
            stream.earlier > 0 && heard.name == "presence" && heard["to"] != nil
                ? .says(VirtualXMPPServer.error(to: heard, "cancel", "conflict")) : .usual
        }
        run.at(.milliseconds(550)) { [unowned run] in run.network.cut(1) }
        run.perform()
        #expect(run.errorCounts == ["reset": 1, "nick held": 1, "join timeout": 1])
        #expect(run.returns(1) == [.milliseconds(850)])
    }

    @Test("what was said while a client was out of the room is neither expected of it nor lost")
    func away() {
        let run = self.run(.init(clients: 3, groupSize: 3, rate: 30, reconnects: 1))
        run.at(.milliseconds(1_050)) { [unowned run] in run.network.cut(2) }
        run.perform()
        let books = run.books
        #expect(books.offered == 60 && books.sent == 60)
        #expect(books.lost == 0)
        #expect(books.received == books.expected)
        // Back at 1,350 ms + 9 + 2: who is in the room does not hear those of 1,066 to 1,350 ms that others sent.
        #expect((books.expected ?? 0) < 180 && (books.expected ?? 0) > 160)
        #expect(books.imbalances == [])
        #expect(run.count("reconnects") == 1)
    }

    @Test("a message under way to a client that leaves is no longer waited for")
    func leavesInFlight() {
        let departures = DeparturePlan(storms: [.init(share: 0.4, at: .milliseconds(1_020), cuts: true)])
        let run = self.run(.init(clients: 3, groupSize: 3, departures: departures))
        run.server.delivery = { _, _ in .late(.milliseconds(40)) }
        run.perform()
        #expect(run.count("disconnects", ["reason": "storm"]) == 1)
        // The message of 1,000 ms was on its way to all three, and two are left.
        run.expect("muc_fanout_duration", self.first, 20, times: .milliseconds(42))
        run.expect("muc_fanout_duration", self.last, 20, times: .milliseconds(42))
        #expect(run.books.lost == 0)
        #expect(run.account.metrics.first { $0.name == "muc_fanout_unfinished" }?.counter?.value == 0)
        #expect(run.books.imbalances == [])
    }

    private static let putOuts: [(code: Int, reason: String)] = [
        (307, "kicked"), (301, "banned"), (321, "affiliation"), (322, "members-only"), (332, "shutdown"),
    ]

    @Test("a client that is put out of its room is an error, and comes back", arguments: 0..<5)
    func thrownOut(index: Int) {
        let (code, reason) = Self.putOuts[index]
        let run = self.run(.init(reconnects: 1))
        run.at(.milliseconds(530)) { [unowned run] in
            guard let stream = run.server.bound["user2@localhost/r"] else { return }
            run.server.leaves(stream, room: "clamor1@\(VirtualXMPPServer.service)", codes: [code])
        }
        run.perform()
        #expect(run.errorCounts["room \(reason)"] == 1)
        #expect(run.books.lost == 0)
        #expect(run.books.imbalances == [])
    }

    @Test("in closed loop a message lets the next one go when all occupants have it")
    func closedLoop() {
        let run = self.run(.init(pace: .closed, limit: 100, window: 1, duration: .seconds(10)))
        run.server.delivery = { receiver, _ in receiver.client == 1 ? .late(.milliseconds(8)) : .usual }
        run.perform()
        let times = run.server.heard("message") { $0.client == 0 }.map { $0.at - run.origin }
        #expect(times == (0..<50).map { .milliseconds(Int64($0) * 10 + 1) })
        run.expect("muc_fanout_duration", self.last, 100, times: .milliseconds(10))
        #expect(run.books.received == 200)
    }

    @Test("in closed loop a client goes on after --ack-timeout when a message does not reach all occupants")
    func givenUp() {
        let run = self.run(
            .init(pace: .closed, limit: 4, window: 1, duration: .seconds(20), ackTimeout: .seconds(3))
        )
        var dropped = false
        run.server.delivery = { receiver, message in
            guard receiver.client == 1, !dropped else { return .usual }
            dropped = true
            return .silent
        }
        run.perform()
        #expect(run.errorCounts == ["fan-out timeout": 1])
        #expect(run.books.sent == 4)
        #expect(run.books.lost == 1)
        #expect(run.account.metrics.first { $0.name == "muc_fanout_unfinished" }?.counter?.value == 1)
    }
}
