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
/// or the cancellation of its task, whichever comes first. ``states`` reports a lost connection, and ``connect()``
/// resumes its stream if the server allows it; with ``XMPPReconnect`` that happens by itself. Requests wait for the
/// resumption, at most as long as for an answer. The client follows redirects to another host. It answers pings, and
/// refuses requests that no module handles. A released client closes its connection; its event loops must outlive it.
public final class XMPPClient: Sendable {
    /// The configuration given to the initializer.
    public let configuration: XMPPClientConfiguration
    /// Received messages and presences that no module handled, answers to no request, and elements of
    /// ``XMPPClientConfiguration/customNamespaces``: over all connections, in order.
    ///
    /// Each element goes to one reader. A reader that is too late misses the oldest (``XMPPClientLimits/inbox``).
    public var stanzas: AsyncStream<XMPPElement> { AsyncStream { [inbox = self.handle.inbox] in await inbox.next() } }
    private let handle: XMPPClientHandle

    /// Makes a client without a connection.
    ///
    /// - Parameters:
    ///   - configuration: as whom, where to, and how.
    ///   - modules: extensions of XMPP, in the order in which they see and filter stanzas; each is part of one client.
    ///   - eventLoopGroup: whose next event loop the client lives on.
    ///   - logger: hears of connections and how they end; by default nothing is logged.
    public init(
        _ configuration: XMPPClientConfiguration,
        modules: [any XMPPModule] = [],
        eventLoopGroup: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton,
        logger: Logger? = nil
    ) {
        self.configuration = configuration
        let handle = XMPPClientHandle(
            configuration,
            modules,
            eventLoopGroup.next(),
            XMPPClientLog(logger, tag: configuration.tag)
        )
        self.handle = handle
    }

    /// A client on a stream that a peer opens.
    init(
        _ configuration: XMPPClientConfiguration,
        modules: [any XMPPModule],
        logger: Logger?,
        accepted channel: any Channel
    ) throws {
        self.configuration = configuration
        let handle = XMPPClientHandle(
            configuration,
            modules,
            channel.eventLoop,
            XMPPClientLog(logger, tag: configuration.tag)
        )
        self.handle = handle
        try handle.adopt(channel)
    }

    deinit { self.handle.release() }

    /// Whether clients live on this loop; for tests.
    package static func live(on eventLoop: any EventLoop) -> Bool { XMPPClientLoop.all.contains(eventLoop) }

    /// The state now.
    public var state: XMPPClientState { self.handle.broadcast.latest ?? .created }

    /// The current state, followed by every change, such as a resumption or the end of a session.
    ///
    /// A reader that is more than 256 changes late misses the oldest. Every stream gets all changes.
    public var states: AsyncStream<XMPPClientState> { self.handle.broadcast.stream() }

    /// Connects, logs in and binds a resource, or resumes the previous stream.
    ///
    /// Cancelling the task cancels the attempt.
    ///
    /// - Returns: the address that the server assigned.
    /// - Throws: ``XMPPClientError/invalid(_:)``, `alreadyConnected`, `noConnection`, `ended`, `disconnected`,
    ///   `cancelled`.
    @discardableResult
    public func connect() async throws(XMPPClientError) -> JID {
        try await self.handle.perform { core, waiter in
            core.connect(waiter)
        } cancelled: { core, waiter in
            core.cancel(waiter)
        }
    }

    /// Closes the stream, and returns when the connection is closed; at once if there is none.
    public func disconnect() async {
        // A cancelled task stops waiting, not the leave.
        _ = try? await self.handle.perform { (core: XMPPClientCore, waiter: XMPPClientWaiter<Void>) in
            core.disconnect(waiter)
        }
    }

    /// Sends a stanza, or another element that the server understands here.
    ///
    /// Waits while the server reads too slowly.
    ///
    /// - Parameters:
    ///   - stanza: needs no `from`: the server adds it.
    ///   - progress: what to wait for: by default that the stream took it.
    /// - Throws: ``XMPPClientError/notConnected``, `invalid` for an element that XML cannot represent, `dropped` by a
    ///   filter, `ended`, `disconnected`, `cancelled`. After `ended` the fate of a stanza is unknown that was to be
    ///   acknowledged.
    public func send(
        _ stanza: XMPPElement,
        until progress: XMPPSendProgress = .accepted
    ) async throws(XMPPClientError) {
        try await self.handle.send(stanza, until: progress)
    }

    /// Treats a stanza as received: it passes the filters and handlers of all modules.
    ///
    /// It completes no call of ``request(_:)``.
    ///
    /// - Throws: ``XMPPClientError/notConnected``.
    public func inject(_ stanza: XMPPElement) async throws(XMPPClientError) {
        try await self.handle.perform { core, waiter in
            waiter.complete(core.connection?.inject(stanza) ?? false ? .success(()) : .failure(.notConnected))
        }
    }

    /// The token for later logins (XEP-0484), for the application to keep; `nil` without one.
    ///
    /// A server may replace it with each login. A token that the server refuses is forgotten, and the client logs in by
    /// its password.
    public func token() async -> XMPPFastToken? {
        (try? await self.handle.perform { core, waiter in waiter.complete(.success(core.stream?.pointee.token)) })
            ?? nil
    }

    /// Makes the next login by the token the last one by it (XEP-0484 §3.6).
    public func invalidateToken() async {
        try? await self.handle.perform { core, waiter in
            core.stream?.pointee.invalidatesToken = true
            waiter.complete(.success(()))
        }
    }

    /// The bytes sent and received so far, read together.
    public func byteCounts() async -> XMPPByteCounts {
        let none = XMPPByteCounts(sent: 0, received: 0, sentOnConnection: 0, receivedOnConnection: 0)
        return (try? await self.handle.perform { core, waiter in waiter.complete(.success(core.byteCounts)) }) ?? none
    }

    /// How many calls of ``send(_:until:)`` wait for the server now; for tests, to which waiting shows in no other way.
    package func countWaitingSends() async -> Int {
        (try? await self.handle.perform { core, waiter in waiter.complete(.success(core.sends.count)) }) ?? 0
    }

    /// Sends an IQ of type get or set, and returns the result.
    ///
    /// Unlike ``send(_:until:)`` it does not wait for a slow server: every call is a request in flight. If the connection is
    /// lost, the answer can arrive after the stream is resumed.
    ///
    /// - Parameter iq: the call sets its `id`; without `to` it goes to the own account's server.
    /// - Returns: the answer of the addressee. Answers from other senders do not count.
    /// - Throws: ``XMPPClientError/notConnected``, `refused` with the error of the answer, `timedOut`, `ended`,
    ///   `invalid`, `dropped`, `disconnected`, `cancelled`.
    @discardableResult
    public func request(_ iq: XMPPElement) async throws(XMPPClientError) -> XMPPElement {
        try await self.handle.request(iq)
    }

    /// Pings an address (XEP-0199).
    ///
    /// - Parameter jid: the address; `nil` pings the own server.
    /// - Returns: the time until the answer, including an outage after which the stream was resumed. An error reply to
    ///   a ping counts as an answer.
    /// - Throws: as ``request(_:)``.
    public func ping(_ jid: JID? = nil) async throws(XMPPClientError) -> Duration {
        try await self.handle.perform { core, waiter in core.ping(jid, waiter) }
    }
}
