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
/// All calls may come from any task, also at the same time. Each ends by its answer, its timeout, the end of the
/// stream or the cancellation of its task, whichever comes first. A lost connection is not made again by itself;
/// ``states`` tells of it, and ``connect()`` resumes its stream where the server can: requests wait for that, as long
/// as for an answer. Where a server names another host that is followed. Pings are answered, and other requests that
/// come are refused. A client that is let go closes its connection; its event loops must outlive it.
public final class XMPPClient: Sendable {
    /// The configuration given to the initializer.
    public let configuration: XMPPClientConfiguration
    /// Messages and presences, over all connections, in the order in which they came.
    ///
    /// For one reader. Who is more than 4,096 stanzas late, or 16 MiB of them, misses the oldest.
    public let stanzas: AsyncStream<XMPPElement>
    private let eventLoop: any EventLoop
    private let core: NIOLoopBoundBox<XMPPClientCore?>
    private let inbox: XMPPInbox
    private let broadcast: Broadcast<XMPPClientState>

    /// A client that is not connected yet.
    ///
    /// - Parameters:
    ///   - configuration: as whom, where to, and how.
    ///   - eventLoopGroup: whose next event loop the client lives on.
    public init(
        _ configuration: XMPPClientConfiguration,
        eventLoopGroup: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton
    ) {
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

    /// The state now.
    public var state: XMPPClientState { self.broadcast.latest ?? .created }

    /// The state now, and then every change of it: also whether a session is resumed, and how it ends.
    ///
    /// A reader who is more than 256 changes late misses the oldest. Each stream tells all.
    public var states: AsyncStream<XMPPClientState> { self.broadcast.stream() }

    /// Connects, logs in and binds a resource, or resumes the stream before.
    ///
    /// A cancelled task gives the attempt up.
    ///
    /// - Returns: who the server says this is.
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

    /// Takes leave, and returns when the connection is closed; at once if there is none.
    public func disconnect() async {
        // A cancelled task stops waiting, not the leave.
        _ = try? await self.perform { (core: XMPPClientCore, waiter: XMPPClientWaiter<Void>) in
            core.disconnect(waiter)
        }
    }

    /// Sends a stanza, or another element that the server understands here.
    ///
    /// Waits while the server is too slow for what was sent before.
    ///
    /// - Parameter stanza: without `from`: the server knows who this is.
    /// - Throws: ``XMPPClientError/notConnected``, `invalid` for what XML cannot hold, `ended`, `disconnected`,
    ///   `cancelled`.
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
    /// It does not wait for a slow server as ``send(_:)`` does: so many of them are under way as there are calls.
    /// - Parameter iq: its `id` is set here; without `to` it goes to the own account's server.
    /// An answer to a request that was under way when the connection was lost comes with the resumption of the stream.
    ///
    /// - Returns: the answer of the addressee. Answers from other senders do not count.
    /// - Throws: ``XMPPClientError/notConnected``, `refused` with the error that was the answer, `timedOut`, `ended`,
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
        let (inbox, broadcast) = (self.inbox, self.broadcast)
        let outcome = await withTaskCancellationHandler {
            await waiter.wait {
                eventLoop.execute {
                    // A cancellation may have come first.
                    guard !waiter.isDone else { return }
                    let made = core.value ?? XMPPClientCore(configuration, eventLoop, inbox, broadcast)
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
