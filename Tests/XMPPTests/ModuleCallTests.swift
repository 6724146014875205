import NIOCore
import Synchronization
import Testing
import XMPP

/// Calls of modules: the request that they send, and what they make of its answer.
@Suite("Calls of modules")
struct ModuleCallTests {
    /// A module's call, its request without the id, and the content of the answer.
    struct Call: Sendable {
        let name: String
        let request: String
        let answer: String
        /// Returns what is to be equal to the text.
        let expected: String
        let run: @Sendable (Modules) async throws -> String

        init(
            _ name: String,
            _ request: String,
            answer: String = "",
            expected: String = "()",
            _ run: @escaping @Sendable (Modules) async throws -> Any
        ) {
            self.name = name
            self.request = request
            self.answer = answer
            self.expected = expected
            self.run = { String(describing: try await run($0)) }
        }
    }

    struct Modules: Sendable {
        let rooms = XMPPRooms()
        let archive = XMPPArchive()
        let carbons = XMPPCarbons(isAutomatic: false)
        let receipts = XMPPReceipts()
        let pubSub = XMPPPubSub(notifiedNodes: ["urn:n"])
        let discovery = XMPPDiscovery()
        let registration = XMPPAccountRegistration()

        var all: [any XMPPModule] {
            [
                self.rooms, self.archive, self.carbons, self.receipts, self.pubSub, self.discovery, self.registration,
            ]
        }
    }

    private static func jid(_ text: String) throws -> JID { try JID(text) }

    private static func iq(_ type: String, _ to: String?, _ inner: String) -> String {
        "<iq type='\(type)'\(to.map { " to='\($0)'" } ?? "")>\(inner)</iq>"
    }

    private static func owner(_ inner: String) -> String { "<query xmlns='\(XMPPNamespace.mucOwner)'>\(inner)</query>" }
    private static func pubsub(_ inner: String, _ part: String = "") -> String {
        "<pubsub xmlns='\(XMPPNamespace.pubsub)\(part)'>\(inner)</pubsub>"
    }
    private static func register(_ inner: String) -> String {
        "<query xmlns='\(XMPPNamespace.register)'>\(inner)</query>"
    }

    private static let form = "<x xmlns='jabber:x:data' type='form'><field var='a'><value>1</value></field></x>"
    private static let filled = "<x xmlns='jabber:x:data' type='submit'><field var='a'><value>2</value></field></x>"

    static let calls: [Call] = rooms + nodes + others

    private static let rooms: [Call] = [
        Call("[XEP-0045 §10.1.2] an instant room", iq("set", "r@m", owner("<x xmlns='jabber:x:data' type='submit'/>")))
        {
            try await $0.rooms.acceptDefaults(of: jid("r@m/x"))
        },
        Call(
            "[XEP-0045 §10.2] a configuration",
            iq("get", "r@m", "<query xmlns='\(XMPPNamespace.mucOwner)'/>"),
            answer: owner(form),
            expected: "1"
        ) { try await $0.rooms.configuration(of: jid("r@m"))["a"]?.value ?? "-" },
        Call("[XEP-0045 §10.2] a room is configured", iq("set", "r@m", owner(filled))) {
            try await $0.rooms.configure(
                jid("r@m"),
                with: XMPPDataForm(.form, fields: [.init("a")]).filled(["a": ["2"]])
            )
        },
        Call("[XEP-0045 §10.9] a room is destroyed", iq("set", "r@m", owner("<destroy><reason>r</reason></destroy>"))) {
            try await $0.rooms.destroy(jid("r@m"), reason: "r")
        },
    ]

