package import NIOCore
package import Transport

/// What a broker is told before it starts.
package struct BrokerConfiguration: Hashable, Sendable {
    /// A literal address or a name to listen on.
    package var host = "127.0.0.1"
    /// For plain TCP; 0 takes a free one, ``BrokerServer/port`` says which.
    package var port = 1883
    /// Beside the plain one; ``BrokerServer/listeners`` says on which ports.
    package var listeners: [BrokerListener] = []
    /// How those with a WebSocket answer.
    package var webSocket = WebSocketServerSettings()
    /// Every connection begins with a PROXY header, of either form, and one without it is closed.
    ///
    /// A header is believed, so the listeners are for trusted proxies alone (haproxy's proxy-protocol.txt §2).
    package var readsProxyHeader = false
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
    /// Messages that wait for one client that is away, at most; more are dropped and counted.
    package var sessionQueueMessages = 100_000
    /// Bytes of them, at most.
    package var sessionQueueBytes = 64 << 20
    /// Bytes that wait for all clients that are away, at most.
    package var storedBytes = 1 << 30
    package var limits = BrokerLimits()
    package var access = BrokerAccess()
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
