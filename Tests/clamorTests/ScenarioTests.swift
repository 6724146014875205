import Foundation
import MQTTCodec
import RunControl
import Scenario
import Testing
import Transport
import Workloads
import clamor

/// A scenario file, for as long as a test needs it.
struct ScenarioFile: ~Copyable {
    let path: String

    init(_ text: String) throws {
        self.path = FileManager.default.temporaryDirectory.appending(path: "scenario-\(UUID().uuidString).yaml").path
        try text.write(toFile: self.path, atomically: true, encoding: .utf8)
    }

    deinit { try? FileManager.default.removeItem(atPath: self.path) }

    /// The result of `clamor run` for this file.
    func parsed(_ flags: String = "", environment: [String: String] = [:]) -> Invocation {
        let arguments = ["run", self.path] + flags.split(separator: " ").map(String.init)
        return Invocation.parse(arguments, environment: environment)
    }

    func scenario(_ flags: String = "", environment: [String: String] = [:]) throws -> ScenarioOptions {
        let invocation = self.parsed(flags, environment: environment)
        guard let options = invocation.scenario else { throw Unexpected(what: "\(invocation)") }
        return options
    }

    struct Unexpected: Error {
        let what: String
    }
}

@Suite("A scenario file becomes options")
struct ScenarioTests {
    static let mixed = """
        name: mixed load
        target: mqtt://broker.example:1884
        seed: 42
        duration: 30s
        warmup: 2s
        groups:
          sensors:
            clients: 100
            subscribers: 20
            topology: fan-in
            connect: { rate: 500/s, protocol: 3.1.1, keep_alive: 1m, clean: false, timeout: 3s }
            publish: { topic: "fleet/%i/telemetry", qos: [0, 1], size: 1KiB, rate: 5000/s, retain: true }
          backend:
            clients: 4
            subscribe:
              - { filter: "fleet/+/telemetry", qos: 1 }
              - { filter: "alarms/#", qos: 1 }
          idle:
            clients: 10
          chat:
            target: xmpp://127.0.0.1:5333
            clients: 50
            connect: { rate: 100/s }
            jid: user%i@example.org
            password: s3cret
            register: true
            tls: "off"
            mechanism: SCRAM-SHA-256
            message: { size: 64, window: 2, pairing: random }
          pings:
            clients: 2
            jid: user%i@example.org/phone
            password: s3cret
            start_number: 50
            ping: { interval: 100ms }
        thresholds:
          - "publish_ack_duration{group=sensors} p99 < 50ms"
          - "delivery_lost == 0"
        """

    private func mqtt(_ scenario: ScenarioOptions, _ name: String) throws -> MQTTOptions {
        guard case .mqtt(let options) = scenario.groups.first(where: { $0.name == name })?.work else {
            throw ScenarioFile.Unexpected(what: name)
        }
        return options
    }

    private func xmpp(_ scenario: ScenarioOptions, _ name: String) throws -> XMPPOptions {
        guard case .xmpp(let options) = scenario.groups.first(where: { $0.name == name })?.work else {
            throw ScenarioFile.Unexpected(what: name)
        }
        return options
    }

    @Test("groups are what the short commands would have made of them")
    func groups() throws {
        let scenario = try ScenarioFile(Self.mixed).scenario()
        #expect(scenario.name == "mixed load")
        #expect(scenario.common.directoryName == "mixed-load")
        #expect(scenario.groups.map(\.name) == ["sensors", "backend", "idle", "chat", "pings"])

        let sensors = try self.mqtt(scenario, "sensors")
        #expect(sensors.kind == .pubsub)
        #expect(sensors.target == .servers([Target(host: "broker.example", port: 1884)]))
        #expect(sensors.publishers == 100)
        #expect(sensors.subscribers == 20)
        #expect(sensors.topology == .fanIn)
        #expect(sensors.connectRate == 500)
        #expect(sensors.protocolLevel == 4)
        #expect(sensors.keepAlive == 60)
        #expect(!sensors.clean)
        #expect(sensors.connectTimeout == 3_000_000_000)
        #expect(sensors.topic == "fleet/%i/telemetry")
        #expect(sensors.qualities == [0, 1])
        #expect(sensors.payload == .generated(size: 1024))
        #expect(sensors.pacing == .rate(5000))
        #expect(sensors.retain)

        let backend = try self.mqtt(scenario, "backend")
        #expect(backend.kind == .sub)
        #expect(backend.subscribers == 4)
        #expect(backend.subscriptions == [SubscriptionOption("fleet/+/telemetry"), SubscriptionOption("alarms/#")])
        #expect(backend.qualities == [1])
        #expect(try self.mqtt(scenario, "idle").kind == .conn)

        let chat = try self.xmpp(scenario, "chat")
        #expect(chat.kind == .message)
        #expect(chat.operators == 50)
        #expect(chat.window == 2)
        #expect(chat.target == .servers([Target(host: "127.0.0.1", port: 5333)]))
        #expect(chat.local == "user%i")
        #expect(chat.domain == "example.org")
        #expect(chat.resource == "chat")
        #expect(chat.password == "s3cret")
        #expect(chat.registers == true)
        #expect(chat.tls == .off)
        #expect(chat.mechanism == "SCRAM-SHA-256")
        #expect(chat.pairing == .random)
        #expect(chat.payload == .generated(size: 64))

        let pings = try self.xmpp(scenario, "pings")
        #expect(pings.kind == .ping)
        #expect(pings.resource == "phone")
        #expect(pings.startNumber == 50)
        #expect(pings.target == .service(domain: "example.org", resolver: nil))
        #expect(pings.pacing == .interval(100_000_000))
    }