    private static let nodes: [Call] = [
        Call(
            "[XEP-0060 §8.1] a node is made",
            iq(
                "set",
                "s",
                pubsub(
                    "<create node='n'/><configure><x xmlns='jabber:x:data' type='submit'>"
                        + "<field var='FORM_TYPE' type='hidden'><value>\(XMPPNamespace.pubsub)#node_config</value></field>"
                        + "<field var='pubsub#max_items'><value>5</value></field></x></configure>"
                )
            ),
            expected: "n"
        ) { try await $0.pubSub.create("n", at: jid("s"), configuration: ["pubsub#max_items": "5"]).name },
        Call(
            "[XEP-0060 §8.1.2] the service names a node",
            iq("set", nil, pubsub("<create/>")),
            answer: pubsub("<create node='made'/>"),
            expected: "made"
        ) { try await $0.pubSub.create(nil).name },
        Call(
            "[XEP-0060 §8.2] a configuration",
            iq("get", "s", pubsub("<configure node='n'/>", "#owner")),
            answer: pubsub("<configure node='n'>\(form)</configure>", "#owner"),
            expected: "1"
        ) { try await $0.pubSub.configuration(of: .init("n", at: jid("s")))["a"]?.value ?? "-" },
        Call(
            "[XEP-0060 §8.2] a node is configured",
            iq("set", "s", pubsub("<configure node='n'>\(filled)</configure>", "#owner"))
        ) { try await $0.pubSub.configure(.init("n", at: jid("s")), with: .submit(nil, ["a": "2"])) },
        Call("[XEP-0060 §8.4] a node is deleted", iq("set", "s", pubsub("<delete node='n'/>", "#owner"))) {
            try await $0.pubSub.delete(.init("n", at: jid("s")))
        },
        Call("[XEP-0060 §8.5] a node is purged", iq("set", "s", pubsub("<purge node='n'/>", "#owner"))) {
            try await $0.pubSub.purge(.init("n", at: jid("s")))
        },
        Call(
            "[XEP-0060 §6.1] a subscription",
            iq("set", "s", pubsub("<subscribe node='n' jid='juliet@localhost'/>")),
            answer: pubsub("<subscription node='n' jid='juliet@localhost' subid='1' subscription='pending'/>"),
            expected: "1 pending"
        ) {
            let subscription = try await $0.pubSub.subscribe(to: .init("n", at: jid("s")))
            return "\(subscription.id ?? "-") \(subscription.state)"
        },
        Call(
            "[XEP-0060 §6.2] a subscription ends",
            iq("set", "s", pubsub("<unsubscribe node='n' jid='juliet@localhost' subid='1'/>"))
        ) { try await $0.pubSub.unsubscribe(from: .init("n", at: jid("s")), id: "1") },
        Call(
            "[XEP-0060 §5.6] subscriptions",
            iq("get", "s", pubsub("<subscriptions/>")),
            answer: pubsub(
                "<subscriptions><subscription node='n' jid='a@b' subscription='subscribed'/></subscriptions>"
            ),
            expected: "n subscribed"
        ) {
            let all = try await $0.pubSub.subscriptions(at: jid("s"))
            return all.map { "\($0.node ?? "-") \($0.state)" }.joined()
        },
        Call(
            "[XEP-0060 §5.7] affiliations",
            iq("get", "s", pubsub("<affiliations/>")),
            answer: pubsub("<affiliations><affiliation node='n' affiliation='publish-only'/></affiliations>"),
            expected: "publishOnly"
        ) { try await $0.pubSub.affiliations(at: jid("s"))["n"].map { "\($0)" } ?? "-" },
        Call(
            "[XEP-0060 §8.9.1] affiliations of a node",
            iq("get", "s", pubsub("<affiliations node='n'/>", "#owner")),
            answer: pubsub("<affiliations><affiliation jid='a@b' affiliation='owner'/></affiliations>", "#owner"),
            expected: "owner"
        ) { try await $0.pubSub.affiliations(of: .init("n", at: jid("s")))[jid("a@b")].map { "\($0)" } ?? "-" },
        Call(
            "[XEP-0060 §8.9.2] an affiliation is set",
            iq(
                "set",
                "s",
                pubsub("<affiliations node='n'><affiliation jid='a@b' affiliation='none'/></affiliations>", "#owner")
            )
        ) { try await $0.pubSub.setAffiliation(.none, of: jid("a@b"), at: .init("n", at: jid("s"))) },
        Call(
            "[XEP-0060 §7.1.5] an item is published, on a condition",
            iq(
                "set",
                nil,
                pubsub(
                    "<publish node='n'><item id='1'><e xmlns='urn:e'/></item></publish><publish-options>"
                        + "<x xmlns='jabber:x:data' type='submit'><field var='FORM_TYPE' type='hidden'>"
                        + "<value>\(XMPPNamespace.pubsub)#publish-options</value></field>"
                        + "<field var='pubsub#persist_items'><value>true</value></field></x></publish-options>"
                )
            ),
            answer: pubsub("<publish node='n'><item id='2'/></publish>"),
            expected: "2"
        ) {
            let payload = XMPPElement("e", namespace: "urn:e")
            return try await $0.pubSub.publish(
                payload,
                id: "1",
                to: .init("n"),
                options: ["pubsub#persist_items": "true"]
            )
                ?? "-"
        },
        Call(
            "[XEP-0060 §7.2] an item is retracted",
            iq("set", "s", pubsub("<retract node='n' notify='true'><item id='1'/></retract>"))
        ) { try await $0.pubSub.retract("1", from: .init("n", at: jid("s")), notifies: true) },
        Call(
            "[XEP-0060 §6.5] items",
            iq("get", nil, pubsub("<items node='n' max_items='3'><item id='1'/></items>")),
            answer: pubsub("<items node='n'><item id='1' publisher='a@b'><e xmlns='urn:e'/></item><item/></items>"),
            expected: "1 a@b e,- - -"
        ) {
            try await $0.pubSub.items(of: .init("n"), max: 3, ids: ["1"])
                .map { "\($0.id ?? "-") \($0.publisher?.description ?? "-") \($0.payload?.name ?? "-")" }
                .joined(separator: ",")
        },
    ]

