/// The error of a topic name or a topic filter.
///
/// Spec: MQTT 5.0 §4.7, §4.8.2.
public enum TopicError: Error, Hashable, Sendable {
    /// A filter has at least one character [MQTT-4.7.3-1].
    case empty
    /// A filter has at most 65,535 bytes of UTF-8 [MQTT-4.7.3-3].
    case tooLong(Int)
    /// U+0000 [MQTT-4.7.3-2].
    case nullCharacter
    /// `+` or `#` in a topic name [MQTT-3.3.2-2].
    case wildcardInName
    /// `+` or `#` with other characters in its level [MQTT-4.7.1-1] [MQTT-4.7.1-2].
    case wildcardNotAlone
    /// `#` before the last level [MQTT-4.7.1-1].
    case multiLevelNotLast
    /// `$share/` with an empty name, or one with `+` or `#` [MQTT-4.8.2-1] [MQTT-4.8.2-2].
    case shareName
    /// `$share/name` without a filter [MQTT-4.8.2-2].
    case shareWithoutFilter
}

/// Topic names: what PUBLISH and wills carry.
public enum TopicName {
    /// Throws what is wrong with a topic name; a good one passes.
    public static func validate(_ topic: String) throws(TopicError) {
        var topic = topic
        let problem = topic.withUTF8 { Self.problem(UnsafeRawBufferPointer($0)) }
        if let problem { throw problem }
    }

    /// Looks at bytes that are known to be UTF-8.
    static func problem(_ bytes: UnsafeRawBufferPointer) -> TopicError? {
        if bytes.isEmpty { return .empty }
        if bytes.count > Int(UInt16.max) { return .tooLong(bytes.count) }
        for byte in bytes {
            if byte == 0 { return .nullCharacter }
            if byte == ASCII.plus || byte == ASCII.hash { return .wildcardInName }
        }
        return nil
    }
}

/// A checked topic filter, shared subscriptions included.
///
/// Everything compares bytes: no normalisation, no case folding [MQTT-4.7.3-4].
public struct TopicFilter: Hashable, Sendable {
    /// The part of a filter between two slashes.
    public enum Level: Hashable, Sendable {
        /// These characters, which may be none.
        case name(String)
        /// `+`
        case single
        /// `#`
        case multi
    }

    /// The name in `$share/name/filter`.
    public let share: String?
    /// The filter that topics are matched with, without `$share/name/`.
    public let filter: String
    /// ``filter`` as bytes: what `matches` walks, and what equality and hash go by.
    private let bytes: [UInt8]

    /// Checks `text`; `shared`: whether `$share/` is special, as it is from 5.0 on, and earlier in most brokers.
    public init(validating text: String, shared: Bool = true) throws(TopicError) {
        var whole = text
        let problem = whole.withUTF8 { Self.problem(UnsafeRawBufferPointer($0), shared: shared) }
        if let problem { throw problem }
        if shared, let range = Self.shareName(in: text.utf8) {
            self.share = String(text[range])
            self.filter = String(text[text.utf8.index(after: range.upperBound)...])
        } else {
            self.share = nil
            self.filter = text
        }
        self.bytes = Array(self.filter.utf8)
    }

    /// The levels from the left to the right.
    public var levels: [Level] {
        self.bytes.split(separator: ASCII.slash, omittingEmptySubsequences: false).map { level in
            switch level {
            case [ASCII.plus]: .single
            case [ASCII.hash]: .multi
            default: .name(String(decoding: level, as: UTF8.self))
            }
        }
    }

    /// Whether there is a `+` or a `#` in it.
    public var hasWildcard: Bool { self.bytes.contains { $0 == ASCII.plus || $0 == ASCII.hash } }

    /// Whether a message on `topic` belongs to this filter (§4.7).
    public func matches(topic: String) -> Bool {
        var topic = topic
        return topic.withUTF8 { self.matches(topic: UnsafeRawBufferPointer($0)) }
    }

