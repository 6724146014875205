import Ledger
import LoadEngine
import MQTT
import MQTTCodec
import NIOCore
import Testing
import Workloads

@Suite("Which receivers a message reaches")
struct DeliveryPlanTests {
    /// A group of clients that subscribe, or of clients that publish.
    static func load(publishers: Int = 0, subscribers: Int = 0, topic: String = "t", filters: [String] = []) -> MQTTLoad
    {
        var load = MQTTLoad.small(.fanIn, publishers: publishers, subscribers: subscribers)
        load.stream.topic = Template(parsing: topic)
        if publishers == 0 { load.stream.qualities = [] }
        load.filters = filters.map { MQTTLoad.FilterTemplate(Template(parsing: $0)) }
        return load
    }

    static func plan(_ filters: [String], subscribers: Int = 3, topic: String = "a/%i/x") -> DeliveryPlan {
        DeliveryPlan([
            DeliveryPlan.Group(name: "p", load: Self.load(publishers: 4, topic: topic)),
            DeliveryPlan.Group(name: "s", load: Self.load(subscribers: subscribers, filters: filters)),
        ])
    }

    func copies(_ plan: DeliveryPlan, _ topic: String, group: Int = 0, client: Int = 0) -> [UInt32: UInt16] {
        let members = plan.members(group: group, client: client, topic: Array(topic.utf8)[...])
        return Dictionary(uniqueKeysWithValues: members.map { ($0.receiver, $0.copies) })
    }

    @Test(
        "filters of one client match as MQTT 5.0 §4.7 has it, and each counts",
        arguments: [
            (["a/+/x"], "a/1/x", 1), (["a/#"], "a/1/x", 1), (["a/#"], "a", 1), (["#"], "a/1/x", 1),
            (["#"], "$SYS/x", 0),
            (["+/1/x"], "a/1/x", 1), (["+/+"], "a/1/x", 0), (["a/1/x"], "a/1/x", 1), (["a/2/x"], "a/1/x", 0),
            (["a/#", "+/1/x", "b"], "a/1/x", 2), (["/a"], "a", 0), (["+/a"], "/a", 1),
        ] as [([String], String, UInt16)]
    )
    func matches(_ filters: [String], _ topic: String, _ copies: UInt16) {
        let found = self.copies(Self.plan(filters), topic)
        #expect(found == (copies > 0 ? [0: copies, 1: copies, 2: copies] : [:]))
    }

    @Test("a filter with the client's number is that client's alone", arguments: [1, 2, 3])
    func ownFilters(_ number: Int) {
        let plan = Self.plan(["a/%i/x", "b/%i"])
        #expect(self.copies(plan, "a/\(number)/x") == [UInt32(number - 1): 1])
        #expect(self.copies(plan, "a/\(number + 3)/x").isEmpty)
    }

    @Test("a share group is its name and filter, in whichever group its members are")
    func shares() {
        let plan = DeliveryPlan([
            DeliveryPlan.Group(name: "p", load: Self.load(publishers: 1, topic: "a/b")),
            DeliveryPlan.Group(name: "s", load: Self.load(subscribers: 2, filters: ["$share/g/a/+"])),
            DeliveryPlan.Group(name: "t", load: Self.load(subscribers: 2, filters: ["$share/g/a/+", "$share/h/c"])),
        ])
        let members = plan.members(group: 0, client: 0, topic: Array("a/b".utf8)[...])
        #expect(members.count == 1)
        #expect(members.allSatisfy { $0.isShared && $0.copies == 1 })
        let shared = plan.shareGroups(group: 1, client: 0)
        #expect(shared == members.map(\.receiver))
        #expect(plan.shareGroups(group: 2, client: 1).first == shared.first)
        #expect(plan.places.receivers.map(\.group) == ["s", "t", "s+t", "t"])
    }

    @Test("groups of other servers hear nothing")
    func domains() {
        var groups = Self.plan(["#"]).groups
        groups[1].domain = 1
        #expect(self.copies(DeliveryPlan(groups), "a/1/x").isEmpty)
    }

