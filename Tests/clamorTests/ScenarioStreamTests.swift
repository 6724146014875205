import MQTTCodec
import Measurement
import RunControl
import Scenario
import Testing
import Transport
import Workloads
import clamor

@Suite("A group of a scenario is a kind of client: it publishes streams, and subscribes to filters")
struct ScenarioStreamTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// The keys of the group `a`, on lines of their own.
        let text: String
        let change: @Sendable (inout MQTTOptions) -> Void

        init(_ name: String, _ text: String, _ change: @escaping @Sendable (inout MQTTOptions) -> Void) {
            self.testDescription = name
            self.text = text
            self.change = change
        }
    }

    private static func stream(_ name: String, _ change: (inout PublishStream) -> Void) -> PublishStream {
        var stream = PublishStream(name: name)
        change(&stream)
        return stream
    }

    static let cases = [
        Case("a device", "publish: { topic: t/%i, qos: 1, rate: 5/s }, subscribe: [{ filter: c/%i, qos: 2 }]") {
            $0.topic = "t/%i"
            $0.qualities = [1]
            $0.pacing = .rate(5)
            $0.subscriptions = [SubscriptionOption("c/%i", qos: 2)]
        },
        Case("a device whose filters are alike", "publish: {}, subscribe: [{ filter: a }, { filter: b }]") {
            $0.subscriptions = [SubscriptionOption("a", qos: 0), SubscriptionOption("b", qos: 0)]
        },
        Case("an interval by another name", "publish: { every: 90s }") { $0.pacing = .interval(90_000_000_000) },
        Case(
            "streams",
            """
            connect: { protocol: 5 }, publish: [
                  { name: telemetry, topic: t/%i, qos: 1, size: 64, rate: 50/s, user_properties: ["k: v"], response_topic: r/%c },
                  { topic: status/%i, every: 60s, retain: true, message: "%i is up", expiry: 5s },
                  { rate: { from: 1/s, to: 9/s, over: 2s }, burst: 4 }]
            """
        ) {
            $0.streams = [
                Self.stream("telemetry") {
                    $0.topic = "t/%i"
                    $0.qos = 1
                    $0.payload = .generated(size: 64)
                    $0.pacing = .rate(50)
                    $0.properties.userProperties = [UserProperty("k", "v")]
                    $0.responseTopic = "r/%c"
                },
                Self.stream("stream2") {
                    $0.topic = "status/%i"
                    $0.pacing = .interval(60_000_000_000)
                    $0.retain = true
                    $0.payload = .message(Array("%i is up".utf8))
                    $0.properties.messageExpiryInterval = 5
                },
                Self.stream("stream3") {
                    $0.pacing = .rate(9)
                    $0.shape = .ramp(from: 1, to: 9, over: 2_000_000_000)
                    $0.arrivals = .bursts(4)
                },
            ]
        },
        Case("a list of one stream", "publish: [{ name: only, topic: t, window: 3, qos: 1 }]") {
            $0.topic = "t"
            $0.qualities = [1]
            $0.inflight = 3
        },
        Case("messages to single clients", "clients: 2, publish: { p2p: { root: door, to: random }, qos: 1 }") {
            $0.publishers = 2
            $0.p2p = P2POption(root: "door", to: .random)
            $0.qualities = [1]
        },
        Case(
            "a stream to single clients of a group",
            "publish: [{ p2p: { root: door, to: b }, rate: 1/s }, { topic: t, rate: 2/s }]"
        ) {
            $0.streams = [
                Self.stream("stream1") {
                    $0.p2p = P2POption(root: "door", to: .group("b"))
                    $0.pacing = .rate(1)
                },
                Self.stream("stream2") {
                    $0.topic = "t"
                    $0.pacing = .rate(2)
                },
            ]
        },
    ]

    private static func options(_ text: String) throws -> MQTTOptions {
        let scenario = try ScenarioFile("seed: 1\ngroups:\n  a: { \(text) }\n  b: { clients: 2 }\n").scenario()
        guard case .mqtt(let options) = scenario.groups[0].work else { throw ScenarioFile.Unexpected(what: text) }
        return options
    }

    @Test("keys become options", arguments: cases)
    func reading(_ example: Case) throws {
        let options = try Self.options(example.text)
        var expected = try Self.options("publish: {}")
        expected.redactedCommand = options.redactedCommand
        example.change(&expected)
        #expect(options.kind == .pub)
        #expect(options == expected)
    }

    @Test("subscribers whose filters differ have a QoS and options at each")
    func differentFilters() throws {
        let options = try Self.options(
            "subscribe: [{ filter: x, qos: 1 }, { filter: y, no_local: true, retain_as_published: true, "
                + "retain_handling: 2, identifier: 7, user_properties: [\"k: v\"] }]"
        )
        var own = MQTTLoad.SubscriptionOptions()
        own.noLocal = true
        own.retainAsPublished = true
        own.retainHandling = .doNotSend
        own.properties.subscriptionIdentifier = 7
        own.properties.userProperties = [UserProperty("k", "v")]
        #expect(
            options.subscriptions == [
                SubscriptionOption("x", qos: 1), SubscriptionOption("y", qos: 0, options: own),
            ]
        )
        #expect(options.subscribe == MQTTLoad.SubscriptionOptions())
        #expect(options.highestQoS == 1)
    }

    @Test("streams may stand beside a topology, whose subscribers hear them")
    func topology() throws {
        let options = try Self.options(
            "subscribers: 2, topology: fan-in, publish: [{ topic: t/%i, rate: 1/s }, { topic: u/%i, rate: 2/s }]"
        )
        #expect(options.kind == .pubsub)
        #expect(options.streams.map(\.topic) == ["t/%i", "u/%i"])
        #expect(options.topics == ["t/%i", "u/%i"])
        #expect(options.subscribers == 2)
    }

    @Test(
        "messages are accounted for where a group hears messages that carry the header",
        arguments: [
            ("publish: {}", false), ("publish: {}, subscribe: [{ filter: a }]", true),
            ("publish: { size: 8 }, subscribe: [{ filter: a }]", false), ("subscribe: [{ filter: a }]", true),
            ("subscribers: 2, publish: {}", true), ("publish: { p2p: { root: r } }", true),
            ("publish: [{ size: 8, rate: 1/s }, { rate: 1/s }], subscribe: [{ filter: a }]", true),
            ("publish: [{ size: 8, rate: 1/s }, { message: m, rate: 1/s }], subscribe: [{ filter: a }]", false),
        ]
    )
    func ledger(_ text: String, _ hasLedger: Bool) throws {
        let scenario = try ScenarioFile("groups:\n  a: { clients: 2, \(text) }\n").scenario()
        #expect(scenario.groups[0].hasLedger == hasLedger)
    }

    @Test("an offline stage takes devices whose sessions are kept")
    func absences() throws {
        let text = """
            groups:
              a: { connect: { clean: false, session_expiry: 1h }, publish: { rate: 1/s }, subscribe: [{ filter: a }] }
              b: { connect: { clean: false, session_expiry: 1h }, publish: { rate: 1/s } }
            stages: [{ name: away, for: 5s, offline: 50% }]
            """
        #expect(try ScenarioFile(text).scenario().groups.map { $0.options.storms.count } == [1, 0])
    }

    @Test("one embedded broker serves all groups, with the faults that one of them names")
    func embedded() throws {
        let text = """
            target: embedded
            groups:
              a: { publish: { rate: 1/s } }
              b: { subscribe: [{ filter: a }], broker: --drop 1% }
              c: { target: "mqtt://elsewhere:1" }
            """
        let broker = RunTarget.embedded(arguments: ["--drop", "1%"])
        #expect(
            try ScenarioFile(text).scenario().groups.map(\.options.target)
                == [broker, broker, .servers([Target(host: "elsewhere", port: 1)])]
        )
    }

    @Test("--check lists each stream and each filter")
    func explanation() throws {
        let text = """
            bridged: true
            groups:
              a:
                clients: 10
                publish:
                  - { name: telemetry, topic: t/%i, qos: 1, rate: 50/s }
                  - { p2p: { root: door, to: b }, every: 10s, retain: true, message: hi }
                subscribe: [{ filter: c/%i, qos: 2, no_local: true }, { filter: d, retain_as_published: true, retain_handling: 2 }]
              b: { clients: 2 }
            """
        let lines = try ScenarioFile(text).scenario().explanation.split(separator: "\n").map(String.init)
        #expect(
            lines.prefix(8) == [
                "scenario: 2 groups, 12 clients, 10s measured, warm-up 0s, drain up to 10s, targets bridged",
                "  a: mqtt pub, 10 clients to 127.0.0.1:1883", "    connects as fast as they go, MQTT 5",
                "    stream telemetry: topic t/%i, QoS 1, 256 bytes, 50 operations/s",
                "    stream stream2: topic door/p2p/ID of b, QoS 0, retained, 1 operations/s",
                "    filter c/%i: QoS 2, no local", "    filter d: QoS 0, retain as published, retain handling 2",
                "  b: mqtt conn, 2 clients to 127.0.0.1:1883",
            ]
        )
    }

    // MARK: - Plan

    /// Two groups that differ in one fact each.
    static let facts = [
        "publish: {}", "publish: {}, subscribe: [{ filter: a }]", "publish: {}, subscribe: [{ filter: b }]",
        "publish: {}, subscribe: [{ filter: a, qos: 1 }]", "publish: {}, subscribe: [{ filter: a, no_local: true }]",
        "publish: {}, subscribe: [{ filter: a, retain_as_published: true }]",
        "publish: {}, subscribe: [{ filter: a, retain_handling: 1 }]",
        "publish: {}, subscribe: [{ filter: a, identifier: 1 }]",
        "publish: {}, subscribe: [{ filter: a, user_properties: \"k: v\" }]",
        "publish: {}, subscribe: [{ filter: a }, { filter: b }]", "subscribe: [{ filter: a }]",
        "subscribe: [{ filter: a }, { filter: b }]", "subscribe: [{ filter: a, qos: 1 }, { filter: b }]",
        "subscribe: [{ filter: a }, { filter: b, qos: 1 }]",
        "publish: { p2p: { root: r } }", "publish: { p2p: { root: s } }", "publish: { p2p: { root: r, to: b } }",
        "publish: [{ rate: 1/s }, { rate: 2/s }]", "publish: [{ rate: 1/s }, { rate: 3/s }]",
        "publish: [{ rate: 1/s }, { name: b, rate: 2/s }]", "publish: [{ rate: 1/s }, { topic: t, rate: 2/s }]",
        "publish: [{ rate: 1/s }, { qos: 1, rate: 2/s }]", "publish: [{ rate: 1/s }, { size: 64, rate: 2/s }]",
        "publish: [{ rate: 1/s }, { size: 64..65, rate: 2/s }]", "publish: [{ rate: 1/s }, { message: m, rate: 2/s }]",
        "publish: [{ rate: 1/s }, { retain: true, rate: 2/s }]", "publish: [{ rate: 1/s }, { expiry: 1s, rate: 2/s }]",
        "publish: [{ rate: 1/s }, { response_topic: r, rate: 2/s }]",
        "publish: [{ rate: 1/s }, { content_type: c, rate: 2/s }]",
        "publish: [{ rate: 1/s }, { correlation_data: c, rate: 2/s }]",
        "publish: [{ rate: 1/s }, { user_properties: \"k: v\", rate: 2/s }]",
        "publish: [{ rate: 1/s }, { is_text: true, rate: 2/s }]",
        "publish: [{ rate: 1/s }, { arrivals: poisson, rate: 2/s }]",
        "publish: [{ rate: 1/s }, { burst: 2, rate: 2/s }]",
        "publish: [{ rate: 1/s }, { rate: { from: 1/s, to: 2/s } }]",
        "publish: [{ rate: 1/s }, { p2p: { root: r }, rate: 2/s }]",
        "publish: [{ rate: 1/s }, { p2p: { root: r, to: b }, rate: 2/s }]",
        "publish: [{ rate: 1/s }, { rate: 2/s }, { rate: 1/s }]", "publish: [{ rate: 2/s }, { rate: 1/s }]",
        "publish: [{ rate: 1/s }, { rate: 2/s }], subscribe: [{ filter: a }]",
    ]

    @Test("each fact has a schedule and a plan of its own")
    func distinct() throws {
        let groups = try Self.facts.map { text in
            try ScenarioFile("seed: 1\ngroups:\n  a: { clients: 2, \(text) }\n  b: { }\n").scenario()
        }
        #expect(Set(groups.map(\.scheduleHash)).count == groups.count)
        let plans = try groups.map { scenario in
            guard case .mqtt(let options) = scenario.groups[0].work else { throw ScenarioFile.Unexpected(what: "xmpp") }
            return options.planRecord(seed: 1)
        }
        #expect(Set(plans).count == plans.count)
    }

    @Test(
        "the same in other words has the same schedule",
        arguments: [
            ("publish: [{ rate: 1/s }, { rate: 2/s }]", "publish: [{ name: stream1, rate: 1 }, { qos: 0, rate: 2/s }]"),
            ("publish: [{ rate: 1/s }, { rate: 2/s }]", "publish: [{ every: 2s }, { topic: clamor/%i, interval: 1s }]"),
            ("publish: { topic: t, rate: 1/s }", "publish: [{ name: x, topic: t, rate: 1/s }]"),
            ("publish: { interval: 5s }", "publish: { every: 5s }"),
            ("publish: { p2p: { root: r } }", "publish: { p2p: { to: random, root: r } }"),
            ("subscribe: [{ filter: a, qos: 1 }]", "subscribe: [{ filter: a, qos: '1', retain_handling: 0 }]"),
            (
                "publish: {}, subscribe: [{ filter: a }]",
                "publish: , subscribe: [{ qos: 0, filter: a, no_local: false }]"
            ),
        ]
    )
    func same(_ one: String, _ other: String) throws {
        let hashes = try [one, other].map { text in
            try ScenarioFile("groups:\n  a: { clients: 2, \(text) }\n").scenario().scheduleHash
        }
        #expect(hashes[0] == hashes[1])
    }

    @Test("servers that forward to each other make another schedule")
    func bridged() throws {
        let text = "groups: { a: { target: \"mqtt://a\" }, b: { target: \"mqtt://b\" } }\n"
        let scenarios = try ["", "bridged: false\n", "bridged: true\n"].map { try ScenarioFile($0 + text).scenario() }
        #expect(scenarios.map(\.bridged) == [false, false, true])
        #expect(scenarios[0].scheduleHash == scenarios[1].scheduleHash)
        #expect(scenarios[0].scheduleHash != scenarios[2].scheduleHash)
        #expect(scenarios.map { $0.planRecord(seed: 1)["bridged"] } == [nil, nil, true])
    }

    @Test("streams and filters stand in the plan record as the file has them")
    func record() throws {
        let options = try Self.options(
            "publish: [{ name: x, topic: t, qos: 1, rate: 4/s, size: 64, content_type: c }, "
                + "{ p2p: { root: r, to: b }, every: 5s, retain: true }], subscribe: [{ filter: f, qos: 1, no_local: true }]"
        )
        let plan = options.planRecord(seed: 1)
        #expect(
            plan["streams"] == [
                [
                    "name": "x", "topic": "t", "qos": 1, "retain": false, "size_bytes": 64, "pacing": "rate",
                    "rate": 4.0,
                    "content_type": "c",
                ],
                [
                    "name": "stream2", "p2p": ["root": "r", "to": "b"], "qos": 0, "retain": true, "size_bytes": 256,
                    "pacing": "interval", "interval_seconds": 5.0,
                ],
            ]
        )
        #expect(plan["subscriptions"] == [["filter": "f", "qos": 1, "no_local": true]])
        for key in ["topic", "qos", "pacing", "size_bytes", "filters"] { #expect(plan[key] == nil) }
    }

    @Test("the scenario of the design is read without a problem")
    func design() throws {
        let scenario = try ScenarioFile(
            """
            name: fleet telemetry
            target: mqtt://127.0.0.1:1883          # or embedded, mqtts://, ws://, wss://, xmpp://
            seed: 42
            groups:
              sensors:
                clients: 10000
                connect: { rate: 500/s, protocol: 5, keep_alive: 60s, clean: true }
                publish: { topic: "fleet/%i/telemetry", qos: 1, size: 256, rate: 5000/s }    # of the whole group: open loop
                subscribe: [{ filter: "fleet/%i/command", qos: 1 }]      # a device: one connection that does both
              backend:
                clients: 4
                connect: { clean: false, session_expiry: 5m }          # a storm must not end its subscription
                subscribe: [{ filter: "$share/backend/fleet/+/telemetry", qos: 1 }]
            stages:
              - { name: settle, for: 30s, load: 20%, warmup: true }
              - { name: peak,   for: 2m,  load: 100% }
              - { name: storm,  for: 30s, reconnect: 30% }
            thresholds:
              - "delivery_duration{stage=peak} p99 < 100ms"
              - "delivery_lost == 0"
            """
        ).scenario()
        #expect(scenario.groups.map(\.hasLedger) == [true, true])
        #expect(scenario.common.thresholds.count == 2)
    }
}

