package import MQTTCodec
package import NIOCore

/// What all sessions of one kind have in common: one object for thousands of clients.
package final class SessionOptions: Sendable {
    package let version: ProtocolVersion
    package let cleanStart: Bool
    /// Seconds; 0 switches the keep-alive off (§3.1.2.10).
    package let keepAlive: UInt16
    /// Seconds; MQTT 5 only (§3.1.2.11.2).
    package let sessionExpiry: UInt32?
    /// Publishes at QoS 1 and 2 in flight at most; the peer's receive maximum may be lower.
    package let window: Int
    /// How long an acknowledgement is awaited from the write on.
    package let ackTimeout: TimeAmount
    /// How long PINGRESP is awaited; the keep-alive itself if that is shorter.
    package let pingTimeout: TimeAmount
    /// Bytes of a packet that is accepted; announced in MQTT 5 when it is below the protocol's own limit.
    package let maximumPacketSize: Int?

    package init(
        version: ProtocolVersion,
        cleanStart: Bool = true,
        keepAlive: UInt16 = 300,
        sessionExpiry: UInt32? = nil,
        window: Int = 16,
        ackTimeout: TimeAmount = .seconds(30),
        pingTimeout: TimeAmount = .seconds(10),
        maximumPacketSize: Int? = nil
    ) {
        self.version = version
        self.cleanStart = cleanStart
        self.keepAlive = keepAlive
        self.sessionExpiry = sessionExpiry
        self.window = window
        self.ackTimeout = ackTimeout
        self.pingTimeout = pingTimeout
        self.maximumPacketSize = maximumPacketSize
    }
}
