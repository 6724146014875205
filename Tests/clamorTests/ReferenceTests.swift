import Foundation
import Measurement
import Scenario
import TestSupport
import Testing
import clamor

@Suite("The references of options and scenario keys are those of the option table")
struct ReferenceTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    private static func text(_ name: String) throws -> String {
        try #require(ReferenceFile.all.first { $0.path.hasSuffix(name) }).text
    }

    @Test(
        "the file in the repository is up to date: make reference writes it",
        arguments: ReferenceFile.all.map(\.path)
    )
    func isCurrent(_ path: String) throws {
        let file = try #require(ReferenceFile.all.first { $0.path == path })
        let url = Self.root.appending(path: path)
        if ProcessInfo.processInfo.environment["CLAMOR_WRITE_REFERENCE"] == "1" {
            try file.text.write(to: url, atomically: true, encoding: .utf8)
        }
        let lines = { (text: String) in text.split(separator: "\n", omittingEmptySubsequences: false) }
        let changes = lines(file.text).difference(from: lines(try String(contentsOf: url, encoding: .utf8)))
        #expect(changes.isEmpty, "\(changes.prefix(4))")
    }

    // MARK: - Complete

    /// The options that the help of a command shows, with all their names.
    private static func options(of command: CommandName) throws -> [[String]] {
        let words = command.rawValue.split(separator: " ").map(String.init)
        guard case .text(let text) = Invocation.parse(words + ["--help-all"]) else { throw CancellationError() }
        return text.split(separator: "\n").filter { $0.hasPrefix("  -") }.map { line in
            line.split(separator: " ").prefix { $0.hasPrefix("-") }.map { $0.filter { $0 != "," } }
        }
    }

    @Test("the chapter of a command lists each option that the command shows", arguments: CommandName.allCases)
    func options(_ command: CommandName) throws {
        let page = try Self.text("Options.md")
        let chapters = page.split(separator: "\n### ")
        var chapter = String(try #require(chapters.first { $0.hasPrefix("clamor \(command.rawValue)\n") }))
        for (link, title) in [("#options-of-all-mqtt-loads", "MQTT"), ("#options-of-all-xmpp-loads", "XMPP")]
        where chapter.contains(link) {
            chapter += try #require(chapters.first { $0.hasPrefix("Options of all \(title) loads\n") })
        }
        let options = try Self.options(of: command)
        #expect(!options.isEmpty)
        for names in options {
            #expect(names.contains { chapter.contains("`\($0)`") }, "\(names)")
            for name in names { #expect(page.contains("| `\(name)`") || page.contains(", `\(name)`"), "\(name)") }
        }
    }

    @Test("the page has no option that no help shows")
    func hidden() throws {
        let shown = Set(try CommandName.allCases.flatMap { try Self.options(of: $0) }.joined())
        let rows = try Self.text("Options.md").split(separator: "\n").filter { $0.hasPrefix("| `-") }
        let names = rows.flatMap { row in
            row.dropFirst(2).prefix { $0 != "|" }.matches(of: /`(--?[a-zA-Z0-9_-]+)`/).map { String($0.1) }
        }
        #expect(Set(names) == shown)
    }

    private static let loads = CommandName.allCases.filter { !$0.groupKeyPaths.isEmpty }

    @Test("each key of a group is on the page and in the schema", arguments: loads)
    func keys(_ command: CommandName) throws {
        let page = try Self.text("ScenarioKeys.md")
        let schema = try JSONDecoder().decode(JSONValue.self, from: Data(Self.text("scenario.schema.json").utf8))
        let group = schema["$defs"]?["group"]?["properties"]
        for path in command.groupKeyPaths {
            #expect(page.contains("| `\(path)` |"), "\(path)")
            let parts = path.split(separator: ".").map(String.init)
            let known =
                switch (parts.count, parts[0]) {
                case (1, _): group?[parts[0]]
                case (_, "subscribe"):
                    schema["$defs"]?["subscribe"]?["anyOf"]?.first?["items"]?["properties"]?[parts[1]]
                case (_, "publish"): schema["$defs"]?["publish"]?["anyOf"]?.first?["properties"]?[parts[1]]
                default: group?[parts[0]]?["properties"]?[parts[1]]
                }
            #expect(known?["description"] != nil, "\(path)")
        }
    }

    @Test("links within a page lead to its headings", arguments: ["Options.md", "ScenarioKeys.md"])
    func links(_ name: String) throws {
        let page = try Self.text(name)
        let headings = page.split(separator: "\n").filter { $0.hasPrefix("#") }.map { heading in
            heading.drop { "# ".contains($0) }.lowercased().replacing(" ", with: "-").filter {
                $0.isLetter || $0.isNumber || "-_".contains($0)
            }
        }
        #expect(Set(headings).count == headings.count)
        let links = page.matches(of: /\]\(#([^)]*)\)/).map { String($0.1) }
        #expect(!links.isEmpty)
        #expect(Set(links).subtracting(headings) == [])
    }

    @Test("each row of a table has as many cells as its head", arguments: ["Options.md", "ScenarioKeys.md"])
    func tables(_ name: String) throws {
        let cells = { (line: Substring) in line.replacing("\\|", with: "").count { $0 == "|" } }
        var head: Int?
        for line in try Self.text(name).split(separator: "\n", omittingEmptySubsequences: false) {
            head = line.hasPrefix("|") ? head ?? cells(line) : nil
            if let head { #expect(cells(line) == head, "\(line)") }
        }
    }

    // MARK: - The schema

    /// Scenarios that other tests read with the program, by their origin.
    private static func known() throws -> [String: String] {
        var texts = Dictionary(uniqueKeysWithValues: ReadyScenario.all.map { ($0.name, $0.text) })
        for page in ExampleTests.pages {
            for (index, block) in try ExampleTests.scenarios(of: page).enumerated() {
                texts["\(page) \(index)"] = block
            }
        }
        for line in ScenarioPrintingTests.lines { texts["clamor \(line)"] = try ScenarioPrintingTests.printed(line) }
        return texts
    }

    /// Scenarios with forms that only files have.
    static let rights =
        [
            "ping: , jid: u@x, password: 1",
            "publish: { rate: 500, burst: 3, size: 64..1KiB, qos: [0, 1, 2] }, clients: 3",
            "publish: { rate: { from: 0, to: 9.5/s, over: 1s500ms }, arrivals: poisson }",
            "publish: { rate: { steps: [1, 0/s, 2/s], every: 3s }, qos: '0,2' }, clients: 2",
            "message: { rate: { from: 1/s, to: 2/s }, body: 12 }, jid: u%i@x, password: p, clients: 2",
            "publish: { think: 200ms, retain: true }, connect: { protocol: 3.1, keep_alive: 0, clean: 'false' }",
            "connect: { protocol: 3.1.1, rate: 9 }, churn: 5, storm: '30%@2s:disconnect'",
            "connect: { protocol: 4 }, churn: '5/s:cut', storm: [50%@1s, 60%@4s]",
            "ssl: true, tls_version: 1.3, pin: [a.pem, b.pem], target: 'mqtts://a,b:9'",
            "ssl: true, tls_version: 1.2-1.3, validate: off, target: mqtt://a",
            "publish: { topic_alias: 7 }", "publish: { topic_alias: auto, user_properties: 'a: b' }",
            "subscribe: [{ filter: a, qos: 1, no_local: true }, { filter: b, qos: '1', no_local: true }]",
            "subscribers: 2, publish: { }, subscribe: { retain_handling: 1 }",
            "clients: '${N:-5}', publish: { rate: '${R:-5}/s', retain: '${B:-true}', qos: '${Q:-1}' }",
            "broker: '--drop 1%', target: embedded", "connect:",
            "publish: [{ name: a, topic: t, rate: 5/s }, { topic: u, every: 1m, qos: 1, retain: true, arrivals: poisson }]",
            "publish: [{ name: 1, rate: { from: 0, to: 5/s }, size: 64..100, window: 3 }], subscribe: [{ filter: x }]",
            "publish: { every: 9s }, subscribe: [{ filter: a, qos: 2 }, { filter: b, no_local: true }]",
            "clients: 2, publish: { p2p: { root: door, to: random }, qos: 1, rate: 1/s }",
            "clients: 2, publish: [{ p2p: { root: door }, every: 5s }, { topic: t, rate: 1/s }]",
        ].map { "groups: { a: { \($0) } }" } + [
            """
            groups: { a: { publish: { rate: 9/s } }, b: { clients: 9, connect: { clean: false, session_expiry: 1h }, subscribe: [{ filter: x }] } }
            stages:
              - { name: 1, for: 5s, load: 150%, warmup: true }
              - { name: two, for: 1m, reconnect: 30%, clients: { a: 1, b: 50% } }
              - { name: three, for: 5s, offline: true }
              - { name: four, for: '${FOUR:-5s}', offline: 12.5%, load: 0% }
              - { name: five, for: 5s, clients: 50% }
            """,
            "name: 7\nseed: 18446744073709551615\nduration: 0\nwarmup: 1s\ndrain: 0\nvars: { A: 1, B: true }\ntags: { os: linux, build: 42 }\n"
                + "thresholds: [\"error_rate == 0\"]\ngroups: { a: { clients: 3 } }",
            "bridged: true\ngroups: { a: { target: 'mqtt://a' }, b: { target: 'mqtt://b' } }",
            "tags: [os=linux, build=42]\ngroups: { a: { template: t }, b: { } }\ntemplates: { t: { template: u, clients: 3 }, u: { publish: { qos: 1 } } }",
        ]

    /// Scenarios that the program refuses.
    static let wrongs = [
        "grups: { a: { } }", "groups: { a: { client: 3 } }", "groups: { a: { clients: 0 } }", "groups: { 'a b': { } }",
        "groups: { a: { clients: many } }", "groups: { a: { publish: fast } }",
        "groups: { a: { publish: { qos: 3 } } }",
        "groups: { a: { publish: { rate: fast } } }", "groups: { a: { publish: { rate: 0 } } }",
        "groups: { a: { publish: { rate: { from: 1/s } } } }",
        "groups: { a: { publish: { rate: { steps: [], every: 1s } } } }",
        "groups: { a: { publish: { arrivals: odd } } }", "groups: { a: { publish: { size: 3 apples } } }",
        "groups: { a: { publish: { retain: 1 } } }", "groups: { a: { connect: { timeout: 5 } } }",
        "groups: { a: { connect: { rate: { from: 1/s, to: 2/s } } } }", "groups: { a: { connect: { protocol: 6 } } }",
        "groups: { a: { connect: { think: 1s } } }", "groups: { a: { publish: [] } }",
        "groups: { a: { publish: [{ rate: 1/s }, { rate: 1/s, think: 1s }] } }",
        "groups: { a: { publish: [{ rate: 1/s, window: 3 }, { rate: 1/s }] } }",
        "groups: { a: { clients: 2, publish: { p2p: { to: random } } } }",
        "groups: { a: { clients: 2, publish: { p2p: { root: a/b } } } }", "groups: { a: { } }\nbridged: maybe",
        "groups: { a: { storm: 30% } }",
        "groups: { a: { churn: 5/s:gone } }",
        "groups: { a: { topology: star, publish: { } } }", "groups: { a: { subscribe: [{ qos: 1 }] } }",
        "groups: { a: { subscribe: a/# } }", "groups: { a: { target: broker.example } }", "groups: { a: 5 }",
        "groups: { a: { will: { topic: w, qos: 3 } } }", "groups: { a: { proxy_protocol: v3 } }", "groups: { }",
        "groups: { a: { } }\nduration: 5", "groups: { a: { } }\nduration: soon", "groups: { a: { } }\nseed: -1",
        "groups: { a: { } }\nstages: [{ name: peak }]", "groups: { a: { } }\nstages: []",
        "groups: { a: { } }\nstages: [{ name: drain, for: 1s }]", "groups: { a: { } }\nthresholds: 'error_rate == 0'",
        "groups: { a: { } }\nstages: [{ name: peak, for: 1s, load: fast }]",
        "groups: { a: { } }\nstages: [{ name: peak, for: 1s, clients: 0 }]",
        "groups: { a: { } }\nstages: [{ name: peak, for: 1s, reconnect: 130% }]",
        "groups: { a: { } }\nstages: [{ name: peak, for: 1s, length: 2s }]",
        "groups: { a: { } }\nvars: { 1A: 5 }", "groups: { a: { } }\ntags: [linux]",
        "groups: { a: { } }\ntemplates: { t: { clint: 1 } }",
    ]

    @Test("the program accepts a scenario that the schema must accept", arguments: rights)
    func accepted(_ text: String) throws {
        if case .wrong(let lines) = try ScenarioFile(text).parsed() { Issue.record("\(lines)") }
    }

    @Test("the program refuses a scenario that the schema must refuse", arguments: wrongs)
    func refused(_ text: String) throws {
        guard case .wrong = try ScenarioFile(text).parsed() else {
            Issue.record("the program accepts this")
            return
        }
    }

    @Test(
        "the schema accepts what the program accepts, and refuses what it refuses",
        .enabled("needs a Python with PyPI jsonschema and pyyaml: set CLAMOR_PYTHON to it") {
            try Self.python("import jsonschema, yaml").status == 0
        }
    )
    func schema() throws {
        let own = Dictionary(uniqueKeysWithValues: (Self.rights + Self.wrongs).map { ($0, $0) })
        let found = try Self.violations(try Self.known().merging(own) { $1 })
        #expect(found.filter { !Self.wrongs.contains($0.key) } == [:])
        #expect(Set(Self.wrongs).subtracting(found.keys) == [])
    }

    /// The first violation in each text that has any.
    private static func violations(_ texts: [String: String]) throws -> [String: String] {
        // YAML 1.2 as editors read it: PyYAML takes `off` for false, and 1:30 for a number.
        let program = #"""
            import json, re, sys, jsonschema, yaml
            class Core(yaml.SafeLoader): yaml_implicit_resolvers = {}
            for tag, pattern in [
                ("null", r"(~|null|)$"), ("bool", r"(true|false)$"), ("int", r"[-+]?[0-9]+$"),
                ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$"),
            ]:
                Core.add_implicit_resolver("tag:yaml.org,2002:" + tag, re.compile(pattern), None)
            schema = json.load(open(sys.argv[1]))
            jsonschema.Draft202012Validator.check_schema(schema)
            validator = jsonschema.Draft202012Validator(schema)
            found = {}
            for name, text in json.load(open(sys.argv[2])).items():
                for error in validator.iter_errors(yaml.load(text, Core)):
                    found.setdefault(name, str(list(error.absolute_path)) + " " + error.message[:200])
            print(json.dumps(found))
            """#
        let folder = try ScratchFolder()
        let documents = try folder.write(
            String(decoding: try JSONEncoder().encode(texts), as: UTF8.self),
            to: "texts.json"
        )
        let path = Self.root.appending(path: "results/schema/scenario.schema.json").path
        let ending = try Self.python(program, path, documents)
        try #require(ending.status == 0, "\(ending.errors)")
        return try JSONDecoder().decode([String: String].self, from: Data(ending.output.utf8))
    }

    private static func python(_ program: String, _ arguments: String...) throws -> RunningProgram.Ending {
        let command = ProcessInfo.processInfo.environment["CLAMOR_PYTHON"] ?? "python3"
        return try RunningProgram.run("/usr/bin/env", [command, "-c", program] + arguments)
    }
}

extension JSONValue {
    fileprivate subscript(key: String) -> JSONValue? { if case .object(let keys) = self { keys[key] } else { nil } }

    fileprivate var first: JSONValue? { if case .array(let values) = self { values.first } else { nil } }
}
