import Foundation
import Measurement
import Report
import RunControl
import Scenario
import TestSupport
import Testing
import clamor

@Suite("The plan of a run holds every option that decides its outcome")
struct PlanRecordTests {
    /// Options that two comparable runs may differ in, each with the reason.
    static let notOfThePlan = OptionTable.notOfThePlan.merging(["help": "nothing runs", "version": "nothing runs"]) {
        $1
    }

    /// Two command lines that differ in one option; words in braces are files.
    struct Variation: Sendable {
        let base: String
        let varied: String

        init(_ varied: String, beside base: String = "") {
            self.base = base
            self.varied = "\(base) \(varied)"
        }

        init(from base: String, to varied: String) {
            (self.base, self.varied) = (base, varied)
        }
    }

    static let mqtt: [String: Variation] = [
        "topic": .init("-t a"), "qos": .init("-q 1"), "rate": .init("--rate 5/s"), "interval_of_msg": .init("-I 100"),
        "limit": .init("-L 5", beside: "-d 5"), "wait-before-publishing": .init("-w false"),
        "no-wait": .init("--no-wait"),
        "ack-timeout": .init("--ack-timeout 5"), "size": .init("-s 64"), "message": .init("-m x"),
        "retain": .init("-r"),
        "inflight": .init("-F 3"),
        "payload-format-indicator": .init("--payload-format-indicator"),
        "message-expiry-interval": .init("--message-expiry-interval 5"), "topic-alias": .init("--topic-alias 3"),
        "response-topic": .init("--response-topic r"), "correlation-data": .init("--correlation-data x"),
        "content-type": .init("--content-type x"), "user-properties": .init("--user-properties a:b"),
        "subscription-identifier": .init("--subscription-identifier 5"), "no_local": .init("--no-local"),
        "retain-as-published": .init("--retain-as-published"), "retain-handling": .init("--retain-handling 1"),
        "broker": .init("--broker --drop=1%", beside: "-h embedded"), "mqtt-version": .init("-V 4"),
        "username": .init("-u me"), "password": .init(from: "-u a", to: "-u a -P two"),
        "password-file": .init("--password-file {word}", beside: "-u a"),
        "rows": .init(from: "--rows {rows} -t %{x}", to: "--rows {others} -t %{x}"), "keepalive": .init("-k 5"),
        "clean": .init("-C false"), "no-clean": .init("--no-clean"), "session-expiry": .init("-x 5"),
        "keep-sessions": .init("--keep-sessions", beside: "-C false"),
        "prefix": .init("--prefix p"), "shortids": .init("--shortids"), "client-id": .init("--client-id c%i"),
        "count": .init("-c 3"), "startnumber": .init("-n 3"), "connrate": .init("-R 5"), "interval": .init("-i 5"),
        "connect-timeout": .init("--connect-timeout 5"), "num-retry-connect": .init("--num-retry-connect 2"),
        "reconnect": .init("--reconnect 2"), "reconnect-period": .init("--reconnect-period 5"),
        "reconnect-max": .init("--reconnect-max 60s", beside: "--reconnect 2"),
        "reconnect-factor": .init("--reconnect-factor 2", beside: "--reconnect 2"),
        "failover": .init("--failover", beside: "-h a,b --reconnect 2"),
        "reconnect-jitter": .init("--reconnect-jitter 50%", beside: "--reconnect 2"),
        "cycle-online": .init(from: "--cycle-online 1s --cycle-offline 3s", to: "--cycle-online 2s --cycle-offline 3s"),
        "cycle-offline": .init(
            from: "--cycle-online 1s --cycle-offline 3s",
            to: "--cycle-online 1s --cycle-offline 4s"
        ),
        "cycle-jitter": .init("--cycle-jitter 5%", beside: "--cycle-online 1s --cycle-offline 3s"),
        "cycle-cut": .init("--cycle-cut", beside: "--cycle-online 1s --cycle-offline 3s"),
        "cycle-due": .init("--cycle-due skip", beside: "--cycle-online 1s --cycle-offline 3s --rate 5/s"),
        "reply": .init("--reply a"), "reply-to": .init("--reply-to b", beside: "--reply a"),
        "reply-after": .init("--reply-after 2s", beside: "--reply a"),
        "reply-probability": .init("--reply-probability 5%", beside: "--reply a"),
        "churn": .init("--churn 5/s"), "storm": .init("--storm 50%@1s"),
        "subscription-churn": .init("--subscription-churn 5/s"),
        "subscription-churn-filter": .init("--subscription-churn-filter x/#", beside: "--subscription-churn 5/s"),
        "ledger": .init("--ledger property"),
        "ssl": .init("-S"), "psk": .init(from: "-S --tls-version 1.2", to: "-S --tls-version 1.2 --psk a:01"),
        "psk-file": .init("--psk-file {psk}", beside: "-S"), "alpn": .init("--alpn x", beside: "-S"),
        "proxy-protocol": .init("--proxy-protocol v1"), "cacertfile": .init("--cacertfile {word}", beside: "-S"),
        "certfile": .init(from: "-S --keyfile k --certfile {word}", to: "-S --keyfile k --certfile {rows}"),
        "keyfile": .init(from: "-S --certfile c --keyfile c%i", to: "-S --certfile c --keyfile {rows}"),
        "insecure": .init("--insecure", beside: "-S"),
        "pin": .init("--pin sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", beside: "-S"),
        "tls-version": .init("--tls-version 1.3", beside: "-S"), "ciphers": .init("--ciphers A", beside: "-S"),
        "sni": .init("--sni a", beside: "-S"), "ws": .init("--ws"),
        "path": .init(from: "--ws --path /a", to: "--ws --path /a?c"),
        "header": .init(from: "--ws", to: "--ws --header A:c"), "subprotocol": .init("--subprotocol a", beside: "--ws"),
        "auth": .init("--auth scram-sha-256", beside: "-u a -P b"),
        "group-id": .init(
            from: "-u a -P b --client-id c%i --auth aliyun --group-id g",
            to: "-u a -P b --client-id c%i --auth aliyun --group-id h"
        ),
        "instance-id": .init("--instance-id i", beside: "-u a -P b --auth aliyun --group-id g"),
        "token-file": .init("--token-file {tokens}", beside: "-u a --auth aliyun --group-id g --instance-id i -P b"),
        "will-topic": .init("--will-topic w"), "will-message": .init("--will-message m", beside: "--will-topic w"),
        "will-qos": .init("--will-qos 1", beside: "--will-topic w"),
        "will-retain": .init("--will-retain", beside: "--will-topic w"),
        "will-delay-interval": .init("--will-delay-interval 5", beside: "--will-topic w"),
        "will-payload-format-indicator": .init("--will-payload-format-indicator", beside: "--will-topic w"),
        "will-message-expiry-interval": .init("--will-message-expiry-interval 5", beside: "--will-topic w"),
        "will-content-type": .init("--will-content-type x", beside: "--will-topic w"),
        "will-response-topic": .init("--will-response-topic x", beside: "--will-topic w"),
        "will-correlation-data": .init("--will-correlation-data x", beside: "--will-topic w"),
        "will-user-properties": .init("--will-user-properties a:b", beside: "--will-topic w"),
        "receive-maximum": .init("--receive-maximum 5"), "maximum-packet-size": .init("--maximum-packet-size 500"),
        "topic-alias-maximum": .init("--topic-alias-maximum 5"), "req-response-info": .init("--req-response-info"),
        "no-req-problem-info": .init("--no-req-problem-info"),
        "conn-user-properties": .init("--conn-user-properties a:b"), "duration": .init("-d 5"),
        "warmup": .init("--warmup 5"), "drain": .init("--drain 5"), "read-size": .init("--read-size 5"),
        "validate": .init("--validate off"), "raw": .init(from: "--raw 00", to: "--raw 01"),
        "topology": .init("--topology fan-in"), "separate": .init("--separate", beside: "-h a,b -c 2"),
        "subscribers": .init("--subscribers 3"), "filter-count": .init("--filter-count 3", beside: "-t a/%s"),
        "subscribe-packets": .init("--subscribe-packets each"), "unsubscribe": .init("--unsubscribe"),
        "subscribe-pace": .init("--subscribe-pace 5/s", beside: "--subscribe-packets each"),
    ]

