import MQTTCodec
import TestSupport
import Testing

@Suite("Errors of the codec in words")
struct ErrorWordsTests {
    private static let problems: [PacketProblem] =
        [
            .clientIDEmpty, .clientIDTooLong(70_000), .nullCharacter, .userNameTooLong(70_000),
            .passwordTooLong(70_000), .passwordWithoutUserName, .willPayloadTooLong(70_000), .packetIDMissing,
            .packetIDAtQoS0, .dupAtQoS0, .noFilters, .noLocalOnShared, .optionsBeforeVersion5,
            .propertiesBeforeVersion5,
            .tooLarge(size: 2, limit: 1),
        ] + TopicError.everyCase.flatMap { [.topic($0), .filter($0), .willTopic($0)] }
        + DecodeError.everyCase.map { .properties($0) }

    /// Does not compile with a case that the list above lacks.
    private static func isListed(_ problem: PacketProblem) -> Bool {
        switch problem {
        case .clientIDEmpty, .clientIDTooLong, .nullCharacter, .userNameTooLong, .passwordTooLong,
            .passwordWithoutUserName, .willTopic, .willPayloadTooLong, .topic, .packetIDMissing, .packetIDAtQoS0,
            .dupAtQoS0, .noFilters, .filter, .noLocalOnShared, .optionsBeforeVersion5, .propertiesBeforeVersion5,
            .properties, .tooLarge:
            true
        }
    }

    @Test(
        "text that Swift printed is found, and words are not",
        arguments: [
            ("unknownReason(MQTTCodec.PacketType.connAck, 1)", "unknownReason("), ("a MQTTCodec.QoS", "MQTTCodec.QoS"),
            ("the reason serverBusy came", "serverBusy"), ("truncated", "truncated"),
            ("QoS 2 (§4.3) over a WebSocket, MQTT-3.1.2-2", nil),
        ] as [(String, String?)]
    )
    func wording(_ text: String, _ found: String?) {
        #expect(Wording.swift(in: text).map(String.init) == found)
    }

    private static let errors =
        TopicError.everyCase.map { $0 as any Error } + problems.map { $0 as any Error }
        + DecodeError.everyCase.map { $0 as any Error }

    @Test("every case is words for people", arguments: errors)
    func words(_ error: any Error) {
        if let problem = error as? PacketProblem { #expect(Self.isListed(problem)) }
        #expect(Wording.swift(in: "\(error)") == nil, "\(error)")
    }

    @Test("every packet type and property has the name of the standard")
    func names() {
        #expect(PacketType.allCases.map(\.name).allSatisfy { $0 == $0.uppercased() && $0.count >= 4 })
        #expect(Set(PacketType.allCases.map(\.name)).count == PacketType.allCases.count)
        #expect(PropertyID.allCases.map(\.name).allSatisfy { $0.first?.isUppercase == true })
        #expect(PropertyID.allCases.map(\.name).compactMap(Wording.swift(in:)) == [])
        #expect(Set(PropertyID.allCases.map(\.name)).count == PropertyID.allCases.count)
    }

    @Test(
        "an error says the rule and its clause",
        arguments: [
            (.unknownReason(.connAck, 1), "the code 0x01, which CONNACK does not have (§2.4)"),
            (.reservedFlags(.pubRel, 0), "flag bits 0x0 in the first byte of a PUBREL packet (§2.1.3)"),
            (.reservedFlags(.pubAck, 8), "the byte 0x48 where a packet begins, as in an answer of HTTP (§2.1.3)"),
            (.trailingBytes(1), "1 byte after the last field of a packet (§2.1.4)"),
            (.propertyNotAllowed(.topicAlias), "the property Topic Alias, which this packet does not have (§2.2.2.2)"),
        ] as [(DecodeError, String)]
    )
    func clause(_ error: DecodeError, _ words: String) {
        #expect("\(error)" == words)
    }
}
