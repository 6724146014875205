import LoadEngine
import Measurement
import NIOCore
import Testing
import VirtualServers
import Workloads
import XMPPCodec

@Suite("XMPP clients and their contacts")
struct XMPPClientPresenceTests {
    private let presence: Labels = ["stanza": "presence"]
    private let last: Labels = ["receiver": "last"]

    private func run(_ setup: XMPPVirtualRun.Setup) -> XMPPVirtualRun {
        var setup = setup
        setup.work = .presence
        return XMPPVirtualRun(setup)
    }

    /// Rosters as an earlier run left them.
    private func befriend(_ run: XMPPVirtualRun) {
        let groups = run.setup.clients / run.setup.groupSize
        for one in 0..<run.setup.clients {
            for other in 0..<run.setup.clients where one != other && one % groups == other % groups {
                run.server.rosters["user\(one + 1)", default: [:]]["user\(other + 1)"] = "both"
            }
        }
    }

    @Test("a change of presence comes to all contacts, and to no other client", arguments: [(2, 2), (6, 3)])
    func fanOut(clients: Int, size: Int) {
        let run = self.run(.init(clients: clients, groupSize: size, rate: 20))
        self.befriend(run)
        run.perform()
        let expected = 40 * (size - 1)
        run.expect("delivery_duration", self.presence, expected, times: .milliseconds(2))
        run.expect("presence_fanout_duration", ["receiver": "first"], 40, times: .milliseconds(2))
        run.expect("presence_fanout_duration", self.last, 40, times: .milliseconds(2))
        // Roster, and then presence and the answer to the request after it.
        run.expect("presence_setup_duration", clients, times: .milliseconds(4))
        #expect(run.count("received", ["stanza": "presence", "from": "contact"]) == expected)
        let books = run.books
        #expect(books.sent == 40 && books.confirmed == 40)
        #expect(books.expected == UInt64(expected) && books.received == UInt64(expected) && books.lost == 0)
        #expect(books.imbalances == [])
        #expect(run.errorCounts == [:])
    }

    @Test("who comes later subscribes to those who are there, and they to it")
    func subscribes() {
        let run = self.run(.init(clients: 3, groupSize: 3))
        run.perform()
        #expect(
            run.server.rosters == [
                "user1": ["user2": "both", "user3": "both"],
                "user2": ["user1": "both", "user3": "both"],
                "user3": ["user1": "both", "user2": "both"],
            ]
        )
        let types = run.server.heard("presence").compactMap { $0.element["type"] }
        // Each of three pairs, in both directions.
        #expect(types.count { $0 == "subscribe" } == 6)
        #expect(types.count { $0 == "subscribed" } == 6)
        #expect(run.books.received == 40 && run.books.lost == 0)
        #expect(run.errorCounts == [:])
    }

    @Test("half of a subscription that an earlier run left is completed", arguments: ["to", "from"])
    func half(subscription: String) {
        let run = self.run(.init())
        run.server.rosters["user1"] = ["user2": subscription]
        run.server.rosters["user2"] = ["user1": subscription == "to" ? "from" : "to"]
        run.perform()
        #expect(run.server.rosters == ["user1": ["user2": "both"], "user2": ["user1": "both"]])
        #expect(run.server.heard("presence") { $0.element["type"] == "subscribe" }.count == 1)
        #expect(run.books.received == 20)
    }

    @Test("a roster push that another one overtook takes no subscription back", arguments: [0, 1])
    func overtakenPush(client: Int) {
        let run = self.run(.init())
        // As ejabberd may send them: `both`, and then the half that was there before it. The other client gets its own
        // `both` only after that.
        run.server.delivery = { receiver, element in
            guard let item = element.child("query", XMPPNamespace.roster)?.child("item") else { return .usual }
            guard receiver.client == client else {
                return item["subscription"] == "both" ? .late(.milliseconds(4)) : .usual
            }
            return item["subscription"] == "both" ? .usual : .late(.milliseconds(2))
        }
        run.perform()
        #expect(run.errorCounts == [:])
        #expect(run.books.received == 20 && run.books.lost == 0)
    }

    @Test("a server that gives out no roster is an error, and is not asked again")
    func noRoster() {
        let run = self.run(.init(connectRetries: 2))
        run.server.script = { stream, heard in
            stream.client == 0 && heard.child("query", XMPPNamespace.roster) != nil
                ? .says(VirtualXMPPServer.error(to: heard, "cancel", "service-unavailable")) : .usual
        }
        run.perform()
        #expect(run.errorCounts == ["roster service-unavailable": 1])
        #expect(run.connects(0).count == 1)
    }

    @Test("a roster that does not come is given up after --ack-timeout")
    func silentRoster() {
        let run = self.run(.init(ackTimeout: .seconds(2)))
        run.server.script = { _, heard in heard.child("query", XMPPNamespace.roster) != nil ? .silent : .usual }
        run.perform()
        #expect(run.errorCounts == ["join timeout": 2])
        #expect(run.origin - run.began == .milliseconds(2_029))
    }

    @Test("in open loop a client without contacts sends all the same")
    func aloneInOpenLoop() {
        let run = self.run(.init())
        self.befriend(run)
        run.network.answers = { client, _ in client == 1 ? .refuses : .opens(after: .zero) }
        run.perform()
        #expect(run.books.sent == 10)
        #expect(run.books.expected == 0 && run.books.received == 0 && run.books.lost == 0)
        #expect(run.books.imbalances == [])
    }

    @Test("in closed loop a client none of whose contacts could come up has no receiver to send to")
    func aloneInClosedLoop() {
        let run = self.run(.init(pace: .closed, duration: .seconds(3)))
        self.befriend(run)
        run.network.answers = { client, _ in client == 1 ? .refuses : .opens(after: .zero) }
        run.perform()
        #expect(run.errorCounts == ["refused": 1, "no contacts": 1])
        #expect(run.books.sent == 0)
    }

    @Test("a contact that is away is not expected to hear, and comes back")
    func away() {
        let run = self.run(.init(clients: 3, groupSize: 3, rate: 30, reconnects: 1))
        self.befriend(run)
        run.at(.milliseconds(1_050)) { [unowned run] in run.network.cut(2) }
        run.perform()
        let books = run.books
        #expect(books.sent == 60 && books.lost == 0)
        #expect(books.received == books.expected)
        #expect((books.expected ?? 0) > 100 && (books.expected ?? 0) < 120)
        #expect(books.imbalances == [])
        #expect(run.count("reconnects") == 1)
    }

    @Test("a presence that does not come to a contact is lost")
    func lost() {
        let run = self.run(.init(clients: 3, groupSize: 3))
        self.befriend(run)
        var count = 0
        run.server.delivery = { receiver, element in
            guard receiver.client == 1, element.child("status") != nil else { return .usual }
            count += 1
            return count % 5 == 0 ? .silent : .usual
        }
        run.perform()
        let dropped = UInt64(count / 5)
        #expect(dropped == 2)
        #expect(run.books.expected == 40 && run.books.received == 40 - dropped && run.books.lost == dropped)
        #expect(run.books.imbalances == [])
    }
}
