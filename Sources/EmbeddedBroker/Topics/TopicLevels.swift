/// Topics and filters as bytes: MQTT compares bytes, String compares by canonical equivalence (§4.7.3).
enum TopicLevels {
    static let slash = UInt8(ascii: "/")
    static let plus: [UInt8] = [UInt8(ascii: "+")]
    static let hash: [UInt8] = [UInt8(ascii: "#")]

    /// The levels of a topic or filter; an empty level counts.
    static func split(_ bytes: [UInt8]) -> [[UInt8]] {
        bytes.split(separator: self.slash, omittingEmptySubsequences: false).map { Array($0) }
    }

    /// Whether a filter matches a topic, level by level: the definition that tree and cache are tested with.
    static func matches(filter: [[UInt8]], topic: [[UInt8]]) -> Bool {
        // §4.7.2: a leading wildcard does not match topics that begin with `$`.
        if topic[0].first == UInt8(ascii: "$"), filter[0] == self.plus || filter[0] == self.hash { return false }
        var index = 0
        while index < filter.count {
            if filter[index] == self.hash { return true }
            guard index < topic.count, filter[index] == self.plus || filter[index] == topic[index] else { return false }
            index += 1
        }
        return index == topic.count
    }
}