    private static let others: [Call] = [
        Call("[XEP-0280 §4] copies are asked for", iq("set", nil, "<enable xmlns='urn:xmpp:carbons:2'/>")) {
            try await $0.carbons.enable()
        },
        Call("[XEP-0280 §5] no more copies", iq("set", nil, "<disable xmlns='urn:xmpp:carbons:2'/>")) {
            try await $0.carbons.disable()
        },
        Call(
            "[XEP-0313 §7] preferences",
            iq("get", nil, "<prefs xmlns='urn:xmpp:mam:2'/>"),
            answer: "<prefs xmlns='urn:xmpp:mam:2' default='roster'><always><jid>a@b</jid></always><never/></prefs>",
            expected: "roster [a@b] []"
        ) {
            let preferences = try await $0.archive.preferences()
            return "\(preferences.default) \(preferences.always) \(preferences.never)"
        },
        Call(
            "[XEP-0313 §7] preferences are set",
            iq(
                "set",
                nil,
                "<prefs xmlns='urn:xmpp:mam:2' default='never'><always/><never><jid>a@b</jid></never></prefs>"
            ),
            expected: "never"
        ) { try await $0.archive.setPreferences(.init(.never, never: [jid("a@b")])).default },
        Call(
            "[XEP-0030 §3] an entity's features",
            iq("get", "s", "<query xmlns='\(XMPPNamespace.discoInfo)' node='n'/>"),
            answer: "<query xmlns='\(XMPPNamespace.discoInfo)'><identity category='server' type='im'/>"
                + "<feature var='urn:xmpp:ping'/>\(form)</query>",
            expected: "server im urn:xmpp:ping 1"
        ) {
            let info = try await $0.discovery.info(of: jid("s"), node: "n")
            let identity = info.identities.map { "\($0.category) \($0.type)" }.joined()
            return "\(identity) \(info.features.joined()) \(info.forms.count)"
        },
        Call(
            "[XEP-0030 §4] an entity's items",
            iq("get", "s", "<query xmlns='\(XMPPNamespace.discoItems)'/>"),
            answer: "<query xmlns='\(XMPPNamespace.discoItems)'><item jid='m.s' name='Rooms'/><item jid='@'/></query>",
            expected: "m.s Rooms"
        ) { try await $0.discovery.items(of: jid("s")).map { "\($0.jid) \($0.name ?? "-")" }.joined() },
        Call(
            "[XEP-0077 §3.3] another password",
            iq("set", "localhost", register("<username>juliet</username><password>new</password>"))
        ) { try await $0.registration.changePassword("new") },
        Call("[XEP-0077 §3.2] the account is removed", iq("set", nil, register("<remove/>"))) {
            try await $0.registration.remove()
        },
        Call("[XEP-0077 §3.2] a registration ends", iq("set", "gateway", register("<remove/>"))) {
            try await $0.registration.unregister(from: jid("gateway"))
        },
        Call(
            "[XEP-0077 §3.1] a service's fields",
            iq("get", "gateway", "<query xmlns='\(XMPPNamespace.register)'/>"),
            answer: register("<registered/><instructions>fill</instructions><username>j</username><nick/>"),
            expected: "true fill username=j nick="
        ) {
            let wanted = try await $0.registration.requirements(of: jid("gateway"))
            let fields = wanted.fields.map { "\($0.name ?? "-")=\($0.value ?? "")" }.joined(separator: " ")
            return "\(wanted.isRegistered) \(wanted.instructions ?? "-") \(fields)"
        },
        Call(
            "[XEP-0077 §4, §5] a service's form and page",
            iq("get", nil, "<query xmlns='\(XMPPNamespace.register)'/>"),
            answer: register("<nick/>\(form)<x xmlns='jabber:x:oob'><url>http://x/</url></x>"),
            expected: "0 a http://x/"
        ) {
            let wanted = try await $0.registration.requirements(of: nil)
            let names = (wanted.form?.fields ?? []).compactMap(\.name).joined()
            return "\(wanted.fields.count) \(names) \(wanted.page ?? "-")"
        },
        Call(
            "[XEP-0077 §3.1] a registration by fields",
            iq("set", "gateway", register("<nick>n</nick><code>1</code>"))
        ) { try await $0.registration.register(with: jid("gateway"), fields: ["nick": "n", "code": "1"]) },
        Call("[XEP-0077 §4] a registration by a form", iq("set", "gateway", register(filled))) {
            try await $0.registration.register(with: jid("gateway"), form: .submit(nil, ["a": "2"]))
        },
    ]

