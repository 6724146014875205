import LoadEngine
import Measurement
import NIOCore
import Testing
import VirtualServers
import Workloads
import XMPPCodec

@Suite("XMPP clients finish what they began")
struct XMPPClientDrainTests {
    @Test("messages on their way at the end of the load are awaited, and then all clients leave in good order")
    func awaited() {
        let run = XMPPVirtualRun(.init())
        run.server.delivery = { _, _ in .late(.milliseconds(1_500)) }
        run.perform(step: .milliseconds(10))
        #expect(run.books.received == 20 && run.books.lost == 0)
        run.expect("delivery_duration", ["stanza": "message"], 20, times: .milliseconds(1_502))
        let goodbyes = run.server.heard("/stream").map { $0.at - run.origin }
        #expect(goodbyes.count == 2)
        // The last message became due at 1,900 ms.
        #expect(goodbyes.allSatisfy { $0 >= .milliseconds(3_402) && $0 <= .milliseconds(3_420) })
        #expect(!run.wasAborted)
    }

    @Test("a drain that is too short leaves outstanding what comes after it")
    func shortDrain() {
        let run = XMPPVirtualRun(.init(drain: .seconds(1)))
        run.server.delivery = { _, _ in .late(.milliseconds(1_450)) }
        run.perform(step: .milliseconds(10))
        // The drain ends at 3 s, and the message of 1,600 ms comes 52 ms later.
        #expect(run.books.sent == 20 && run.books.confirmed == 20)
        #expect(run.books.received == 16 && run.books.lost == 0 && run.books.deliveryOutstanding == 4)
        #expect(run.books.imbalances == [])
    }

    @Test(
        "a server that answers no closing tag is left after five seconds, or when the time for closing is over",
        arguments: [(XMPPLoad.Work.login, 1, true), (.login, 10, false), (.message, 1, true), (.message, 10, false)]
    )
    func silentClose(work: XMPPLoad.Work, drain: Int64, isAborted: Bool) {
        let run = XMPPVirtualRun(.init(work: work, drain: .seconds(drain)))
        run.server.script = { _, heard in heard.name == "/stream" ? .silent : .usual }
        run.perform()
        #expect(run.wasAborted == isAborted)
        #expect(run.errorCounts == (isAborted ? [:] : ["timeout-close": 2]))
        guard work == .message else { return }
        #expect(run.books.sent == 20 && run.books.confirmed == 0 && run.books.unconfirmed == 20)
        #expect(run.books.imbalances == [])
    }

    @Test("a server that closes at the end without its tag confirms nothing")
    func bareClose() {
        let run = XMPPVirtualRun(.init())
        run.server.script = { _, heard in heard.name == "/stream" ? .closes : .usual }
        run.perform()
        #expect(run.books.confirmed == 0 && run.books.unconfirmed == 20)
        #expect(run.books.received == 20 && run.books.lost == 0)
        #expect(run.errorCounts == ["lost": 2])
        #expect(!run.wasAborted)
        #expect(run.books.imbalances == [])
    }

    @Test("a client that waits to connect again when the load ends does not, if it has nothing to send")
    func waitingAtTheEnd() {
        let run = XMPPVirtualRun(
            .init(work: .login, clients: 1, reconnects: 5, reconnectPeriod: .seconds(3))
        )
        run.at(.milliseconds(1_900)) { [unowned run] in run.network.cut(0) }
        run.perform()
        #expect(run.returns(0) == [])
        #expect(!run.wasAborted)
        #expect(run.errorCounts == ["reset": 1])
    }

    @Test("what is due and cannot be sent before the end of the drain is not sent")
    func notSent() {
        let run = XMPPVirtualRun(.init(work: .ping, clients: 1, rate: 20, window: 1, drain: .seconds(1)))
        run.server.script = { _, heard in heard.child("ping") != nil ? .late(.milliseconds(188)) : .usual }
        run.perform(step: .milliseconds(10))
        // One every 190 ms, over 3 s.
        let books = run.books
        #expect(books.offered == 40)
        #expect(books.sent == 16 && books.notSent == 24)
        let values = run.values("iq_duration", ["request": "ping"])
        #expect(values.count == 40 && values.unanswered.outstanding == 24 + (books.inFlight ?? 0))
        #expect(books.imbalances == [])
    }

    @Test("a client that is still connecting at the end of the run is given up")
    func connectingAtTheEnd() {
        let run = XMPPVirtualRun(
            .init(work: .login, clients: 1, connectTimeout: .seconds(60), reconnects: 1)
        )
        run.at(.milliseconds(1_500)) { [unowned run] in
            run.network.answers = { _, _ in .hangs }
            run.network.cut(0)
        }
        run.perform()
        #expect(run.returns(0) == [.milliseconds(1_800)])
        #expect(run.count("reconnects") == 0)
        #expect(run.errorCounts == ["reset": 1])
    }
}
