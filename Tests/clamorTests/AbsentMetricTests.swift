import Measurement
import Report
import Scenario
import TestSupport
import Testing
import clamor

@Suite("A threshold on a metric that a run cannot have")
struct AbsentMetricTests {
    private static let loads = [
        "conn", "pub", "sub", "pubsub", "xmpp login", "xmpp message", "xmpp presence", "xmpp ping", "xmpp muc",
        "xmpp register",
    ]

    /// The shortest command line of a command.
    private static func words(_ command: String) -> [String] {
        var words = command.split(separator: " ").map(String.init)
        if words[0] == "xmpp" { words += ["--jid", "user%i@example.org", "-P", "secret"] }
        if command == "xmpp message" { words += ["-c", "2"] }
        if command == "xmpp muc" { words += ["--rooms", "1", "--room-size", "2"] }
        return words
    }

    private static func sentence(_ metric: MetricDefinition) -> String {
        "\(metric.name)\(metric.kind == .duration ? " p99 < 1s" : " < 1")"
    }

    private static func refusals(_ words: [String]) -> [String] {
        guard case .refused(let lines) = Invocation.parse(words) else { return [] }
        return lines
    }

    @Test("each metric that a load does not have is refused with a reason", arguments: loads + ["decode"])
    func reasons(_ command: String) {
        let metrics = MetricDefinition.all.filter { !$0.name.hasPrefix("server_") }
        let thresholds = metrics.flatMap { ["--threshold", Self.sentence($0)] }
        let lines = Self.refusals(Self.words(command) + thresholds)
        #expect(lines.count > 5 && lines.count < metrics.count, "\(lines.count)")
        for line in lines {
            let start = "clamor \(command): --threshold: '"
            #expect(line.hasPrefix(start) && !line.contains("this run has no metric"), "\(line)")
        }
    }

    @Test(
        "the reason says what to set",
        arguments: [
            ("pub", "publish_ack_duration p99 < 50ms", "publish_ack_duration needs QoS 1 or 2; set -q 1"),
            ("pubsub -q 1", "publish_confirmed > 0", "publish_confirmed needs QoS 0; set -q 0"),
            (
                "pub -q 1", "reconnect_duration p99 < 1s",
                "reconnect_duration needs clients that come back; set --reconnect N, --churn N/s or --storm T"
            ),
            (
                "pubsub -c 2 --seed 1 --processes 2", "delivery_negative < 9",
                "delivery_negative needs messages from one segment to others; set --processes N and --topology shared"
            ),
            (
                "conn", "publish_ack_duration p99 < 50ms",
                "publish_ack_duration is a metric of pub and pubsub, and not of conn; name another"
            ),
            (
                "pubsub", "request_duration p99 < 1s",
                "request_duration needs requests with answers; set --topology request"
            ),
            (
                "pubsub --topology request -q 1", "delivery_duration p99 < 1s",
                "delivery_duration needs one-way messages; with --topology request the metric is request_duration"
            ),
            (
                "xmpp ping --jid u%i@h -P x", "stanza_acked > 0",
                "stanza_acked needs stream management; set --sm"
            ),
            (
                "decode", "publish_sent > 0",
                "publish_sent is a metric of pub and pubsub, and not of decode; name another"
            ),
        ]
    )
    func words(_ line: String, _ sentence: String, _ reason: String) {
        let words = line.split(separator: " ").map(String.init)
        let command = words.prefix(words[0] == "xmpp" ? 2 : 1).joined(separator: " ")
        #expect(
            Self.refusals(words + ["--threshold", sentence])
                == ["clamor \(command): --threshold: '\(sentence)': \(reason)"]
        )
    }

    @Test(
        "a metric that the options bring is taken",
        arguments: [
            ("pub -q 1", "publish_ack_duration p99 < 50ms"), ("pub --churn 1/s", "reconnect_duration p99 < 1s"),
            ("pub -c 2 --processes 2", "loop_lag{loop=1} p99 < 1s"),
            ("pubsub --topology request -q 1", "requests_lost == 0"),
            (
                "pubsub -c 2 --seed 1 --processes 2 --topology shared --subscribers 2",
                "delivery_negative < 9"
            ),
            ("pub", "error_rate < 1%"), ("pub", "errors{kind=reset} == 0"), ("sub", "delivery_gaps == 0"),
        ]
    )
    func taken(_ line: String, _ sentence: String) {
        #expect(Self.refusals(line.split(separator: " ").map(String.init) + ["--threshold", sentence]) == [])
    }

    @Test("a file whose messages cross segments has their metrics", arguments: [["--processes", "2"], []])
    func files(_ segments: [String]) throws {
        let folder = try ScratchFolder()
        let file = try folder.write(
            """
            name: fan
            target: mqtt://127.0.0.1:1
            seed: 1
            groups:
              a:
                clients: 2
                subscribers: 2
                topology: fan-in
                publish: { qos: 1, size: 64, rate: 10/s }
            """,
            to: "fan.yaml"
        )
        let lines = Self.refusals(["run", file, "--threshold", "delivery_negative == 0"] + segments)
        #expect(lines.isEmpty == !segments.isEmpty, "\(lines)")
        #expect(lines.allSatisfy { $0.contains("delivery_negative needs messages from one segment to others") })
    }

    @Test("the objectives of a search are refused as such")
    func objectives() {
        let words = "capacity --slo S pub -h embedded -c 5".split(separator: " ").map(String.init)
        let sentence = "publish_ack_duration p99 < 50ms"
        #expect(
            Self.refusals(words.map { $0 == "S" ? sentence : $0 })
                == ["clamor capacity: --slo: '\(sentence)': publish_ack_duration needs QoS 1 or 2; set -q 1"]
        )
    }

    @Test("a file's threshold has the reason in the words of files, and one of the command line in its own")
    func files() throws {
        let folder = try ScratchFolder()
        let file = try folder.write(
            """
            groups:
              a: { clients: 1, publish: { topic: t } }
            thresholds: ["publish_ack_duration p99 < 1s"]
            """,
            to: "a.yaml"
        )
        guard case .wrong(let lines) = Invocation.parse(["run", file]) else { throw CancellationError() }
        let reason = "publish_ack_duration needs QoS 1 or 2; set"
        #expect(lines == ["\(file):3:14: threshold 'publish_ack_duration p99 < 1s': \(reason) qos: 1"])
        let other = try folder.write("groups: { a: { clients: 1, publish: { topic: t } } }", to: "b.yaml")
        #expect(
            Self.refusals(["run", other, "--threshold", "publish_ack_duration p99 < 1s"])
                == ["clamor run: --threshold: 'publish_ack_duration p99 < 1s': \(reason) -q 1"]
        )
    }

    @Test(
        "a name that no run has is refused with the nearest one, and without a list",
        arguments: [
            ("publish_ack_duraton p99 < 1s", "did you mean publish_ack_duration? Metrics.md lists all"),
            ("delivery_losst == 0", "did you mean delivery_lost? Metrics.md lists all"),
            ("http_req_duration p99 < 1s", "Metrics.md lists all"),
        ]
    )
    func unknown(_ sentence: String, _ words: String) async throws {
        let name = sentence.prefix { $0 != " " }
        let ending = try await ClamorBinary.run(["pub", "-q", "1", "--threshold", sentence])
        #expect(
            ending.errorLines
                == ["clamor pub: --threshold: '\(sentence)': there is no metric '\(name)'; \(words)"]
        )
        #expect(ending.status == 64)
    }
}
