import MQTTCodec
import RunControl
import Scenario
import Testing
import clamor

@Suite("--topics-payload: a file of emqtt_bench becomes streams")
struct TopicsPayloadTests {
    private static func parsed(_ json: String, _ flags: String = "", command: String = "pub") throws -> Invocation {
        let file = try ScenarioFile(json)
        let words = [command, "--topics-payload", file.path] + flags.split(separator: " ").map(String.init)
        return Invocation.parse(words)
    }

    private static func options(_ json: String, _ flags: String = "", command: String = "pub") throws -> MQTTOptions {
        let invocation = try self.parsed(json, flags, command: command)
        guard let options = invocation.mqtt else { throw ScenarioFile.Unexpected(what: "\(invocation)") }
        return options
    }

    @Test("each topic is a stream with its interval, QoS and retain flag", arguments: ["pub", "pubsub"])
    func topics(_ command: String) throws {
        let options = try Self.options(
            """
            {"topics": [
              {"name": "a/%i", "interval_ms": "1000", "QoS": 1, "retain": true, "stream": 0, "stream_priority": 8},
              {"name": "b/%c", "interval_ms": 50, "inject_timestamp": false}
            ]}
            """,
            "-s 64 --content-type x",
            command: command
        )
        #expect(options.streams.map(\.name) == ["stream1", "stream2"])
        #expect(options.streams.map(\.topic) == ["a/%i", "b/%c"])
        #expect(options.streams.map(\.pacing) == [.interval(1_000_000_000), .interval(50_000_000)])
        #expect(options.streams.map(\.qos) == [1, 0])
        #expect(options.streams.map(\.retain) == [true, false])
        #expect(options.streams.map(\.payload) == [.generated(size: 64), .generated(size: 64)])
        #expect(options.streams.map(\.properties.contentType) == ["x", "x"])
        #expect(options.hasLedger)
        #expect(options.highestQoS == 1)
    }

