package import MQTTCodec

extension TopicError {
    /// What is wrong with a topic or a filter that stands in front of this, and what would be right.
    package var words: String {
        switch self {
        case .empty: "it has at least one character"
        case .tooLong(let bytes): "it has \(bytes) bytes of UTF-8, and MQTT takes 65535 at most"
        case .nullCharacter: "it has no character U+0000"
        case .wildcardInName: "a topic to publish to has no + and no #"
        case .wildcardNotAlone: "+ and # stand alone in their level, as in a/+/b or a/#"
        case .multiLevelNotLast: "# is the last level; write + for a level in the middle"
        case .shareName: "the name behind $share/ is not empty, and has no + and no #; write it like $share/name/a/#"
        case .shareWithoutFilter: "a filter follows the name; write it like $share/name/a/#"
        }
    }
}
