import NIOCore
import Testing
import XMPP

@Suite("Requests and their answers")
struct RequestTests {
    private static func ping(to: String? = nil) -> XMPPElement {
        XMPPElement(
            "iq",
            namespace: XMPPNamespace.client,
            attributes: ["type": "get", "to": to],
            children: [.element(XMPPElement("ping", namespace: XMPPNamespace.ping))]
        )
    }

    private final class Answers {
        var results: [String] = []

        func take(_ result: Result<XMPPElement, XMPPRequestError>) {
            switch result {
            case .success(let element): self.results.append("result \(element["from"] ?? "-")")
            case .failure(.refused(let error)): self.results.append(error.condition.rawValue)
            case .failure(let error): self.results.append("\(error)")
            }
        }
    }

    /// The id of the first request on a stream that was bound by its first.
    static let id = "00000000000000002"

    @Test("[RFC 6120 §8.2.3] an id is new each time, and cannot be guessed")
    func ids() throws {
        let rig = try ConnectionRig.ready(ConnectionRig.options { $0.random = { UInt64.random(in: .min ... .max) } })
        var ids: Set<String> = []
        for _ in 0..<1_000 {
            let id = rig.stream.pointee.makeID()
            #expect(id.count >= 17)
            ids.insert(String(id.prefix(16)))
        }
        // The chance that two of a thousand are equal is 2⁻⁴⁴.
        #expect(ids.count == 1_000)
    }

    struct Case: Sendable, CustomTestStringConvertible {
        let to: String?
        let from: String?
        let counts: Bool

        var testDescription: String { "to \(self.to ?? "none"), from \(self.from ?? "none")" }
    }

    static let cases = [
        Case(to: nil, from: nil, counts: true),
        Case(to: nil, from: "juliet@im.example.com", counts: true),
        Case(to: nil, from: "juliet@im.example.com/balcony", counts: true),
        Case(to: nil, from: "Juliet@IM.example.com", counts: true),
        Case(to: nil, from: "im.example.com", counts: true),
        Case(to: nil, from: "juliet@im.example.com/other", counts: false),
        Case(to: nil, from: "romeo@im.example.com", counts: false),
        Case(to: nil, from: "example.com", counts: false),
        Case(to: nil, from: "@@", counts: false),
        Case(to: "im.example.com", from: nil, counts: true),
        Case(to: "juliet@im.example.com", from: nil, counts: true),
        Case(to: "romeo@example.net/x", from: nil, counts: false),
        Case(to: "romeo@example.net/x", from: "romeo@example.net/x", counts: true),
        Case(to: "romeo@example.net/x", from: "romeo@example.net", counts: false),
        Case(to: "romeo@example.net/x", from: "romeo@example.net/y", counts: false),
        Case(to: "romeo@example.net/x", from: "im.example.com", counts: false),
        Case(to: "romeo@example.net", from: "mercutio@example.net", counts: false),
    ]

    @Test("[RFC 6120 §8.1.3] an answer counts by id and sender", arguments: cases)
    func senders(_ testCase: Case) throws {
        let rig = try ConnectionRig.ready()
        let answers = Answers()
        rig.connection.request(Self.ping(to: testCase.to), timeout: .seconds(5), answers.take)
        let from = testCase.from.map { " from='\($0)'" } ?? ""
        try rig.receive("<iq type='result' id='\(Self.id)'\(from)/>")
        #expect(answers.results == (testCase.counts ? ["result \(testCase.from ?? "-")"] : []))
        #expect(rig.strays.foreign == (testCase.counts ? 0 : 1))
        // The real one still counts.
        if !testCase.counts {
            try rig.receive(
                "<iq type='error' id='\(Self.id)' from='\(testCase.to ?? "im.example.com")'><error type='cancel'><gone xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></iq>"
            )
            #expect(answers.results == ["gone"])
        }
        #expect(rig.pendingRequests == 0)
    }

    @Test("an answer comes once, in time or not at all, and a late one is counted")
    func timeouts() throws {
        let rig = try ConnectionRig.ready()
        let answers = Answers()
        rig.connection.request(Self.ping(), timeout: .seconds(5), answers.take)
        rig.advance(.seconds(4))
        #expect(answers.results == [])
        rig.advance(.seconds(1))
        #expect(answers.results == ["no answer in time"])
        try rig.receive("<iq type='result' id='\(Self.id)'/>")
        try rig.receive("<iq type='result' id='\(Self.id)'/>")
        #expect(answers.results == ["no answer in time"])
        #expect(rig.strays.late == 1)
        // The second one belongs to no request, and so goes to the owner.
        #expect(rig.observer.calls.count == 2)
    }

    @Test("the end of a connection answers what is open")
    func lost() throws {
        let rig = try ConnectionRig.ready()
        let answers = Answers()
        rig.connection.request(Self.ping(), timeout: .seconds(5), answers.take)
        #expect(rig.connection.request(77, to: nil, timeout: .seconds(5), before: [0x3C], after: [0x3E]))
        rig.channel.close(promise: nil)
        #expect(answers.results == ["the connection was lost before the answer came"])
        #expect(rig.observer.calls.suffix(2) == [.unanswered(77, .connectionLost), .ended(.lost)])
        rig.connection.request(Self.ping(), timeout: .seconds(5), answers.take)
        #expect(answers.results == ["the connection was lost before the answer came", "the client is not connected"])
    }

    @Test("a request by bytes is answered by its token")
    func tokens() throws {
        let rig = try ConnectionRig.ready()
        let before = Array("<iq type='get' id='".utf8)
        let after = Array("'><ping xmlns='urn:xmpp:ping'/></iq>".utf8)
        #expect(rig.connection.request(5, to: nil, timeout: .seconds(5), before: before, after: after))
        #expect(try rig.sent() == "<iq type='get' id='\(Self.id)'><ping xmlns='urn:xmpp:ping'/></iq>")
        try rig.receive("<iq type='result' id='\(Self.id)'/>")
        guard case .answered(5, let answer)? = rig.observer.calls.last else {
            Issue.record("\(rig.observer.calls)")
            return
        }
        #expect(answer["type"] == "result")
        #expect(rig.connection.request(6, to: nil, timeout: .seconds(5), before: before, after: after))
        rig.advance(.seconds(5))
        #expect(rig.observer.calls.last == .unanswered(6, .timedOut))
    }

    @Test("[RFC 6120 §8.2.3] a request that its owner has handled is not refused")
    func handled() throws {
        let rig = try ConnectionRig.ready()
        rig.observer.onRequest = { request in
            rig.connection.answer(request)
            return true
        }
        _ = try rig.sent()
        try rig.receive("<iq type='get' id='q' from='a@b/c'><x xmlns='y'/></iq>")
        #expect(try rig.sent() == "<iq type='result' id='q' to='a@b/c'/>")
    }
}