    /// Whether a message on `topic`, the UTF-8 of a valid topic name, belongs to this filter.
    package func matches(topic: UnsafeRawBufferPointer) -> Bool {
        let filter = self.bytes
        // §4.7.2: a wildcard in front does not reach topics that begin with `$`.
        if topic.first == ASCII.dollar, filter[0] != ASCII.dollar { return false }
        var inFilter = 0
        var inTopic = 0
        while inFilter < filter.count {
            let byte = filter[inFilter]
            if byte == ASCII.hash { return true }
            if byte == ASCII.plus {
                while inTopic < topic.count, topic[inTopic] != ASCII.slash { inTopic += 1 }
                inFilter += 1
            } else if inTopic < topic.count, topic[inTopic] == byte {
                inTopic += 1
                inFilter += 1
            } else {
                // §4.7.1.2: `a/#` also matches its parent `a`.
                return inTopic == topic.count && filter[inFilter...].elementsEqual([ASCII.slash, ASCII.hash])
            }
        }
        return inTopic == topic.count
    }

    /// Byte for byte, share name included.
    public static func == (left: TopicFilter, right: TopicFilter) -> Bool {
        guard left.bytes == right.bytes else { return false }
        guard let leftShare = left.share, let rightShare = right.share else { return left.share == right.share }
        return leftShare.utf8.elementsEqual(rightShare.utf8)
    }

    /// Hashes the bytes of ``filter``.
    public func hash(into hasher: inout Hasher) { hasher.combine(self.bytes) }
}

extension TopicFilter {
    /// Looks at bytes that are known to be UTF-8.
    static func problem(_ bytes: UnsafeRawBufferPointer, shared: Bool) -> TopicError? {
        if bytes.isEmpty { return .empty }
        if bytes.count > Int(UInt16.max) { return .tooLong(bytes.count) }
        if bytes.contains(0) { return .nullCharacter }
        guard shared, bytes.starts(with: Self.sharePrefix) else { return Self.levelProblem(bytes[...]) }
        let rest = bytes[Self.sharePrefix.count...]
        guard let slash = rest.firstIndex(of: ASCII.slash) else {
            return Self.isShareName(rest) ? .shareWithoutFilter : .shareName
        }
        guard Self.isShareName(rest[..<slash]) else { return .shareName }
        let filter = rest[(slash + 1)...]
        return filter.isEmpty ? .shareWithoutFilter : Self.levelProblem(filter)
    }

    static func isShared(_ bytes: UnsafeRawBufferPointer) -> Bool { bytes.starts(with: Self.sharePrefix) }

    private static let sharePrefix = Array("$share/".utf8)

    private static func isShareName(_ name: Slice<UnsafeRawBufferPointer>) -> Bool {
        !name.isEmpty && !name.contains { $0 == ASCII.plus || $0 == ASCII.hash }
    }

    /// Wildcards must be alone in their level, and `#` in the last.
    private static func levelProblem(_ filter: Slice<UnsafeRawBufferPointer>) -> TopicError? {
        for index in filter.indices {
            let byte = filter[index]
            guard byte == ASCII.plus || byte == ASCII.hash else { continue }
            let next = index + 1
            let opens = index == filter.startIndex || filter[index - 1] == ASCII.slash
            let closes = next == filter.endIndex || filter[next] == ASCII.slash
            guard opens, closes else { return .wildcardNotAlone }
            if byte == ASCII.hash, next != filter.endIndex { return .multiLevelNotLast }
        }
        return nil
    }

    private static func shareName(in text: String.UTF8View) -> Range<String.Index>? {
        guard text.starts(with: Self.sharePrefix) else { return nil }
        let start = text.index(text.startIndex, offsetBy: Self.sharePrefix.count)
        guard let end = text[start...].firstIndex(of: ASCII.slash) else { return nil }
        return start..<end
    }
}

enum ASCII {
    static let slash = UInt8(ascii: "/")
    static let plus = UInt8(ascii: "+")
    static let hash = UInt8(ascii: "#")
    static let dollar = UInt8(ascii: "$")
}