    private static func text(_ element: XMPPElement) throws -> String {
        var element = element
        element["id"] = nil
        return try element.xml().replacing("\"", with: "'")
    }

    @Test("each call sends its request, returns the answer's content, and throws a refusal", arguments: [false, true])
    func calls(_ isRefused: Bool) async throws {
        for call in Self.calls {
            let modules = Modules()
            let requests = Mutex<[String]>([])
            try await FakeServer.with(features: "") { _, element in
                guard element.name == "iq", element.child("bind") == nil else { return nil }
                requests.withLock { $0.append((try? Self.text(element)) ?? "-") }
                let to = element["to"].map { " from='\($0)'" } ?? ""
                let id = element["id"] ?? ""
                return isRefused
                    ? "<iq type='error' id='\(id)'\(to)><error type='auth'><forbidden xmlns='\(XMPPNamespace.stanzas)'/>"
                        + "</error></iq>"
                    : "<iq type='result' id='\(id)'\(to)>\(call.answer)</iq>"
            } _: { server in
                let client = XMPPClient(server.configuration, modules: modules.all)
                try await client.connect()
                do {
                    let result = try await call.run(modules)
                    #expect(result == call.expected, "\(call.name)")
                    #expect(!isRefused, "\(call.name)")
                } catch XMPPClientError.refused(let error) {
                    #expect(isRefused, "\(call.name)")
                    #expect(error.condition == .forbidden)
                }
                await client.disconnect()
            }
            #expect(requests.withLock { $0 } == [call.request], "\(call.name)")
        }
    }

