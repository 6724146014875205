import MQTTCodec
package import NIOCore
package import Transport

package struct BrokerConfiguration: Hashable, Sendable {
    /// A literal address or a name to listen on.
    package var host = "127.0.0.1"
    /// The port of plain TCP; 0 takes a free one, see ``BrokerServer/port``.
    package var port = 1883
    /// Listeners in addition to the plain one; for their ports see ``BrokerServer/listeners``.
    package var listeners: [BrokerListener] = []
    package var webSocket = WebSocketServerSettings()
    /// Every connection must begin with a PROXY header of either version, or it is closed.
    ///
    /// The header is trusted, so only trusted proxies may reach the listeners (haproxy's proxy-protocol.txt §2).
    package var readsProxyHeader = false
    package var faults = FaultPlan()
    /// Maximum size of a client's packet in bytes, sent in CONNACK; a larger one is answered with 0x95.
    package var maximumPacketSize = PacketDecoder.usualMaximum
    /// Unacknowledged QoS 1 and 2 PUBLISH packets per client; sent in CONNACK if below 65,535.
    package var receiveMaximum: UInt16 = 65_535
    /// QoS 1 and 2 PUBLISH packets in flight to one client at most, besides the client's Receive Maximum.
    package var maximumInFlight: UInt16 = 1_024
    /// Above this number of bytes waiting for one client, its publishers are no longer read.
    package var highWaterMark = 1 << 20
    /// Above this number of bytes waiting for one client, its messages are dropped and counted.
    ///
    /// Reached only if publishers cannot be paused because they are slow consumers themselves.
    package var queueLimit = 256 << 20
    /// Bytes that wait for all clients at most that are above ``highWaterMark``; each may have an equal part of them.
    package var queuesLimit = 1 << 30
    /// Bytes of all retained messages with their topics; further ones are not kept, and counted.
    package var retainedBytes = 256 << 20
    /// Bytes of all subscriptions, about; further ones are answered with 0x97, in 3.1.1 with 0x80.
    package var subscriptionBytes = 1 << 30
    /// Sessions, those of offline clients among them; a further client is refused with 0x97, in 3.x with 0x03.
    package var maximumSessions = 1_000_000
    /// Messages that wait for one offline client at most; further ones are dropped and counted.
    package var sessionQueueMessages = 100_000
    /// Bytes that wait for one offline client at most.
    package var sessionQueueBytes = 64 << 20
    /// Bytes that wait for all offline clients at most.
    package var storedBytes = 1 << 30
    /// First levels under which `ROOT/p2p/CLIENTID` is delivered to that client alone, which need not subscribe.
    ///
    /// At QoS 1 at most, and without Retain, as Alibaba Cloud does it.
    package var p2pRoots: [String] = []
    package var limits = BrokerLimits()
    package var access = BrokerAccess()
    /// How long a connection may stay open without CONNECT, or after its end with output that its client does not take.
    package var connectDeadline = TimeAmount.seconds(10)
    /// How long a message chosen by `--reorder` waits for a successor before it is sent in order.
    package var reorderHold = TimeAmount.milliseconds(100)
    /// Period of the `$SYS` topics.
    package var statisticsInterval = TimeAmount.seconds(1)
    /// Connections that the kernel queues before accept(2); limited by `net.core.somaxconn`.
    package var backlog: Int32 = 16_384

    package init() {}

    package init(host: String = "127.0.0.1", port: Int, faults: FaultPlan = FaultPlan()) {
        self.host = host
        self.port = port
        self.faults = faults
    }
}