    static let xmpp: [String: Variation] = Self.mqtt.merging([
        "message": .init(from: "-m x", to: "-m y"), "inflight": .init("-F 3"), "count": .init("-c 30"),
        "jid": .init("--jid v%i@d"),
        "password": .init(
            from: "--mechanism EXTERNAL --tls direct --certfile {word} --keyfile k",
            to: "--mechanism PLAIN --password two"
        ),
        "password-file": .init(from: "--mechanism PLAIN", to: "--password-file {word}"),
        "users": .init(from: "-c 2 --users {users}", to: "-c 2 --users {accounts}"), "register": .init("--register"),
        "keep": .init("--keep", beside: "--register"), "tls": .init("--tls direct"),
        "mechanism": .init("--mechanism PLAIN"), "sm": .init("--sm"), "pairing": .init("--pairing random"),
        "rooms": .init("--rooms 2", beside: "-c 4"), "room-size": .init("--room-size 2", beside: "-c 4"),
        "room": .init("--room x%r"), "service": .init("--service s.d"), "nick": .init("--nick n%i"),
        "contacts": .init("--contacts 4", beside: "-c 10"), "cacertfile": .init("--cacertfile {word}"),
        "certfile": .init(from: "--keyfile k --certfile {word}", to: "--keyfile k --certfile {rows}"),
        "keyfile": .init(from: "--certfile c --keyfile c%i", to: "--certfile c --keyfile {rows}"),
        "insecure": .init("--insecure"), "tls-version": .init("--tls-version 1.3"), "ciphers": .init("--ciphers A"),
        "pin": .init("--pin sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="), "sni": .init("--sni a"),
    ]) { $1 }

