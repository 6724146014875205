package import NIOCore

/// The local addresses that the clients of a run connect from.
package struct SourceAddresses: Sendable {
    /// Connections per source address and target.
    ///
    /// Linux first searches for a source port in one half of its range (14,116 ports by default). Beyond that a connect
    /// costs three times as much, and at 28,232 it fails.
    package static let connectionsPerSource = 12_000

    /// The kernel chooses.
    package static let any = SourceAddresses(ipv4: [], ipv6: [], targets: 1, isGiven: false)

    private let ipv4: [SocketAddress]
    private let ipv6: [SocketAddress]
    private let targets: Int
    private let isGiven: Bool

    private init(ipv4: [SocketAddress], ipv6: [SocketAddress], targets: Int, isGiven: Bool) {
        self.ipv4 = ipv4
        self.ipv6 = ipv6
        self.targets = targets
        self.isGiven = isGiven
    }

    /// The addresses of `--ifaddr`, used in turn.
    ///
    /// - Parameters:
    ///   - given: literal IP addresses of one or both families.
    ///   - targets: the number of targets that the clients use in turn.
    /// - Throws: `SocketAddressError` for text that is not an IP address.
    package init(given: [String], targets: Int) throws {
        let addresses = try given.map { try SocketAddress(ipAddress: $0, port: 0) }
        self.init(
            ipv4: addresses.filter { $0.protocol == .inet },
            ipv6: addresses.filter { $0.protocol == .inet6 },
            targets: max(1, targets),
            isGiven: !addresses.isEmpty
        )
    }

    /// As many of 127.0.0.1, 127.0.0.2 and so on as the clients need, for targets on IPv4 loopback.
    ///
    /// - Parameters:
    ///   - clients: the number of clients of this process.
    ///   - targets: the number of targets that they use in turn.
    ///   - connectionsPerSource: connections to one target before another address is used.
    package init(clients: Int, targets: Int, connectionsPerSource: Int = SourceAddresses.connectionsPerSource) {
        let targets = max(1, targets)
        let perTarget = (clients + targets - 1) / targets
        let perSource = max(1, connectionsPerSource)
        let needed = (perTarget + perSource - 1) / perSource
        // The kernel uses this one address anyway.
        let last = needed > 1 ? min(needed, 254) : 0
        let addresses = (0..<last).compactMap { try? SocketAddress(ipAddress: "127.0.0.\($0 + 1)", port: 0) }
        self.init(ipv4: addresses, ipv6: [], targets: targets, isGiven: false)
    }

    /// The number of rounds of targets after which the sources repeat, for targets of any family.
    ///
    /// 1 if the kernel chooses.
    package var rounds: Int {
        let (four, six) = (max(1, self.ipv4.count), max(1, self.ipv6.count))
        // Both counts divide their product.
        return four == 1 || six == 1 || four == six ? max(four, six) : four * six
    }

    /// Whether a connection to `remote` is possible: `false` if the given addresses are of the other family.
    package func canReach(_ remote: SocketAddress) -> Bool {
        guard self.isGiven else { return true }
        return !(remote.protocol == .inet ? self.ipv4 : self.ipv6).isEmpty
    }

    /// The address to bind to, port 0; `nil` leaves it to the kernel.
    package func address(forClient client: Int, to remote: SocketAddress) -> SocketAddress? {
        let addresses = remote.protocol == .inet ? self.ipv4 : self.ipv6
        guard !addresses.isEmpty, self.isGiven || remote.isIPv4Loopback else { return nil }
        // The target changes with every client, the source with every round of targets, so that all pairs are used.
        return addresses[client / self.targets % addresses.count]
    }
}

extension SocketAddress {
    /// Whether the address is in 127.0.0.0/8.
    package var isIPv4Loopback: Bool {
        guard self.protocol == .inet else { return false }
        // sockaddr_in: family, port, and the address from byte 4 on.
        return self.withSockAddr { address, _ in
            UnsafeRawPointer(address).load(fromByteOffset: 4, as: UInt8.self) == 127
        }
    }
}
