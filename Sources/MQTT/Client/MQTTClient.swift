public import Logging
package import LoopContext
public import MQTTCodec
public import NIOCore
public import NIOPosix
package import Transport

/// An MQTT client: one session with one server, for async code.
///
/// ```swift
/// let client = MQTTClient(MQTTClientConfiguration(host: "broker.example"))
/// try await client.connect()
/// try await client.subscribe([Subscription(filter: "greetings/#", qos: .atLeastOnce)])
/// try await client.publish(MQTTMessage(topic: "greetings/world", payload: "hello".utf8, qos: .atLeastOnce))
/// for await message in client.messages { print(message.topic) }
/// ```
///
/// All calls are safe from any task, also concurrently. Each ends with its answer, its timeout, the end of the
/// connection or the cancellation of its task, whichever comes first. A lost connection is not reconnected: use
/// ``MQTTSessionManager`` for that. A client that is deallocated closes its connection without DISCONNECT, so the
/// server publishes the will. Its event loops must outlive it.
public final class MQTTClient: Sendable {
    /// The client's configuration.
    public let configuration: MQTTClientConfiguration
    private let seed: ClientSeed

    var log: MQTTClientLog { self.seed.log }

    /// A client that is not connected yet.
    ///
    /// - Parameters:
    ///   - configuration: server, identity and options.
    ///   - store: keeps messages at QoS 1 and 2 until they are acknowledged; by default in memory, for this client
    ///     alone.
    ///   - eventLoopGroup: the group whose next event loop runs the client.
    ///   - logger: logs connections and refusals of the server; by default nothing is logged.
    public convenience init(
        _ configuration: MQTTClientConfiguration,
        store: any MQTTMessageStore = MQTTMemoryStore(),
        eventLoopGroup: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton,
        logger: Logger? = nil
    ) {
        self.init(configuration, store: store, eventLoop: eventLoopGroup.next(), logger: logger)
    }

    package init(
        _ configuration: MQTTClientConfiguration,
        store: any MQTTMessageStore,
        eventLoop: any EventLoop,
        lookup: @escaping NameLookup = NameResolver.system,
        logger: Logger? = nil
    ) {
        self.configuration = configuration
        let place = NIOLoopBoundBox.makeBoxSendingValue(ClientSeed.Place.empty, eventLoop: eventLoop)
        self.seed = ClientSeed(
            configuration: configuration,
            store: store,
            eventLoop: eventLoop,
            place: place,
            inbox: Inbox(configuration) {
                eventLoop.execute {
                    guard case .live(let core) = place.value else { return }
                    core.context.refresh()
                    core.inboxChanged()
                }
            },
            states: Broadcast(initial: .created),
            events: Broadcast(),
            lookup: lookup,
            log: MQTTClientLog(logger)
        )
    }

    deinit { self.seed.shutDown() }

    // MARK: The connection

    /// Connects, and returns when the server has accepted the connection.
    ///
    /// Cancelling the task cancels the attempt.
    ///
    /// - Returns: the contents of the CONNACK.
    /// - Throws: ``MQTTClientError/alreadyConnected``, `invalid`, `noCredentials`, `noConnection`, `refused`,
    ///   `timedOut(.connack)`, `connectionLost` if the connection ended before CONNACK, `storeFailed`, `disconnected`,
    ///   `cancelled`.
    @discardableResult
    public func connect() async throws(MQTTClientError) -> MQTTConnectResult { try await self.connect(to: nil) }

    /// Connects to another server, for example after a redirect by the configured one (§4.11).
    ///
    /// - Parameters:
    ///   - host: a name or an address.
    ///   - port: `nil` uses the transport's default port.
    /// - Returns: the contents of the CONNACK.
    /// - Throws: the errors of ``connect()``.
    @discardableResult
    public func connect(host: String, port: UInt16? = nil) async throws(MQTTClientError) -> MQTTConnectResult {
        let port = port ?? self.configuration.transport.defaultPort
        return try await self.connect(to: Target(host: host, port: Int(port)))
    }

    /// Connects with another configuration, to its server or to another one; with `begins` the client's session does
    /// not belong to that server.
    @discardableResult
    func connect(
        _ configuration: MQTTClientConfiguration,
        _ server: ServerReference?,
        begins: Bool,
        identity: Int
    ) async throws(MQTTClientError) -> MQTTConnectResult {
        let usual = configuration.transport.defaultPort
        let target = server.map { Target(host: $0.host, port: Int($0.port ?? usual)) }
        return try await self.connect(configuration, to: target, begins: begins, identity: identity)
    }