    @Test("how a group subscribes is said at its filters, or beside its subscribers")
    func subscriptions() throws {
        let scenario = try ScenarioFile(
            """
            groups:
              a:
                subscribe:
                  - { filter: x, no_local: true, retain_handling: 2, identifier: 7, user_properties: ["k: v"] }
                  - { filter: y, user_properties: "k: v", identifier: 7, retain_handling: 2, no_local: true }
              b:
                subscribers: 2
                publish: { user_properties: ["m: n"] }
                subscribe: { retain_as_published: true, retain_handling: 1 }
              c: { subscribe: [{ filter: x, retain_handling: 0 }, { filter: y, no_local: false }] }
            """
        ).scenario()
        let subscribers = try ["a", "b", "c"].map { try self.mqtt(scenario, $0) }
        #expect(subscribers[0].subscriptions.map(\.filter) == ["x", "y"])
        #expect(subscribers.map(\.subscribe.noLocal) == [true, false, false])
        #expect(subscribers.map(\.subscribe.retainAsPublished) == [false, true, false])
        #expect(subscribers.map(\.subscribe.retainHandling.rawValue) == [2, 1, 0])
        #expect(subscribers.map(\.subscribe.properties.subscriptionIdentifier) == [7, nil, nil])
        #expect(subscribers.map { $0.subscribe.properties.userProperties.map(\.name) } == [["k"], [], []])
        #expect(subscribers.map { $0.publishProperties.userProperties.map(\.name) } == [[], ["m"], []])
    }

