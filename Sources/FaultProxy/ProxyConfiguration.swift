package import FaultInjection
package import NIOCore
package import Transport

/// What a proxy does to the connections that go through it.
package struct ProxyFaults: Hashable, Sendable {
    /// What the server sends is held.
    package var delay: FaultDelay?
    /// Every Nth read of a connection, with a share every Nth answer.
    package var delayEvery: UInt64 = 1
    /// Bytes a second that each connection may send, and as many that it may get.
    package var rate: Double?
    /// Counted from the first client.
    package var stall: FaultStall?
    /// One connection is closed every so often, round robin over all.
    package var cutEvery: TimeAmount?
    /// One connection is reset every so often, round robin over all.
    package var resetEvery: TimeAmount?
    /// Bytes per write, both ways.
    package var fragment: ClosedRange<Int>?

    package init() {}
}

/// What a proxy is told before it starts.
package struct ProxyConfiguration: Sendable {
    /// A literal address or a name to listen on.
    package var host = "127.0.0.1"
    /// 0 takes a free one, ``ProxyServer/port`` says which.
    package var port = 0
    package var target: Target
    package var faults = ProxyFaults()
    /// Clients at a time, each with two descriptors; more are reset at once.
    package var maximumClients = Int.max
    /// What stands behind a notice that the clients are too many.
    package var maximumClientsRemedy = ""
    /// How long a connection to the server may take.
    package var connectTimeout = TimeAmount.seconds(10)
    /// Connections that the kernel keeps before accept(2); above `net.core.somaxconn` it takes that.
    package var backlog: Int32 = 16_384
    /// Told of clients that were turned away: one line for each reason, on the event loop.
    package var notice: @Sendable (_ line: String) -> Void = { _ in }

    package init(target: Target) { self.target = target }

    /// Bytes of a connection that wait, each way, at which its sender is no longer read.
    ///
    /// One more read comes to it, of 64 KiB, and what the kernel still has of a sender who ended. A delay needs room for
    /// what is under way; without one a receiver who does not read stops the sender at once.
    var heldLimit: Int {
        if self.faults.delay != nil { return 1 << 20 }
        return self.faults.rate != nil ? 65_536 : 1
    }
}
