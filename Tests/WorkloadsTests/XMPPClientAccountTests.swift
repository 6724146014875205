import LoadEngine
import Measurement
import NIOCore
import RunResult
import Testing
import VirtualServers
import Workloads
import XMPPCodec

@Suite("XMPP clients make and remove accounts")
struct XMPPClientAccountTests {
    private func run(
        _ work: XMPPLoad.Work,
        _ setup: XMPPVirtualRun.Setup = .init(),
        accounts: Set<String> = []
    ) -> XMPPVirtualRun {
        var setup = setup
        setup.work = work
        let run = XMPPVirtualRun(setup)
        run.server.accounts = accounts
        return run
    }

    /// A request to make an account, or to remove it: what matters, not what only asks for the form.
    private static func isRequest(_ heard: XMPPElement) -> Bool {
        heard["type"] == "set" && heard.child("query", XMPPNamespace.register) != nil
    }

    @Test("accounts are made, one connection each", arguments: [TimeAmount.milliseconds(1), .milliseconds(10)])
    func made(latency: TimeAmount) {
        let run = self.run(.register, .init(clients: 3, latency: latency))
        run.perform()
        #expect(run.server.accounts == ["user1", "user2", "user3"])
        #expect(run.result.accounts.map(\.fate) == [.created, .created, .created])
        let labels: Labels = ["request": "register"]
        run.expect("iq_duration", labels, 3, times: latency * 7)
        run.expect("iq_service_duration", labels, 3, times: latency * 2)
        run.expect("connect_duration", ["phase": "stream"], 3, times: latency * 2)
        run.expect("connect_duration", ["phase": "register"], 3, times: latency * 4)
        run.expect("connect_duration", ["phase": "session"], 3, times: latency * 6)
        run.expect("connect_duration", ["phase": "total"], 3, times: latency * 7)
        let books = run.books
        #expect(books.offered == 3 && books.sent == 3 && books.acked == 3 && books.failed == 0)
        #expect(books.imbalances == [])
        #expect(run.errorCounts == [:])
        #expect((0..<3).map { run.connects($0).count } == [1, 1, 1])
        #expect(run.server.heard("/stream").count == 3)
    }

    @Test("an account that is there already is not made, and not tried again")
    func conflict() {
        let run = self.run(.register, .init(clients: 3, connectRetries: 3), accounts: ["user2"])
        run.perform()
        #expect(run.result.accounts.map(\.fate) == [.created, .existed, .created])
        #expect(run.errorCounts == ["register conflict": 1])
        #expect(run.connects(1).count == 1)
        let books = run.books
        #expect(books.sent == 3 && books.acked == 2 && books.failed == 1)
        #expect(run.count("stanza_refused", ["stanza": "iq"]) == 1)
        #expect(books.imbalances == [])
        #expect(run.account.clients.map(\.tally.acked) == [1, 0, 1])
    }

    @Test(
        "a refusal for good is not tried again, one that may pass is",
        arguments: [("cancel", "not-allowed", 1), ("wait", "resource-constraint", 3), ("modify", "not-acceptable", 1)]
    )
    func refused(type: String, condition: String, tries: Int) {
        let run = self.run(.register, .init(clients: 1, connectRetries: 2))
        run.server.script = { _, heard in
            Self.isRequest(heard) ? .says(VirtualXMPPServer.error(to: heard, type, condition)) : .usual
        }
        run.perform()
        #expect(run.result.accounts.map(\.fate) == [.refused])
        #expect(run.result.accounts.map(\.refusal?.kind) == ["register \(condition)"])
        #expect(run.errorCounts == ["register \(condition)": tries])
        // A registration takes seven ways of the wire, and the retry follows after --reconnect-period.
        #expect(run.connects(0) == (0..<tries).map { TimeAmount.milliseconds(307) * $0 })
        let books = run.books
        #expect(books.sent == 1 && books.failed == 1)
        #expect(books.imbalances == [])
    }

    @Test("a registration that is let through at the second attempt has its account")
    func secondAttempt() {
        let run = self.run(.register, .init(clients: 1, connectRetries: 1))
        run.server.script = { stream, heard in
            Self.isRequest(heard) && stream.earlier == 0
                ? .says(VirtualXMPPServer.error(to: heard, "wait", "resource-constraint")) : .usual
        }
        run.perform()
        #expect(run.result.accounts.map(\.fate) == [.created])
        #expect(run.books.sent == 1 && run.books.acked == 1 && run.books.failed == 0)
        // Since its turn came.
        run.expect("iq_duration", ["request": "register"], 1, times: .milliseconds(314))
        #expect(run.books.imbalances == [])
    }

