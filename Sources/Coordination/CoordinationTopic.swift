/// The topics of the conversation: `clamor/2/RUN/CLIENT/up`, `.../down` and `.../file/NAME`.
///
/// The number is the version of the conversation. CLIENT is the client id `INDEX-INSTANCE`, and the broker lets a client
/// use the topics of its own id alone. INDEX counts from 1. Only the process and the coordinator know INSTANCE.
enum CoordinationTopic {
    private static let prefix = "clamor/2"

    /// All that clients send.
    static func reports(of client: String) -> [String] {
        ["\(self.prefix)/+/\(client)/up", "\(self.prefix)/+/\(client)/file/+"]
    }

    /// All that clients hear.
    static func orders(to client: String) -> String { "\(self.prefix)/+/\(client)/down" }
    static func up(_ address: Coordinator.Address) -> String { "\(self.place(address))/up" }
    static func down(_ address: Coordinator.Address) -> String { "\(self.place(address))/down" }
    static func file(_ address: Coordinator.Address, _ name: String) -> String { "\(self.place(address))/file/\(name)" }

    private static func place(_ address: Coordinator.Address) -> String {
        "\(self.prefix)/\(self.level(address.run))/\(address.clientID)"
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

    static func read(_ topic: String) -> (address: Coordinator.Address, part: Part)? {
        let levels = topic.split(separator: "/", omittingEmptySubsequences: false)
        guard levels.count >= 5, levels[0] == "clamor", levels[1] == "2", let dash = levels[3].firstIndex(of: "-"),
            let index = Int(levels[3][..<dash]), index > 0
        else { return nil }
        let instance = String(levels[3][dash...].dropFirst())
        let address = Coordinator.Address(run: String(levels[2]), index: index - 1, instance: instance)
        // `01` is no index: orders would go to another client.
        guard address.clientID == levels[3] else { return nil }
        switch (levels[4], levels.count) {
        case ("up", 5): return (address, .up)
        case ("file", 6): return (address, .file(String(levels[5])))
        default: return nil
        }
    }
}