@Suite("Problems of streams, filters and receivers are reported with their place")
struct ScenarioStreamRefusalTests {
    private static let keys =
        "name, topic, qos, size, message, ledger, retain, rate, interval, is_text, expiry, response_topic, content_type, correlation_data, user_properties, subscription_identifier, p2p, every, arrivals, burst"

    private static func wrong(_ name: String, _ keys: String, _ lines: String...) -> ScenarioRefusalTests.Wrong {
        var wrong = ScenarioRefusalTests.Wrong(name, "groups:\n  a: { clients: 2,\n    \(keys) }\n")
        wrong.lines = lines
        return wrong
    }

    static let wrongs = [
        wrong(
            "no stream",
            "publish: []",
            "3:14: a.publish is an empty list; write it like { topic: \"a/%i\", qos: 1, rate: 500/s }"
        ),
        wrong(
            "a stream that is none",
            "publish: [fast, slow]",
            "3:15: a.publish: a stream is a text; write it like { topic: \"a/%i\", qos: 1, rate: 500/s }",
            "3:21: a.publish: a stream is a text; write it like { topic: \"a/%i\", qos: 1, rate: 500/s }"
        ),
        wrong(
            "an unknown key of a stream",
            "publish: [{ rat: 1/s, rate: 1/s }, { rate: 1/s }]",
            "3:17: a.publish: unknown key 'rat'; did you mean rate? here are \(keys)"
        ),
        wrong(
            "keys of the publishers as a whole",
            "publish: [{ rate: 1/s, window: 3, limit: 5 }, { rate: 1/s, wait: false, topic_alias: 3, ack_timeout: 1s, think: 1s }]",
            "3:28: a.publish: window is of the publishers, and a list is of their streams; leave it out",
            "3:39: a.publish: limit is of the publishers, and a list is of their streams; leave it out",
            "3:64: a.publish: wait is of the publishers, and a list is of their streams; leave it out",
            "3:77: a.publish: topic_alias is of the publishers, and a list is of their streams; leave it out",
            "3:93: a.publish: ack_timeout is of the publishers, and a list is of their streams; leave it out",
            "3:110: a.publish: think is for a closed loop, and each stream of several has a pace; leave it out"
        ),
        wrong(
            "streams without a pace",
            "publish: [{ topic: t }, { interval: 0 }]",
            "3:15: a.publish: each stream of several needs a pace of its own; add rate: 500/s or every: 60s",
            "3:41: a.publish: each stream of several needs a pace of its own; add rate: 500/s or every: 60s"
        ),
        wrong(
            "streams with the same name",
            "publish: [{ name: x, rate: 1/s }, { name: x, rate: 1/s }, { name: stream4, rate: 1/s }, { rate: 1/s }]",
            "3:47: a.publish: two streams are called 'x'; give each a name of its own",
            "3:93: a.publish: two streams are called 'stream4'; give each a name of its own"
        ),
        wrong(
            "a name that is none",
            "publish: [{ name: \"a b\", rate: 1/s }, { name: [], rate: 1/s }]",
            "3:23: a.publish.name: 'a b' is no name of a stream; use letters, digits, _, - and .",
            "3:51: a.publish.name is a list; give it one value"
        ),
        wrong(
            "the name of an only stream",
            "publish: [{ name: \"a b\", rate: 1/s }]",
            "3:23: a.publish.name: 'a b' is no name of a stream; use letters, digits, _, - and ."
        ),
        wrong(
            "values of streams",
            "publish: [{ qos: 3, rate: 1/s }, { rate: fast, topic: a/# }, { size: x, rate: 1/s }, { qos: [0, 1], rate: 1/s }]",
            "3:22: a.publish.qos: '3' is not QoS 0, 1 or 2, nor a list of them such as 0,1,2 with each once",
            "3:46: a.publish.rate: 'fast' is not a rate; write it like 500/s",
            "3:59: a.publish.topic: 'a/#' has a wildcard, which only a filter may have; use a placeholder such as %i",
            "3:74: a.publish.size: 'x' is not a size; write it like 256, 64KiB or 1MB",
            "3:97: a.publish.qos: a stream has one QoS; make one stream of each"
        ),
        wrong(
            "two paces of a stream",
            "publish: [{ rate: 1/s, every: 1s }, { interval: 1s, every: 1s }]",
            "3:28: a.publish.every: publish.rate sets the pace too; leave one of the two out",
            "3:57: a.publish.every: publish.interval sets the pace too; leave one of the two out"
        ),
        wrong(
            "two paces of a mapping",
            "publish: { every: 1s, rate: 1/s }",
            "3:16: a.publish.every: publish.rate sets the pace too; leave one of the two out"
        ),
        wrong(
            "no time between messages",
            "publish: { every: 0s }",
            "3:23: a.publish.every: '0s' is no time; write it like 30s"
        ),
        wrong(
            "properties of streams in MQTT 3",
            "connect: { protocol: 4 }, publish: [{ rate: 1/s, expiry: 1s }, { rate: 1/s }]",
            "3:62: a.publish.expiry: MQTT 3 has no such property; leave it out, or use connect.protocol: 5"
        ),
        wrong(
            "requests of several streams",
            "topology: request, publish: [{ rate: 1/s, qos: 1 }, { rate: 1/s, qos: 1 }]",
            "3:15: a.topology: requests are one stream, and these are 2; take another topology"
        ),
        wrong(
            "messages to no client in particular",
            "publish: { p2p: door }",
            "3:21: a.publish.p2p is a text; write it like { root: door, to: random }"
        ),
        wrong(
            "messages below no topic",
            "publish: { p2p: { to: random, too: a } }",
            "3:21: a.publish.p2p: root is missing; write it like { root: door, to: random }",
            "3:35: a.publish.p2p: unknown key 'too'; did you mean to? here are root, to"
        ),
        wrong(
            "a root of two levels",
            "publish: { p2p: { root: a/b } }",
            "3:29: a.publish.p2p.root: 'a/b' is not the first level of a topic; write a word without / and placeholders"
        ),
        wrong(
            "messages to single clients with a topic, and at QoS 2",
            "publish: { p2p: { root: door }, topic: t, qos: 2, topic_alias: 3 }",
            "3:44: a.publish.topic: messages to single clients have the topic of each; leave topic or p2p out",
            "3:52: a.publish.qos: messages to single clients have no QoS 2; use 0 or 1",
            "3:68: a.publish.topic_alias: needs a topic that stays the same, which p2p has not; leave one of the two out"
        ),
        wrong(
            "messages to single clients at QoS 2 in a stream",
            "publish: [{ p2p: { root: door }, qos: 2, rate: 1/s }, { rate: 1/s }]",
            "3:43: a.publish.qos: messages to single clients have no QoS 2; use 0 or 1"
        ),
        wrong(
            "messages to single clients of a topology",
            "subscribers: 2, publish: { p2p: { root: door } }",
            "3:32: a.publish.p2p: messages to single clients reach no subscribers; leave subscribers and topology out"
        ),
        wrong(
            "messages to nobody",
            "publish: { p2p: { root: door, to: aa } }",
            "3:39: a.publish.p2p.to: there is no group 'aa'; did you mean a? here are random, a"
        ),
    ]

