import Foundation
import Measurement
import Report
import Testing

@Suite("Comparable runs")
struct ComparabilityTests {
    private static func run(_ path: String = "b", _ change: (inout RunRecord) -> Void) -> ComparedRun {
        var record = Samples.begun(["clamor", "pub"])
        record.verdict = .valid
        record.servers = [ServerRecord(product: "mosquitto", version: "2.0", source: "x")]
        change(&record)
        return ComparedRun(path: path, record: record)
    }

    static let different: [(kind: Comparability.Kind, text: String, change: @Sendable (inout RunRecord) -> Void)] = [
        (.plan, "the plans differ: clients 1000 and 2000 in a and b", { $0.plan["clients"] = 2000 }),
        (.plan, "the plans differ: rate absent and 50 in a and b", { $0.plan["rate"] = 50.0 }),
        (
            .plan, "the plans differ: groups.s.size absent and 1, qos[2] 2 and absent in a and b",
            {
                $0.plan["groups"] = ["s": ["size": 1]]
                $0.plan["qos"] = [0, 1]
            }
        ),
        (
            .plan, "the plans differ: segment absent and 2/4 in a and b",
            {
                $0.segment.index = 2; $0.segment.count = 4
            }
        ),
        (.cpu, "the CPU differs: Example CPU in a, Other CPU in b", { $0.host.cpuModel = "Other CPU" }),
        (.cores, "the number of cores differs: 2 in a, 4 in b", { $0.host.cores = 4 }),
        (
            .server, "the server differs: mosquitto in a, emqx in b",
            { $0.servers = [ServerRecord(product: "emqx", version: "5", source: "x")] }
        ),
        (.verdict, "b was aborted: lost", { $0.verdict?.add(.aborted, Verdict.Reason(code: "x", text: "lost")) }),
    ]

    @Test("runs of another plan or host are named with what differs", arguments: 0..<8)
    func differences(_ index: Int) {
        let row = Self.different[index]
        let found = Comparability.differences([Self.run("a") { _ in }, Self.run("b", row.change)])
        #expect(found == [Comparability.Difference(kind: row.kind, text: row.text)])
    }

    @Test(
        "a digest of a secret, as earlier versions have it, is the fact that it was given",
        arguments: ["password", "psk", "path_query", "will_message", "token_file", "headers_1"]
    )
    func secrets(_ key: String) {
        let old = Self.run("a") { $0.plan["\(key)_sha256"] = "ab" }
        #expect(Comparability.differences([old, Self.run { $0.plan[key] = true }]) == [])
        let text = "the plans differ: \(key) true and absent in a and b"
        #expect(Comparability.differences([old, Self.run { _ in }]).map(\.text) == [text])
    }

    @Test("a server that one of the runs does not know is no difference")
    func unknown() {
        let servers = [("a", "mosquitto"), ("b", "ejabberd")].map {
            ServerRecord(product: $1, version: nil, source: "x", group: $0)
        }
        let runs = [servers, Array(servers.dropFirst()), nil].map { servers in Self.run { $0.servers = servers } }
        #expect(Comparability.differences(runs) == [])
    }

    @Test("two versions of one product are no difference, and headings show them")
    func versions() {
        let runs = ["2.0", "2.1"].map { version in
            Self.run(version) { $0.servers = [ServerRecord(product: "mosquitto", version: version, source: "x")] }
        }
        #expect(Comparability.differences(runs) == [])
        let text = ComparisonText(Comparison(base: [runs[0]], new: [runs[1]])).text
        #expect(text.contains("1 run of base (mosquitto 2.0), 1 of new (mosquitto 2.1)"), "\(text)")
    }

