import NIOCore
import Testing
import XMPP

@Suite("Modules on a stream")
struct ModuleTests {
    /// Records the stanzas that it sees, and changes or drops them as configured.
    private final class Probe: XMPPHandler {
        let name: String
        let log: Log
        var drops: ((XMPPElement) -> Bool)?
        var takes = false

        init(_ name: String, _ log: Log) {
            self.name = name
            self.log = log
        }

        private func filter(_ way: String, _ stanza: XMPPElement) -> XMPPElement? {
            self.log.lines.append("\(self.name) \(way) \(stanza.name) \(stanza["id"] ?? "")")
            if self.drops?(stanza) ?? false { return nil }
            var stanza = stanza
            stanza["id"] = (stanza["id"] ?? "") + self.name
            return stanza
        }

        func ready(_ session: XMPPSession, in context: XMPPModuleContext) {
            self.log.lines.append("\(self.name) ready \(session.jid)")
        }

        func filterSent(_ stanza: XMPPElement, in context: XMPPModuleContext) -> XMPPElement? {
            self.filter("sends", stanza)
        }

        func filterReceived(_ stanza: XMPPElement, in context: XMPPModuleContext) -> XMPPElement? {
            self.filter("gets", stanza)
        }

        func handle(_ stanza: XMPPElement, in context: XMPPModuleContext) -> Bool {
            self.log.lines.append("\(self.name) sees \(stanza.name) \(stanza["id"] ?? "")")
            return self.takes
        }

        func ended(_ end: XMPPClientEnd) { self.log.lines.append("\(self.name) ended") }
    }

    private final class Log {
        var lines: [String] = []
    }

    private static func element(_ text: String) throws -> XMPPElement {
        let rig = try ConnectionRig.ready()
        try rig.receive(text)
        guard case .received(let element)? = rig.observer.calls.last else { throw Conversation.Broken(line: text) }
        return element
    }

    @Test("[A18] modules see what comes in their order, each what the one before has left")
    func order() throws {
        let log = Log()
        let rig = try ConnectionRig.ready(modules: [Probe("a", log), Probe("b", log)])
        try rig.receive("<message id='1'/><presence id='2'/>")
        rig.channel.close(promise: nil)
        #expect(
            log.lines == [
                "a ready juliet@im.example.com/balcony", "b ready juliet@im.example.com/balcony",
                "a gets message 1", "b gets message 1a", "a sees message 1ab", "b sees message 1ab",
                "a gets presence 2", "b gets presence 2a", "a sees presence 2ab", "b sees presence 2ab",
                "a ended", "b ended",
            ]
        )
        #expect(
            rig.observer.calls.dropFirst() == [
                .filtered(try Self.element("<message id='1ab'/>")),
                .filtered(try Self.element("<presence id='2ab'/>")), .ended(.lost),
            ]
        )
    }

    @Test("[A18] what is sent keeps its order over all kinds, and what a filter drops is not sent")
    func sending() throws {
        let log = Log()
        let dropper = Probe("d", log)
        dropper.drops = { $0.name == "message" }
        let rig = try ConnectionRig.ready(modules: [dropper, Probe("e", log)])
        for (index, name) in ["presence", "message", "iq", "presence"].enumerated() {
            let stanza = XMPPElement(name, namespace: XMPPNamespace.client, attributes: ["id": "\(index)"])
            try rig.connection.send(stanza)
        }
        #expect(try rig.sent() == "<presence id='0de'/><iq id='2de'/><presence id='3de'/>")
    }

    @Test("[A18] a request that a filter drops, or that no module handles, is refused; a handled one is not")
    func requests() throws {
        let log = Log()
        let probe = Probe("p", log)
        let rig = try ConnectionRig.ready(modules: [probe])
        let request = "<iq type='get' id='q'><x xmlns='y'/></iq>"
        let refusal = """
            <iq id='q' type='error'><error type='cancel'>\
            <service-unavailable xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></iq>
            """
        try rig.receive(request)
        #expect(try rig.sent() == refusal)
        probe.drops = { _ in true }
        try rig.receive(request)
        #expect(try rig.sent() == refusal)
        probe.drops = nil
        probe.takes = true
        try rig.receive(request)
        #expect(try rig.sent() == "")
    }

    @Test("[A18] what is injected counts as received")
    func injects() throws {
        let log = Log()
        let rig = try ConnectionRig.ready(modules: [Probe("p", log)])
        log.lines = []
        #expect(rig.connection.inject(try Self.element("<message id='1'/>")))
        #expect(log.lines == ["p gets message 1", "p sees message 1p"])
        #expect(rig.observer.calls.last == .filtered(try Self.element("<message id='1p'/>")))
        rig.channel.close(promise: nil)
        #expect(!rig.connection.inject(try Self.element("<message id='1'/>")))
    }

    // MARK: Ping

    @Test("[XEP-0199 §4] pings are answered")
    func answersPing() throws {
        let rig = try ConnectionRig.ready(modules: [PingHandler()])
        try rig.receive("<iq type='get' id='p' from='im.example.com'><ping xmlns='urn:xmpp:ping'/></iq>")
        #expect(try rig.sent() == "<iq type='result' id='p' to='im.example.com'/>")
    }

    @Test(
        "[XEP-0199 §4.1] who refuses a ping is alive",
        arguments: [
            ("<iq type='result' id='00000000000000002'/>", true),
            ("service-unavailable", true), ("feature-not-implemented", true), ("item-not-found", false),
        ]
    )
    func roundTrip(_ answer: String, _ counts: Bool) throws {
        let rig = try ConnectionRig.ready(modules: [PingHandler()])
        var results: [Result<TimeAmount, XMPPRequestError>] = []
        PingHandler.ping(nil, in: rig.module, timeout: .seconds(5)) { results.append($0) }
        rig.advance(.milliseconds(30))
        let error = """
            <iq type='error' id='00000000000000002'><error type='cancel'>\
            <\(answer) xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></iq>
            """
        try rig.receive(answer.hasPrefix("<") ? answer : error)
        let refused = XMPPRequestError.refused(StanzaError(.itemNotFound, type: .cancel))
        #expect(results == [counts ? .success(.milliseconds(30)) : .failure(refused)])
    }

    @Test("[C2] a silent server is asked, and one that does not answer is left")
    func autoPing() throws {
        let rig = try ConnectionRig.ready(
            ConnectionRig.options { $0.keepAlive = .zero },
            modules: [PingHandler(interval: .seconds(60), timeout: .seconds(10))]
        )
        rig.advance(.seconds(59))
        #expect(try rig.sent() == "")
        rig.advance(.seconds(1))
        #expect(try rig.sent() == "<iq type='get' id='00000000000000002'><ping xmlns='urn:xmpp:ping'/></iq>")
        try rig.receive("<iq type='result' id='00000000000000002'/>")
        rig.advance(.seconds(60))
        #expect(try rig.sent().contains("urn:xmpp:ping"))
        rig.advance(.seconds(10))
        #expect(rig.end == .pingTimedOut)
    }
}
