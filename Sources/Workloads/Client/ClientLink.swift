package import LoadEngine
package import MQTT
package import Measurement
package import NIOCore
package import XMPP

/// A client's connection to its server, as far as the client's life needs it.
///
/// This is the seam between a client and its socket: the life asks for nothing else, so a link need not be a NIO channel's
/// handler for anything but ``ClientConnector``, which makes it.
package protocol ClientLink: ChannelHandler {
    /// Whether the socket takes a write now.
    var isWritable: Bool { get }

    /// Adds messages to the next write: `write` fills memory of at least so many bytes and returns how many it filled.
    func append(messages: Int, bytes: Int, _ write: (UnsafeMutableRawBufferPointer) -> Int)

    /// Writes what was added.
    ///
    /// - Returns: bytes that the kernel did not take.
    func flush() -> Int

    /// Closes in good order: the protocol's last word, then FIN.
    func finish()

    /// Closes at once.
    func abort()

    /// A time that the link asked for has come.
    func timerFired(now: NIODeadline)
}

extension MQTTConnection: ClientLink {
    package func append(messages: Int, bytes: Int, _ write: (UnsafeMutableRawBufferPointer) -> Int) {
        self.append(bytes, write)
    }

    package func finish() { self.finish(Disconnect()) }
}

extension XMPPConnection: ClientLink {
    package func append(messages: Int, bytes: Int, _ write: (UnsafeMutableRawBufferPointer) -> Int) {
        self.append(count: messages) { $0.writeWithUnsafeMutableBytes(minimumWritableBytes: bytes, write) }
    }
}

/// How a link ended.
package protocol ClientLinkEnd {
    /// The peer answered the last word: it has read everything before it.
    var isAnswered: Bool { get }
    /// This side closed at once.
    var isAborted: Bool { get }
    /// Whether the client may connect again after it.
    var allowsRetry: Bool { get }
}

extension ConnectionEnd: ClientLinkEnd {
    package var isAnswered: Bool { self == .answered }
    package var isAborted: Bool { self == .aborted }
    package var allowsRetry: Bool { true }
}

extension XMPPConnectionEnd: ClientLinkEnd {
    package var isAnswered: Bool { self == .answered }
    package var isAborted: Bool { self == .aborted }
    package var allowsRetry: Bool { self.retry != .never }
}

/// What the life reads of a load.
package protocol ClientLoad: Sendable {
    var payload: LoadPayload { get }
    var isOpenLoop: Bool { get }
    var connectTimeout: TimeAmount { get }
    /// Attempts after a first connect that failed.
    var connectRetries: Int { get }
    /// Connects after the first that succeeded.
    var reconnects: Int { get }
    var reconnectPeriod: TimeAmount { get }
    /// CLOCK_REALTIME less the monotonic clock, nanoseconds.
    var realtimeOffset: Int64 { get }
}

extension MQTTLoad: ClientLoad {}
extension XMPPLoad: ClientLoad {}

/// What the life records.
package protocol ClientMetrics: Sendable {
    var catalog: MetricCatalog { get }
    var connect: ConnectMetrics { get }
    /// Of clients that were connected before.
    var reconnect: ConnectMetrics { get }
    var departures: [DeparturePlan.Cause: DepartureMetrics] { get }
    var scheduleLag: DurationID { get }
    var traffic: TrafficMetrics { get }
}

extension MQTTMetrics: ClientMetrics {}
extension XMPPMetrics: ClientMetrics {}
