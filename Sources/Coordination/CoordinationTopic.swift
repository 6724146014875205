/// The topics of the conversation: `clamor/1/RUN/INDEX/up`, `.../down` and `.../file/NAME`.
///
/// The number is the version of the conversation. INDEX counts from 1.
enum CoordinationTopic {
    private static let prefix = "clamor/1"

    /// All that segments send.
    static let filters = ["\(Self.prefix)/+/+/up", "\(Self.prefix)/+/+/file/+"]

    /// All that segments hear.
    static let orders = "\(Self.prefix)/+/+/down"

    static func up(_ run: String, _ index: Int) -> String { "\(self.place(run, index))/up" }
    static func down(_ run: String, _ index: Int) -> String { "\(self.place(run, index))/down" }
    static func file(_ run: String, _ index: Int, _ name: String) -> String { "\(self.place(run, index))/file/\(name)" }

    private static func place(_ run: String, _ index: Int) -> String {
        "\(self.prefix)/\(self.level(run))/\(index + 1)"
    }

    /// The run's name as one level of a topic.
    private static func level(_ run: String) -> String {
        guard !run.isEmpty else { return "-" }
        return String(run.map { $0.isASCII && ($0.isLetter || $0.isNumber) || "-_.".contains($0) ? $0 : "-" })
    }

    enum Part: Hashable {
        case up
        case file(String)
    }

    /// Reads a topic of a segment; the index is from 0.
    static func read(_ topic: String) -> (run: Substring, index: Int, part: Part)? {
        let levels = topic.split(separator: "/", omittingEmptySubsequences: false)
        guard levels.count >= 5, levels[0] == "clamor", levels[1] == "1", let index = Int(levels[3]), index > 0 else {
            return nil
        }
        switch (levels[4], levels.count) {
        case ("up", 5): return (levels[2], index - 1, .up)
        case ("file", 6): return (levels[2], index - 1, .file(String(levels[5])))
        default: return nil
        }
    }
}