    @Test("a request reaches those who listen beside its responders, and comes back to its requester as an answer")
    func requests() throws {
        var load = MQTTLoad.small(.request, publishers: 2, subscribers: 2)
        load.stream.topic = Template(parsing: "ask/%i")
        load.stream.responseTopic = Template(parsing: "answers/%c")
        var listener = Self.load(subscribers: 1, filters: ["#"])
        var groups = [
            DeliveryPlan.Group(name: "r", load: load), DeliveryPlan.Group(name: "m", load: listener),
            DeliveryPlan.Group(name: "p", load: Self.load(publishers: 1, topic: "ask/1")),
        ]
        let plan = DeliveryPlan(groups)
        let monitor = try #require(plan.receiver(group: 1, client: 0))
        let requester = try #require(plan.receiver(group: 0, client: 1))
        #expect(self.copies(plan, "ask/2", group: 0, client: 1) == [requester: 1, monitor: 1])
        #expect(self.copies(plan, "ask/1", group: 2) == [monitor: 1])
        #expect(plan.problem == nil)
        // An answer and its request look alike without properties.
        listener.subscriberSession = SessionOptions(version: .v311)
        groups[1].load = listener
        let problem = try #require(DeliveryPlan(groups).problem)
        #expect(problem.hasPrefix("m: '#' matches the answers 'answers/+'"))
        #expect(problem.hasSuffix("; use version 5"))
    }

    @Test("No Local takes a client's own messages out, and no others")
    func noLocal() throws {
        var load = Self.load(publishers: 2, topic: "a")
        var options = MQTTLoad.SubscriptionOptions()
        options.noLocal = true
        load.filters = [MQTTLoad.FilterTemplate(Template(parsing: "a"), options: options)]
        load.publishersSubscribe = true
        let plan = DeliveryPlan([DeliveryPlan.Group(load: load)])
        let members = plan.members(group: 0, client: 0, topic: Array("a".utf8)[...])
        let own = try #require(plan.places.own(0))
        #expect(members.filter { $0.copies(from: own) > 0 }.map(\.receiver) == [plan.receiver(group: 0, client: 1)])
    }

    @Test("a message to one client reaches it alone, whatever the others subscribe to", arguments: 0..<3)
    func p2p(_ client: Int) {
        var sender = Self.load(publishers: 1)
        sender.stream.p2p = MQTTLoad.P2PTarget(root: Array("door".utf8), groups: [1])
        let plan = DeliveryPlan([
            DeliveryPlan.Group(name: "p", load: sender),
            DeliveryPlan.Group(name: "s", load: Self.load(subscribers: 3, filters: ["#"])),
        ])
        let found = self.copies(plan, "door/p2p/s-\(client + 1)")
        #expect(found == [plan.receiver(group: 1, client: client) ?? .max: 1])
        #expect(self.copies(plan, "door/p2p/nobody").isEmpty)
    }

    @Test(
        "an audience is fixed where every filter takes all that a topic varies over",
        arguments: [
            (["a/+/x"], "a/%s/x", true), (["a/#"], "a/%s/x", true), (["a/%i/x"], "a/%rand_3/x", false),
            (["b/1"], "a/%s/x", true), (["a/1/x"], "a/%s/x", false), (["a/+/x"], "a/%i/x", true),
        ] as [([String], String, Bool)]
    )
    func fixed(_ filters: [String], _ topic: String, _ isFixed: Bool) {
        #expect(Self.plan(filters, topic: topic).hasFixedAudiences(group: 0) == isFixed)
    }

    @Test(
        "what the ledger cannot tell apart is refused",
        arguments: [
            (["a/#", "$share/g/a/+/x"], false, true), (["b", "$share/g/a/+/x"], false, false),
            (["a/#"], true, true), (["b"], false, false),
        ] as [([String], Bool, Bool)]
    )
    func problems(_ filters: [String], _ retains: Bool, _ isRefused: Bool) {
        var options = MQTTLoad.SubscriptionOptions()
        options.retainAsPublished = retains
        var publishing = Self.load(publishers: 2, topic: "a/%i/x")
        publishing.stream.retain = retains
        var listening = Self.load(subscribers: 2)
        listening.filters = filters.map { MQTTLoad.FilterTemplate(Template(parsing: $0), options: options) }
        let plan = DeliveryPlan([
            DeliveryPlan.Group(name: "p", load: publishing), DeliveryPlan.Group(name: "s", load: listening),
        ])
        #expect((plan.problem != nil) == isRefused)
    }
}
