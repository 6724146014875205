public import Logging
import LoopContext
public import NIOCore
public import NIOPosix

/// An XMPP client: one account on one server, for async code.
///
/// ```swift
/// let client = XMPPClient(XMPPClientConfiguration(jid: "juliet@example.com", password: "secret"))
/// let jid = try await client.connect()
/// try await client.send(XMPPElement("presence", namespace: XMPPNamespace.client))
/// for await stanza in client.stanzas { print(stanza) }
/// ```
///
/// All calls are safe from any task, also concurrently. A call ends with its answer, its timeout, the end of the stream
/// or the cancellation of its task, whichever comes first. The client does not reconnect by itself. ``states`` reports
/// a lost connection, and ``connect()`` resumes its stream if the server allows it. Requests wait for the resumption,
/// at most as long as for an answer. The client follows redirects to another host. It answers pings and refuses other
/// requests. A released client closes its connection; its event loops must outlive it.
public final class XMPPClient: Sendable {
    /// The configuration given to the initializer.
    public let configuration: XMPPClientConfiguration
    /// Received messages and presences, over all connections, in order.
    ///
    /// Supports one reader. A reader that is more than 4,096 stanzas or 16 MiB late misses the oldest.
    public let stanzas: AsyncStream<XMPPElement>
    private let eventLoop: any EventLoop
    private let core: NIOLoopBoundBox<XMPPClientCore?>
    private let inbox: XMPPInbox
    private let broadcast: Broadcast<XMPPClientState>
    private let log: XMPPClientLog

    /// Makes a client without a connection.
    ///
    /// - Parameters:
    ///   - configuration: as whom, where to, and how.
    ///   - eventLoopGroup: whose next event loop the client lives on.
    ///   - logger: hears of connections and how they end; by default nothing is logged.
    public init(
        _ configuration: XMPPClientConfiguration,
        eventLoopGroup: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton,
        logger: Logger? = nil
    ) {
        self.log = XMPPClientLog(logger)
        self.configuration = configuration
        self.eventLoop = eventLoopGroup.next()
        self.core = .makeEmptyBox(eventLoop: self.eventLoop)
        self.broadcast = Broadcast(initial: .created)
        let inbox = XMPPInbox(count: 4_096, bytes: 16 << 20)
        self.inbox = inbox
        self.stanzas = AsyncStream { await inbox.next() }
    }

    deinit {
        let (core, inbox, broadcast) = (self.core, self.inbox, self.broadcast)
        self.eventLoop.execute {
            core.value?.letGo()
            core.value = nil
            inbox.finish()
            broadcast.finish()
        }
    }

    /// Whether clients live on this loop; for tests.
    package static func live(on eventLoop: any EventLoop) -> Bool { XMPPClientLoop.all.contains(eventLoop) }

    /// The state now.
    public var state: XMPPClientState { self.broadcast.latest ?? .created }

    /// The current state, followed by every change, such as a resumption or the end of a session.
    ///
    /// A reader that is more than 256 changes late misses the oldest. Every stream gets all changes.
    public var states: AsyncStream<XMPPClientState> { self.broadcast.stream() }

    /// Connects, logs in and binds a resource, or resumes the previous stream.
    ///
    /// Cancelling the task cancels the attempt.
    ///
    /// - Returns: the address that the server assigned.
    /// - Throws: ``XMPPClientError/invalid(_:)``, `alreadyConnected`, `noConnection`, `ended`, `disconnected`,
    ///   `cancelled`.
    @discardableResult
    public func connect() async throws(XMPPClientError) -> JID {
        try await self.perform { core, waiter in
            core.connect(waiter)
        } cancelled: { core, waiter in
            core.cancel(waiter)
        }
    }

    /// Closes the stream, and returns when the connection is closed; at once if there is none.
    public func disconnect() async {
        // A cancelled task stops waiting, not the leave.
        _ = try? await self.perform { (core: XMPPClientCore, waiter: XMPPClientWaiter<Void>) in
            core.disconnect(waiter)
        }
    }

    /// Sends a stanza, or another element that the server understands here.
    ///
    /// Waits while the server reads too slowly.
    ///
    /// - Parameter stanza: needs no `from`: the server adds it.
    /// - Throws: ``XMPPClientError/notConnected``, `invalid` for an element that XML cannot represent, `ended`,
    ///   `disconnected`, `cancelled`.
    public func send(_ stanza: XMPPElement) async throws(XMPPClientError) {
        try await self.perform { core, waiter in
            core.send(stanza, waiter)
        } cancelled: { core, waiter in
            core.withdraw(waiter)
        }
    }

    /// How many calls of ``send(_:)`` wait for the server now; for tests, to which waiting shows in no other way.
    package func countWaitingSends() async -> Int {
        let core = self.core
        return (try? await self.eventLoop.submit { core.value?.sends.count ?? 0 }.get()) ?? 0
    }

    /// Sends an IQ of type get or set, and returns the result.
    ///
    /// Unlike ``send(_:)`` it does not wait for a slow server: every call is a request in flight. If the connection is
    /// lost, the answer can arrive after the stream is resumed.
    ///
    /// - Parameter iq: the call sets its `id`; without `to` it goes to the own account's server.
    /// - Returns: the answer of the addressee. Answers from other senders do not count.
    /// - Throws: ``XMPPClientError/notConnected``, `refused` with the error of the answer, `timedOut`, `ended`,
    ///   `invalid`, `cancelled`.
    @discardableResult
    public func request(_ iq: XMPPElement) async throws(XMPPClientError) -> XMPPElement {
        try await self.perform { core, waiter in core.request(iq, waiter) }
    }

    /// Pings an address (XEP-0199).
    ///
    /// - Parameter jid: the address; `nil` pings the own server.
    /// - Returns: the time until the answer, including an outage after which the stream was resumed. An error reply to
    ///   a ping counts as an answer.
    /// - Throws: as ``request(_:)``.
    public func ping(_ jid: JID? = nil) async throws(XMPPClientError) -> Duration {
        try await self.perform { core, waiter in core.ping(jid, waiter) }
    }

    /// Starts something on the loop and waits for its end.
    private func perform<Value: Sendable>(
        _ start: @escaping @Sendable (XMPPClientCore, XMPPClientWaiter<Value>) -> Void,
        cancelled: (@Sendable (XMPPClientCore, XMPPClientWaiter<Value>) -> Void)? = nil
    ) async throws(XMPPClientError) -> Value {
        let waiter = XMPPClientWaiter<Value>()
        let (core, eventLoop, configuration) = (self.core, self.eventLoop, self.configuration)
        let (inbox, broadcast, log) = (self.inbox, self.broadcast, self.log)
        let outcome = await withTaskCancellationHandler {
            await waiter.wait {
                eventLoop.execute {
                    // A cancellation may have come first.
                    guard !waiter.isDone else { return }
                    let made = core.value ?? XMPPClientCore(configuration, eventLoop, inbox, broadcast, log)
                    core.value = made
                    made.context.refresh()
                    start(made, waiter)
                }
            }
        } onCancel: {
            guard let cancelled else {
                waiter.complete(.failure(.cancelled))
                return
            }
            // Requests in flight are cancelled before the task continues, because the task may send them again.
            eventLoop.execute {
                if let core = core.value { cancelled(core, waiter) }
                waiter.complete(.failure(.cancelled))
            }
        }
        return try outcome.get()
    }
}
