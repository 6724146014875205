// Connections through a proxy.
extension Broker {
    /// Addresses that are counted separately; further ones are counted as `others`.
    private static let maximumAddresses = 1_024

    /// A PROXY header has arrived.
    ///
    /// - Parameter address: the client's; `nil` if the connection is the proxy's own or the address is unknown.
    package mutating func proxied(from address: String?) {
        var name = address ?? "unknown"
        if self.tally.proxied[name] == nil, self.tally.proxied.count >= Self.maximumAddresses { name = "others" }
        self.tally.proxied[name, default: 0] += 1
    }

    /// A required PROXY header is missing or malformed.
    package mutating func proxyRefused() { self.tally.proxyRefused += 1 }
}
