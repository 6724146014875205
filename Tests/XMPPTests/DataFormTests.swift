import Testing
import XMPP

@Suite("Forms, capabilities and nodes")
struct DataFormTests {
    private static func element(_ text: String) throws -> XMPPElement {
        let rig = try ConnectionRig.ready()
        try rig.receive("<message>\(text)</message>")
        guard case .received(let message)? = rig.observer.calls.last else { throw Conversation.Broken(line: text) }
        return try #require(message.elements.first)
    }

    private static let form = """
        <x xmlns='jabber:x:data' type='form'><title>T</title><instructions>I</instructions>\
        <field var='FORM_TYPE' type='hidden'><value>urn:f</value></field>\
        <field type='fixed'><value>Please</value></field>\
        <field var='list' type='list-single' label='L'><desc>D</desc><required/><value>b</value>\
        <option label='A'><value>a</value></option><option><value>b</value></option></field>\
        <field var='text' type='text-multi'><value>1</value><value>2</value></field>\
        <field var='flag' type='boolean'><value>1</value></field><field var='odd' type='strange'><required/></field></x>
        """

    @Test("[XEP-0004 §3] a form is read with its fields, and written as it was read")
    func reads() throws {
        let element = try Self.element(Self.form)
        let form = try #require(XMPPDataForm(element))
        #expect(form.kind == .form)
        #expect(form.title == "T")
        #expect(form.instructions == ["I"])
        #expect(form.type == "urn:f")
        let list = try #require(form["list"])
        #expect(list.kind == .listSingle)
        #expect(list.label == "L")
        #expect(list.explanation == "D")
        #expect(list.isRequired)
        #expect(list.options.map(\.value) == ["a", "b"])
        #expect(list.options.map(\.label) == ["A", nil])
        #expect(form["text"]?.values == ["1", "2"])
        #expect(form["flag"]?.bool == true)
        #expect(list.bool == nil)
        #expect(form["odd"]?.kind == nil)
        #expect(form.missing == ["odd"])
        #expect(form["none"] == nil)
        var known = form
        known.fields.removeLast()
        let written = try known.element.xml().replacing("\"", with: "'")
        #expect(written == Self.form.replacing("<field var='odd' type='strange'><required/></field>", with: ""))
        #expect(XMPPDataForm(XMPPElement("x", namespace: "urn:x")) == nil)
    }

