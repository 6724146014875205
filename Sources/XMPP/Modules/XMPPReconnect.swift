import NIOCore

/// Connects again after a stream was lost that had been ready.
///
/// A wait doubles with each failure, and takes a random half to whole of it, so that many clients do not come back at
/// once. Ends that a retry cannot fix stay: a refused login, a `conflict` with another session, a call of
/// ``XMPPClient/disconnect()``. A first ``XMPPClient/connect()`` that fails is not repeated. A stream that the server
/// still has is resumed (XEP-0198); else the modules restore what they can, such as presence and rooms.
///
/// ``XMPPClient/connect()`` during a wait connects at once.
public final class XMPPReconnect: XMPPModule {
    /// A decision about a connection that has ended.
    public enum Event: Hashable, Sendable {
        /// The client connects again after this wait.
        case waits(Duration, after: XMPPClientEnd)
        /// The client stays disconnected until the next call of ``XMPPClient/connect()``.
        case stays(XMPPClientEnd)
    }

    /// The way to the client.
    public let link = XMPPModuleLink()
    private let machine: ReconnectMachine
    private let random: @Sendable () -> Double
    private let source = XMPPEvents<Event>()

    /// - Parameters:
    ///   - initialDelay: the wait after the first loss.
    ///   - maximumDelay: the longest wait.
    public convenience init(initialDelay: Duration = .seconds(2), maximumDelay: Duration = .seconds(60)) {
        self.init(initialDelay: initialDelay, maximumDelay: maximumDelay, random: { Double.random(in: 0..<1) })
    }

    package init(initialDelay: Duration, maximumDelay: Duration, random: @escaping @Sendable () -> Double) {
        self.machine = ReconnectMachine(first: TimeAmount(initialDelay), most: TimeAmount(maximumDelay))
        self.random = random
    }

    /// Makes the handler.
    public func makeHandler() -> any XMPPHandler {
        ReconnectHandler(self.machine, random: self.random) { [source] in source.send($0) }
    }

    /// Ends the streams of events.
    public func clientReleased() { self.source.finish() }

    /// Decisions from now on; each stream gets all of them.
    public var events: AsyncStream<Event> { self.source.stream() }
}
