// Connections that a proxy passes on.
extension Broker {
    /// Addresses counted by name; whoever claims more of them is one of the others.
    private static let maximumAddresses = 1_024

    /// A proxy has said whose connection it is.
    ///
    /// - Parameter address: the client's; `nil` where the proxy says that it is its own connection, or does not know.
    package mutating func proxied(from address: String?) {
        var name = address ?? "unknown"
        if self.tally.proxied[name] == nil, self.tally.proxied.count >= Self.maximumAddresses { name = "others" }
        self.tally.proxied[name, default: 0] += 1
    }

    /// A connection without a PROXY header, where one is wanted, or with one that is none.
    package mutating func proxyRefused() { self.tally.proxyRefused += 1 }
}