    @Test("the line has the place, the key, the reason and the remedy", arguments: wrongs)
    func lines(_ wrong: ScenarioRefusalTests.Wrong) throws {
        try wrong.check()
    }

    static let files = [
        ScenarioRefusalTests.Wrong(
            "receivers without others",
            "groups:\n  a: { publish: { p2p: { root: r } } }\n",
            "2:24: a.publish.p2p.to: there is no other client; raise clients, or name another group"
        ),
        ScenarioRefusalTests.Wrong(
            "receivers at another server",
            "groups:\n  a: { publish: { p2p: { root: r, to: b } } }\n  b: { target: \"mqtt://b\" }\n",
            "2:39: a.publish.p2p.to: 'b' has another target; give both the same, or write bridged: true where servers forward to each other"
        ),
        ScenarioRefusalTests.Wrong(
            "receivers that speak XMPP",
            "groups:\n  a: { publish: { p2p: { root: r, to: b } } }\n  b: { jid: u@x, password: p }\n",
            "2:39: a.publish.p2p.to: 'b' has no MQTT clients; name another group"
        ),
        ScenarioRefusalTests.Wrong(
            "receivers whose ids are drawn",
            "groups:\n  a: { publish: { p2p: { root: r, to: b } } }\n  b: { client_id: \"%i-%rand_9\" }\n",
            "2:39: a.publish.p2p.to: nobody knows the client ids of 'b', which hold %rand_N or %t; use %i"
        ),
        ScenarioRefusalTests.Wrong(
            "servers that forward or not",
            "bridged: maybe\ngroups: { a: {} }\n",
            "1:10: bridged: 'maybe' is not true or false"
        ),
        ScenarioRefusalTests.Wrong(
            "streams of XMPP",
            "groups:\n  a: { target: \"xmpp://b\", jid: u@x, password: p, publish: [{ rate: 1/s }, { rate: 1/s }] }\n",
            "2:51: a.publish is for MQTT groups, and the target of this group is XMPP; leave it out, or change the target"
        ),
    ]