    @Test("an answer without the form that was asked for is a bad one, and an empty password is refused")
    func unusable() async throws {
        let modules = Modules()
        try await FakeServer.with(features: "") { _, element in
            guard element.name == "iq", element.child("bind") == nil else { return nil }
            let to = element["to"].map { " from='\($0)'" } ?? ""
            return "<iq type='result' id='\(element["id"] ?? "")'\(to)/>"
        } _: { server in
            let client = XMPPClient(server.configuration, modules: modules.all)
            try await client.connect()
            let service = try JID("s")
            let bad = XMPPClientError.refused(StanzaError(.badRequest))
            await #expect(throws: bad) { try await modules.rooms.configuration(of: service) }
            await #expect(throws: bad) { try await modules.pubSub.configuration(of: .init("n")) }
            await #expect(throws: bad) { try await modules.pubSub.create(nil) }
            await #expect(throws: bad) { try await modules.archive.preferences() }
            let empty = XMPPClientError.invalid("a password is not empty")
            await #expect(throws: empty) { try await modules.registration.changePassword("") }
            let none = XMPPClientError.invalid("a page has one message at least, and 'max' is 0")
            await #expect(throws: none) { try await modules.archive.page(.init(max: 0)) }
            await client.disconnect()
            await #expect(throws: XMPPClientError.notConnected) { try await modules.pubSub.purge(.init("n")) }
        }
    }

    @Test(
        "[XEP-0077 §3.2] the server may end the stream in place of the answer to a removal",
        arguments: [
            ("not-authorized", "", true), ("conflict", "User removed", true),
            ("conflict", "Replaced by new connection", false), ("conflict", "", false), ("system-shutdown", "", false),
        ]
    )
    func removal(_ condition: String, _ text: String, _ isRemoved: Bool) async throws {
        let modules = Modules()
        try await FakeServer.with { _, element in
            guard element.name == "iq", element.child("query") != nil else { return nil }
            let namespace = "urn:ietf:params:xml:ns:xmpp-streams"
            let words = text.isEmpty ? "" : "<text xmlns='\(namespace)'>\(text)</text>"
            return "<stream:error><\(condition) xmlns='\(namespace)'/>\(words)</stream:error></stream:stream>"
        } _: { server in
            let client = XMPPClient(server.configuration, modules: modules.all)
            try await client.connect()
            var succeeds = true
            do throws(XMPPClientError) {
                try await modules.registration.remove()
            } catch {
                succeeds = false
                guard case .ended = error else {
                    Issue.record("\(error)")
                    return
                }
            }
            #expect(succeeds == isRemoved)
        }
    }

    // MARK: Sequences and waits

    @Test("[XEP-0313 §4.3] all pages of an archive, in both directions; a page that leads back to itself is the last")
    func pages() async throws {
        let archive = XMPPArchive()
        try await FakeServer.with(features: "") { _, element in
            guard let query = element.child("query", XMPPNamespace.mam) else { return nil }
            let set = query.child("set", XMPPNamespace.rsm)
            let (after, before) = (set?.child("after")?.text, set?.child("before")?.text)
            // Messages 1 to 5, two on a page.
            let end = before.map { $0.isEmpty ? 6 : Int($0) ?? 0 } ?? 6
            let first = before == nil ? (after.flatMap { Int($0) } ?? 0) + 1 : max(1, end - 2)
            let last = min(first + 1, end - 1)
            guard first <= last else { return nil }
            let isEndless = query.child("x")?.elements.contains { $0["var"] == "with" } ?? false
            let messages = (first...last).map { number in
                """
                <message><result xmlns='urn:xmpp:mam:2' queryid='\(query["queryid"] ?? "")' id='\(number)'>\
                <forwarded xmlns='urn:xmpp:forward:0'><message xmlns='jabber:client'/></forwarded></result></message>
                """
            }
            let isComplete = !isEndless && (before == nil ? last == 5 : first == 1)
            let mark = isEndless ? "2" : "\(last)"
            return messages.joined() + """
                <iq type='result' id='\(element["id"] ?? "")'><fin xmlns='urn:xmpp:mam:2' complete='\(isComplete)'>\
                <set xmlns='\(XMPPNamespace.rsm)'><first>\(first)</first><last>\(mark)</last></set></fin></iq>
                """
        } _: { server in
            let client = XMPPClient(server.configuration, modules: [archive])
            try await client.connect()
            var ids: [String] = []
            for try await message in archive.messages(matching: .init(max: 2)) { ids.append(message.id) }
            #expect(ids == ["1", "2", "3", "4", "5"])
            ids = []
            for try await message in archive.messages(matching: .init(max: 2), newestFirst: true) {
                ids.append(message.id)
            }
            #expect(ids == ["5", "4", "3", "2", "1"])
            ids = []
            for try await message in archive.messages(matching: .init(with: try JID("a@b"), max: 2)) {
                ids.append(message.id)
            }
            #expect(ids == ["1", "2", "3", "4"])
            await client.disconnect()
        }
    }