    static let payloads: [(String, PayloadOption)] = [
        (#""payload": {"b": "x%i", "a": 1.5}"#, .file(Array(#"{"a":1.5,"b":"x%i"}"#.utf8))),
        (
            #""payload": {"id": "v-%i", "a/b": [true, null]}, "render": "id", "payload_encoding": "json""#,
            .message(Array(#"{"a/b":[true,null],"id":"v-%i"}"#.utf8))
        ),
        (
            #""payload": {"id": "v", "timestamp": "0"}, "inject_timestamp": true"#,
            .template(Array(#"{"id":"v","timestamp":%TIMESTAMPMS%}"#.utf8), randomSizes: 256...256)
        ),
        (
            #""payload": {"id": "%c"}, "render": "id", "inject_timestamp": "ns""#,
            .template(Array(#"{"id":"%c","timestamp":%TIMESTAMPNS%}"#.utf8), randomSizes: 256...256)
        ),
        (
            #""payload": {}, "inject_timestamp": "us""#,
            .template(Array(#"{"timestamp":%TIMESTAMPUS%}"#.utf8), randomSizes: 256...256)
        ),
    ]

    @Test("a payload is JSON, with placeholders where the file says so", arguments: payloads)
    func payload(_ keys: String, _ payload: PayloadOption) throws {
        let options = try Self.options(#"{"topics": [{"name": "a", "interval_ms": "1", \#(keys)}]}"#)
        #expect(options.payload == payload)
        #expect(!options.hasLedger)
    }

    @Test("one topic is what the options of the command say as well")
    func one() throws {
        let options = try Self.options(#"{"topics": [{"name": "a", "interval_ms": 5, "QoS": 1, "retain": true}]}"#)
        let plain = Invocation.parse(["pub", "-t", "a", "-I", "5", "-q", "1", "-r"])
        guard let plain = plain.mqtt else { throw ScenarioFile.Unexpected(what: "\(plain)") }
        #expect(options.streams == [])
        #expect(ScenarioOptions(.mqtt(options)).scheduleLines == ScenarioOptions(.mqtt(plain)).scheduleLines)
    }

    private static func topic(_ keys: String) -> String {
        #"{"topics": [{"name": "a", "interval_ms": "1", \#(keys)}]}"#
    }

    static let wrongs = [
        ("topics", "is not JSON; write it like {\"topics\": [{\"name\": \"a/%i\", \"interval_ms\": \"1000\"}]}"),
        ("[]", "has no topics; write it like {\"topics\": [{\"name\": \"a/%i\", \"interval_ms\": \"1000\"}]}"),
        (
            #"{"topics": []}"#,
            "has no topics; write it like {\"topics\": [{\"name\": \"a/%i\", \"interval_ms\": \"1000\"}]}"
        ),
        (
            #"{"topics": ["a"]}"#,
            "topic 1 is no object; write it like {\"name\": \"a/%i\", \"interval_ms\": \"1000\"}"
        ),
        (
            #"{"topics": [{"interval_ms": "1"}]}"#,
            "topic 1 has no name, which is its topic; write it like \"name\": \"a/%i\""
        ),
        (
            #"{"topics": [{"name": "a"}]}"#,
            "'a': interval_ms is no number of milliseconds; write it like \"interval_ms\": \"1000\""
        ),
        (
            #"{"topics": [{"name": "a", "interval_ms": 0}]}"#,
            "'a': interval_ms is no number of milliseconds; write it like \"interval_ms\": \"1000\""
        ),
        (#"{"topics": [{"name": "a/#", "interval_ms": 1}]}"#, "'a/#': has a wildcard, which only a filter may have"),
        (Self.topic(#""QoS": 3"#), "'a': QoS is not 0, 1 or 2"),
        (Self.topic(#""retain": 1"#), "'a': retain is not true or false"),
        (
            Self.topic(#""size": 1"#),
            "topic 1: unknown key 'size'; here are name, interval_ms, QoS, retain, payload, payload_encoding, render, inject_timestamp, stream, stream_priority"
        ),
        (
            Self.topic(#""stream": 1"#),
            "'a': stream is of QUIC, and clients use one TCP connection; write 0, or leave it out"
        ),
        (
            Self.topic(#""payload": {}, "payload_encoding": "eterm""#),
            "'a': payload_encoding is json here; write \"payload_encoding\": \"json\""
        ),
        (Self.topic(#""payload": "x""#), "'a': payload is no object; write it like \"payload\": {\"temperature\": 21}"),
        (
            Self.topic(#""inject_timestamp": true"#),
            "'a': a payload is missing; write it like \"payload\": {\"timestamp\": 0}"
        ),
        (
            Self.topic(#""payload": {}, "inject_timestamp": "min""#),
            "'a': inject_timestamp is not true, false, \"s\", \"ms\", \"us\" or \"ns\""
        ),
        (
            Self.topic(#""payload": {"a": 1}, "render": "a""#),
            "'a': render names no text of the payload; write it like \"render\": \"id\""
        ),
        (
            Self.topic(#""payload": {"a": "%p10"}, "render": "a""#),
            "'a': %p, which fills pages of 4 KiB, is no placeholder here; leave the payload out, and give -s"
        ),
        (
            Self.topic(#""payload": {"a": "%i", "b": "%c"}, "render": "a""#),
            "'a': a placeholder is outside of the field that render names; take it out"
        ),
    ]

    @Test("what the file has and clients have not is refused in one line", arguments: wrongs)
    func refused(_ json: String, _ problem: String) throws {
        let file = try ScenarioFile(json)
        guard case .refused(let lines) = Invocation.parse(["pub", "--topics-payload", file.path]) else {
            Issue.record("is taken")
            return
        }
        #expect(lines == ["clamor pub: --topics-payload: \(file.path): \(problem)"])
    }

    @Test(
        "what the file says is not said again",
        arguments: [
            ("-t x", "names the topics; leave -t out"), ("-q 1", "has the QoS of each topic; leave -q out"),
            ("-r", "says of each topic whether it is retained; leave -r out"),
            ("--rate 5/s", "has the interval of each topic; leave --rate out"),
            ("-I 5", "has the interval of each topic; leave -I out"),
            ("--topic-alias", "has several topics, and one alias stands for one; leave --topic-alias out"),
        ]
    )
    func twice(_ flags: String, _ problem: String) throws {
        guard case .refused(let lines) = try Self.parsed(Self.topic(#""QoS": 1"#), flags) else {
            Issue.record("is taken")
            return
        }
        #expect(lines == ["clamor pub: --topics-payload: \(problem)"])
    }

    @Test("the file is a key of a scenario, which does the same")
    func key() throws {
        let file = try ScenarioFile(
            #"{"topics": [{"name": "a/%i", "interval_ms": "20", "QoS": 1}, {"name": "b", "interval_ms": 5}]}"#
        )
        let words = ["pub", "-c", "3", "--topics-payload", file.path, "--seed", "1", "-F", "4"]
        guard case .text(let text) = Invocation.parse(words + ["--print-scenario"]),
            let options = Invocation.parse(words).mqtt
        else {
            Issue.record("\(Invocation.parse(words + ["--print-scenario"]))")
            return
        }
        #expect(text.contains("      topics_payload: \(file.path)\n"))
        let scenario = try ScenarioFile(text).scenario()
        guard case .mqtt(let read) = scenario.groups[0].work else { return }
        #expect(read.streams == options.streams)
        #expect(scenario.scheduleHash == ScenarioOptions(.mqtt(options)).scheduleHash)
        let list = """
            seed: 1
            groups:
              pub: { clients: 3, publish: [{ topic: a/%i, qos: 1, every: 20ms }, { topic: b, every: 5ms }] }
            """
        guard let plain = Invocation.parse(words.dropLast(2)).mqtt else { return }
        #expect(try ScenarioFile(list).scenario().scheduleHash == ScenarioOptions(.mqtt(plain)).scheduleHash)
    }
}