    /// Announces that the next connection has another client identifier; see ``MQTTSessionManager/connect(_:)``.
    ///
    /// Calls made after this one belong to it.
    func announce(_ configuration: MQTTClientConfiguration, identity: Int) {
        self.seed.execute { $0?.announce(configuration, identity: identity) }
    }

    private func connect(
        _ configuration: MQTTClientConfiguration? = nil,
        to target: Target?,
        begins: Bool = false,
        identity: Int? = nil
    ) async throws(MQTTClientError) -> MQTTConnectResult {
        try await self.perform { core, waiter in
            core.connect(waiter, configuration, target: target, begins: begins, identity: identity)
        } cancelled: { core, waiter in
            core.cancelConnect(waiter)
        }
    }

    /// Sends DISCONNECT after all earlier writes, and returns when the connection is closed.
    ///
    /// Waiting calls end with ``MQTTClientError/disconnected``. If the session persists
    /// (``MQTTClientConfiguration/cleanStart`` is `false`), unacknowledged messages stay in the store and are sent with
    /// the next connection; otherwise they are dropped. Without a connection this returns at once, and an attempt to
    /// connect is cancelled. If the server does not close its side within ``MQTTTimeouts/disconnect``, the client
    /// closes the connection.
    ///
    /// - Parameters:
    ///   - reason: with 0x04 the server publishes the will; MQTT 5 only.
    ///   - properties: session expiry, reason string, user properties (§3.14.2.2); MQTT 5 only.
    ///   - keepsQueue: `true` keeps unsent messages and their callers for the next connection.
    public func disconnect(
        _ reason: ReasonCode = .normalDisconnection,
        properties: Properties = Properties(),
        keepsQueue: Bool = false
    ) async {
        await self.disconnect(Disconnect(reason: reason, properties: properties), keepsQueue, identity: nil)
    }

    /// Disconnects the client of this identity.
    func disconnect(keepsQueue: Bool, identity: Int) async {
        await self.disconnect(
            Disconnect(reason: .normalDisconnection, properties: Properties()),
            keepsQueue,
            identity: identity
        )
    }

    private func disconnect(_ disconnect: Disconnect, _ keepsQueue: Bool, identity: Int?) async {
        // A cancelled task stops waiting, but DISCONNECT is still sent.
        try? await self.perform { (core: ClientCore, waiter: Waiter<Void>) in
            core.disconnect(waiter, disconnect, keepsQueue: keepsQueue, identity: identity)
        }
    }

    /// Closes the connection without DISCONNECT; the server publishes the will.
    public func abort() { self.seed.executeIfLive { $0.abort() } }

    /// Disconnects permanently: the streams end, and every later call fails with ``MQTTClientError/shutDown``.
    public func shutDown() async {
        await self.disconnect()
        self.seed.shutDown()
    }

    // MARK: Messages

    /// Publishes a message, and returns when it is acknowledged.
    ///
    /// PUBACK acknowledges it at QoS 1, and PUBCOMP at QoS 2. At QoS 0 the call returns when the kernel has taken the
    /// message.
    ///
    /// Messages are sent in the order of the calls. At QoS 1 and 2 a message is stored first, then waits for a
    /// connection and for room in the window. If its connection is lost and the session persists, the message is sent
    /// again and the call waits on. Without a session the call fails if the message had been sent; otherwise it waits
    /// for the next connection. A cancelled task stops waiting, but the message is still sent.
    ///
    /// - Parameter message: its expiry interval is lowered by the time that it waits (§3.3.2.3.3).
    /// - Returns: success, or that the topic has no subscribers, and the server's properties (MQTT 5).
    /// - Throws: ``MQTTClientError/invalid(_:)``, `notAllowed`, `notConnected` (QoS 0), `storeFull`, `storeFailed`,
    ///   `expired`, `timedOut(.acknowledgement)`, `rejected`, `connectionLost`, `sessionLost`, `disconnected`,
    ///   `cancelled`. After `timedOut`, `storeFailed`, `connectionLost` and `cancelled` the message may have been
    ///   delivered, or still be delivered.
    @discardableResult
    public func publish(_ message: MQTTMessage) async throws(MQTTClientError) -> MQTTPublishResult {
        try await self.perform { core, waiter in core.publish(message, waiter) }
    }

    /// Messages from the server.
    public var messages: MQTTMessages { MQTTMessages(inbox: self.seed.inbox) }

    // MARK: Subscriptions