    static let commands =
        ["pub", "sub", "conn", "pubsub"]
        + ["message", "login", "ping", "muc", "presence", "register"].map { "xmpp \($0)" }

    /// Options that mean something else in each command; the others are varied in the first command that has them.
    static let ofEachCommand: Set = ["topic", "qos", "user-properties", "subscription-identifier", "count", "limit"]

    /// The options that each command varies.
    private static let varied: Result<[String: [String]], any Error> = Result {
        var seen: Set<String> = []
        var varied: [String: [String]] = [:]
        for command in Self.commands {
            varied[command] = try Self.options(of: command).filter { option in
                let isNew = seen.insert("\(command.hasPrefix("xmpp")) \(option)").inserted
                return Self.notOfThePlan[option] == nil && (isNew || Self.ofEachCommand.contains(option))
            }
        }
        return varied
    }

    @Test("runs whose plans differ in any option are not comparable", arguments: commands)
    func everyOption(_ command: String) throws {
        let files = try Files()
        let known = try Self.schemaKeys()
        let table = command.hasPrefix("xmpp") ? Self.xmpp : Self.mqtt
        var bases: [String: [String: JSONValue]] = [:]
        for option in try Self.varied.get()[command] ?? [] {
            guard let variation = table[option] else {
                Issue.record("--\(option) is neither varied here nor listed as no part of the plan")
                continue
            }
            let base = try bases[variation.base] ?? files.plan(command, variation.base)
            bases[variation.base] = base
            let plans = [base, try files.plan(command, variation.varied)]
            let found = Comparability.differences(plans.map(Self.run)).map(\.kind)
            #expect(found == [.plan], "\(variation.varied)")
            let unknown = plans[1].keys.filter { key in !known.contains { key.wholeMatch(of: $0) != nil } }
            #expect(unknown == [], "the schema has no such key")
        }
    }

    @Test("every option is varied by some command")
    func complete() throws {
        let varied = Set(try Self.varied.get().values.joined())
        #expect(Set(Self.mqtt.keys).union(Self.xmpp.keys).subtracting(varied) == [])
    }

    @Test("options that are not of the plan exist, and leave the plan as it is")
    func others() throws {
        let files = try Files()
        let known = Set(try Self.commands.flatMap { try Self.options(of: $0) })
        #expect(Set(Self.notOfThePlan.keys).subtracting(known) == [])
        let line =
            "-h a -p 7 --ifaddr 127.0.0.2 --threads 1 --seed 7 --strict --out x --per-client --quiet --no-tty "
            + "--summary full --name x "
            + "--tag a=b"
        let plans = try ["", line].map { try files.plan("pub", $0) }
        #expect(Comparability.differences(plans.map(Self.run)) == [])
    }

    @Test(
        "the plan of a command without flags has the keys that it always had, so that old baselines stay valid",
        arguments: [
            ("conn", []), ("sub", ["filters", "subscribers"]),
            (
                "pub",
                [
                    "ack_timeout_seconds", "batch", "pacing", "publishers", "qos", "retain", "size_bytes", "topic",
                    "waits_for_connects", "window",
                ]
            ),
        ] as [(String, [String])]
    )
    func defaults(_ command: String, _ own: [String]) throws {
        let common = [
            "clean", "clients", "command", "connect_timeout_seconds", "drain_seconds", "duration_seconds",
            "keep_alive_seconds", "protocol_level", "read_size", "seed", "targets", "warmup_seconds",
        ]
        #expect(try Files().plan(command, "").keys.sorted() == (common + own).sorted())
    }