    @Test("names and tags of runs are no difference, and headings show them")
    func titles() {
        let runs = ["one", "two"].map { title in
            Self.run(title) { record in
                record.plan["name"] = .string(title)
                record.plan["tags"] = .array([.string("build=\(title)"), "host=lab"])
            }
        }
        #expect(Comparability.differences(runs) == [])
        let comparison = Comparison(base: [runs[0]], new: [runs[1]])
        #expect(
            ComparisonText(comparison).text.contains(
                "1 run of base (one, build=one, host=lab, mosquitto 2.0), 1 of new (two, build=two, host=lab, mosquitto 2.0)"
            )
        )
        #expect(Summary(runs[0].record, detail: .full).text.contains("clamor pub · one · build=one · host=lab · "))
    }

    @Test("a single run that measured the generator is named; among several it is one of them")
    func limited() {
        let run = Self.run { $0.verdict?.add(.generatorLimited, Verdict.Reason(code: "x", text: "late")) }
        #expect(Comparability.limited([run])?.kind == .verdict)
        #expect(Comparability.limited([run, run]) == nil)
        #expect(Comparability.limited([Self.run { _ in }]) == nil)
    }

    @Test("time, targets, seed, and 2 for 2.0 are no difference, nor is what is not known")
    func incidental() {
        let other = Self.run {
            $0.startedAt = "2030-01-01T00:00:00Z"
            $0.plan["targets"] = ["broker.example:1883"]
            $0.plan["seed"] = 12
            $0.plan["clients"] = .number(1000)
            $0.host.cpuModel = nil
            $0.host.kernel = "Linux 7"
        }
        #expect(Comparability.differences([Self.run("a") { _ in }, other]).isEmpty)
    }

    static let refused: [(sentence: String, problem: String)] = [
        ("publish_ack_duration p99", "ends in no percentage; write it like 'publish_ack_duration{qos=1} p99 10%'"),
        ("10%", "ends in no percentage; write it like 'publish_ack_duration{qos=1} p99 10%'"),
        ("x p99 -1%", "ends in no percentage; write it like 'publish_ack_duration{qos=1} p99 10%'"),
        (
            "publish_ack_duration 10%",
            "a duration needs a field: count, rate, min, mean, max, slope or a percentile such as p99.9"
        ),
        (
            "publish_ack_duration p990 10%",
            "'p990' is not a field; use count, rate, min, mean, max, slope or a percentile such as p99.9"
        ),
        ("publish_ack_duration max 10%", "the maximum does not show a change; use p99.9"),
        ("publish_ack_duration min 10%", "the minimum does not show a change; use p50"),
        (
            "publish_ack_duration count 10%",
            "more of them are not worse; judge the rate of what is counted, as publish_acked"
        ),
        (
            "publish_ack_duration rate 10%",
            "a duration has no rate; judge the rate of what is counted, as publish_acked"
        ),
        ("publish_ack_duration{qos p99 10%", "the '{' has no '}'"),
        ("%% p99 10%", "no metric name; write it like 'publish_ack_duration{qos=1} p99'"),
        ("received rate twice 10%", "'twice' after the field is not understood"),
    ]

    @Test("a sentence that is none is refused with what would be right", arguments: refused)
    func sentences(_ row: (sentence: String, problem: String)) {
        #expect {
            try RegressionLimit(row.sentence)
        } throws: { error in
            (error as? ThresholdError)?.problem == row.problem
        }
    }

    @Test("what is missing, unfinished or no run is refused in one line")
    func files() throws {
        let folder = try TemporaryFolder()
        func refusal(_ path: String) -> String? {
            do {
                _ = try ComparedRun.read([path])
                return nil
            } catch {
                return "\(error)".replacing(folder.path, with: "D")
            }
        }
        #expect(refusal(folder.path + "/no") == "D/no: is no directory of results")
        #expect(refusal(folder.path) == "D: holds no run.json, nor does a directory in it, and no history")
        try folder.write(RunJSON.text(Samples.begun(["clamor", "pub"])), to: "run.json")
        #expect(refusal(folder.path) == "D: the run is not finished; clamor report shows how far it came")
        var other = Samples.pubsub
        other.schema = "clamor.run/9"
        try folder.write(RunJSON.text(other), to: "run.json")
        let known = "clamor.run/1 or clamor.run/2"
        #expect(refusal(folder.path) == "D/run.json: its schema is 'clamor.run/9', not \(known)")
    }

    @Test("a directory may hold several runs, of which partial ones do not count")
    func several() throws {
        let folder = try TemporaryFolder()
        for name in ["b", "a", "c.partial"] {
            try FileManager.default.createDirectory(atPath: "\(folder.path)/\(name)", withIntermediateDirectories: true)
            try folder.write(RunJSON.text(Samples.pubsub), to: "\(name)/run.json")
        }
        let runs = try ComparedRun.read([folder.path])
        #expect(runs.map { $0.path.replacing(folder.path, with: "D") } == ["D/a", "D/b"])
    }
}
