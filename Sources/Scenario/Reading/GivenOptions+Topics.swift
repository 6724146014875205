import Foundation
import Measurement
import Workloads

// Several topics of one publisher, and messages to single clients.
extension GivenOptions {
    /// Checks messages to single clients, whose topics follow from the receivers.
    mutating func checkPeers(_ options: MQTTOptions) {
        guard options.p2p != nil else { return }
        if self.isGiven(\.topic) {
            self.refuse(\.topic, "messages to single clients have the topic of each; leave topic or p2p out")
        }
        // SPEC A14: the service lowers QoS 2, and what was asked for would not be measured.
        if options.qualities.contains(2) {
            self.refuse(\.qos, "messages to single clients have no QoS 2; use 0 or 1")
        }
        if options.topicAlias != nil {
            self.refuse(\.topicAlias, "needs a topic that stays the same, which p2p has not; leave one of the two out")
        }
    }

    /// Reads the topics of `--topics-payload`, behind payload and properties.
    mutating func readTopics(into options: inout MQTTOptions) {
        guard let path = self[\.topicsPayload], let bytes = self.contents(of: path, for: \.topicsPayload) else {
            return
        }
        do throws(QuantityError) {
            options.streams = try TopicsFile(bytes).streams(like: PublishStream(name: "", of: options))
        } catch {
            return self.refuse(\.topicsPayload, "\(path): \(error.description)")
        }
        for stream in options.streams {
            let problem =
                stream.topic.contains(where: { $0 == "+" || $0 == "#" })
                ? "has a wildcard, which only a filter may have" : TextCheck.topicName(stream.topic)
            if let problem { self.refuse(\.topicsPayload, "\(path): '\(stream.topic)': \(problem)") }
        }
        // One topic is that of the options.
        if options.streams.count == 1 { return options = options.with(options.streams[0]) }
        // These are now the streams'.
        let usual = MQTTOptions(kind: options.kind)
        options.payload = usual.payload
        options.publishProperties = usual.publishProperties
        options.responseTopic = nil
    }
}

/// A file of emqtt_bench with the topics of each publisher: `{"topics": [{"name": "a/%i", "interval_ms": "1000"}]}`.
private struct TopicsFile {
    private static let keys = [
        "name", "interval_ms", "QoS", "retain", "payload", "payload_encoding", "render", "inject_timestamp", "stream",
        "stream_priority",
    ]
    /// The units of `inject_timestamp`, each with the placeholder of a template.
    private static let timestamps = [
        "s": "%TIMESTAMP%", "ms": "%TIMESTAMPMS%", "us": "%TIMESTAMPUS%", "ns": "%TIMESTAMPNS%",
    ]

    private let topics: [[String: JSONValue]]

    init(_ bytes: [UInt8]) throws(QuantityError) {
        guard let root = try? JSONDecoder().decode(JSONValue.self, from: Data(bytes)) else {
            throw QuantityError(
                "is not JSON; write it like {\"topics\": [{\"name\": \"a/%i\", \"interval_ms\": \"1000\"}]}"
            )
        }
        guard case .object(let keys) = root, case .array(let values)? = keys["topics"], !values.isEmpty else {
            throw QuantityError(
                "has no topics; write it like {\"topics\": [{\"name\": \"a/%i\", \"interval_ms\": \"1000\"}]}"
            )
        }
        var topics: [[String: JSONValue]] = []
        for value in values {
            guard case .object(let topic) = value else {
                throw QuantityError(
                    "topic \(topics.count + 1) is no object; write it like {\"name\": \"a/%i\", \"interval_ms\": \"1000\"}"
                )
            }
            topics.append(topic)
        }
        self.topics = topics
    }

    /// `usual`: what a topic without a payload has, and the properties of all.
    func streams(like usual: PublishStream) throws(QuantityError) -> [PublishStream] {
        var streams: [PublishStream] = []
        for topic in self.topics { streams.append(try Self.stream(topic, streams.count + 1, usual)) }
        return streams
    }

    private static func stream(
        _ topic: [String: JSONValue],
        _ number: Int,
        _ usual: PublishStream
    ) throws(QuantityError) -> PublishStream {
        if let key = topic.keys.filter({ !self.keys.contains($0) }).min() {
            throw QuantityError("topic \(number): unknown key '\(key)'; here are \(self.keys.joined(separator: ", "))")
        }
        guard case .string(let name)? = topic["name"], !name.isEmpty else {
            throw QuantityError("topic \(number) has no name, which is its topic; write it like \"name\": \"a/%i\"")
        }
        var stream = usual
        stream.name = "stream\(number)"
        stream.topic = name
        stream.pacing = .interval(try self.interval(topic["interval_ms"], name))
        stream.qos = try self.qos(topic["QoS"], name)
        stream.retain = try self.boolean(topic["retain"], "retain", name)
        // Topics of one connection; a QUIC stream would be one more.
        if let value = topic["stream"], value != .integer(0) {
            throw QuantityError(
                "'\(name)': stream is of QUIC, and clients use one TCP connection; write 0, or leave it out"
            )
        }
        stream.payload = try self.payload(topic, name) ?? usual.payload
        return stream
    }