    @Test("of a secret the plan has that it was given, and a template as it was written")
    func secrets() throws {
        let plan = try Files().plan("pub", "-u user%i -P s3cret --client-id dev-%i")
        #expect(plan["username"] == "user%i")
        #expect(plan["client_id"] == "dev-%i")
        #expect(plan["password"] == true)
        #expect(!"\(plan)".contains("s3cret"))
    }

    @Test("the same bytes as a text and as a template of emqtt_bench are two plans")
    func templates() throws {
        let files = try Files()
        let plans = try ["%UNIQUE%", "template://{unique}"].map { try files.plan("pub", "-m \($0)") }
        #expect(plans[0]["message_sha256"] == plans[1]["message_sha256"])
        #expect(Comparability.differences(plans.map(Self.run)).map(\.kind) == [.plan])
    }

    // MARK: - Helpers

    /// The files that command lines name in braces.
    struct Files {
        let folder: ScratchFolder
        var paths: [String: String] = [:]

        init() throws {
            self.folder = try ScratchFolder()
            for (name, text) in [
                "word": "one", "unique": "%UNIQUE%", "rows": "x\n1\n", "others": "x\n2\n", "psk": "a:0011",
                "tokens": "R|t\n",
                "users": "a@b,c\nd@b,c\n", "accounts": "a@b,c\ne@b,c\n",
            ] {
                self.paths[name] = try self.folder.write(text, to: name)
            }
        }

        func plan(_ command: String, _ line: String) throws -> [String: JSONValue] {
            let words = line.split(separator: " ").map(String.init).map { word in
                self.paths.reduce(word) { $0.replacing("{\($1.key)}", with: $1.value) }
            }
            switch Invocation.parse(PlanRecordTests.words(command, words)) {
            case .run(let scenario): return scenario.plan(seed: scenario.common.seed ?? 1)
            case let other:
                Issue.record("'\(command) \(line)' gives \(other)")
                throw CancellationError()
            }
        }
    }

    /// With what each command needs, unless the words say it.
    private static func words(_ command: String, _ words: [String]) -> [String] {
        var whole = command.split(separator: " ").map(String.init)
        if command.hasPrefix("xmpp") {
            whole += ["-h", "a"]
            let isTable = words.contains("--users")
            if !isTable, !words.contains("--jid") { whole += ["--jid", "u%i@d"] }
            if !isTable, !words.contains("--password"), !words.contains("--password-file") {
                whole += ["--password", "p"]
            }
            if !words.contains("-c") {
                whole += command == "xmpp presence" ? ["-c", "20"] : command == "xmpp login" ? [] : ["-c", "6"]
            }
        }
        return whole + words
    }

    private static func run(_ plan: [String: JSONValue]) -> ComparedRun {
        let record = RunRecord(
            command: [],
            tool: ToolRecord(name: "clamor", version: "1"),
            host: HostFacts(),
            plan: plan,
            startedAt: ""
        )
        return ComparedRun(path: "run", record: record)
    }

    /// The keys that `results/schema/run.schema.json` has for a plan.
    private static func schemaKeys() throws -> [Regex<AnyRegexOutput>] {
        struct Schema: Decodable {
            struct Properties: Decodable { var plan: Plan }
            struct Plan: Decodable { var properties: [String: JSONValue], patternProperties: [String: JSONValue] }
            var properties: Properties
        }
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let data = try Data(contentsOf: root.appending(path: "results/schema/run.schema.json"))
        let plan = try JSONDecoder().decode(Schema.self, from: data).properties.plan
        return try (Array(plan.properties.keys) + Array(plan.patternProperties.keys)).map { try Regex($0) }
    }

    /// The long name of every option, as the argument parser lists them.
    private static func options(of command: String) throws -> [String] {
        struct Help: Decodable {
            struct Command: Decodable { var arguments: [Argument] }
            struct Argument: Decodable { var names: [Name]? }
            struct Name: Decodable { var kind: String, name: String }
            var command: Command
        }
        let words = command.split(separator: " ").map(String.init)
        guard case .text(let text) = Invocation.parse(words + ["--experimental-dump-help"]) else {
            throw CancellationError()
        }
        let help = try JSONDecoder().decode(Help.self, from: Data(text.utf8))
        return help.command.arguments.compactMap { $0.names?.first { $0.kind == "long" }?.name }
    }
}
