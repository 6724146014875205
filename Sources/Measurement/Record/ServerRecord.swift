/// A server under test, as it named itself.
package struct ServerRecord: Codable, Hashable, Sendable {
    /// The product in lower case: `mosquitto`, `emqx`, `ejabberd`.
    package var product: String
    package var version: String?
    /// Where it is from: `$SYS/broker/version`, `XEP-0092`.
    package var source: String
    /// The group of the clients that it served, in a run with several groups.
    package var group: String?

    package init(product: String, version: String?, source: String, group: String? = nil) {
        self.product = product
        self.version = version
        self.source = source
        self.group = group
    }

    /// `mosquitto 2.0.11`.
    package var words: String { self.version.map { "\(self.product) \($0)" } ?? self.product }
}

extension [ServerRecord] {
    /// Each server with its version once, in the order of the groups.
    package var words: [String] { self.map(\.words).firstOfEach }
}
