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

/// Plans the reconnects of a client; the client's core connects.
final class ReconnectHandler: XMPPHandler {
    private var machine: ReconnectMachine
    private let random: () -> Double
    private let told: (XMPPReconnect.Event) -> Void

    init(_ machine: ReconnectMachine, random: @escaping () -> Double, told: @escaping (XMPPReconnect.Event) -> Void) {
        self.machine = machine
        self.random = random
        self.told = told
    }

    func ready(_ session: XMPPSession, in context: XMPPModuleContext) { self.machine.ready() }
    func reset() { self.machine.reset() }

    /// - Returns: when to connect again, and a host that the server named; `nil` for no reconnect.
    func plan(after end: XMPPClientEnd, _ retry: XMPPRetry, now: NIODeadline) -> (NIODeadline, XMPPHost?)? {
        switch self.machine.ended(retry, now: now, random: self.random()) {
        case .stay:
            self.told(.stays(end))
            return nil
        case .connect(let time, let host):
            self.told(.waits(.nanoseconds((time - now).nanoseconds), after: end))
            return (time, host)
        }
    }
}
