import Foundation
import Measurement
import Report
import Testing

@Suite("The summary")
struct SummaryTests {
    struct Sample: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let record: RunRecord
    }

    static let samples = [
        Sample(testDescription: "pubsub", record: Samples.pubsub),
        Sample(testDescription: "aborted", record: Samples.aborted),
        Sample(testDescription: "conn", record: Samples.conn),
        Sample(testDescription: "decode", record: Samples.decode),
        Sample(testDescription: "decode-xmpp", record: Samples.decodeXMPP),
        Sample(testDescription: "mixed", record: Samples.mixed),
        Sample(testDescription: "begun", record: Samples.begun(["clamor", "pub"])),
        Sample(testDescription: "failed", record: Samples.failed),
        Sample(testDescription: "unconnected", record: Samples.unconnected),
    ]

    @Test("reads as it should", arguments: samples)
    func golden(_ sample: Sample) throws {
        let text = Summary(sample.record, detail: .full, files: "results/runs/20261121-013709-demo").text
        try Golden.check(text, "summary-\(sample.testDescription).txt")
    }

    @Test("in short, has what decides", arguments: samples)
    func compact(_ sample: Sample) throws {
        let text = Summary(sample.record, files: "results/runs/20261121-013709-demo").text
        try Golden.check(text, "compact-\(sample.testDescription).txt")
        for line in text.split(separator: "\n") { #expect(line.count <= 100, "\(line)") }
    }

    static let openings: [(results: [Bool], state: Verdict.State?, line: String)] = [
        ([true, true], .valid, "VALID · 2 of 2 objectives met"),
        ([false, true, true, true], .valid, "VALID · 3 of 4 objectives met"),
        ([false], .generatorLimited, "GENERATOR-LIMITED · 0 of 1 objective met"),
        ([true], nil, "UNFINISHED · 1 of 1 objective met"),
        ([], .valid, "VALID  clamor pubsub"),
    ]

    @Test("in short, opens with measurement and objectives, then the one sentence", arguments: openings)
    func opening(_ results: [Bool], _ state: Verdict.State?, _ line: String) {
        var record = Samples.pubsub
        record.verdict = state.map { state in
            var verdict = Verdict()
            if state != .valid { verdict.add(state, Verdict.Reason(code: "x", text: "a reason")) }
            return verdict
        }
        record.thresholds = results.map { ThresholdResult(expression: "errors == 0", ok: $0, value: 0) }
        // The sentence of an earlier version.
        record.findings = FindingsRecord(sentence: "nothing broke; steady from 3 s on")
        let lines = Summary(record).text.split(separator: "\n")
        #expect(lines[0].hasPrefix(line))
        #expect(lines[1].hasPrefix("Outcome     "))
        for detail in Summary.Detail.allCases {
            let text = Summary(record, detail: detail).text
            #expect(text.replacing(/\n +/, with: " ").contains("No error"), "\(text)")
            #expect(text.contains("\nLoad        1,000 clients · QoS 0, 1, 2\n"))
            #expect(!text.contains("nothing broke") && !text.contains("steady"))
        }
    }

    @Test("in short, has the figures of the findings")
    func figures() {
        var record = Samples.pubsub
        var findings = FindingsRecord(sentence: "answers stopped at 4 s for 2 s; 0 lost", evidence: 1)
        (findings.clientsPlanned, findings.clientsUp, findings.allUpSeconds) = (10, 9, nil)
        findings.worstSecond = FindingPoint(second: 6, value: 2.04, metric: "publish_ack_duration leg=puback qos=1")
        findings.longestSilence = FindingPoint(second: 4, value: 2)
        findings.peakInFlight = FindingPoint(second: 5, value: 160)
        (findings.backlogSlope, findings.withinObjective, findings.headroom) = (2.98, 0.8, 12.3)
        record.findings = findings
        record.tlsVersions = ["TLS 1.3": 9]
        let text = Summary(record).text
        for words in [
            "9 of 10 up", "TLS 1.3", "worst second at 6 s: ack p99 2.04 s", "longest silence 2.00 s at 4 s",
            "at most 160 in flight at 5 s", "80.0 % of the seconds met the latency objectives",
            "could offer 12 times this load",
        ] {
            #expect(text.contains(words), "\(words) in\n\(text)")
        }
        // A stall that ended leaves a slope too.
        #expect(!text.contains("backlog"))
        record.findings?.backlogGrowth = 3410
        #expect(Summary(record).text.contains("at most 160 in flight at 5 s · backlog grows by 3,410/s"))
    }

    @Test("keeps to 100 columns, and has no colour unless told", arguments: samples)
    func width(_ sample: Sample) {
        let text = Summary(sample.record, detail: .full, style: TerminalStyle(width: 200)).text
        for line in text.split(separator: "\n") { #expect(line.count <= 100, "\(line)") }
        #expect(!text.contains("\u{1B}"))
    }

    @Test("says the same in colour", arguments: samples)
    func colour(_ sample: Sample) throws {
        let plain = Summary(sample.record, detail: .full).text
        let coloured = Summary(sample.record, detail: .full, style: TerminalStyle(isColoured: true)).text
        #expect(coloured.contains("\u{1B}["))
        #expect(try coloured.replacing(Regex("\u{1B}\\[[0-9;]*m"), with: "") == plain)
    }

    static let failures: [(results: [Bool], state: Verdict.State?, line: String)] = [
        ([false, true], .valid, "VALID · 1 of 2 objectives met"),
        ([false], .valid, "VALID · 0 of 1 objective met"),
        ([true, false, false], .generatorLimited, "GENERATOR-LIMITED · 1 of 3 objectives met"),
        ([false, false], .unreconciled, "UNRECONCILED · 0 of 2 objectives met"),
        ([true, false], .aborted, "ABORTED · 1 of 2 objectives met"),
        ([true, false], nil, "UNFINISHED · 1 of 2 objectives met"),
    ]

    @Test(
        "the first line counts the objectives that are met, and their section has each of them",
        arguments: failures
    )
    func failedFirst(_ row: (results: [Bool], state: Verdict.State?, line: String)) throws {
        var record = Samples.begun(["clamor", "pub"])
        record.thresholds = row.results.enumerated().map { number, ok in
            ThresholdResult(expression: "errors == \(number)", ok: ok, value: 0)
        }
        record.verdict = row.state.map { state in
            var verdict = Verdict()
            if state != .valid { verdict.add(state, Verdict.Reason(code: "why", text: "a reason")) }
            return verdict
        }
        let rows = row.results.enumerated().map { "  \($1 ? "met   " : "FAILED")  errors == \($0)  0\n" }
        for detail in Summary.Detail.allCases {
            let text = Summary(record, detail: detail).text
            #expect(text.hasPrefix("\(row.line)\n"))
            #expect(text.contains("\nObjectives\n" + rows.joined()))
        }
        let (state, objectives) = (row.line.prefix { $0 != " " }, row.line.split(separator: " · ")[1])
        let coloured = Summary(record, detail: .full, style: TerminalStyle(isColoured: true)).text
        #expect(coloured.split(separator: "\n")[0].hasSuffix(" · \u{1B}[1;31m\(objectives)\u{1B}[0m"))
        let heading = "### ❌ clamor pub: \(state.lowercased()) · \(objectives)"
        #expect(RunMarkdown.text(record).hasPrefix("\(heading)\n"))
    }

    @Test("in short, each reason has its code, in the sentence or below it")
    func codes() {
        var record = Samples.conn
        let reason = record.verdict?.reasons.first
        record.verdict?.add(.generatorLimited, Verdict.Reason(code: "steal", text: "the host took CPU"))
        record.findings = FindingsRecord(sentence: "the generator was the limit: \(reason?.line ?? "")")
        func text() -> String { Summary(record).text.split(whereSeparator: \.isWhitespace).joined(separator: " ") }
        let figures = "99 % of 5,000 connects within 124 ms"
        #expect(text().contains("/s asked for [connect-rate]. \(figures). ! the host took CPU [steal] "))
        #expect(text().components(separatedBy: "[connect-rate]").count == 2)
        // A result of an earlier version has no code in the sentence.
        record.findings?.sentence = "the generator was the limit: \(reason?.text ?? "")"
        #expect(text().components(separatedBy: "[connect-rate]").count == 2)
    }

    static let remedies: [(kind: String?, hint: String)] = [
        ("refused", "Hint  check that the server listens at this host and port"),
        ("resolve", "Hint  check the spelling of the host name, and the name server of this host"),
        ("connack 0x01", "Hint  the server does not speak this version of MQTT; try MQTT 3.1.1"),
        ("connack 0x84", "Hint  the server does not speak this version of MQTT; try MQTT 3.1.1"),
        ("connack 0x9c", "Hint  the server has sent its clients elsewhere; connect there"),
        ("connack 0x9d", "Hint  the server has sent its clients elsewhere; connect there"),
        ("see-other-host", "Hint  the server has sent its clients elsewhere; connect there"),
        ("timeout-stream", "Hint  check host and port, and the firewall and routes on the way to the server"),
        ("connack 0x86", "Hint  check user name, password and client identifiers; the server's log has its reason"),
        (nil, "Hint  no connect attempt ended; check that the server answers at this host and port"),
    ]

    @Test("a run without any connection shows verdict, errors and a hint, no table of zeros", arguments: remedies)
    func unconnected(_ row: (kind: String?, hint: String)) throws {
        var record = Samples.unconnected
        record.errors = row.kind.map { [ErrorRecord(kind: $0, count: 3, firstAt: "", example: "an example")] } ?? []
        let lines = Summary(record, detail: .full).text.split(separator: "\n").map(String.init)
        let errors = row.kind.map { ["Errors", "  \($0)", "    e.g. an example"] } ?? []
        try #require(lines.count == 2 + errors.count + 1)
        #expect(lines[0].hasPrefix("ABORTED  clamor pub · "))
        #expect(lines[1] == "  ! every connect attempt failed [no-connection]")
        for (line, start) in zip(lines.dropFirst(2), errors) { #expect(line.hasPrefix(start)) }
        #expect(lines.last == row.hint)
    }

    static let layers: [(plan: [String: JSONValue], kind: String, example: String, words: String)] = [
        (["tls": "verified"], "reset", "", "this port may not speak TLS; leave out -S, or use the port for TLS, 8883"),
        (
            ["tls": "verified"], "tls", "the server closed during the handshake",
            "this port may not speak TLS; leave out -S, or use the port for TLS, 8883"
        ),
        (
            ["websocket_path": "/mqtt"], "reset", "",
            "this port may need TLS, or speak no WebSocket; add -S, leave out --ws, or name its port"
        ),
        (
            ["tls": "verified", "websocket_path": "/mqtt"], "reset", "",
            "this port may not speak WebSocket over TLS; leave out TLS, or name its port"
        ),
        (
            ["tls": "verified", "tls_policy": "direct", "domain": "a.example"], "tls",
            "does not speak TLS on this port",
            "this port may not begin with TLS; use --tls required, or the port for TLS, 5223"
        ),
        (
            ["tls": "verified", "tls_policy": "required", "domain": "a.example"], "reset", "",
            "check that this is the port for clients of XMPP, 5222; with --tls direct it is 5223"
        ),
        (
            ["tls": "verified", "tls_policy": "direct", "domain": "a.example", "websocket_path": "/ws"], "reset", "",
            "this port may not speak WebSocket over TLS; leave out TLS, or name its port"
        ),
        ([:], "reset", "", "check that this port speaks this protocol, and whether it requires TLS"),
        (
            ["tls": "verified"], "tls", "issued by CN=a, which is no known authority",
            "trust the authority of the server's certificate with --cacertfile FILE"
        ),
        (
            ["tls": "verified"], "tls", "certificate not for 127.0.0.1, but for localhost",
            "connect to a name of the certificate, or give such a name with --sni NAME"
        ),
        (
            ["tls": "verified", "domain": "a.example"], "tls", "certificate not for a.example, but for b.example",
            "the server needs a certificate for the domain of --jid"
        ),
        (
            ["domain": "a.example"], "not-authorized", "",
            "check --jid and its password; --register creates missing accounts"
        ),
        (
            ["websocket_path": "/mqtt"], "websocket", "the server's answer to the upgrade is not HTTP/1.1",
            "check that this port speaks WebSocket, and the path of its endpoint; TLS needs -S"
        ),
        (
            ["tls": "verified", "websocket_path": "/mqtt"], "websocket", "",
            "check that this port speaks WebSocket, and the path of its endpoint"
        ),
        (
            [:], "protocol",
            "the server's bytes are not MQTT: the byte 0x48 where a packet begins, as in an answer of HTTP (§2.1.3)",
            "this port speaks HTTP; add --ws, or name the port of MQTT"
        ),
        (
            ["domain": "a.example"], "not-well-formed", "",
            "check that this port speaks this protocol, and whether it requires TLS"
        ),
        ([:], "connack 0x97", "", "a limit of the server; raise it, or connect more slowly (-R)"),
        ([:], "session", "", "use another --seed or --prefix, or a clean start (-C true)"),
    ]

    @Test("the hint fits the layers of the connection", arguments: layers)
    func layerHints(_ row: (plan: [String: JSONValue], kind: String, example: String, words: String)) {
        var record = Samples.unconnected
        record.errors = [ErrorRecord(kind: row.kind, count: 3, firstAt: "", example: row.example)]
        record.plan = row.plan
        #expect(record.connectionHint == row.words)
        record.plan = ["groups": .object(["a": .object(row.plan)])]
        #expect(record.connectionHint == row.words)
    }

    @Test("the hint of a file's run has the keys of the file", arguments: layers)
    func fileHints(_ row: (plan: [String: JSONValue], kind: String, example: String, words: String)) {
        var record = Samples.unconnected
        record.errors = [ErrorRecord(kind: row.kind, count: 3, firstAt: "", example: row.example)]
        record.plan = ["command": "run", "groups": .object(["a": .object(row.plan)])]
        let hint = record.connectionHint
        #expect(!hint.contains(/(^|[ \(])--?[A-Za-z]/), "\(hint)")
        #expect((hint == row.words) == !row.words.contains(/(^|[ \(])--?[A-Za-z]/), "\(hint)")
    }

    @Test("a group without any connection shows its errors and a hint, beside a group that ran")
    func unconnectedGroup() throws {
        var record = Samples.mixed
        record.verdict?.add(.aborted, Verdict.Reason(code: "no-connection", text: "chat: every connect attempt failed"))
        record.metrics.removeAll { $0.labels["group"] == "chat" && $0.name == "connect_duration" }
        let text = Summary(record, detail: .full).text
        #expect(text.contains("\nHint  chat: check ") && text.contains("\nErrors "))
        #expect(text.components(separatedBy: "Hint").count == 2)
    }

    static let carried: [(count: Int64, cells: [Bool])] = [
        (1, [false, false, false, false]), (2, [true, false, false, false]), (9, [true, false, false, false]),
        (10, [true, true, false, false]), (99, [true, true, false, false]), (100, [true, true, true, false]),
        (999, [true, true, true, false]), (1000, [true, true, true, true]),
    ]

    @Test("a percentile is a dash unless 1 ÷ (1 - p) samples carry it", arguments: carried)
    func percentiles(_ row: (count: Int64, cells: [Bool])) throws {
        var record = Samples.begun(["clamor", "pubsub"])
        record.metrics = [
            Samples.duration("delivery_duration", ["qos": "1"], Samples.ramp(row.count, step: 1_000_000))
        ].compactMap(\.self)
        let lines = Summary(record, detail: .full).text.split(separator: "\n")
        let header = try #require(lines.first { $0.hasPrefix("Durations") })
        #expect(header.split(separator: " ").suffix(6) == ["count", "p50", "p90", "p99", "p99.9", "max"])
        let values = try #require(lines.first { $0.hasPrefix("    qos=1") }).split(separator: "  ").dropFirst(2)
        #expect(values.dropLast().map { $0.trimmingCharacters(in: .whitespaces) != "–" } == row.cells)
        #expect(values.last?.contains("–") == false)
        let cells = try #require(RunMarkdown.text(record).split(separator: "\n").first { $0.hasPrefix("| delivery") })
        #expect(cells.split(separator: " | ").dropFirst(2).prefix(4).map { $0 != "–" } == row.cells)
    }

    @Test("says of a segment that it is one, and of which, and of merged segments that they are whole")
    func segment() {
        var record = Samples.pubsub
        let words = "segment 2 of 4: a part of the load; clamor merge adds the results of all"
        #expect(!Summary(record, detail: .full).text.contains("segment"))
        record.segment = SegmentRecord(index: 2, count: 4)
        record.segment.run = "0123"
        #expect(Summary(record, detail: .full).text.split(separator: "\n")[3] == "  \(words)")
        #expect(RunMarkdown.text(record).split(separator: "\n")[4] == words[...])
        record.ledger.pending = true
        let losses = "  losses are known only after clamor merge"
        #expect(Summary(record, detail: .full).text.split(separator: "\n").contains(losses[...]))
        record.verdict = nil
        #expect(Summary(record, detail: .full).text.split(separator: "\n")[3] == "  \(words)")
        record.segment.merged = 4
        #expect(
            !Summary(record, detail: .full).text.contains("segment 2")
                && !RunMarkdown.text(record).contains("segment 2")
        )
    }

    static let lossSamples: [(lost: [String: UInt64], examples: [LedgerExample], lines: [String])] = [
        ([:], [], []),
        (["violated": 0], [], []),
        (["violated": 2_000], [], ["  lost 2,000 (violated)"]),
        (
            ["dropped": 1], [example("dropped", topic: "fleet/7/command", sequence: 42)],
            ["  lost 1 (dropped); first: topic fleet/7/command, message 42 of ops-3 to device-7"]
        ),
        (
            ["server-admitted": 1], [example("server-admitted", topic: "a", sequence: nil)],
            ["  lost 1 (server admitted); first: topic a, message of ops-3 to device-7"]
        ),
        (
            ["session-lost": 1], [LedgerExample(finding: .lost, cause: "session-lost", qos: 1)],
            ["  lost 1 (session lost)"]
        ),
        (
            ["dropped": 1, "violated": 2],
            [
                LedgerExample(finding: .duplicated, qos: 1), example("dropped", topic: nil, sequence: 5),
                example("violated", topic: "fleet/7/command", sequence: 42),
                example("violated", topic: "later", sequence: 43),
            ],
            [
                "  lost 3 (violated 2, dropped 1); first violated: topic fleet/7/command, message 42 of ops-3 to",
                "    device-7; first dropped: message 5 of ops-3 to device-7",
            ]
        ),
    ]

    private static func example(_ cause: String, topic: String?, sequence: UInt64?) -> LedgerExample {
        var example = LedgerExample(finding: .lost, cause: cause, qos: 1)
        (example.topic, example.sequence) = (topic, sequence)
        (example.publisher, example.subscriber) = ("ops-3", "device-7")
        return example
    }

    @Test("says below the deliveries why messages were lost, with the first of each cause", arguments: lossSamples)
    func losses(_ row: (lost: [String: UInt64], examples: [LedgerExample], lines: [String])) throws {
        for sample in [Samples.pubsub, Samples.mixed] {
            var record = sample
            record.ledger.lost = row.lost
            record.ledger.examples = row.examples
            // The second group has stanzas.
            for place in (record.groups ?? []).indices {
                record.groups?[place].ledger = record.ledger
            }
            let lines = Summary(record).text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
            let delivered = try #require(lines.firstIndex { $0.hasPrefix("Delivered") })
            let section = lines[delivered...].prefix { !$0.isEmpty }
            #expect(section.filter { $0.hasPrefix("  lost ") || $0.hasPrefix("    d") } == row.lines)
            let words = row.lines.map { $0.drop { $0 == " " } }.joined(separator: " ")
            let texts = words.isEmpty ? [] : record.groups?.map { "\($0.name): \(words)" } ?? [words]
            let markdown = RunMarkdown.text(record).split(separator: "\n").filter { $0.contains("lost ") }
            #expect(markdown.filter { !$0.hasPrefix("|") }.map(String.init) == texts)
        }
    }

    struct Deliveries: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let metrics: [Metric]
        /// Expected, received, duplicated and lost, by the ledger.
        let sums: (UInt64, UInt64, UInt64, UInt64)?
        /// `nil`: there is no such line.
        let line: String?
    }

    private static func received(_ labels: Labels, _ count: Double, rate: Double? = nil) -> Metric {
        Samples.counter("received", labels, count, rate: rate)
    }

    private static let message: Labels = ["stanza": "message"]

    static let deliveries = [
        Deliveries(
            testDescription: "messages of MQTT, some of them twice",
            metrics: [
                received(["qos": "1"], 1_020, rate: 102), Samples.counter("delivery_reordered", ["qos": "1"], 3),
            ],
            sums: (1_000, 990, 30, 10),
            line: "990 of 1,000 expected · 10 lost · 30 duplicated · 3 reordered"
        ),
        Deliveries(
            testDescription: "requests, of which the answers are expected",
            metrics: [
                received(["qos": "1"], 400, rate: 40), received(["qos": "0"], 400, rate: 40),
                Samples.counter("requests_answered", [:], 400, rate: 40),
            ],
            sums: (400, 400, 0, 0),
            line: "400 of 400 expected (40/s) · 0 lost"
        ),
        Deliveries(
            testDescription: "messages of another run",
            metrics: [received(["qos": "1"], 300, rate: 30)],
            sums: (150, 150, 0, 0),
            line: "150 of 150 expected · 0 lost · 150 others received"
        ),
        Deliveries(
            testDescription: "a subscriber alone, which knows of no publisher",
            metrics: [received(["qos": "1"], 300, rate: 30)],
            sums: nil,
            line: "300 (30/s)"
        ),
        Deliveries(
            testDescription: "a subscriber that heard nothing",
            metrics: [received(["qos": "1"], 0, rate: 0)],
            sums: nil,
            line: "0 (0/s)"
        ),
        Deliveries(
            testDescription: "a chat room, with presences that the server sends",
            metrics: [
                Samples.counter("stanza_offered", message, 300), received(message.adding("delayed", "false"), 1_500),
                received(message.adding("delayed", "true"), 0), received(["stanza": "presence"], 10_136),
                received(["stanza": "iq"], 7),
            ],
            sums: (1_500, 1_500, 0, 0),
            line: "1,500 of 1,500 expected · 0 lost"
        ),
        Deliveries(
            testDescription: "presences of contacts and of others",
            metrics: [
                Samples.counter("stanza_offered", ["stanza": "presence"], 10),
                received(["stanza": "presence", "from": "contact"], 90),
                received(["stanza": "presence", "from": "other"], 30),
            ],
            sums: (100, 90, 0, 10),
            line: "90 of 100 expected · 10 lost"
        ),
        Deliveries(
            testDescription: "presences of one group, beside a room of another",
            metrics: [
                Samples.counter("stanza_offered", ["group": "a", "stanza": "presence"], 10),
                received(["group": "a", "stanza": "presence", "from": "contact"], 90),
                Samples.counter("stanza_offered", message.adding("group", "b"), 20),
                received(message.adding("group", "b"), 40), received(["group": "b", "stanza": "presence"], 500),
            ],
            sums: (130, 130, 0, 0),
            line: "130 of 130 expected · 0 lost"
        ),
        Deliveries(
            testDescription: "accounts, without a message",
            metrics: [
                Samples.counter("stanza_offered", ["stanza": "iq"], 5), received(["stanza": "iq"], 5),
                received(message.adding("delayed", "false"), 0),
            ],
            sums: nil,
            line: nil
        ),
    ]

    @Test("in short, compares like with like: what the ledger expects, and what of that came", arguments: deliveries)
    func delivered(_ sample: Deliveries) {
        var record = Samples.begun(["clamor", "run"])
        record.metrics = sample.metrics
        record.ledger = LedgerRecord(on: sample.sums != nil, reason: sample.sums == nil ? "a reason" : nil)
        if let sums = sample.sums {
            var books = Books(qos: 1)
            (books.expected, books.received, books.duplicated, books.lost) = sums
            record.books = [books]
        }
        let text = Summary(record).text
        let line = text.split(separator: "\n").first { $0.hasPrefix("Delivered") }
        #expect(line.map { $0.dropFirst(12) } == sample.line.map { $0[...] })
        // Nothing is said of a ledger where no message was sent or received.
        #expect(text.contains("the ledger is off: a reason") == (sample.sums == nil && sample.line != nil))
    }

    @Test(
        "the time until all clients were up is known to the millisecond, and printed so",
        arguments: [(0.0004, "1 ms"), (0.002, "2 ms"), (0.074, "74 ms"), (0.103, "103 ms"), (1.2, "1.20 s")]
    )
    func allUp(_ seconds: Double, _ words: String) {
        var record = Samples.pubsub
        var findings = FindingsRecord(sentence: "nothing broke")
        (findings.clientsPlanned, findings.clientsUp, findings.allUpSeconds) = (3, 3, seconds)
        record.findings = findings
        #expect(Summary(record).text.contains("\nClients     3 of 3 up in \(words) · "))
    }

    @Test("a storm has the times of its reconnects, as far as their number carries them")
    func reconnects() {
        var record = Samples.pubsub
        for (count, words) in [(300, "p50 1.20 s, p99 2.38 s, max 2.40 s"), (5, "p50 24.0 ms, max 40.0 ms")] {
            let times = Samples.ramp(Int64(count), step: 8_000_000)
            record.metrics = [
                Samples.counter("reconnects", [:], Double(count)),
                Samples.duration("reconnect_duration", ["phase": "total"], times),
                Samples.duration("reconnect_duration", ["phase": "tcp"], Samples.ramp(9, step: 1)),
            ].compactMap(\.self)
            #expect(Summary(record).text.contains("Clients     \(count) reconnects (\(words))\n"))
        }
    }

    @Test(
        "a tcp phase of a second and more has its cause beside it",
        arguments: [(900_000_000, nil), (2_040_000_000, "2.04 s")] as [(Int64, String?)]
    )
    func listenQueue(_ nanoseconds: Int64, _ words: String?) {
        var (record, histogram) = (Samples.pubsub, Histogram())
        histogram.record(nanoseconds, count: 20)
        record.metrics = [Samples.duration("connect_duration", ["phase": "tcp"], histogram)].compactMap(\.self)
        let line = "  tcp p90 \(words ?? ""): SYNs were sent again"
        #expect(Summary(record).text.contains(line) == (words != nil))
        #expect(Summary(record).text.contains("SYNs") == (words != nil))
    }

    static let spans: [(value: Double, rate: Double, merged: Int?, words: String)] = [
        (120_000, 12_000, nil, "120,000 sent (12,000/s)"),
        // Less than two percent was sent outside the measured phase.
        (120_000, 11_900, nil, "120,000 sent (11,900/s)"),
        (632_921, 41_039, nil, "632,921 sent, 410,390 of them in the 10.0 s measured (41,039/s)"),
        (632_921, 41_039, 2, "632,921 sent, 41,039/s in the 10.0 s measured"),
        (40, 0, nil, "40 sent, 0 of them in the 10.0 s measured (0/s)"),
    ]

    @Test("a count and the rate beside it are of the same span, and another span is printed", arguments: spans)
    func span(_ row: (value: Double, rate: Double, merged: Int?, words: String)) throws {
        var record = Samples.pubsub
        record.segment.merged = row.merged
        record.metrics = [
            Samples.counter("publish_offered", ["qos": "0"], row.value, rate: row.rate),
            Samples.counter("publish_sent", ["qos": "0"], row.value, rate: row.rate),
            Samples.counter("bytes_sent", [:], 9_000, rate: 900, unit: "bytes"),
        ]
        let line = try #require(Summary(record).text.split(separator: "\n").first { $0.hasPrefix("Sent ") })
        #expect(line.hasSuffix(" offered · \(row.words)"))
    }

    static let servers: [(groups: [(String?, String)], line: String)] = [
        ([(nil, "2.0")], "Server      mosquitto 2.0 ($SYS)"),
        ([("a", "2.0"), ("b", "2.0"), ("c", "2.0")], "Server      mosquitto 2.0 ($SYS)"),
        ([("a", "2.0"), ("b", "2.1"), ("c", "2.0")], "Server      mosquitto 2.0 ($SYS) · mosquitto 2.1 ($SYS)"),
    ]

    @Test("names each server once", arguments: servers)
    func eachServer(_ row: (groups: [(String?, String)], line: String)) {
        var record = Samples.pubsub
        record.servers = row.groups.map { group, version in
            ServerRecord(product: "mosquitto", version: version, source: "$SYS", group: group)
        }
        #expect(Summary(record).text.split(separator: "\n").contains(row.line[...]))
        let names = record.serverFacts.map(\.name)
        #expect(names == (row.groups.contains { $0.1 == "2.1" } ? ["server of a, c", "server of b"] : ["server"]))
    }
}
