package import Measurement

/// Reads a server's product and version from the texts in which servers tell them.
package enum ServerIdentity {
    /// The topic of mosquitto, and of brokers that copy it.
    package static let brokerTopic = "$SYS/broker/version"
    /// The topics of EMQX, one for each of its nodes.
    package static let nodeFilter = "$SYS/brokers/+/version"
    /// Longer names are cut: no server is known to have one.
    private static let longest = 80

    /// `nil` for another topic, and for a text without a name: it is no product for a comparison.
    package static func record(topic: String, payload: [UInt8]) -> ServerRecord? {
        guard let text = Self.plain(String(decoding: payload.prefix(Self.longest), as: UTF8.self)) else { return nil }
        if topic == Self.brokerTopic { return Self.broker(text) }
        let levels = topic.split(separator: "/", omittingEmptySubsequences: false)
        guard levels.count == 4, levels[0] == "$SYS", levels[1] == "brokers", levels[3] == "version" else { return nil }
        return ServerRecord(product: "emqx", version: text, source: Self.nodeFilter)
    }

    /// The answer of an XMPP server.
    package static func record(xmppName name: String, version: String?) -> ServerRecord? {
        guard let product = Self.plain(name) else { return nil }
        return ServerRecord(product: product.lowercased(), version: version.flatMap(Self.plain), source: "XEP-0092")
    }

    /// `mosquitto version 2.0.11`, or a name with or without a number after it; `nil` for a number alone.
    private static func broker(_ text: String) -> ServerRecord? {
        var words = text.split(separator: " ").map(String.init)
        var version: String?
        if words.count > 1, let last = words.last, last.utf8.contains(where: { (0x30...0x39).contains($0) }) {
            version = last
            words.removeLast()
            if words.last?.lowercased() == "version" { words.removeLast() }
        }
        guard let first = words.first?.utf8.first, !(0x30...0x39).contains(first) else { return nil }
        let product = words.joined(separator: " ").lowercased()
        return ServerRecord(product: product, version: version, source: Self.brokerTopic)
    }

    /// The text in one line, without surrounding blanks; `nil` if nothing is left.
    private static func plain(_ text: String) -> String? {
        let words = LabelText.safe(String(text.prefix(Self.longest))).split(separator: " ")
        return words.isEmpty ? nil : words.joined(separator: " ")
    }
}