    @Test("[XEP-0004 §3.3] a form filled in has the new values, the defaults and the hidden ones, and no texts")
    func fills() throws {
        let form = try #require(XMPPDataForm(try Self.element(Self.form)))
        let filled = form.filled(["list": ["a"], "odd": ["o"], "more": ["m"], "text": []])
        #expect(
            try filled.element.xml().replacing("\"", with: "'") == """
                <x xmlns='jabber:x:data' type='submit'><field var='FORM_TYPE' type='hidden'><value>urn:f</value></field>\
                <field var='list'><value>a</value></field><field var='text'/><field var='flag'><value>1</value></field>\
                <field var='odd'><value>o</value></field><field var='more'><value>m</value></field></x>
                """
        )
    }

    // MARK: Capabilities

    @Test("[XEP-0115 §5.3] the hash of the specification's long example, with a form and two languages")
    func longHash() {
        let form = XMPPDataForm(
            .result,
            fields: [
                .init("FORM_TYPE", ["urn:xmpp:dataforms:softwareinfo"], kind: .hidden),
                .init("ip_version", ["ipv4", "ipv6"]), .init("os", ["Mac"]), .init("os_version", ["10.5.1"]),
                .init("software", ["Psi"]), .init("software_version", ["0.11"]),
            ]
        )
        let info = XMPPDiscovery.Info(
            identities: [
                .init(category: "client", type: "pc", name: "Psi 0.11", language: "en"),
                .init(category: "client", type: "pc", name: "Ψ 0.11", language: "el"),
            ],
            features: [
                XMPPNamespace.capabilities, XMPPNamespace.discoInfo, XMPPNamespace.discoItems, XMPPNamespace.muc,
            ],
            forms: [form]
        )
        #expect(info.verification == "q07IKJEyjvHSyhy//CH0CxmKi8w=")
    }

    /// A contact's presence, and what its answer is.
    private static func presence(_ jid: String, _ version: String, hash: String = "sha-1") -> String {
        "<presence from='\(jid)'><c xmlns='\(XMPPNamespace.capabilities)' hash='\(hash)' node='urn:n' ver='\(version)'/>"
            + "</presence>"
    }

    @Test("[XEP-0115 §5.4] an answer with its hash is kept for all clients with that hash, and no other answer is")
    func capabilities() throws {
        let handler = DiscoveryHandler(.init(category: "client", type: "bot"), node: "urn:clamor")
        let rig = try ConnectionRig.ready(modules: [handler])
        let info = XMPPDiscovery.Info(identities: [.init(category: "client", type: "pc")], features: ["urn:a"])
        let good = "<identity category='client' type='pc'/><feature var='urn:a'/>"
        var number = 1
        func ask(_ jid: String, _ content: String?) throws -> String {
            var answers: [XMPPDiscovery.Info] = []
            handler.capabilities(of: try JID(jid), in: rig.module) { answers.append((try? $0.get()) ?? info) }
            let question = try rig.sent()
            guard let content else {
                #expect(answers == [info])
                return question
            }
            number += 1
            try rig.receive(
                """
                <iq type='result' id='0000000000000000\(number)' from='\(jid)'>\
                <query xmlns='\(XMPPNamespace.discoInfo)'>\(content)</query></iq>
                """
            )
            #expect(answers.count == 1)
            return question
        }
        for jid in ["a@b/1", "a@b/2", "a@b/3"] { try rig.receive(Self.presence(jid, info.verification)) }
        // Others than the hash says: each is asked itself.
        for bad in [
            "<feature var='urn:evil'/>", good + good, good + "<feature var='urn:a'/>",
        ] {
            #expect(try ask("a@b/1", bad).contains("node='urn:n#\(info.verification)'"))
        }
        #expect(try !ask("a@b/1", good).isEmpty)
        #expect(try ask("a@b/1", nil).isEmpty)
        #expect(try ask("a@b/2", nil).isEmpty)
        // Another hash function, a client without a hash, and one that has left.
        try rig.receive(Self.presence("a@b/2", info.verification, hash: "md5"))
        #expect(try !ask("a@b/2", good).isEmpty)
        try rig.receive("<presence from='a@b/2'/><presence from='a@b/3' type='unavailable'/>")
        for jid in ["a@b/2", "a@b/3"] {
            let question = try ask(jid, good)
            #expect(!question.isEmpty)
            #expect(!question.contains("node="))
        }
    }

    @Test("[XEP-0115 §6.1] hashes and answers without end are kept up to a bound, the newest")
    func boundedCapabilities() throws {
        let handler = DiscoveryHandler(.init(category: "client", type: "bot"), node: "urn:clamor")
        let rig = try ConnectionRig.ready(modules: [handler])
        for number in 0..<10_000 { try rig.receive(Self.presence("a@b/\(number)", "v\(number)")) }
        for (number, isKnown) in [(9_999, true), (5_904, true), (5_903, false), (0, false)] {
            handler.capabilities(of: try JID("a@b/\(number)"), in: rig.module) { _ in }
            #expect(try rig.sent().contains("node='urn:n#v\(number)'") == isKnown)
        }
    }

    // MARK: Nodes

    @Test("[XEP-0060 §7.1.2, §7.2.2, §8.4.2, §8.5.2] what a node sends its subscribers")
    func nodeEvents() throws {
        var events: [XMPPPubSub.Event] = []
        let rig = try ConnectionRig.ready(modules: [PubSubHandler { events.append($0) }])
        let event = { (from: String, inner: String) in
            "<message\(from)><event xmlns='\(XMPPNamespace.pubsubEvent)'>\(inner)</event></message>"
        }
        let service = try JID("pubsub.example.com")
        let from = " from='\(service)'"
        try rig.receive(
            event(
                from,
                """
                <items node='n'><item id='1' publisher='a@b'><e xmlns='urn:e'/></item><item id='2'/>\
                <retract id='3'/><retract/><strange/></items>
                """
            )
        )
        try rig.receive(event(from, "<purge node='n'/>") + event(from, "<delete node='n'/>"))
        try rig.receive(event(from, "<configuration node='n'><x xmlns='jabber:x:data' type='result'/></configuration>"))
        try rig.receive(event(from, "<subscription node='n' jid='a@b' subscription='none'/>"))
        // The own account's, and none that can be read.
        try rig.receive(event(" from='juliet@im.example.com'", "<purge node='p'/>") + event("", "<purge node='q'/>"))
        try rig.receive(event(" from='@'", "<purge node='n'/>"))
        let node = XMPPPubSub.Node("n", at: service)
        let person = try JID("a@b")
        #expect(events.count == 9)
        guard events.count == 9, case .published(node, let first) = events[0],
            case .published(node, let second) = events[1]
        else { return }
        #expect(first.id == "1")
        #expect(first.publisher == person)
        #expect(first.payload == XMPPElement("e", namespace: "urn:e"))
        #expect(second.payload == nil)
        #expect(
            Array(events[2...5]) == [
                .retracted(node, id: "3"), .purged(node), .deleted(node), .configured(node, XMPPDataForm(.result)),
            ]
        )
        guard case .subscription(node, let subscription) = events[6] else {
            Issue.record("\(events[6])")
            return
        }
        #expect(subscription.state == .none)
        #expect(events[7...] == [.purged(.init("p")), .purged(.init("q"))])
        // None of them is a message of its own.
        #expect(rig.observer.calls.count == 1)
    }

    @Test("[XEP-0163 §4] nodes that are to be told of are features of the client")
    func notified() {
        #expect(XMPPPubSub(notifiedNodes: ["urn:a", "urn:b"]).features == ["urn:a+notify", "urn:b+notify"])
    }
}