    /// Nanoseconds of a number of milliseconds, which emqtt_bench writes as a text.
    private static func interval(_ value: JSONValue?, _ name: String) throws(QuantityError) -> Int64 {
        let number: Int64? =
            switch value {
            case .string(let text)?: Int64(text)
            case .integer(let number)?: number
            default: nil
            }
        guard let number, (1...86_400_000).contains(number) else {
            throw QuantityError(
                "'\(name)': interval_ms is no number of milliseconds; write it like \"interval_ms\": \"1000\""
            )
        }
        return number * 1_000_000
    }

    private static func qos(_ value: JSONValue?, _ name: String) throws(QuantityError) -> UInt8 {
        guard let value else { return 0 }
        if case .integer(let number) = value, let qos = UInt8(exactly: number), qos <= 2 { return qos }
        throw QuantityError("'\(name)': QoS is not 0, 1 or 2")
    }

    private static func boolean(_ value: JSONValue?, _ key: String, _ name: String) throws(QuantityError) -> Bool {
        guard let value else { return false }
        if case .bool(let isSet) = value { return isSet }
        throw QuantityError("'\(name)': \(key) is not true or false")
    }

    // MARK: - Payloads

    /// The text of a payload; `nil` if there is none.
    private static func payload(_ topic: [String: JSONValue], _ name: String) throws(QuantityError) -> PayloadOption? {
        let time = try self.timestamp(topic["inject_timestamp"], name)
        switch topic["payload_encoding"] {
        case nil, .string("json"): break
        default: throw QuantityError("'\(name)': payload_encoding is json here; write \"payload_encoding\": \"json\"")
        }
        guard let value = topic["payload"] else {
            guard time == nil, topic["render"] == nil else {
                throw QuantityError("'\(name)': a payload is missing; write it like \"payload\": {\"timestamp\": 0}")
            }
            return nil
        }
        guard case .object(var payload) = value else {
            throw QuantityError("'\(name)': payload is no object; write it like \"payload\": {\"temperature\": 21}")
        }
        let field = try self.field(topic["render"], of: payload, name)
        guard time != nil || field != nil else { return .file(try self.text(payload)) }
        if let time { payload["timestamp"] = .string(time) }
        // emqtt_bench sends all other fields as they are.
        let fixed = try self.text(payload.filter { $0.key != field && (time == nil || $0.key != "timestamp") })
        guard Template(parsing: fixed) == Template(literal: fixed), !Template.draft(fixed, randomSizes: 1...1).hasNames
        else {
            throw QuantityError("'\(name)': a placeholder is outside of the field that render names; take it out")
        }
        guard let time else { return .message(try self.text(payload)) }
        // A number, and no text.
        let text = String(decoding: try self.text(payload), as: UTF8.self)
        return .template(Array(text.replacing("\"\(time)\"", with: time).utf8), randomSizes: 256...256)
    }

    /// The placeholder of the time of sending; `nil` without one.
    private static func timestamp(_ value: JSONValue?, _ name: String) throws(QuantityError) -> String? {
        switch value {
        case nil, .bool(false): return nil
        case .bool(true): return self.timestamps["ms"]
        case .string(let unit):
            if let time = self.timestamps[unit] { return time }
        default: break
        }
        throw QuantityError("'\(name)': inject_timestamp is not true, false, \"s\", \"ms\", \"us\" or \"ns\"")
    }

    /// The field whose placeholders are replaced.
    private static func field(
        _ value: JSONValue?,
        of payload: [String: JSONValue],
        _ name: String
    ) throws(QuantityError) -> String? {
        guard let value else { return nil }
        guard case .string(let field) = value, case .string(let text)? = payload[field] else {
            throw QuantityError("'\(name)': render names no text of the payload; write it like \"render\": \"id\"")
        }
        if text.contains("%p") {
            throw QuantityError(
                "'\(name)': %p, which fills pages of 4 KiB, is no placeholder here; leave the payload out, and give -s"
            )
        }
        return field
    }

    private static func text(_ payload: [String: JSONValue]) throws(QuantityError) -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(JSONValue.object(payload)) else {
            throw QuantityError("has a number that JSON has no form for")
        }
        return Array(data)
    }
}