    /// Subscribes with one packet.
    ///
    /// - Parameters:
    ///   - subscriptions: at least one; options other than the QoS are for MQTT 5 only.
    ///   - identifier: 1...268,435,455; the properties of matching messages contain it (§3.8.2.1.2); MQTT 5 only.
    ///   - userProperties: MQTT 5 only.
    /// - Returns: one result for each filter, in their order. A rejected filter is not an error of the call.
    /// - Throws: ``MQTTClientError/invalid(_:)``, `notAllowed`, `notConnected`, `timedOut(.suback)`,
    ///   `connectionLost`, `disconnected`, `cancelled`.
    @discardableResult
    public func subscribe(
        _ subscriptions: [Subscription],
        identifier: UInt32? = nil,
        userProperties: [UserProperty] = []
    ) async throws(MQTTClientError) -> [MQTTSubscribeResult] {
        var properties = Properties()
        properties.subscriptionIdentifier = identifier
        properties.userProperties = userProperties
        let all = properties
        return try await self.perform { core, waiter in core.subscribe(subscriptions, all, waiter) }
    }

    /// Unsubscribes with one packet.
    ///
    /// - Parameters:
    ///   - filters: as they were subscribed to, at least one.
    ///   - userProperties: MQTT 5 only.
    /// - Returns: one result for each filter, in their order. A filter without a subscription is not an error of the
    ///   call.
    /// - Throws: ``MQTTClientError/invalid(_:)``, `notConnected`, `timedOut(.unsuback)`, `connectionLost`,
    ///   `disconnected`, `cancelled`.
    @discardableResult
    public func unsubscribe(
        _ filters: [String],
        userProperties: [UserProperty] = []
    ) async throws(MQTTClientError) -> [MQTTUnsubscribeResult] {
        var properties = Properties()
        properties.userProperties = userProperties
        let all = properties
        return try await self.perform { core, waiter in core.unsubscribe(filters, all, waiter) }
    }

    /// Sends PINGREQ.
    ///
    /// - Returns: the time until PINGRESP.
    /// - Throws: ``MQTTClientError/notConnected``, `connectionLost` (with `pingTimedOut` if PINGRESP does not come),
    ///   `disconnected`, `cancelled`.
    public func ping() async throws(MQTTClientError) -> Duration {
        try await self.perform { core, waiter in core.ping(waiter) }
    }

    // MARK: Watching

    /// The current state.
    public var state: MQTTClientState { self.seed.states.latest ?? .created }

    /// The current state, then every change of it.
    ///
    /// A reader more than 256 changes late misses the oldest. Each stream has all changes.
    public var states: AsyncStream<MQTTClientState> { self.seed.states.stream() }

    /// Events of the connection from now on, each after the change of state that it causes.
    ///
    /// A reader more than 256 events late misses the oldest. Each stream has all events.
    public var events: AsyncStream<MQTTClientEvent> { self.seed.events.stream() }

    /// Calls `body` with each event on the event loop, before the call that caused it returns.
    func hear(_ body: @escaping @Sendable (MQTTClientEvent) -> Void) { self.seed.events.hear(body) }

    // MARK: -

    /// Counts the clients on this client's event loop, while there are any.
    package func liveCount() async throws(MQTTClientError) -> LiveCount {
        try await self.perform { core, waiter in waiter.complete(.success(core.home.live)) }
    }

    /// Runs `body` on the event loop, with its clients' shared state, and with the connection if there is one.
    package func onLoop<Value: Sendable>(
        _ body: @escaping @Sendable (LoopContext, MQTTConnection?) -> Value
    ) async throws(MQTTClientError) -> Value {
        try await self.perform { core, waiter in waiter.complete(.success(body(core.context, core.connection))) }
    }

    /// Starts an operation on the loop and waits for its end.
    func perform<Value: Sendable>(
        _ start: @escaping @Sendable (ClientCore, Waiter<Value>) -> Void,
        cancelled: (@Sendable (ClientCore, Waiter<Value>) -> Void)? = nil
    ) async throws(MQTTClientError) -> Value {
        let (seed, waiter) = (self.seed, Waiter<Value>())
        let outcome = await withTaskCancellationHandler {
            await waiter.wait {
                seed.execute { core in
                    if let core { start(core, waiter) } else { waiter.fail(.shutDown) }
                }
            }
        } onCancel: {
            guard let cancelled else { return waiter.fail(.cancelled) }
            // The operation is cancelled before the task continues, because the task may start it again.
            seed.executeWithoutMaking { core in
                if let core { cancelled(core, waiter) }
                waiter.fail(.cancelled)
            }
        }
        return try outcome.get()
    }
}
