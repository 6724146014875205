package import NIOCore

/// Which local addresses the clients of a run connect from.
package struct SourceAddresses: Sendable {
    /// The kernel chooses.
    package static let any = SourceAddresses()

    init() {}

    /// The addresses of `--ifaddr`, each used in turn.
    package init(given: [SocketAddress], targets: Int) { self.init() }

    /// As many of 127.0.0.1, .2, .3... as the clients need, for targets on loopback.
    package init(clients: Int, targets: Int) { self.init() }

    package func address(forClient client: Int, to remote: SocketAddress) -> SocketAddress? { nil }
}
