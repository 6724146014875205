extension PacketProblem: CustomStringConvertible {
    package var description: String { self.words }

    /// A description of the problem for the caller that asked for the packet.
    package var words: String {
        switch self {
        case .clientIDEmpty: "the client identifier is empty, which only a clean session may have, and not in MQTT 3.1"
        case .clientIDTooLong(let count):
            "the client identifier has \(count) bytes; MQTT takes 65535 at most, and 3.1 takes 23 characters"
        case .nullCharacter: "a text has the character U+0000"
        case .userNameTooLong(let bytes): "the user name has \(bytes) bytes, and MQTT takes 65535 at most"
        case .passwordTooLong(let bytes): "the password has \(bytes) bytes, and MQTT takes 65535 at most"
        case .passwordWithoutUserName: "MQTT 3 has no password without a user name"
        case .willTopic(let error): "the topic of the will is wrong: \(error.words)"
        case .willPayloadTooLong(let bytes): "the will has \(bytes) bytes, and MQTT takes 65535 at most"
        case .topic(let error), .filter(let error): error.words
        case .packetIDMissing: "there is no packet identifier"
        case .packetIDAtQoS0: "QoS 0 has no packet identifier"
        case .dupAtQoS0: "QoS 0 has no DUP"
        case .noFilters: "there is no topic filter"
        case .noLocalOnShared: "a shared subscription has no No Local"
        case .optionsBeforeVersion5: "MQTT 3 has no options of subscriptions but QoS"
        case .propertiesBeforeVersion5: "MQTT 3 has no properties"
        case .properties(let error): "the server would refuse the properties: \(error)"
        case .tooLarge(let size, let limit): "the packet has \(size) bytes, and \(limit) are the most"
        }
    }
}

extension TopicError: CustomStringConvertible {
    /// The same as ``words``.
    public var description: String { self.words }

    /// The problem of a topic or filter, and its remedy; the topic is printed before this text.
    package var words: String {
        switch self {
        case .empty: "it has at least one character"
        case .tooLong(let bytes): "it has \(bytes) bytes of UTF-8, and MQTT takes 65535 at most"
        case .nullCharacter: "it has no character U+0000"
        case .wildcardInName: "a topic to publish to has no + and no #"
        case .wildcardNotAlone: "+ and # must be alone in their level, as in a/+/b or a/#"
        case .multiLevelNotLast: "# is the last level; write + for a level in the middle"
        case .shareName: "the name after $share/ must not be empty, nor contain + or #; write it like $share/name/a/#"
        case .shareWithoutFilter: "a filter follows the name; write it like $share/name/a/#"
        }
    }
}