    @Test("all groups have the run's phases, and the command line overrides the file")
    func phases() throws {
        let file = try ScenarioFile(Self.mixed)
        for (flags, duration) in [("", 30_000_000_000 as Int64), ("--duration 5s", 5_000_000_000)] {
            let scenario = try file.scenario(flags + " --threads 2 --seed 7 --threshold connect_lag{group=idle}count<1")
            for options in scenario.groups.map(\.options) + [scenario.common] {
                #expect(options.duration == duration)
                #expect(options.warmup == 2_000_000_000)
                #expect(options.drain == 10_000_000_000)
                #expect(options.threads == 2)
                #expect(options.seed == 7)
            }
            #expect(
                scenario.common.thresholds == [
                    "connect_lag{group=idle}count<1", "publish_ack_duration{group=sensors} p99 < 50ms",
                    "delivery_lost == 0",
                ]
            )
        }
        #expect(try file.scenario("--check").isCheck)
    }

    @Test("no two groups have the same client ids; with a seed they are the same again")
    func identities() throws {
        let text = "groups: { a: { clients: 1 }, b: { clients: 1 }, c: { clients: 1, connect: {}, prefix: mine } }"
        let first = try ScenarioFile(text).scenario()
        let ids = try ["a", "b", "c"].map { try self.mqtt(first, $0).publisherID }
        #expect(Set(ids).count == 3)
        #expect(ids[0].hasSuffix("-a-conn-%i") && ids[0].hasPrefix("clamor-"))
        #expect(ids[2] == "mine-conn-%i")
        let alone = try self.mqtt(ScenarioFile("seed: 5\ngroups: { a: {} }\n").scenario(), "a")
        guard let short = Invocation.parse(["conn", "--seed", "5"]).mqtt else { return }
        #expect(alone.publisherID == short.publisherID)
        #expect(
            try self.mqtt(ScenarioFile(text).scenario("--seed 5"), "a").publisherID
                == self.mqtt(ScenarioFile("seed: 6\n" + text).scenario("--seed 5"), "a").publisherID
        )
        let seeded = "seed: 5\n" + text
        #expect(
            try self.mqtt(ScenarioFile(seeded).scenario(), "a").publisherID
                == self.mqtt(ScenarioFile(seeded).scenario(), "a").publisherID
        )
    }

    @Test("secrets of the file are in no plan")
    func secrets() throws {
        let scenario = try ScenarioFile(Self.mixed).scenario()
        #expect(!scenario.explanation.contains("s3cret"))
        #expect(!scenario.common.redactedCommand.joined().contains("s3cret"))
    }

    @Test("--check says what would run")
    func explanation() throws {
        #expect(
            try ScenarioFile(Self.mixed).scenario().explanation == """
                mixed load: 5 groups, 186 clients, 30s measured, warm-up 2s, drain up to 10s
                  sensors: mqtt pubsub, 100 publishers and 20 subscribers to broker.example:1884
                    500 connects/s, 5,000 operations/s, MQTT 3.1.1, topic fleet/%i/telemetry, QoS 0,1, 1,024 bytes, retained
                  backend: mqtt sub, 4 clients to broker.example:1884
                    connects as fast as they go, MQTT 5
                    filter fleet/+/telemetry: QoS 1
                    filter alarms/#: QoS 1
                  idle: mqtt conn, 10 clients to broker.example:1884
                    connects as fast as they go, MQTT 5
                  chat: xmpp message, 50 clients to 127.0.0.1:5333
                    100 connects/s, closed loop, window 2, user%i@example.org/chat, TLS off, pairing random, 64 bytes
                  pings: xmpp ping, 2 clients to example.org
                    connects as fast as they go, 20 operations/s, user%i@example.org/phone, TLS required
                  schedule: \(ScenarioFile(Self.mixed).scenario().scheduleHash)
                  threshold: publish_ack_duration{group=sensors} p99 < 50ms
                  threshold: delivery_lost == 0

                """
        )
    }

    @Test("files that mean the same have the same schedule, whatever they look like and wherever they send it")
    func scheduleHash() throws {
        func hash(_ text: String, _ flags: String = "") throws -> String {
            try ScenarioFile(text).scenario(flags).scheduleHash
        }
        let first = """
            name: one
            target: mqtt://a:1
            seed: 4
            duration: 1m
            groups:
              a: { clients: 10, publish: { rate: 100/s, size: 1KiB, arrivals: poisson } }
              b: { subscribe: [{ filter: "x/#", qos: 1 }] }
            """
        let second = """
            # The same, by other words.
            groups:
              b: { target: "mqtt://c:2", subscribe: [{ qos: 1, filter: x/# }], clients: 1 }
              a:
                publish:
                  arrivals: poisson
                  rate: ${RATE:-100}
                  size: 1024
                clients: "10"
            vars: { RATE: 7 }
            duration: 60s
            """
        #expect(try hash(first) == hash(second, "--set RATE=100/s --seed 4"))
        #expect(try hash(first).wholeMatch(of: /2:[0-9a-f]{64}/) != nil)
        #expect(try hash(first) == hash(second, "--set RATE=100/s --seed 5"))
        #expect(try hash(first) == hash(first.replacing("rate: 100/s", with: "interval: 100ms")))
        #expect(try hash(first) != hash(second, "--seed 4"))
        let ramp = first.replacing("rate: 100/s", with: "rate: { from: 1/s, to: 5/s }")
        #expect(try hash(ramp) == hash(ramp.replacing("to: 5/s", with: "to: 5/s, over: 60s")))
        #expect(try hash(ramp) != hash(ramp.replacing("to: 5/s", with: "to: 5/s, over: 59s")))
        for (old, new) in [
            ("qos: 1", "qos: 0"), ("size: 1KiB", "size: 1KB"), ("clients: 10", "clients: 11"),
            ("clients: 10", "clients: 10, start_number: 1"), ("clients: 10", "clients: 10, username: me"),
            ("clients: 10", "clients: 10, prefix: mine"), ("size: 1KiB", "message: a"), ("x/#", "y/#"),
            ("arrivals: poisson", "arrivals: even"), ("clients: 10", "clients: 10, connect: { clean: false }"),
        ] {
            #expect(try hash(first) != hash(first.replacing(old, with: new)), "\(new)")
        }
        #expect(
            try hash(first.replacing("size: 1KiB", with: "message: a"))
                != hash(first.replacing("size: 1KiB", with: "message: b"))
        )
        // A prefix that was given is the user's, whatever it looks like.
        let prefixes = ["clamor-beef", "clamor-cafe", "clamor-beef-a", "clamor-"].map { prefix in
            first.replacing("clients: 10", with: "clients: 10, prefix: \(prefix)")
        }
        #expect(try Set(([first] + prefixes).map { try hash($0) }).count == 5)
        let alone = "groups: { a: { publish: {} } }\n"
        #expect(try hash(alone) == hash(alone))
        #expect(try hash(alone) != hash(alone.replacing("publish", with: "prefix: \"\", publish")))
        #expect(try hash(first) != hash(first.replacing("duration: 1m", with: "stages: [{ name: a, for: 1m }]")))
        let turnouts = ["50%", "{ a: 50%, b: 50% }", "{ b: 50%, a: 50% }", "{ a: 50% }", "{ a: 60%, b: 50% }"].map {
            first.replacing("duration: 1m", with: "stages: [{ name: s, for: 1m, clients: \($0) }]")
        }
        #expect(try Set(turnouts[..<3].map { try hash($0) }).count == 1)
        #expect(try Set(turnouts[2...].map { try hash($0) }).count == 3)
    }

    @Test("the scenario of the README is taken")
    func readme() throws {
        let text = try #require(try ExampleTests.scenarios(of: "README.md").first)
        let scenario = try ScenarioFile(text).scenario()
        let protocols = scenario.groups.map { group in
            if case .mqtt = group.work { "mqtt" } else { "xmpp" }
        }
        #expect(Set(protocols) == ["mqtt", "xmpp"])
        #expect(!scenario.common.thresholds.isEmpty)
    }
}
