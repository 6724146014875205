import NIOCore
import NIOEmbedded
import Testing
import XMPP

@Suite("State that outlives a connection, and for how long")
struct KeptRequestTests {
    private static let feature = "<sm xmlns='urn:xmpp:sm:3'/>"
    private static let id = "00000000000000002"
    private static let ping = "<ping xmlns='urn:xmpp:ping'/>"

    private static func managed(
        enabled: String = "id='s1' resume='true'",
        _ change: (inout XMPPStreamOptions) -> Void = { _ in }
    ) throws -> ConnectionRig {
        let options = ConnectionRig.options {
            $0.management = .resume
            $0.keepAlive = .zero
            change(&$0)
        }
        let rig = try ConnectionRig.ready(options, features: Self.feature)
        try rig.receive("<enabled xmlns='urn:xmpp:sm:3' \(enabled)/>")
        _ = try rig.sent()
        rig.observer.calls = []
        return rig
    }

    private final class Answers {
        var lines: [String] = []

        func take(_ result: Result<XMPPElement, XMPPRequestError>) {
            switch result {
            case .success(let element): self.lines.append("result \(element["id"] ?? "")")
            case .failure(let error): self.lines.append("\(error)")
            }
        }
    }

    private static func ask(_ rig: ConnectionRig, _ answers: Answers, timeout: TimeAmount = .seconds(30)) {
        let ping = XMPPElement("ping", namespace: XMPPNamespace.ping)
        let iq = XMPPElement(
            "iq",
            namespace: XMPPNamespace.client,
            attributes: ["type": "get"],
            children: [.element(ping)]
        )
        rig.connection.request(iq, timeout: timeout, answers.take)
    }

    @Test("[XEP-0198 §5] a request is kept over a loss, sent again, and answered behind the resumption")
    func answeredAfterResumption() throws {
        let rig = try Self.managed()
        let answers = Answers()
        Self.ask(rig, answers)
        let iq = "<iq type='get' id='\(Self.id)'>\(Self.ping)</iq>"
        #expect(try rig.sent() == iq)
        #expect(rig.connection.request(7, to: nil, timeout: .seconds(30), before: [], after: []))
        rig.channel.close(promise: nil)
        #expect(answers.lines == [])
        #expect(rig.observer.calls == [.ended(.lost)])
        #expect(rig.pendingRequests == 2)

        let again = try rig.again()
        again.start()
        try again.login(features: Self.feature)
        try again.receive("<resumed xmlns='urn:xmpp:sm:3' previd='s1' h='0'/>")
        #expect(try again.sent().contains(iq))
        #expect(answers.lines == [])
        try again.receive("<iq type='result' id='\(Self.id)'/><iq type='result' id='00000000000000003'/>")
        #expect(answers.lines == ["result \(Self.id)"])
        guard case .answered(7, _)? = again.observer.calls.last else {
            Issue.record("\(again.observer.calls)")
            return
        }
        // Those of the new connection are not mistaken for them.
        Self.ask(again, answers)
        try again.receive("<iq type='result' id='\(Self.id)'/>")
        #expect(answers.lines.count == 1)
    }

