import LoadEngine
import Measurement
import NIOCore
import RunResult
import Testing
import VirtualServers
import Workloads
import XMPPCodec

@Suite("XMPP clients write to each other")
struct XMPPClientMessageTests {
    private let labels: Labels = ["stanza": "message"]

    @Test(
        "each message takes two ways of the wire, and is in the books of both",
        arguments: [(2, 0, XMPPLoad.Pairing.neighbour), (4, 5, .random), (5, 1, .hotspot)]
    )
    func delivery(clients: Int, latency: Int, pairing: XMPPLoad.Pairing) {
        let latency = TimeAmount.milliseconds(Int64(latency))
        let run = XMPPVirtualRun(.init(clients: clients, pairing: pairing, rate: 50, latency: latency))
        run.perform()
        run.expect("delivery_duration", self.labels, 100, times: latency * 2)
        run.expect("message_duration", 100, times: latency * 2)
        run.expect("schedule_lag", 100, times: .zero)
        run.expect("stanza_blocked_duration", self.labels, 100, times: .zero)
        #expect(run.count("received", ["stanza": "message", "delayed": "false"]) == 100)
        let books = run.books
        #expect(books.offered == 100 && books.sent == 100 && books.notSent == 0)
        #expect(books.confirmed == 100 && books.unconfirmed == 0)
        #expect(books.expected == 100 && books.received == 100 && books.lost == 0 && books.duplicated == 0)
        #expect(books.imbalances == [])
        #expect(run.account.unreconciled == [])
        #expect(run.errorCounts == [:])
        let tallies = run.account.clients.map(\.tally)
        #expect(tallies.reduce(0) { $0 + $1.sent } == 100)
        #expect(tallies.reduce(0) { $0 + $1.acked } == 100)
        #expect(tallies.reduce(0) { $0 + $1.received } == 100)
    }

    @Test("every client writes to its peer, at its own times")
    func wire() {
        let run = XMPPVirtualRun(.init(clients: 4, rate: 20, duration: .seconds(1)))
        run.perform()
        let messages = run.server.heard("message")
        #expect(messages.map(\.client) == (0..<20).map { $0 % 4 })
        #expect(messages.map { $0.at - run.origin } == (0..<20).map { .milliseconds(50 * $0 + 1) })
        #expect(messages.allSatisfy { $0.element["to"] == "user\(($0.client ^ 1) + 1)@localhost/r" })
    }

    @Test(
        "in segments, all clients together send and receive what they do in one process",
        arguments: [XMPPLoad.Pairing.neighbour, .random],
        [2, 3]
    )
    func segments(_ pairing: XMPPLoad.Pairing, _ count: Int) {
        var books: [Books] = []
        var sent: [Int: UInt64] = [:]
        var received: [Int: UInt64] = [:]
        for index in 0..<count {
            let segment = PlanSegment(index: index, of: count)
            let run = XMPPVirtualRun(.init(clients: 8, pairing: pairing, rate: 50, segment: segment))
            run.perform()
            books.append(run.books)
            #expect(run.account.unreconciled == [] && run.errorCounts == [:])
            #expect(run.account.ledger.publishers == segment.share(of: 8))
            for client in run.account.clients {
                sent[client.number] = client.tally.sent
                received[client.number] = client.tally.received
            }
        }
        let all = Books.sums(books)
        #expect(all.map(\.sent) == [100] && all.map(\.confirmed) == [100])
        #expect(all.map(\.expected) == [100] && all.map(\.received) == [100] && all.map(\.lost) == [0])
        let whole = XMPPVirtualRun(.init(clients: 8, pairing: pairing, rate: 50))
        whole.perform()
        #expect(whole.account.clients.allSatisfy { sent[$0.number] == $0.tally.sent } && sent.count == 8)
        #expect(received.values.reduce(0, +) == 100)
    }

    @Test("a message that comes back is refused, and the drain does not wait for it", arguments: [1, 7, 20])
    func bounced(count: Int) {
        let run = XMPPVirtualRun(.init())
        var messages = 0
        run.server.script = { _, heard in
            guard heard.name == "message" else { return .usual }
            messages += 1
            return messages <= count
                ? .says(VirtualXMPPServer.error(to: heard, "wait", "resource-constraint")) : .usual
        }
        run.perform()
        #expect(run.count("stanza_refused", self.labels) == count)
        #expect(run.errorCounts == ["stanza resource-constraint": count])
        let books = run.books
        #expect(books.sent == 20 && books.expected == UInt64(20 - count) && books.lost == 0)
        #expect(books.imbalances == [])
        // The run did not wait for them.
        #expect(run.lastGoodbye < run.origin - run.began + .milliseconds(2_200))
    }