    @Test("the same across groups", arguments: files)
    func groups(_ wrong: ScenarioRefusalTests.Wrong) throws {
        try wrong.check()
    }

    @Test(
        "groups that hear each other are divided where all segments have one server",
        arguments: [
            ("mqtt://x", "--processes 2", []),
            (
                "embedded", "--processes 2",
                [
                    "--processes: b: each segment would have an embedded broker of its own, where its subscribers hear no other segment; start one with clamor broker, and name it with --target"
                ]
            ),
            (
                "mqtt://x", "--segment 1/2",
                [
                    "--segment: b: needs --start-at TIME, the same for all segments, or CLAMOR_RUN in the environment, so that they know the messages of their run"
                ]
            ),
            ("mqtt://x", "--segment 1/1", []),
        ]
    )
    func segments(_ target: String, _ flags: String, _ problems: [String]) throws {
        let file = try ScenarioFile(
            "target: \(target)\nseed: 1\ngroups:\n  a: { clients: 2, publish: {} }\n  b: { clients: 2, subscribe: [{ filter: t }] }\n"
        )
        switch file.parsed(flags) {
        case .run: #expect(problems == [])
        case .refused(let lines): #expect(lines == problems.map { "clamor run: \($0)" })
        case let other: Issue.record("\(other)")
        }
    }

    @Test("receivers at another server are reached over a bridge")
    func bridge() throws {
        let text =
            "bridged: true\ngroups:\n  a: { publish: { p2p: { root: r, to: b } } }\n  b: { target: \"mqtt://b\" }\n"
        #expect(try ScenarioFile(text).scenario().groups.count == 2)
    }

    @Test("a column that the table of clients does not have is reported at its stream and its filter")
    func rows() throws {
        let rows = try ScenarioFile("site\nnorth\n")
        let file = try ScenarioFile(
            """
            groups:
              a:
                rows: \(rows.path)
                publish: [{ topic: "%{site}", rate: 1/s }, { topic: "%{siet}", rate: 1/s }]
                subscribe: [{ filter: "%{site}/a" }, { filter: "%{place}/a" }]
            """
        )
        guard case .wrong(let lines) = file.parsed() else {
            Issue.record("is taken")
            return
        }
        #expect(
            lines == [
                "\(file.path):4:48: a.publish.topic: %{siet} is no column of rows; did you mean %{site}? here are site",
                "\(file.path):5:52: a.subscribe.filter: %{place} is no column of rows; here are site",
            ]
        )
    }
}
