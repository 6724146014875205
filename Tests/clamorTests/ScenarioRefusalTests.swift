import Foundation
import Scenario
import Testing
import clamor

@Suite("Problems of a scenario file are reported with their place")
struct ScenarioRefusalTests {
    struct Wrong: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let text: String
        /// Without the path of the file.
        var lines: [String]

        init(_ name: String, _ text: String, _ lines: String...) {
            self.testDescription = name
            self.text = text
            self.lines = lines
        }

        func check() throws {
            let file = try ScenarioFile(self.text)
            guard case .wrong(let lines) = file.parsed() else {
                Issue.record("is taken: \(file.parsed())")
                return
            }
            #expect(lines == self.lines.map { "\(file.path):\($0)" })
        }
    }

    static let topKeys =
        "name, tags, duration, warmup, drain, seed, thresholds, min_clients, target, bridged, groups, templates, stages, "
        + "vars, include"
    private static let subscribeKeys =
        "filter, qos, count, packets, pace, unsubscribe, no_local, retain_as_published, retain_handling, identifier, user_properties"
    private static let who = "jid: u%i@x, password: p"

    static let wrongs = [
        Wrong("an empty file", "# nothing\n", "1:1: the file is empty; it needs groups"),
        Wrong("a list", "- a\n", "1:1: the file is a list; write keys such as target:, duration: and groups:"),
        Wrong(
            "no YAML",
            "groups:\n  a: { clients: 1\n  b: 2\n",
            "3:4: not YAML: while parsing a flow mapping did not find expected ',' or '}'; check indentation and quotes"
        ),
        Wrong(
            "a tab",
            "groups:\n\ta: 1\n",
            "2:1: not YAML: while scanning for the next token found character that cannot start any token; check indentation and quotes"
        ),
        Wrong(
            "a key twice",
            "groups:\n  a: { clients: 1 }\n  a: { clients: 2 }\n",
            "2:3: 'a' occurs twice in one mapping; leave one out"
        ),
        Wrong(
            "an alias to nothing",
            "groups: *a\n",
            "1:9: not YAML: found undefined alias; check indentation and quotes"
        ),
        Wrong(
            "no groups",
            "name: x\n",
            "1:1: groups is missing: it defines the clients; write groups: with one or more names below it"
        ),
        Wrong(
            "groups that are none",
            "groups: 3\n",
            "1:9: groups is a text; write a name for each group, and its keys below the name"
        ),
        Wrong(
            "an unknown key",
            "group:\n  a: {}\ngroups: { a: {} }\n",
            "1:1: unknown key 'group'; did you mean groups? here are \(topKeys)"
        ),
        Wrong(
            "a key that comes later",
            "during: []\ngroups: { a: {} }\n",
            "1:1: 'during' is not in this build; here it knows \(topKeys)"
        ),
        Wrong(
            "a group's name",
            "groups:\n  two words: {}\n",
            "2:3: 'two words' is no name of a group; use letters, digits, _, - and ."
        ),
        Wrong("an empty group", "groups:\n  a:\n", "2:5: a is empty; write its keys below it, such as clients: 100"),
        Wrong(
            "a unit that is missing",
            "duration: 30\ngroups: { a: {} }\n",
            "1:11: duration: '30' is not a duration; write it like 10s, 250ms or 2m"
        ),
        Wrong(
            "a seed",
            "seed: -1\ngroups: { a: {} }\n",
            "1:7: seed: '-1' is not a whole number of 0 or more"
        ),
        Wrong(
            "a rate",
            "groups:\n  a:\n    publish: { topic: t, rate: fast }\n",
            "3:32: a.publish.rate: 'fast' is not a rate; write it like 500/s"
        ),
        Wrong(
            "a number of clients",
            "groups:\n  a:\n    clients: many\n",
            "3:14: a.clients: 'many' is not a whole number of 1 to 10000000"
        ),
        Wrong(
            "an unknown key in a section",
            "groups:\n  a:\n    connect: { rat: 5/s }\n",
            "3:16: a: unknown key 'rat'; did you mean rate? here are rate, interval, timeout, retries, source_addresses, protocol, keep_alive, clean, keep_sessions, session_expiry, receive_maximum, maximum_packet_size, topic_alias_maximum, response_information, problem_information, user_properties"
        ),
        Wrong(
            "a section that is none",
            "groups:\n  a:\n    connect: 5/s\n",
            "3:14: a.connect is a text; write its keys below it, such as { rate: 500/s }"
        ),
        Wrong(
            "a list where one value stands",
            "groups:\n  a:\n    clients: [1, 2]\n",
            "3:14: a.clients is a list; give it one value"
        ),
        Wrong(
            "a keep-alive in parts of a second",
            "groups:\n  a:\n    connect: { keep_alive: 1500ms }\n",
            "3:28: a.connect.keep_alive: '1500ms' is not whole seconds; write it like 60s"
        ),
        Wrong(
            "a keep-alive without its unit",
            "groups:\n  a:\n    connect: { keep_alive: 60 }\n",
            "3:28: a.connect.keep_alive: '60' is not a duration; write it like 10s, 250ms or 2m"
        ),
        Wrong(
            "a connect timeout without its unit",
            "groups:\n  a:\n    connect: { timeout: 5 }\n",
            "3:25: a.connect.timeout: '5' is not a duration; write it like 10s, 250ms or 2m"
        ),
        Wrong(
            "an ack timeout without its unit",
            "groups:\n  a:\n    publish: { ack_timeout: 5 }\n",
            "3:29: a.publish.ack_timeout: '5' is not a duration; write it like 10s, 250ms or 2m"
        ),
        Wrong(
            "no truth",
            "groups:\n  a:\n    connect: { clean: maybe }\n",
            "3:23: a.connect.clean: 'maybe' is not true or false"
        ),
        Wrong(
            "a protocol",
            "groups:\n  a:\n    connect: { protocol: 6 }\n",
            "3:26: a.connect.protocol: '6' is not an MQTT version; it is 3 (3.1), 4 (3.1.1) or 5"
        ),
        Wrong(
            "a remedy in words of the file",
            "groups:\n  a:\n    connect: { protocol: 4 }\n    password: p\n",
            "4:15: a.password: MQTT 3 has no password without a user name; add username, or use connect.protocol: 5"
        ),
        Wrong(
            "a size beyond the protocol",
            "groups:\n  a:\n    publish: { size: 300MB }\n",
            "3:22: a.publish.size: MQTT carries 268000000 bytes at most"
        ),
        Wrong(
            "two paces",
            "groups:\n  a:\n    publish: { rate: 1/s, interval: 1s }\n",
            "3:22: a.publish.rate: publish.interval sets the pace too, per client; leave one of the two out"
        ),
        Wrong(
            "a QoS",
            "groups:\n  a:\n    publish: { qos: [0, 3] }\n",
            "3:21: a.publish.qos: '0,3' is not QoS 0, 1 or 2, nor a list of them such as 0,1,2 with each once"
        ),
        Wrong(
            "subscribers without publishers",
            "groups:\n  a:\n    subscribers: 3\n",
            "3:5: a.subscribers goes with publish: in the same group; add that, or subscribe: alone"
        ),
        Wrong(
            "publishers that subscribe to nothing",
            "groups:\n  a:\n    publish: { topic: t }\n    subscribe: { no_local: true }\n",
            "4:16: a.subscribe is a mapping; write it like [{ filter: \"a/#\", qos: 1 }], or add subscribers: for other clients that read"
        ),
        Wrong(
            "messages and pings",
            "groups:\n  a: { \(who), ping: {}, message: {} }\n",
            "2:3: a has message and ping, and a group does one thing; make two groups"
        ),
        Wrong(
            "no filter",
            "groups:\n  a:\n    subscribe: [{ qos: 1 }]\n",
            "3:17: a.subscribe: filter is missing; write it like { filter: \"a/#\", qos: 1 }"
        ),
        Wrong(
            "a filter with something else",
            "groups:\n  a:\n    subscribe: [{ filter: a, retain: true }]\n",
            "3:30: a.subscribe: unknown key 'retain'; here are \(subscribeKeys)"
        ),
        Wrong(
            "a filter of several QoS beside another",
            "groups:\n  a:\n    clients: 2\n    subscribe: [{ filter: a }, { filter: b, qos: [0, 1] }]\n",
            "4:50: a.subscribe.qos: only subscribers whose filters are all alike are spread over QoS levels; write one"
        ),
        Wrong(
            "publishers whose filter has several QoS",
            "groups:\n  a:\n    clients: 2\n    publish: {}\n    subscribe: [{ filter: b, qos: [0, 1] }]\n",
            "5:35: a.subscribe.qos: only subscribers whose filters are all alike are spread over QoS levels; write one"
        ),
        Wrong(
            "a subscription's options",
            "groups:\n  a:\n    subscribe: [{ filter: a, no_local: maybe, retain_handling: 3, identifier: 0, user_properties: ab }]\n",
            "3:40: a.subscribe.no_local: 'maybe' is not true or false",
            "3:64: a.subscribe.retain_handling: '3' is not a whole number of 0 to 2",
            "3:79: a.subscribe.identifier: '0' is not a whole number of 1 to 268435455",
            "3:99: a.subscribe.user_properties: 'ab' is not a user property; write it like 'name: value'"
        ),
        Wrong(
            "a subscription's options in MQTT 3",
            "groups:\n  a:\n    connect: { protocol: 4 }\n    subscribe: [{ filter: a, retain_as_published: true }]\n",
            "4:51: a.subscribe.retain_as_published: MQTT 3 has no such property; leave it out, or use connect.protocol: 5"
        ),
        Wrong(
            "filters beside subscribers",
            "groups:\n  a:\n    subscribers: 2\n    publish: { topic: t }\n    subscribe: [{ filter: t }]\n",
            "5:16: a.subscribe: subscribers of a topology have their filters from it; write options alone, such as { no_local: true }, or leave subscribers and topology out"
        ),
        Wrong(
            "a filter among the options of subscribers",
            "groups:\n  a:\n    subscribers: 2\n    publish: { topic: t }\n    subscribe: { filter: t, no_local: true }\n",
            "5:18: a.subscribe: unknown key 'filter'; here are packets, pace, unsubscribe, no_local, retain_as_published, retain_handling, identifier"
        ),
        Wrong(
            "options of subscribers that are none",
            "groups:\n  a:\n    subscribers: 2\n    publish: { topic: t }\n    subscribe: t\n",
            "5:16: a.subscribe is a text; next to subscribers it sets their subscribe options, such as { no_local: true }"
        ),
        Wrong(
            "a header that is none",
            "target: ws://b\ngroups:\n  a: { headers: [s3cret] }\n",
            "3:18: a.headers: is not a header; write it like 'Authorization: Bearer abc'"
        ),
        Wrong(
            "a header without a WebSocket",
            "groups:\n  a: { headers: [\"X: y\"] }\n",
            "2:17: a.headers: is a matter of WebSocket; add ws: true, or leave it out"
        ),
        Wrong(
            "a pre-shared key beside certificates",
            "target: mqtts://b\ngroups:\n  a: { psk: \"id:00\", pin: x }\n",
            "3:27: a.pin: a pre-shared key takes the place of certificates; leave one of the two out"
        ),
        Wrong(
            "a target",
            "target: broker.example\ngroups: { a: {} }\n",
            "1:9: target: 'broker.example' is no target; write it like mqtt://127.0.0.1:1883, with mqtts://, ws://, wss://, xmpp:// or xmpps://, or embedded"
        ),
        Wrong(
            "a port",
            "groups:\n  a: { target: \"mqtt://b:99999\" }\n",
            "2:16: a.target: 'b:99999' is not a host; write it like broker.example, 10.0.0.1:1884 or [::1]:1884"
        ),
        Wrong(
            "users in an XMPP target",
            "groups:\n  a: { target: \"xmpp://u@b\", \(who) }\n",
            "2:16: target: 'xmpp://u@b' is no XMPP server; write it like xmpp://127.0.0.1:5222, the users in jid"
        ),
        Wrong(
            "a key of the other protocol",
            "groups:\n  a: { target: \"mqtt://b\", jid: x@y }\n",
            "2:28: a.jid is for XMPP groups, and the target of this group is MQTT; leave it out, or change the target"
        ),
        Wrong(
            "a key of XMPP where the file's target is of MQTT",
            "target: mqtts://b\ngroups:\n  a: { tls: { ca_file: x }, connect: { protocol: 4 } }\n",
            "3:8: a.tls is for XMPP groups, and the target of this group is MQTT; leave it out, or change the target"
        ),
        Wrong(
            "an operation of XMPP where the file's target is of MQTT",
            "target: embedded\ngroups:\n  a: { ping: {}, clients: 2 }\n",
            "3:8: a.ping is for XMPP groups, and the target of this group is MQTT; leave it out, or change the target"
        ),
        Wrong(
            "a churn that hears the group's own messages",
            "groups:\n  a: { publish: { topic: b }, subscription_churn: 9/s, subscription_churn_filter: b }\n",
            "2:3: a: filter 'b' of the subscription churn matches this run's topics 'b', and messages would come twice; give another"
        ),
        Wrong(
            "publishing over XMPP",
            "groups:\n  a: { target: \"xmpp://b\", \(who), publish: { rate: 1/s } }\n",
            "2:53: a.publish is for MQTT groups, and the target of this group is XMPP; leave it out, or change the target"
        ),
        Wrong(
            "no user",
            "groups:\n  a: { target: \"xmpp://b\", password: p }\n",
            "2:3: a.jid: is missing: whom to log in as, such as 'user%i@example.org'; or give users"
        ),
        Wrong(
            "no password",
            "groups:\n  a: { jid: u@x }\n",
            "2:3: a.password: is missing; add it, or set CLAMOR_PASSWORD in the environment"
        ),
        Wrong(
            "one user for many clients",
            "groups:\n  a: { clients: 2, jid: u@x, password: p }\n",
            "2:25: a.jid: 'u@x' is the same for all 2 clients; put %i into it"
        ),
        Wrong(
            "a TLS policy",
            "groups:\n  a: { \(who), tls: maybe }\n",
            "2:38: a.tls: 'maybe' is not one of allowed, preferred, required, direct, off"
        ),
        Wrong(
            "a pairing without a pace",
            "groups:\n  a: { \(who), message: { pairing: hotspot } }\n",
            "2:53: a.message.pairing: hotspot has no answers to go by, so it needs a pace; add message.rate or message.interval"
        ),
        Wrong(
            "two embedded brokers",
            "target: embedded\ngroups:\n  a: { broker: --drop 1% }\n  b: { broker: --drop 2% }\n  c: { ssl: true }\n"
                + "  d: { ws: true, proxy_protocol: v1 }\n",
            "4:16: b.broker: one embedded broker serves all groups, and 'a' gives it other faults; write the same, or leave one of the two out",
            "5:13: c.ssl: one embedded broker serves all groups, and 'a' has another ssl; write the same in both",
            "6:12: d.ws: one embedded broker serves all groups, and 'a' has another ws; write the same in both"
        ),
        Wrong(
            "a client id that no server takes",
            "groups:\n  a: { connect: { protocol: 3 }, prefix: a-prefix-that-is-long }\n",
            "2:29: a.connect.protocol: client ids of MQTT 3.1 have 23 characters at most, and 'a-prefix-that-is-long-conn-1' has 28; add short_ids: true"
        ),
        Wrong(
            "thresholds that are no list",
            "groups: { a: {} }\nthresholds: x\n",
            "2:13: thresholds is a text; write a list: - \"connect_duration p99 < 250ms\""
        ),
        Wrong(
            "a threshold on a group that is not there",
            "groups: { a: {} }\nthresholds:\n  - \"connect_duration{group=b} p99 < 1s\"\n",
            "3:5: threshold 'connect_duration{group=b} p99 < 1s': connect_duration has no such labels; it has {group=a,phase=dns} {group=a,phase=tcp} {group=a,phase=session} {group=a,phase=total}"
        ),
        Wrong(
            "a storm behind the load's end",
            "duration: 5s\nwarmup: 1s\ngroups:\n  a: { storm: [30%@1s, 30%@7s] }\n",
            "4:15: a.storm: 7s is not before the load's end, which warmup and duration put at 6s; raise duration, or let the storm begin earlier"
        ),
        Wrong(
            "a storm that is none",
            "groups:\n  a: { storm: [30%@1s, much] }\n",
            "2:24: a.storm: 'much' is not a storm; write it like 30%@5s, or 30%@5s:disconnect"
        ),
        Wrong(
            "a will without a topic",
            "groups:\n  a: { will: { message: gone, delay: 5s } }\n",
            "2:25: a.will.message: belongs to a will, which needs a topic; add will.topic",
            "2:38: a.will.delay: belongs to a will, which needs a topic; add will.topic"
        ),
        Wrong(
            "a will's delay without its unit",
            "groups:\n  a: { will: { topic: t, delay: 5 } }\n",
            "2:33: a.will.delay: '5' is not a duration; write it like 10s, 250ms or 2m"
        ),
        Wrong(
            "a property that its protocol has not",
            "groups:\n  a: { connect: { protocol: 4 }, publish: { content_type: t } }\n",
            "2:59: a.publish.content_type: MQTT 3 has no such property; leave it out, or use connect.protocol: 5"
        ),
        Wrong(
            "replies, waits and cycles that cannot be",
            """
            groups:
              a: { reply: { to: "door/%i/open" } }
              b: { reply: { publish: "door/#" } }
              c: { reply: { publish: "door/%s" } }
              d: { reply: { publish: a, after: soon } }
              e: { reply: { publish: a, after: 1s±2s } }
              f: { reply: { publish: a, probability: 2 } }
              g: { reconnect: { times: 3, from: 2s, to: 1s } }
              h: { reconnect: { times: 3, factor: 0.5 } }
              i: { reconnect: [3] }
              j: { cycle: { online: 2s } }
              k: { cycle: { online: 0s, offline: 1s } }
              l: { cycle: { online: 1s, offline: 1s, due: later }, publish: { rate: 1/s } }
              m: { target: "mqtt://a", reconnect: 3, failover: true }
              n: { target: "mqtt://a,b", failover: true }
              o: { cycle: { online: 1ms, offline: 1s } }
              p: { reconnect: { times: 3, from: 0s, to: 1s } }
            """,
            "2:21: a.reply.to: is about answers; add reply.publish",
            "3:26: b.reply.publish: 'door/#': a topic to publish to has no + and no #",
            "4:26: c.reply.publish: 'door/%s' would be another for each message; use placeholders of the client",
            "5:36: d.reply.after: 'soon' is not a duration; write it like 10s, 250ms or 2m",
            "6:36: e.reply.after: '2s' is not a share; write it like 0.1%, from 0% to 100%",
            "7:42: f.reply.probability: '2' is not a share; write it like 0.1%, from 0% to 100%",
            "8:45: g.reconnect.to: 1s is shorter than the first wait, 2s; raise it, or lower reconnect.from",
            "9:39: h.reconnect.factor: '0.5' is no factor from 1 to 100; write it like 2 or 1.5",
            "10:19: i.reconnect is a list; write its keys below it",
            "11:25: j.cycle.online: goes with cycle.offline; add that, or leave it out",
            "12:25: k.cycle.online: '0s' is no time; write it like 30s",
            "13:47: l.cycle.due: 'later' is not one of queue, skip, latest",
            "14:52: m.failover: is between several targets, and there is one; name another one too",
            "15:40: n.failover: needs clients that try again; add reconnect.times: N",
            "16:25: o.cycle.online: 1ms is too short; give 10ms or more",
            "17:45: p.reconnect.to: a first wait of 0 grows to nothing; raise reconnect.from"
        ),
        Wrong(
            "a cycle beside stages that say how many clients there are",
            "groups:\n  a: { cycle: { online: 1s, offline: 1s } }\nstages: [{ name: s, for: 1s, clients: 50% }]\n",
            "2:25: a.cycle: a stage says how many clients there are, and the two would interfere; leave one out"
        ),
        Wrong(
            "a certificate without TLS",
            "groups:\n  a: { pin: sha256/x }\n",
            "2:13: a.pin: is a matter of TLS; add ssl: true, or leave it out"
        ),
        Wrong(
            "everything at once, in the order of the file",
            "duration: x\ngroups:\n  a: { clients: 0, topic: t }\n  b: { connect: { rate: 0/s } }\n",
            "1:11: duration: 'x' is not a duration; write it like 10s, 250ms or 2m",
            "3:17: a.clients: '0' is not a whole number of 1 to 10000000",
            "3:20: a: unknown key 'topic'; here are target, broker, raw, clients, start_number, prefix, short_ids, client_id, rows, username, password, password_file, connect, reconnect, failover, cycle, churn, storm, subscription_churn, subscription_churn_filter, validate, auth, group_id, instance_id, token_file, ssl, ca_file, cert_file, key_file, insecure, pin, psk, psk_file, tls_version, ciphers, alpn, sni, ws, path, headers, subprotocol, proxy_protocol, will, reply, template",
            "4:25: b.connect.rate: '0/s' is not above 0; leave it out for no limit"
        ),
    ]

    @Test("each problem names line, column, what was wrong and what would be right", arguments: wrongs)
    func refusal(_ wrong: Wrong) throws { try wrong.check() }

    /// The names of options of `pub` that are no keys of its groups, and the keys.
    static let optionNames = CommandName.pub.groupKeys.flatMap { key, spec -> [(String, String, String)] in
        let known = Set(CommandName.pub.groupKeys.compactMap { $0.key.split(separator: ".").first.map(String.init) })
        let words = spec.allNames.filter { $0.hasPrefix("--") }.map { String($0.dropFirst(2)) }
        // That one is a key of XMPP groups.
        return words.filter { !known.contains($0) && $0 != "message" }.map { ("\($0): x", $0, key) }
    }

    @Test(
        "an option's name that is written as a key is answered with the key",
        arguments: optionNames + [
            ("--cacertfile: x", "--cacertfile", "ca_file"), ("c: 5", "c", "clients"),
            ("connect: { keepalive: 60s }", "keepalive", "keep_alive"),
            ("connect: { connrate: 5/s }", "connrate", "rate"), ("will: { will-qos: 1 }", "will-qos", "qos"),
        ]
    )
    func optionName(_ text: String, _ word: String, _ key: String) throws {
        let file = try ScenarioFile("groups:\n  a: { publish: {}, \(text) }\n")
        guard case .wrong(let lines) = file.parsed() else {
            Issue.record("is taken")
            return
        }
        #expect(lines.count == 1)
        #expect(lines.first?.contains(" unknown key '\(word)'; did you mean \(key)? here are ") == true, "\(lines)")
    }

    @Test("a file that is not there is refused as an input, not as a scenario")
    func missing() {
        guard case .refused(let lines) = Invocation.parse(["run", "/nowhere.yaml"]) else {
            Issue.record("is taken")
            return
        }
        #expect(
            lines == [
                "clamor run: /nowhere.yaml: cannot read /nowhere.yaml (no such file); check the path and its permissions"
            ]
        )
    }

    @Test("a password is in no line, whatever is wrong with the file")
    func secrets() throws {
        let file = try ScenarioFile(
            "groups:\n  a: { target: \"mqtt://me:s3cret@b:x\", clients: none }\n"
                + "  b: { password: s3cret, connect: { protocol: 4 } }\n"
        )
        guard case .wrong(let lines) = file.parsed() else {
            Issue.record("is taken")
            return
        }
        #expect(lines.count == 3)
        #expect(!lines.joined().contains("s3cret"))
    }

    @Test("a file of aliases of aliases is refused before it fills the memory")
    func aliases() throws {
        var text = "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
        for (one, next) in zip("abcdefgh", "bcdefghi") {
            text += "\(next): &\(next) [\(Array(repeating: "*\(one)", count: 10).joined(separator: ", "))]\n"
        }
        let file = try ScenarioFile(text)
        guard case .wrong(let lines) = file.parsed() else {
            Issue.record("is taken")
            return
        }
        #expect(lines.count == 1)
        #expect(lines.first?.contains("has over 100000 values; use fewer aliases") == true)
    }
}
