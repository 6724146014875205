// Connections through a proxy.
extension Broker {
    /// A PROXY header has arrived.
    ///
    /// - Parameter address: the client's; `nil` if the connection is the proxy's own or the address is unknown.
    package mutating func proxied(from address: String?) { self.tally.proxied.add(address: address ?? "unknown") }

    /// A required PROXY header is missing or malformed.
    package mutating func proxyRefused() { self.tally.proxyRefused += 1 }
}

extension [String: UInt64] {
    /// Counts an address; beyond the first 1,024 as `others`.
    mutating func add(address: String) {
        let name = self[address] == nil && self.count >= 1_024 ? "others" : address
        self[name, default: 0] += 1
    }
}