    @Test("a registration without an answer is of unknown fate, and has timed out")
    func silent() {
        let run = self.run(.register, .init(clients: 2, connectTimeout: .seconds(2)))
        run.server.script = { stream, heard in Self.isRequest(heard) && stream.client == 1 ? .silent : .usual }
        run.perform()
        #expect(run.result.accounts.map(\.fate) == [.created, .unknown])
        #expect(run.errorCounts == ["timeout-register": 1])
        #expect(run.books.sent == 2 && run.books.acked == 1 && run.books.timedOut == 1)
        #expect(run.books.imbalances == [])
    }

    @Test("a client that finds no server has asked for nothing")
    func unreachable() {
        let run = self.run(.register, .init(clients: 2))
        run.network.answers = { client, _ in client == 0 ? .refuses : .opens(after: .zero) }
        run.perform()
        #expect(run.result.accounts.map(\.fate) == [.untouched, .created])
        #expect(run.books.offered == 2 && run.books.sent == 1 && run.books.notSent == 1)
        #expect(run.books.imbalances == [])
    }

    @Test(
        "accounts are removed by those who can log in to them",
        arguments: [TimeAmount.milliseconds(1), .milliseconds(10)]
    )
    func removed(latency: TimeAmount) {
        let run = self.run(.unregister, .init(clients: 2, latency: latency), accounts: ["user1", "user2", "user3"])
        run.perform()
        #expect(run.server.accounts == ["user3"])
        #expect(run.result.accounts.map(\.fate) == [.removed, .removed])
        run.expect("iq_duration", ["request": "remove"], 2, times: latency * 11)
        #expect(run.books.sent == 2 && run.books.acked == 2)
        #expect(run.books.imbalances == [])
        #expect(run.errorCounts == [:])
    }

    @Test("an account that no client can log in to is not removed")
    func nobody() {
        let run = self.run(.unregister, .init(clients: 2, connectRetries: 2), accounts: ["user2"])
        run.perform()
        #expect(run.server.accounts == [])
        #expect(run.result.accounts.map(\.fate) == [.untouched, .removed])
        #expect(run.result.accounts.first?.refusal?.kind == "not-authorized")
        #expect(run.errorCounts == ["not-authorized": 1])
        #expect(run.connects(0).count == 1)
        #expect(run.books.sent == 1 && run.books.notSent == 1)
        #expect(run.books.imbalances == [])
    }

    @Test("a removal that the server refuses leaves the account")
    func refusedRemoval() {
        let run = self.run(.unregister, .init(clients: 1, connectRetries: 2), accounts: ["user1"])
        run.server.script = { _, heard in
            Self.isRequest(heard) ? .says(VirtualXMPPServer.error(to: heard, "cancel", "not-allowed")) : .usual
        }
        run.perform()
        #expect(run.server.accounts == ["user1"])
        #expect(run.result.accounts.map(\.fate) == [.refused])
        #expect(run.errorCounts == ["remove not-allowed": 1])
        #expect(run.connects(0).count == 1)
        #expect(run.books.sent == 1 && run.books.failed == 1)
        #expect(run.books.imbalances == [])
    }

    @Test("a removal without an answer is of unknown fate")
    func silentRemoval() {
        let run = self.run(.unregister, .init(clients: 1, ackTimeout: .seconds(1)), accounts: ["user1"])
        run.server.script = { _, heard in Self.isRequest(heard) ? .silent : .usual }
        run.perform()
        #expect(run.result.accounts.map(\.fate) == [.unknown])
        #expect(run.errorCounts == ["timeout": 1])
        #expect(run.books.sent == 1 && run.books.timedOut == 1)
        #expect(run.books.imbalances == [])
    }

    @Test("a removal whose answer was lost is found out by the next login")
    func lostAnswer() {
        let run = self.run(.unregister, .init(clients: 1, connectRetries: 1), accounts: ["user1"])
        run.server.script = { [unowned run] _, heard in
            guard Self.isRequest(heard) else { return .usual }
            run.server.accounts = []
            return .closes
        }
        run.perform()
        #expect(run.connects(0).count == 2)
        #expect(run.result.accounts.map(\.fate) == [.removed])
        #expect(run.books.sent == 1 && run.books.acked == 1)
        #expect(run.books.imbalances == [])
    }
}