    @Test("[XEP-0198 §5] a request is lost when the resumption fails, once, before the new stream is reported")
    func lostWithSession() throws {
        let rig = try Self.managed()
        let answers = Answers()
        Self.ask(rig, answers)
        #expect(rig.connection.request(7, to: nil, timeout: .seconds(30), before: [], after: []))
        rig.channel.close(promise: nil)
        let again = try rig.again()
        again.start()
        try again.login(features: Self.feature)
        try again.receive("<failed xmlns='urn:xmpp:sm:3'/>")
        #expect(answers.lines == [])
        let bind = "<bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><jid>juliet@im.example.com/balcony</jid></bind>"
        try again.receive("<iq type='result' id='00000000000000004'>\(bind)</iq><enabled xmlns='urn:xmpp:sm:3'/>")
        #expect(answers.lines == ["the connection was lost before the answer came"])
        #expect(
            again.observer.calls == [
                .unanswered(7, .connectionLost),
                .ready("juliet@im.example.com/balcony", resumed: false, acknowledged: 0, lost: 2),
            ]
        )
        #expect(again.pendingRequests == 0)
    }

    @Test("[XEP-0198 §5] who asks again when a request is lost with its session is answered on the new stream")
    func asksAgain() throws {
        let rig = try Self.managed()
        var tries = 0
        var results = 0
        func ask(_ connection: XMPPConnection) {
            let ping = XMPPElement("ping", namespace: XMPPNamespace.ping)
            let iq = XMPPElement(
                "iq",
                namespace: XMPPNamespace.client,
                attributes: ["type": "get"],
                children: [.element(ping)]
            )
            tries += 1
            connection.request(iq, timeout: .seconds(10)) { result in
                if case .success = result { results += 1 } else if tries < 1_000 { again.map { ask($0.connection) } }
            }
        }
        var again: ConnectionRig?
        ask(rig.connection)
        ask(rig.connection)
        rig.channel.close(promise: nil)
        let next = try rig.again()
        again = next
        next.start()
        try next.login(features: Self.feature)
        try next.receive("<failed xmlns='urn:xmpp:sm:3'/>")
        let bind = "<bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><jid>juliet@im.example.com/balcony</jid></bind>"
        try next.receive("<iq type='result' id='00000000000000004'>\(bind)</iq><enabled xmlns='urn:xmpp:sm:3'/>")
        #expect(tries == 4)
        #expect(next.pendingRequests == 2)
        try next.receive("<iq type='result' id='00000000000000005'/><iq type='result' id='00000000000000006'/>")
        #expect(results == 2)
        again = nil
    }

    @Test("[C6] over a loss a request waits no longer than for an answer")
    func timesOut() throws {
        let rig = try Self.managed()
        let answers = Answers()
        Self.ask(rig, answers, timeout: .seconds(10))
        rig.channel.close(promise: nil)
        let again = try rig.again()
        again.start(within: .seconds(60))
        again.advance(.seconds(9))
        #expect(answers.lines == [])
        again.advance(.seconds(1))
        #expect(answers.lines == ["no answer in time"])
        #expect(again.end == nil)
    }

    @Test("a clean end, and a stream that cannot be resumed, answers what is open")
    func notKept() throws {
        for enabled in ["id='s1'", "resume='true'", "id='\(String(repeating: "x", count: 4_001))' resume='true'"] {
            let rig = try Self.managed(enabled: enabled)
            let answers = Answers()
            Self.ask(rig, answers)
            rig.channel.close(promise: nil)
            #expect(answers.lines == ["the connection was lost before the answer came"], "\(enabled.prefix(20))")
        }
        let rig = try Self.managed()
        let answers = Answers()
        Self.ask(rig, answers)
        rig.connection.finish()
        try rig.receive("</stream:stream>")
        #expect(answers.lines == ["the connection was lost before the answer came"])
    }

    @Test("[XEP-0198 §5] max: a session that the server has dropped is not resumed, and its lost stanzas are reported")
    func maximum() throws {
        for (seconds, resumes) in [(60, true), (61, false)] as [(Int64, Bool)] {
            let rig = try Self.managed(enabled: "id='s1' resume='true' max='60'")
            rig.connection.send { $0.writeString("<message/>") }
            rig.channel.close(promise: nil)
            rig.channel.embeddedEventLoop.advanceTime(by: .seconds(seconds))
            let again = try ConnectionRig(
                rig.stream.pointee.options,
                account: ConnectionRig.account,
                place: rig.place,
                sharing: rig.context
            )
            again.start()
            try again.login(features: Self.feature)
            #expect(try again.sent().contains("<resume ") == resumes)
            guard !resumes else { continue }
            try again.receive("<enabled xmlns='urn:xmpp:sm:3' id='s2'/>")
            #expect(
                again.observer.calls == [
                    .ready("juliet@im.example.com/balcony", resumed: false, acknowledged: 0, lost: 1)
                ]
            )
        }
    }

    @Test(
        "[XEP-0198 §3] whatever the server says about its time, or calls the session, is no harm",
        arguments: ["max='9223372036854775807'", "max='-1'", "max='4294967295'", "max=''", "max='1e9'"]
    )
    func strangeMaximum(_ maximum: String) throws {
        let rig = try Self.managed(enabled: "id='s1' resume='true' \(maximum)")
        rig.channel.close(promise: nil)
        let again = try rig.again()
        again.start()
        try again.login(features: Self.feature)
        #expect(try again.sent().contains("<resume "))
    }

    @Test("[C9 0198] an acknowledgement is asked for behind a while, however few the stanzas are")
    func quietAcknowledgement() throws {
        let rig = try Self.managed {
            $0.acknowledgesEvery = 10
            $0.acknowledgesAfter = .seconds(1)
        }
        rig.connection.send { $0.writeString("<message/>") }
        #expect(try rig.sent() == "<message/>")
        rig.advance(.milliseconds(900))
        rig.connection.send { $0.writeString("<message/>") }
        #expect(try rig.sent() == "<message/>")
        rig.advance(.milliseconds(100))
        #expect(try rig.sent() == "<r xmlns='urn:xmpp:sm:3'/>")
        rig.advance(.seconds(5))
        #expect(try rig.sent() == "")
        rig.connection.send { $0.writeString("<message/>") }
        _ = try rig.sent()
        rig.advance(.seconds(1))
        #expect(try rig.sent() == "<r xmlns='urn:xmpp:sm:3'/>")
    }

    @Test("[XEP-0198 §4] who leaves says first how much has arrived, so that nothing comes again")
    func lastAcknowledgement() throws {
        let rig = try Self.managed()
        try rig.receive("<message/><message/>")
        rig.connection.finish()
        #expect(try rig.sent() == "<a xmlns='urn:xmpp:sm:3' h='2'/></stream:stream>")
    }

    // MARK: Receipts of sending

    private static func message(_ text: String) -> XMPPElement {
        XMPPElement("message", namespace: XMPPNamespace.client, attributes: ["id": text])
    }

    @Test("[A18] sent stanzas are reported as written once the kernel has them, in order, or as never written")
    func receipts() throws {
        var told: [String] = []
        let rig = try ConnectionRig.ready()
        #expect(try rig.connection.offer(Self.message("1")) { told.append("1 \($0)") } == .sent)
        #expect(told == ["1 true"])
        rig.channel.close(promise: nil)
        #expect(try rig.connection.offer(Self.message("2")) { told.append("2 \($0)") } == .refused)
        #expect(told == ["1 true"])

        told = []
        let receipts = XMPPReceiptsOfSending()
        receipts.add(pending: 10) { told.append("a \($0)") }
        receipts.note(handed: 10)
        receipts.add(pending: 5) { told.append("b \($0)") }
        receipts.add(pending: 6) { told.append("c \($0)") }
        receipts.note(handed: 6)
        // The kernel has taken 9, then 15, and then breaks the connection.
        receipts.settle(unsent: 7)
        #expect(told == [])
        receipts.settle(unsent: 1)
        #expect(told == ["a true", "b true"])
        receipts.fail()
        #expect(told == ["a true", "b true", "c false"])
    }

    @Test("[A18] a stanza that a filter drops leaves no receipt behind")
    func droppedReceipt() throws {
        final class Dropper: XMPPHandler {
            func filterSent(_ stanza: XMPPElement, in context: XMPPModuleContext) -> XMPPElement? { nil }
        }
        var told: [Bool] = []
        let rig = try ConnectionRig.ready(modules: [Dropper()])
        #expect(try rig.connection.offer(Self.message("1")) { told.append($0) } == .dropped)
        #expect(told == [])
        #expect(try rig.sent() == "")
    }
}
