package import FaultInjection
package import NIOCore
package import Transport

/// The faults that a proxy adds to its connections.
package struct ProxyFaults: Hashable, Sendable {
    /// Delays bytes from the server.
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

/// The settings of a proxy.
package struct ProxyConfiguration: Sendable {
    /// A literal address or a name to listen on.
    package var host = "127.0.0.1"
    /// 0 takes a free one, ``ProxyServer/port`` says which.
    package var port = 0
    package var target: Target
    package var faults = ProxyFaults()
    /// Clients at a time, each with two descriptors; more are reset at once.
    package var maximumClients = Int.max
    /// The remedy, printed after the notice that there are too many clients.
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
    /// The buffer can exceed this by one read of 64 KiB and the kernel's bytes of a closed sender. A delay needs room
    /// for the bytes in flight; without a delay, a receiver that stops reading stops the sender at once.
    var heldLimit: Int {
        if self.faults.delay != nil { return 1 << 20 }
        return self.faults.rate != nil ? 65_536 : 1
    }
}
