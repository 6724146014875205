import MQTTCodec
import Testing

@Suite("Topic names and filters")
struct TopicFilterTests {
    @Test(
        "[MQTT-4.7.2-1] [MQTT-4.7.3-4] match as the standard's own examples say (§4.7.1, §4.7.2)",
        arguments: [
            ("sport/tennis/player1/#", "sport/tennis/player1", true),
            ("sport/tennis/player1/#", "sport/tennis/player1/ranking", true),
            ("sport/tennis/player1/#", "sport/tennis/player1/score/wimbledon", true),
            ("sport/tennis/player1/#", "sport/tennis/player2", false),
            ("sport/#", "sport", true),
            ("sport/#", "sports", false),
            ("#", "a/b", true),
            ("sport/tennis/+", "sport/tennis/player1", true),
            ("sport/tennis/+", "sport/tennis/player1/ranking", false),
            ("sport/+", "sport", false),
            ("sport/+", "sport/", true),
            ("+/+", "/finance", true),
            ("/+", "/finance", true),
            ("+", "/finance", false),
            ("+/tennis/#", "a/tennis", true),
            ("+/#", "a", true),
            ("a/+/c", "a//c", true),
            ("a/+/c", "a/b/c/d", false),
            ("a/b", "a/b", true),
            ("a/b", "a/B", false),
            ("a/b", "a/b/", false),
            ("a/b", "a/bc", false),
            ("a/bc", "a/b", false),
            ("#", "$SYS/monitor", false),
            ("+/monitor/Clients", "$SYS/monitor/Clients", false),
            ("$SYS/#", "$SYS/monitor", true),
            ("$SYS/#", "$SYS", true),
            ("$SYS/monitor/+", "$SYS/monitor/Clients", true),
            ("$share/group/a/+", "a/b", true),
            ("$share/group/#", "$SYS/a", false),
            ("$share/group/a", "$share/group/a", false),
            // One character, precomposed and not: other bytes, other topic [MQTT-4.7.3-4].
            ("\u{E9}", "e\u{301}", false),
        ]
    )
    func matches(_ filter: String, _ topic: String, _ expected: Bool) throws {
        #expect(try TopicFilter(validating: filter).matches(topic: topic) == expected)
    }

    @Test(
        "are accepted",
        arguments: ["#", "a/#", "+", "+/a/+", "/", "//", "a b", "$share/g/#", "$share/g//", "$shared"]
    )
    func accepts(_ filter: String) throws {
        _ = try TopicFilter(validating: filter)
    }

    @Test(
        "[MQTT-4.7.1-1] [MQTT-4.7.1-2] [MQTT-4.7.3-1] [MQTT-4.8.2-1] are refused with the rule",
        arguments: [
            ("", .empty), ("a\0", .nullCharacter), ("a#", .wildcardNotAlone), ("a/b#", .wildcardNotAlone),
            ("#a", .wildcardNotAlone), ("#/", .multiLevelNotLast), ("a/#/b", .multiLevelNotLast),
            ("+a", .wildcardNotAlone), ("a+/b", .wildcardNotAlone), ("++", .wildcardNotAlone),
            ("$share/", .shareName), ("$share//a", .shareName), ("$share/g", .shareWithoutFilter),
            ("$share/g/", .shareWithoutFilter), ("$share/+/a", .shareName), ("$share/a#/a", .shareName),
            ("$share/g/a#", .wildcardNotAlone), (String(repeating: "a", count: 65_536), .tooLong(65_536)),
        ] as [(String, TopicError)]
    )
    func refuses(_ filter: String, _ error: TopicError) {
        #expect(throws: error) { try TopicFilter(validating: filter) }
    }

    @Test("come apart into share name, filter and levels")
    func parts() throws {
        let filter = try TopicFilter(validating: "$share/group/a//+/#")
        #expect(filter.share == "group")
        #expect(filter.filter == "a//+/#")
        #expect(filter.levels == [.name("a"), .name(""), .single, .multi])
        #expect(filter.hasWildcard)
        let plain = try TopicFilter(validating: "$share/group/a", shared: false)
        #expect(plain.share == nil)
        #expect(plain.matches(topic: "$share/group/a"))
    }

    @Test("[MQTT-4.7.3-4] compare by bytes, the share name included")
    func equality() throws {
        #expect(try TopicFilter(validating: "\u{E9}") != TopicFilter(validating: "e\u{301}"))
        #expect(try TopicFilter(validating: "$share/g/a") != TopicFilter(validating: "$share/h/a"))
        #expect(try TopicFilter(validating: "$share/g/a") != TopicFilter(validating: "a"))
        #expect(try TopicFilter(validating: "$share/g/a") == TopicFilter(validating: "$share/g/a"))
    }

    @Test("[MQTT-3.3.2-2] a topic name has no wildcards")
    func names() throws {
        try TopicName.validate("a/é b")
        for (name, error) in [("", .empty), ("a/+", .wildcardInName), ("#", .wildcardInName), ("\0", .nullCharacter)]
            as [(String, TopicError)]
        {
            #expect(throws: error) { try TopicName.validate(name) }
        }
    }
}
