import Scenario
import clamor

import Foundation
import Measurement

/// The JSON Schema of scenario files, for editors.
///
/// An editor does not know the protocol of a group, so a group has the keys of all protocols.
enum ScenarioSchema {
    /// The largest number that every reader of JSON holds exactly.
    static let largestExact: UInt64 = 1 << 53

    static var text: String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(Self.schema) else {
            preconditionFailure("the schema has no numbers but integers")
        }
        return String(decoding: data, as: UTF8.self) + "\n"
    }

    private static var schema: JSONValue {
        [
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "Clamor scenario",
            "description":
                "Groups of MQTT and XMPP clients on one timeline. make reference generates the schema.",
            "type": "object",
            "properties": Self.properties(ReferenceKey.file),
            "additionalProperties": false,
            "$defs": .object(Self.definitions.merging(Self.values) { $1 }),
        ]
    }

    // MARK: - Values

    private static let number = "([0-9]+\\.?[0-9]*|\\.[0-9]+)"

    private static let values: [String: JSONValue] = {
        let unit = "(B|KB|MB|KiB|MiB)?"
        return [
            "variable": [
                "description": "A value with '${NAME}' or '${NAME:-default}' in it.", "type": "string",
                "pattern": "\\$\\{",
            ],
            "text": ["type": ["string", "number", "boolean"]],
            "boolean": Self.any(["type": "boolean"], Self.matching("^(true|false)$")),
            "duration": Self.any(["const": 0], Self.matching("^(0|(\(Self.number)(ns|us|µs|ms|s|m|h|d))+)$")),
            "rate": Self.any(
                ["type": "number", "exclusiveMinimum": 0, "maximum": 1_000_000_000],
                Self.matching("^\(Self.number)(/s)?$")
            ),
            "zeroRate": Self.any(
                ["type": "number", "minimum": 0, "maximum": 1_000_000_000],
                Self.matching("^\(Self.number)(/s)?$")
            ),
            "size": Self.any(
                ["type": "integer", "minimum": 0],
                Self.matching("^[0-9]+\(unit)(\\.\\.[0-9]+\(unit))?$")
            ),
            "share": Self.any(Self.matching("^(100(\\.0*)?|[0-9]{1,2}(\\.[0-9]*)?|\\.[0-9]+)%$")),
            "load": Self.any(Self.matching("^\(Self.number)%$")),
            "count": Self.any(
                ["type": "integer", "minimum": 1],
                Self.matching("^([0-9]*[1-9][0-9]*|\(Self.number)%)$")
            ),
            "target": Self.any(Self.matching("^(embedded|(mqtts?|wss?|xmpps?)://.+)$")),
        ]
    }()

    static func reference(_ name: String) -> JSONValue { ["$ref": .string("#/$defs/\(name)")] }

    /// One of them, or a variable.
    private static func any(_ schemas: JSONValue...) -> JSONValue {
        ["anyOf": .array(schemas + [Self.reference("variable")])]
    }

    private static func matching(_ pattern: String) -> JSONValue { ["type": "string", "pattern": .string(pattern)] }

    static func oneOrMore(_ schema: JSONValue) -> JSONValue {
        ["anyOf": [schema, ["type": "array", "items": schema, "minItems": 1]]]
    }

    /// The value of an option's key.
    static func value(of spec: OptionSpec) -> JSONValue {
        let value = Self.value(spec.schema)
        return switch spec.shape {
        case .list, .repeated: Self.oneOrMore(value)
        case .pairs:
            ["anyOf": [["type": "object", "additionalProperties": Self.reference("text")], Self.oneOrMore(value)]]
        case .one, .words, .flag, .toggle: value
        }
    }

    static func value(_ schema: OptionSchema) -> JSONValue {
        switch schema {
        case .text: self.reference("text")
        case .duration: self.reference("duration")
        case .rate: self.reference("rate")
        case .size: self.reference("size")
        case .share: self.reference("share")
        case .boolean: self.reference("boolean")
        case .number, .choice, .pattern, .either:
            ["anyOf": .array(self.alternatives(schema) + [self.reference("variable")])]
        }
    }

    private static func alternatives(_ schema: OptionSchema) -> [JSONValue] {
        switch schema {
        case .number(let least, let most):
            var bounds: [String: JSONValue] = ["type": "integer", "minimum": .integer(least)]
            if most <= self.largestExact { bounds["maximum"] = .integer(Int64(most)) }
            return [.object(bounds), self.matching("^[0-9]+$")]
        case .choice(let words):
            // YAML reads 3.1 as a number.
            let numbers = Set(words.compactMap(Double.init)).sorted().map(JSONValue.number)
            return [["enum": .array(words.map(JSONValue.string) + numbers)]]
        case .pattern(let pattern): return [self.matching(pattern)]
        case .either(let one, let other): return self.alternatives(one) + self.alternatives(other)
        case .text, .duration, .rate, .size, .share, .boolean: return [self.value(schema)]
        }
    }

    // MARK: - Mappings

    /// A mapping with no other keys.
    private static func mapping(_ keys: [ReferenceKey], required: [String] = []) -> JSONValue {
        var schema: [String: JSONValue] = [
            "type": "object", "properties": self.properties(keys), "additionalProperties": false,
        ]
        if !required.isEmpty { schema["required"] = .array(required.map(JSONValue.string)) }
        return .object(schema)
    }

    private static func properties(_ keys: [ReferenceKey]) -> JSONValue {
        .object(Dictionary(keys.map { ($0.name, self.described($0.schema, $0.summary)) }, uniquingKeysWith: { $1 }))
    }

    private static func described(_ schema: JSONValue, _ words: String) -> JSONValue {
        guard case .object(var keys) = schema else { return schema }
        keys["description"] = .string(words)
        return .object(keys)
    }

    private static let name: JSONValue = ["pattern": "^[A-Za-z0-9_.-]+$"]

    static let groups: JSONValue = [
        "type": "object", "minProperties": 1, "propertyNames": Self.name,
        "additionalProperties": Self.reference("group"),
    ]

    static let templates: JSONValue = ["type": "object", "additionalProperties": Self.reference("group")]

    static let variables: JSONValue = [
        "type": "object", "propertyNames": ["pattern": "^[A-Za-z_][A-Za-z0-9_]*$"],
        "additionalProperties": Self.reference("text"),
    ]

    static let stages: JSONValue = [
        "type": "array", "minItems": 1, "maxItems": .integer(Int64(ScenarioReader.mostStages)),
        "items": Self.reference("stage"),
    ]

    static let stageName: JSONValue = [
        "anyOf": [
            ["type": "string", "pattern": "^[A-Za-z0-9_.-]+$", "not": ["enum": ["connect", "drain"]]],
            ["type": "number"], Self.reference("variable"),
        ]
    ]

    static let streamName: JSONValue = [
        "anyOf": [
            ["type": "string", "pattern": "^[A-Za-z0-9_.-]+$"], ["type": "number"], Self.reference("variable"),
        ]
    ]

    static let p2p: JSONValue = [
        "type": "object",
        "properties": ["root": Self.any(Self.matching("^[^/+#%$]+$")), "to": Self.reference("text")],
        "required": ["root"], "additionalProperties": false,
    ]

    static let turnout: JSONValue = [
        "anyOf": [
            Self.reference("count"),
            ["type": "object", "propertyNames": Self.name, "additionalProperties": Self.reference("count")],
        ]
    ]

    private static var definitions: [String: JSONValue] {
        let rate = self.reference("zeroRate")
        let duration = self.reference("duration")
        return [
            "group": self.group,
            "stage": self.mapping(ReferenceKey.stages, required: ["name", "for"]),
            "subscribe": self.subscribe,
            "publish": self.publish,
            "pace": [
                "anyOf": [
                    self.reference("rate"),
                    [
                        "type": "object", "properties": ["from": rate, "to": rate, "over": duration],
                        "required": ["from", "to"], "additionalProperties": false,
                    ],
                    [
                        "type": "object",
                        "properties": ["steps": ["type": "array", "items": rate, "minItems": 1], "every": duration],
                        "required": ["steps", "every"], "additionalProperties": false,
                    ],
                ]
            ],
        ]
    }

    private static var group: JSONValue {
        var properties: [String: JSONValue] = [:]
        if case .object(let keys) = self.properties(ReferenceKey.keys(in: nil) + [.template]) { properties = keys }
        for (section, purpose) in KeyReference.sections {
            if ["publish", "subscribe"].contains(section) {
                properties[section] = self.reference(section)
                continue
            }
            guard case .object(var mapping) = self.mapping(ReferenceKey.keys(in: section)) else { continue }
            // `ping:` alone says enough, and so does `reconnect: 5`.
            mapping["type"] = section == "reconnect" ? ["object", "null", "integer"] : ["object", "null"]
            properties[section] = self.described(.object(mapping), purpose)
        }
        return ["type": "object", "properties": .object(properties), "additionalProperties": false]
    }

    /// A mapping, or a list of streams; a list of one has all keys of a mapping.
    private static var publish: JSONValue {
        let keys = ReferenceKey.keys(in: "publish")
        guard case .object(var mapping) = self.mapping(keys.filter { $0.name != "name" }) else { return [:] }
        mapping["type"] = ["object", "null"]
        return [
            "description": "Messages that the clients publish, and their pace.",
            "anyOf": [
                .object(mapping), ["type": "array", "minItems": 2, "items": self.mapping(ReferenceKey.streams)],
                ["type": "array", "minItems": 1, "maxItems": 1, "items": self.mapping(keys)],
            ],
        ]
    }

    /// A list of filters; beside `subscribers` a mapping, without what the topology says.
    private static var subscribe: JSONValue {
        let keys = ReferenceKey.keys(in: "subscribe")
        return [
            "description": "Filters with their options.",
            "anyOf": [
                ["type": "array", "minItems": 1, "items": self.mapping(keys, required: ["filter"])],
                self.mapping(keys.filter { $0.commands.contains(.pubsub) }),
            ],
        ]
    }
}
