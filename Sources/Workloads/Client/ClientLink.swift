package import LoadEngine
package import MQTT
package import Measurement
package import NIOCore
package import Transport
package import XMPP

/// A client's connection to its server, as the client's life sees it.
///
/// This is the only seam between a client and its socket.
package protocol ClientLink: WireUser {
    /// Whether the socket currently accepts a write.
    var isWritable: Bool { get }

    /// Adds messages to the next write. `write` gets memory of at least `bytes` bytes and returns how many it filled.
    func append(messages: Int, bytes: Int, _ write: (UnsafeMutableRawBufferPointer) -> Int)

    /// Closes gracefully: the protocol's last packet or tag, then FIN.
    func finish()

    /// The same for a client that does not return: the server keeps nothing for it.
    func finishForGood()

    /// Closes at once.
    func abort()

    /// A deadline that the link requested has passed.
    func timerFired(now: NIODeadline)
}

extension MQTTConnection: ClientLink {
    package func append(messages: Int, bytes: Int, _ write: (UnsafeMutableRawBufferPointer) -> Int) {
        self.append(bytes, write)
    }

    package func finish() { self.finish(Disconnect()) }
}

extension XMPPConnection: ClientLink {
    package func finishForGood() { self.finish() }

    package func append(messages: Int, bytes: Int, _ write: (UnsafeMutableRawBufferPointer) -> Int) {
        self.append(count: messages) { $0.writeWithUnsafeMutableBytes(minimumWritableBytes: bytes, write) }
    }
}

package protocol ClientLinkEnd {
    /// The peer answered the last packet or tag, so it has read everything before.
    var isAnswered: Bool { get }
    /// This side aborted the connection.
    var isAborted: Bool { get }
    /// Whether the client may connect again.
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

/// The settings of a load that the life reads.
package protocol ClientLoad: Sendable {
    /// The largest payload in bytes, before placeholders are replaced.
    var largestPayload: Int { get }
    /// Whether each client has several streams of operations.
    var hasStreams: Bool { get }
    var isOpenLoop: Bool { get }
    var connectTimeout: TimeAmount { get }
    /// Retries after a first connect that failed.
    var connectRetries: Int { get }
    /// Reconnects after the first successful connect.
    var reconnects: Int { get }
    var backoff: Backoff { get }
    /// Whether a client tries the next target after a loss and after each connect that failed.
    var failsOver: Bool { get }
    var seed: UInt64 { get }
    /// The fate of operations that are due while their client sleeps; `nil`: no client does.
    var dueWhileAway: Cycle.Due? { get }
    /// CLOCK_REALTIME minus the monotonic clock, in nanoseconds.
    var realtimeOffset: Int64 { get }
}

extension ClientLoad {
    /// The metric of operations that sleeping clients do not send; `nil` where there are none.
    func skipped(_ skipped: MetricDefinition, _ replaced: MetricDefinition) -> MetricDefinition? {
        self.dueWhileAway.flatMap { $0 == .queue ? nil : $0 == .skip ? skipped : replaced }
    }
}

extension MQTTLoad: ClientLoad {
    package var largestPayload: Int { self.streams.map(\.payload.largest).max() ?? 0 }
    package var hasStreams: Bool { self.streams.count > 1 }
}
extension XMPPLoad: ClientLoad {
    package var largestPayload: Int { self.payload.largest }
    package var hasStreams: Bool { false }
}

package protocol ClientMetrics: Sendable {
    var catalog: MetricCatalog { get }
    var connect: ConnectMetrics { get }
    /// The connects of clients that were connected before.
    var reconnect: ConnectMetrics { get }
    /// `nil` where no client comes back from a loss.
    var downtime: DurationID? { get }
    var departures: [DeparturePlan.Cause: DepartureMetrics] { get }
    var scheduleLag: DurationID { get }
    var traffic: TrafficMetrics { get }
}

extension MQTTMetrics: ClientMetrics {}
extension XMPPMetrics: ClientMetrics {}
