package import NIOCore

/// What a broker is told before it starts.
package struct BrokerConfiguration: Hashable, Sendable {
    /// A literal address or a name to listen on.
    package var host = "127.0.0.1"
    /// 0 takes a free one; ``BrokerServer/port`` says which.
    package var port = 1883
    package var faults = FaultPlan()
    /// Bytes of a whole packet that a client may send; larger is answered with 0x95.
    package var maximumPacketSize = 268_435_460
    /// QoS 1 and 2 PUBLISH that a client may have unacknowledged; stated in CONNACK when below 65,535.
    package var receiveMaximum: UInt16 = 65_535
    /// QoS 1 and 2 PUBLISH in flight to one client at most, next to its own Receive Maximum.
    package var maximumInFlight: UInt16 = 1_024
    /// Bytes waiting for one client above which those who publish to it are no longer read.
    package var highWaterMark = 1 << 20
    /// Bytes waiting for one client above which a message for it is dropped and counted.
    ///
    /// Reached only when publishers cannot be held back, because they are slow consumers themselves.
    package var queueLimit = 256 << 20
    /// How long a connection may stay without CONNECT.
    package var connectDeadline = TimeAmount.seconds(10)
    /// How long a message chosen by `--reorder` waits for a successor before it goes out unswapped.
    package var reorderHold = TimeAmount.milliseconds(100)
    /// Period of the `$SYS` topics.
    package var statisticsInterval = TimeAmount.seconds(1)
    /// Connections that the kernel keeps before accept(2); above `net.core.somaxconn` it takes that.
    package var backlog: Int32 = 16_384

    package init() {}

    package init(host: String = "127.0.0.1", port: Int, faults: FaultPlan = FaultPlan()) {
        self.host = host
        self.port = port
        self.faults = faults
    }
}
