import Foundation
import RunControl
import Scenario
import Testing
import clamor

@Suite("Templates of a scenario file")
struct ScenarioTemplateTests {
    private typealias Wrong = ScenarioRefusalTests.Wrong

    private static let head = "target: mqtt://127.0.0.1:1884\nseed: 5\nduration: 5s\n"

    struct Same: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let templates: String
        let groups: String
        /// The same without.
        let plain: String

        init(_ name: String, templates: String, groups: String, plain: String) {
            self.testDescription = name
            self.templates = templates
            self.groups = groups
            self.plain = plain
        }
    }

    static let pairs = [
        Same(
            "keys and sections, overridden by the group's own",
            templates: """
                device: { clients: 10, publish: { topic: a/%i, qos: 1, rate: 10/s }, connect: { keep_alive: 60s } }
                """,
            groups: """
                { one: { template: device }, two: { template: device, clients: 3, publish: { topic: b/%i, qos: [0, 2] } } }
                """,
            plain: """
                one: { clients: 10, publish: { topic: a/%i, qos: 1, rate: 10/s }, connect: { keep_alive: 60s } }
                  two: { clients: 3, publish: { topic: b/%i, qos: [0, 2], rate: 10/s }, connect: { keep_alive: 60s } }
                """
        ),
        Same(
            "a template of a template",
            templates: """
                base: { clients: 10, connect: { rate: 9/s, protocol: 4 }, username: u }
                  quick: { template: base, connect: { rate: 90/s }, publish: { topic: t/%i, rate: 5/s } }
                """,
            groups: "{ one: { template: quick, username: me } }",
            plain: """
                one: { clients: 10, username: me, connect: { rate: 90/s, protocol: 4 }, publish: { topic: t/%i, rate: 5/s } }
                """
        ),
        Same(
            "a value that is no section is one whole",
            templates: "t: { publish: { topic: a, rate: { from: 1/s, to: 9/s } }, headers: [\"A: 1\"], ws: true }",
            groups: "{ one: { template: t, publish: { rate: 5/s }, headers: [\"B: 2\"] } }",
            plain: "one: { publish: { topic: a, rate: 5/s }, headers: [\"B: 2\"], ws: true }"
        ),
        Same(
            "filters of one, options of the other",
            templates: "t: { subscribe: [{ filter: a/#, qos: 1 }, { filter: b/#, qos: 1 }] }",
            groups: "{ one: { template: t }, two: { template: t, subscribe: [{ filter: c }] } }",
            plain: """
                one: { subscribe: [{ filter: a/#, qos: 1 }, { filter: b/#, qos: 1 }] }
                  two: { subscribe: [{ filter: c }] }
                """
        ),
        Same(
            "a section that only says that it is there takes all of the template's",
            templates: "t: { target: \"xmpp://127.0.0.1\", jid: u%i@x, password: p, ping: { rate: 3/s } }",
            groups: "{ one: { template: t, ping: } }",
            plain: "one: { target: \"xmpp://127.0.0.1\", jid: u%i@x, password: p, ping: { rate: 3/s } }"
        ),
        Same(
            "by a variable; an unused template has no effect",
            templates: "slow: { publish: { topic: t, rate: 1/s } }\n  fast: { publish: { topic: t, rate: 100/s } }",
            groups: "{ one: { template: \"${KIND:-fast}\" } }",
            plain: "one: { publish: { topic: t, rate: 100/s } }"
        ),
    ]

    @Test("a file with templates means what it means without", arguments: pairs)
    func means(_ same: Same) throws {
        func groups(_ text: String) throws -> (hash: String, all: String) {
            let file = try ScenarioFile("\(Self.head)\(text)\n")
            let scenario = try file.scenario()
            return (scenario.scheduleHash, "\(scenario.groups)".replacing(file.path, with: "it.yaml"))
        }
        let with = try groups("templates:\n  \(same.templates)\ngroups: \(same.groups)")
        let without = try groups("groups:\n  \(same.plain)")
        #expect(with.hash == without.hash)
        #expect(with.all == without.all)
    }

    @Test("templates of an included file serve all groups, and their faults are reported at their place")
    func included() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "templates-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let (main, common) = (folder.appending(path: "main.yaml").path, folder.appending(path: "common.yaml").path)
        func parsed(_ own: String, _ others: String) throws -> Invocation {
            try "\(Self.head)include: common.yaml\n\(own)".write(toFile: main, atomically: false, encoding: .utf8)
            try others.write(toFile: common, atomically: false, encoding: .utf8)
            return Invocation.parse(["run", main], environment: [:])
        }
        let groups = "groups: { a: { template: device, clients: 2 } }\n"
        guard let options = try parsed(groups, "templates: { device: { clients: 9, username: u } }\n").scenario
        else {
            Issue.record("is refused")
            return
        }
        #expect(options.groups.map(\.options.clients) == [2])
        for (own, others, line) in [
            (
                groups, "templates: { device: { usernme: u } }\n",
                "\(common):1:24: a: unknown key 'usernme'; did you mean username? "
            ),
            (
                "templates: { device: {} }\n\(groups)", "templates: { device: {} }\n",
                "\(main):5:14: 'device' is defined in \(common) too; rename one of them"
            ),
        ] {
            guard case .wrong(let lines) = try parsed(own, others) else {
                Issue.record("is taken")
                continue
            }
            #expect(lines.count == 1 && lines[0].hasPrefix(line), "\(lines)")
        }
    }

    static let wrongs: [ScenarioRefusalTests.Wrong] = [
        Wrong(
            "templates that are none",
            "templates: x\ngroups: { a: {} }\n",
            "1:12: templates is a text; write a name for each, and the keys that groups get from it below the name"
        ),
        Wrong(
            "one that has no keys",
            "templates: { t: 5 }\ngroups: { a: { template: t } }\n",
            "1:17: templates.t is a text; write keys of a group below it, such as clients: 100"
        ),
        Wrong(
            "a name that is none",
            "templates: { device: {} }\ngroups: { a: { template: devise } }\n",
            "2:26: a.template: there is no template 'devise'; did you mean device? here are device"
        ),
        Wrong(
            "a name that is none, in a template that no group uses",
            "templates: { device: { template: u } }\ngroups: { a: {} }\n",
            "1:34: device.template: there is no template 'u'; here are device"
        ),
        Wrong(
            "no templates at all",
            "groups: { a: { template: t } }\n",
            "1:26: a.template: there is no template 't'; write it below templates:"
        ),
        Wrong(
            "several at once",
            "templates: { t: {}, u: {} }\ngroups: { a: { template: [t, u] } }\n",
            "2:26: a.template is a list; give it one value"
        ),
        Wrong(
            "a circle",
            "templates:\n  t: { template: u }\n  u: { template: t }\ngroups: { a: { template: t } }\n",
            "3:18: template: t is built on u is built on t; leave one of them out"
        ),
        Wrong(
            "wrong values, at their place, for each group that has them",
            "templates: { t: { clients: 0 } }\ngroups: { a: { template: t }, b: { template: t }, c: { template: t, clients: 1 } }\n",
            "1:28: a.clients: '0' is not a whole number of 1 to 10000000",
            "1:28: b.clients: '0' is not a whole number of 1 to 10000000"
        ),
        Wrong(
            "unknown keys where no group looks",
            "templates: { t: { subscribe: { qos: 1, filtr: a }, sise: 5, publish: { think: 1s, arrivals: poisson } } }\ngroups: { a: {} }\n",
            "1:40: t: unknown key 'filtr'; did you mean filter? here are count, filter, identifier, no_local, pace, packets, qos, retain_as_published, retain_handling, unsubscribe, user_properties",
            "1:52: t: unknown key 'sise'; here are alpn, auth, broker, ca_file, cert_file, churn, ciphers, client_id, clients, connect, cycle, failover, group_id, headers, insecure, instance_id, jid, keep, key_file, mechanism, message, muc, password, password_file, path, pin, ping, prefix, presence, proxy_protocol, psk, psk_file, publish, raw, reconnect, register, registration, reply, resolver, rows, separate, short_ids, sni, ssl, start_number, storm, stream_management, subprotocol, subscribe, subscribers, subscription_churn, subscription_churn_filter, target, template, tls, tls_version, token_file, topology, username, users, validate, will, ws"
        ),
    ]

    @Test("each problem names line, column, what was wrong and what would be right", arguments: wrongs)
    func refusal(_ wrong: ScenarioRefusalTests.Wrong) throws { try wrong.check() }

    @Test("templates that are built on each other for ever longer, or bring ever more, are refused")
    func bounds() throws {
        let chain = (1..<40).map { "  t\($0): { template: t\($0 + 1) }\n" }.joined() + "  t40: {}\n"
        try Wrong(
            "a long chain",
            "templates:\n\(chain)groups: { a: { template: t1 } }\n",
            "17:20: template: over 16 templates are built on each other; join some of them"
        ).check()
        let keys = (1...2_000).map { "k\($0): 1" }.joined(separator: ", ")
        let groups = (1...60).map { "  g\($0): { template: t }\n" }.joined()
        let file = try ScenarioFile("templates: { t: { publish: { \(keys) } } }\ngroups:\n\(groups)")
        guard case .wrong(let lines) = file.parsed() else {
            Issue.record("is taken")
            return
        }
        #expect(lines.count { $0.hasSuffix("templates bring over 100000 keys; use fewer groups or keys") } == 1)
    }
}