    @Test("a message that the server drops is lost, after the drain")
    func dropped() {
        let run = XMPPVirtualRun(.init())
        run.server.script = { [unowned run] _, heard in
            heard.name == "message" && run.server.heard("message").count % 4 == 0 ? .silent : .usual
        }
        run.perform()
        let books = run.books
        #expect(books.sent == 20 && books.confirmed == 20)
        #expect(books.expected == 20 && books.received == 15 && books.lost == 5)
        #expect(run.account.metrics.first { $0.name == "delivery_lost" }?.counter?.value == 5)
        #expect(books.imbalances == [])
        #expect(run.lastGoodbye > run.origin - run.began + .seconds(7))
    }

    @Test("a message that comes twice counts once, and as a duplicate")
    func doubled() {
        let run = XMPPVirtualRun(.init())
        run.server.delivery = { receiver, message in
            receiver.say(message)
            return .usual
        }
        run.perform()
        let books = run.books
        #expect(books.received == 20 && books.duplicated == 20 && books.lost == 0)
        run.expect("delivery_duration", self.labels, 20, times: .milliseconds(2))
        #expect(run.count("received", ["stanza": "message", "delayed": "false"]) == 40)
    }

    @Test("a message that the server kept is no measure of its speed")
    func delayed() {
        let run = XMPPVirtualRun(.init(limit: 20))
        run.server.delivery = { receiver, message in
            var message = message
            message.add(
                XMPPElement("delay", namespace: XMPPNamespace.delay, attributes: ["stamp": "2023-11-14T22:13:20Z"])
            )
            receiver.say(message)
            return .silent
        }
        run.perform()
        #expect(run.count("received", ["stanza": "message", "delayed": "true"]) == 20)
        #expect(run.count("received", ["stanza": "message", "delayed": "false"]) == 0)
        run.expect("delivery_duration", self.labels, 0, times: .zero)
    }

    @Test("a message to a peer that was away comes back, and what its own connection lost is of unknown fate")
    func cut() {
        let run = XMPPVirtualRun(.init(reconnects: 1))
        run.at(.milliseconds(1_050)) { [unowned run] in run.network.cut(0) }
        run.perform()
        #expect(run.returns(0) == [.milliseconds(1_350)])
        let books = run.books
        #expect(books.offered == 20 && books.sent == 20 && books.notSent == 0)
        // 0, 200, ... 1,000 ms went over the connection that broke, and two came back.
        #expect(books.unconfirmed == 8 && books.confirmed == 12 && books.failed == 8)
        // 1,100 and 1,300 ms of the other client found no client there.
        #expect(run.count("stanza_refused", self.labels) == 2)
        #expect(run.errorCounts == ["reset": 1, "stanza service-unavailable": 2])
        #expect(books.expected == 18 && books.received == 18 && books.lost == 0)
        #expect(books.imbalances == [])
        // 1,200 ms waited for the connection.
        expectSame(
            run.histogram("stanza_blocked_duration", self.labels),
            Histogram(of: Array(repeating: 0, count: 19) + [159_000_000])
        )
    }

    @Test("in closed loop a message that comes lets one go", arguments: [1, 3])
    func closedLoop(window: Int) {
        let run = XMPPVirtualRun(.init(pace: .closed, limit: 600, window: window, duration: .seconds(10)))
        run.perform()
        // Each client has a window of them every two milliseconds.
        #expect(run.books.sent == 600 && run.books.received == 600)
        let last = run.server.heard("message").last?.at ?? run.origin
        #expect(last - run.origin == .milliseconds(Int64(600 / 2 / window - 1) * 2 + 1))
        run.expect("delivery_duration", self.labels, 600, times: .milliseconds(2))
        #expect(run.books.imbalances == [])
    }

    @Test("messages without a header have no ledger, and their books say what was confirmed")
    func headerless() {
        let run = XMPPVirtualRun(.init(payload: .generated(size: 20)))
        run.perform()
        let books = run.books
        #expect(books.sent == 20 && books.confirmed == 20)
        #expect(books.expected == nil && books.received == nil && books.lost == nil)
        #expect(run.count("received", ["stanza": "message", "delayed": "false"]) == 20)
        run.expect("delivery_duration", self.labels, 0, times: .zero)
    }

    @Test("bodies of different sizes are counted by what they hold")
    func sizes() {
        let run = XMPPVirtualRun(.init(payload: .generated(sizes: 50...150), rate: 100))
        run.perform()
        let bodies = run.server.heard("message").map { $0.element.child("body")?.text.utf8.count ?? 0 }
        #expect(bodies.count == 200)
        #expect(Set(bodies).count > 50 && bodies.allSatisfy { (50...150).contains($0) })
        #expect(run.count("payload_bytes_sent") == bodies.reduce(0, +))
        #expect(run.count("payload_bytes_received") == bodies.reduce(0, +))
        #expect(run.books.imbalances == [])
    }
}
