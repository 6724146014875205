public import Logging
package import LoopContext
public import MQTTCodec
public import NIOCore
public import NIOPosix
import Transport

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
/// All calls may come from any task, also at the same time. Each ends by its answer, its timeout, the end of the
/// connection or the cancellation of its task, whichever comes first. A lost connection is not made again; that is
/// what ``MQTTSessionManager`` is for. A client that is let go closes its connection without DISCONNECT, so that the
/// server publishes the will; its event loops must outlive it.
public final class MQTTClient: Sendable {
    /// What the client was made with.
    public let configuration: MQTTClientConfiguration
    private let seed: ClientSeed

    var log: MQTTClientLog { self.seed.log }

    /// A client that is not connected yet.
    ///
    /// - Parameters:
    ///   - configuration: where to, as whom, and how.
    ///   - store: where messages at QoS 1 and 2 are kept until they are acknowledged; by default in memory, for this
    ///     client alone.
    ///   - eventLoopGroup: whose next event loop the client lives on.
    ///   - logger: hears of connections and of what the server refuses; by default nothing is logged.
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
        logger: Logger? = nil
    ) {
        self.configuration = configuration
        let place = NIOLoopBoundBox.makeBoxSendingValue(ClientSeed.Place.empty, eventLoop: eventLoop)
        self.seed = ClientSeed(
            configuration: configuration,
            store: store,
            eventLoop: eventLoop,
            place: place,
            inbox: Inbox(
                limits: configuration.limits,
                acknowledgesTaken: configuration.acknowledgement == .whenTaken,
                notify: {
                    eventLoop.execute {
                        guard case .live(let core) = place.value else { return }
                        core.context.refresh()
                        core.inboxChanged()
                    }
                }
            ),
            states: Broadcast(initial: .created),
            events: Broadcast(),
            log: MQTTClientLog(logger)
        )
    }

    deinit { self.seed.shutDown() }

    // MARK: The connection

    /// Connects, and returns when the server has accepted.
    ///
    /// A cancelled task gives the attempt up.
    ///
    /// - Returns: what the CONNACK said.
    /// - Throws: ``MQTTClientError/alreadyConnected``, `invalid`, `noCredentials`, `noConnection`, `refused`,
    ///   `timedOut(.connack)`, `connectionLost` when the connection broke before CONNACK, `storeFailed`,
    ///   `disconnected`, `cancelled`.
    @discardableResult
    public func connect() async throws(MQTTClientError) -> MQTTConnectResult {
        try await self.connect(to: nil)
    }

    /// The same to another server, as when the configured one named it as its substitute (§4.11).
    ///
    /// - Parameters:
    ///   - host: a name or an address.
    ///   - port: `nil` is the transport's own.
    /// - Returns: what the CONNACK said.
    /// - Throws: as ``connect()``.
    @discardableResult
    public func connect(host: String, port: UInt16? = nil) async throws(MQTTClientError) -> MQTTConnectResult {
        let port = port ?? self.configuration.transport.defaultPort
        return try await self.connect(to: Target(host: host, port: Int(port)))
    }

    /// The same; with `begins` nothing of the session that is held is this server's.
    @discardableResult
    func connect(_ server: ServerReference?, begins: Bool) async throws(MQTTClientError) -> MQTTConnectResult {
        let usual = self.configuration.transport.defaultPort
        let target = server.map { Target(host: $0.host, port: Int($0.port ?? usual)) }
        return try await self.connect(to: target, begins: begins)
    }

    private func connect(
        to target: Target?,
        begins: Bool = false
    ) async throws(MQTTClientError) -> MQTTConnectResult {
        try await self.perform { core, waiter in
            core.connect(waiter, target: target, begins: begins)
        } cancelled: { core, waiter in
            core.cancelConnect(waiter)
        }
    }

    /// Sends DISCONNECT behind all that was written, and returns when the connection is closed.
    ///
    /// Every call that waits ends with ``MQTTClientError/disconnected``. Messages that are not acknowledged stay in
    /// the store if the session goes on (``MQTTClientConfiguration/cleanStart`` is `false`), and go out with the next
    /// connection; otherwise they are dropped. Without a connection this returns at once, and an attempt to connect
    /// is given up. A server that does not close its side in time (``MQTTTimeouts/disconnect``) is not waited for.
    ///
    /// - Parameters:
    ///   - reason: 0x04 has the server publish the will; MQTT 5 only.
    ///   - properties: session expiry, reason string, user properties (§3.14.2.2); MQTT 5 only.
    ///   - keepsQueue: `true` leaves what has not been sent, and those who wait for it, for the next connection.
    public func disconnect(
        _ reason: ReasonCode = .normalDisconnection,
        properties: Properties = Properties(),
        keepsQueue: Bool = false
    ) async {
        let disconnect = Disconnect(reason: reason, properties: properties)
        // A cancelled task stops waiting, not the DISCONNECT.
        try? await self.perform { (core: ClientCore, waiter: Waiter<Void>) in
            core.disconnect(waiter, disconnect, keepsQueue: keepsQueue)
        }
    }

    /// Closes the connection without DISCONNECT; the server publishes the will.
    public func abort() {
        self.seed.executeIfLive { $0.abort() }
    }

    /// Disconnects for good: the streams end, and every later call fails with ``MQTTClientError/shutDown``.
    public func shutDown() async {
        await self.disconnect()
        self.seed.shutDown()
    }

    // MARK: Messages

    /// Publishes a message, and returns when it is acknowledged: by PUBACK at QoS 1, by PUBCOMP at QoS 2; at QoS 0
    /// when the kernel has taken it.
    ///
    /// Messages go out in the order of the calls. At QoS 1 and 2 a message is stored first, waits for a connection
    /// and for room in the window, and survives what the store survives. What becomes of it when its connection is
    /// lost: with a session that goes on it is sent again, and the call waits on; without one the call fails if the
    /// message had been sent, and waits for the next connection if not. A cancelled task stops waiting, and the
    /// message goes on its way.
    ///
    /// - Parameter message: an expiry is lowered by the time that it waits (§3.3.2.3.3).
    /// - Returns: success, or that nobody has subscribed to it, and what the server said to it (MQTT 5).
    /// - Throws: ``MQTTClientError/invalid(_:)``, `notAllowed`, `notConnected` (QoS 0), `storeFull`, `storeFailed`,
    ///   `expired`, `timedOut(.acknowledgement)`, `rejected`, `connectionLost`, `sessionLost`, `disconnected`,
    ///   `cancelled`. With `timedOut`, `storeFailed`, `connectionLost` and `cancelled` it may have been, or may yet
    ///   be, delivered.
    @discardableResult
    public func publish(_ message: MQTTMessage) async throws(MQTTClientError) -> MQTTPublishResult {
        try await self.perform { core, waiter in core.publish(message, waiter) }
    }

    /// What comes from the server.
    public var messages: MQTTMessages { MQTTMessages(inbox: self.seed.inbox) }

    // MARK: Subscriptions

    /// Subscribes, in one packet.
    ///
    /// - Parameters:
    ///   - subscriptions: at least one; its options beyond the QoS are of MQTT 5 only.
    ///   - identifier: 1...268,435,455, to be found in the properties of the messages (§3.8.2.1.2); MQTT 5 only.
    ///   - userProperties: MQTT 5 only.
    /// - Returns: one result for each filter, in their order. A refused filter is no error of the call.
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

    /// Ends subscriptions, in one packet.
    ///
    /// - Parameters:
    ///   - filters: as they were subscribed to, at least one.
    ///   - userProperties: MQTT 5 only.
    /// - Returns: one result for each filter, in their order. A filter that was not subscribed to is no error of the call.
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
    /// - Throws: ``MQTTClientError/notConnected``, `connectionLost` (with `pingTimedOut` if it does not come),
    ///   `disconnected`, `cancelled`.
    public func ping() async throws(MQTTClientError) -> Duration {
        try await self.perform { core, waiter in core.ping(waiter) }
    }

    // MARK: Watching

    /// The state now.
    public var state: MQTTClientState { self.seed.states.latest ?? .created }

    /// The state now, and then every change of it.
    ///
    /// A reader who is more than 256 changes late misses the oldest. Each stream tells all.
    public var states: AsyncStream<MQTTClientState> { self.seed.states.stream() }

    /// What happens to the connection, from now on, each behind the change of state that it brings.
    ///
    /// A reader who is more than 256 events late misses the oldest. Each stream tells all.
    public var events: AsyncStream<MQTTClientEvent> { self.seed.events.stream() }

    /// Tells each event on the event loop, before the call that it belongs to returns.
    func hear(_ body: @escaping @Sendable (MQTTClientEvent) -> Void) { self.seed.events.hear(body) }

    // MARK: -

    /// Counts the clients on this one's event loop, as long as there are any.
    package func liveCount() async throws(MQTTClientError) -> LiveCount {
        try await self.perform { core, waiter in waiter.complete(.success(core.home.live)) }
    }

    /// Runs `body` on the event loop, with what its clients share, and with the connection if there is one.
    package func onLoop<Value: Sendable>(
        _ body: @escaping @Sendable (LoopContext, MQTTConnection?) -> Value
    ) async throws(MQTTClientError) -> Value {
        try await self.perform { core, waiter in waiter.complete(.success(body(core.context, core.connection))) }
    }

    /// Starts something on the loop and waits for its end.
    func perform<Value: Sendable>(
        _ start: @escaping @Sendable (ClientCore, Waiter<Value>) -> Void,
        cancelled: (@Sendable (ClientCore, Waiter<Value>) -> Void)? = nil
    ) async throws(MQTTClientError) -> Value {
        let (seed, waiter) = (self.seed, Waiter<Value>())
        let outcome = await withTaskCancellationHandler {
            await waiter.wait {
                seed.execute { core in
                    if let core { start(core, waiter) } else { waiter.complete(.failure(.shutDown)) }
                }
            }
        } onCancel: {
            guard let cancelled else {
                waiter.complete(.failure(.cancelled))
                return
            }
            // What was begun is given up before the task goes on, which may begin it again.
            seed.executeWithoutMaking { core in
                if let core { cancelled(core, waiter) }
                waiter.complete(.failure(.cancelled))
            }
        }
        return try outcome.get()
    }
}