    @Test("[XEP-0184 §5, XEP-0333] a message is delivered when its receiver says so, and no other")
    func delivers() async throws {
        let receipts = XMPPReceipts()
        try await FakeServer.with(features: "") { _, element in
            guard element.name == "message", let id = element["id"] else { return nil }
            let asks = element.child("request", XMPPNamespace.receipts) != nil
            let body = element.child("body")?.text ?? ""
            let forged = "<message from='evil@b/c'><received xmlns='urn:xmpp:receipts' id='\(id)'/></message>"
            switch body {
            case "received" where asks:
                return forged + "<message from='a@b/c'><received xmlns='urn:xmpp:receipts' id='\(id)'/></message>"
            case "displayed" where element.child("markable", XMPPNamespace.chatMarkers) != nil:
                return forged
                    + "<message from='a@b/c'><displayed xmlns='\(XMPPNamespace.chatMarkers)' id='\(id)'/></message>"
            case "bounced":
                return forged
                    + "<message type='error' id='\(id)' from='a@b'><error type='cancel'>"
                    + "<item-not-found xmlns='\(XMPPNamespace.stanzas)'/></error></message>"
            case "lost": return forged + "</stream:stream>"
            default: return forged
            }
        } _: { server in
            let client = XMPPClient(server.configuration, modules: [receipts])
            try await client.connect()
            let message = { (body: String) in
                XMPPElement(
                    "message",
                    namespace: XMPPNamespace.client,
                    attributes: ["to": "a@b"],
                    children: [.element(XMPPElement("body", namespace: XMPPNamespace.client, text: body))]
                )
            }
            let receiver = try JID("a@b/c")
            #expect(try await receipts.deliver(message("received")) == receiver)
            #expect(try await receipts.deliver(message("displayed"), until: .displayed) == receiver)
            #expect(try await receipts.deliver(message("displayed"), until: .displayed, timeout: nil) == receiver)
            await #expect(throws: XMPPClientError.refused(StanzaError(.itemNotFound, type: .cancel))) {
                try await receipts.deliver(message("bounced"))
            }
            await #expect(throws: XMPPClientError.timedOut) {
                try await receipts.deliver(message("silent"), timeout: .milliseconds(1))
            }
            var nobody = message("x")
            nobody["to"] = nil
            let unaddressed = nobody
            await #expect(throws: XMPPClientError.self) { try await receipts.deliver(unaddressed) }
            do throws(XMPPClientError) {
                try await receipts.deliver(message("lost"), timeout: nil)
                Issue.record("delivered")
            } catch {
                guard case .ended = error else {
                    Issue.record("\(error)")
                    return
                }
            }
        }
    }

    @Test("[XEP-0280 §4] copies are asked for on each new stream, unless the application says otherwise")
    func carbons() async throws {
        for (isAutomatic, disables) in [(true, false), (true, true), (false, false)] {
            let carbons = XMPPCarbons(isAutomatic: isAutomatic)
            try await FakeServer.with(features: "") { _, element in
                guard element.name == "iq", element.child("bind") == nil else { return nil }
                return "<iq type='result' id='\(element["id"] ?? "")'/>"
            } _: { server in
                let client = XMPPClient(server.configuration, modules: [carbons])
                for round in 0..<2 {
                    try await client.connect()
                    _ = try await client.ping()
                    let asks = try await server.heard(round).contains {
                        $0.child("enable", XMPPNamespace.carbons) != nil
                    }
                    #expect(asks == (isAutomatic && !(disables && round == 1)))
                    if disables, round == 0 { try await carbons.disable() }
                    await client.disconnect()
                }
            }
        }
    }
}
