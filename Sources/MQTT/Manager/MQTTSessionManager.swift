public import Logging
import LoopContext
public import MQTTCodec
public import NIOCore
public import NIOPosix

/// Keeps a client connected, and what it subscribes to in effect.
///
/// ```swift
/// let manager = MQTTSessionManager(MQTTClientConfiguration(host: "broker.example"))
/// manager.setSubscriptions([Subscription(filter: "greetings/#", qos: .atLeastOnce)])
/// manager.connect()
/// for await message in manager.messages { print(message.topic) }
/// ```
///
/// A lost connection is made again after a wait that doubles each time (``MQTTReconnectPolicy``), but not when the
/// server's answer leaves no hope: a bad user name, a client identifier that it does not take, a ban, a session that
/// another client took over. Then the state is ``MQTTManagerState/failed`` until somebody calls ``connectToLast()``.
/// A server of MQTT 5 that names another one is followed there.
///
/// A manager that is let go closes its connection without DISCONNECT, as its client does.
public final class MQTTSessionManager: Sendable {
    /// What the client was made with.
    public let configuration: MQTTClientConfiguration
    /// How it comes back.
    public let policy: MQTTReconnectPolicy
    private let core: ManagerCore

    /// A manager that is not connected yet.
    ///
    /// - Parameters:
    ///   - configuration: where to, as whom, and how.
    ///   - policy: when a lost connection is made again.
    ///   - store: where messages at QoS 1 and 2 are kept until they are acknowledged; by default in memory.
    ///   - eventLoopGroup: whose next event loop the client lives on.
    ///   - logger: hears of connections, retries and of what the server refuses; by default nothing is logged.
    public convenience init(
        _ configuration: MQTTClientConfiguration,
        policy: MQTTReconnectPolicy = MQTTReconnectPolicy(),
        store: any MQTTMessageStore = MQTTMemoryStore(),
        eventLoopGroup: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton,
        logger: Logger? = nil
    ) {
        self.init(
            MQTTClient(configuration, store: store, eventLoopGroup: eventLoopGroup, logger: logger),
            policy: policy,
            sleep: { try await Task.sleep(for: $0) }
        )
    }

    package init(
        _ client: MQTTClient,
        policy: MQTTReconnectPolicy,
        sleep: @escaping @Sendable (Duration) async throws -> Void
    ) {
        self.configuration = client.configuration
        self.policy = policy
        let machine = ManagerMachine(
            policy,
            cleanStart: client.configuration.cleanStart,
            usualPort: client.configuration.transport.defaultPort
        )
        self.core = ManagerCore(client, machine: machine, sleep: sleep)
    }

    deinit { self.core.stop() }

    // MARK: The connection

    /// Asks for a connection, and returns at once; ``states`` tells what comes of it.
    ///
    /// The same as ``connectToLast()``; the first time that is the server of the configuration.
    public func connect() { self.connectToLast() }

    /// Connects to another server, and comes back to it from now on; the rest of the configuration stays.
    ///
    /// A connection to the server before is closed first, or the attempt to have one given up. Messages that have not
    /// been sent go to the new one, and everything that is declared is subscribed to there. What else may differ between
    /// two servers, such as transport or credentials, needs another manager. Nothing happens if it is the server in use.
    ///
    /// Where the session goes on (``MQTTClientConfiguration/cleanStart`` is `false`), the first connection to the other
    /// server ends what was under way with the one before: a message of ours that it has not taken is sent to the new
    /// one, also if it was sent before and not acknowledged, and one that it has taken at QoS 2 counts as published; its
    /// own messages are not acknowledged any more. A session that the new server has kept from an earlier visit should
    /// have ended there with ``disconnect()``, all acknowledged.
    ///
    /// - Parameters:
    ///   - host: a name or an address.
    ///   - port: `nil` is the transport's own.
    public func connect(host: String, port: UInt16? = nil) {
        let usual = self.configuration.transport.defaultPort
        let port = port ?? usual
        let isConfigured = host == self.configuration.host && port == (self.configuration.port ?? usual)
        self.core.step { $0.connect(to: isConfigured ? nil : ServerReference(host: host, port: port)) }
    }

    /// Connects as before, now: without waiting out the back-off, which begins anew.
    ///
    /// Nothing happens if there is a connection, or an attempt under way.
    public func connectToLast() { self.core.step { $0.connect() } }

    /// Disconnects, and returns when that is done; whatever the server does meanwhile, nothing is connected again.
    ///
    /// Calls that wait end with ``MQTTClientError/disconnected``.
    public func disconnect() async { await self.core.disconnect() }

    /// Disconnects for a while, as for an app in the background; messages that wait go on waiting.
    ///
    /// Nothing happens unless a connection is there or wanted.
    public func suspend() { self.core.step { $0.suspend() } }

    /// Connects again behind ``suspend()``, and does nothing otherwise.
    public func resume() { self.core.step { $0.resume() } }

    /// Disconnects for good: the streams end, and every later call fails with ``MQTTClientError/shutDown``.
    public func shutDown() async { await self.core.shutDown() }

    /// Proves once more who this client is; see ``MQTTClient/reauthenticate()``.
    ///
    /// - Throws: as that; ``MQTTClientError/notConnected`` between two connections.
    public func reauthenticate() async throws(MQTTClientError) { try await self.core.client.reauthenticate() }

    /// Sends PINGREQ; see ``MQTTClient/ping()``.
    ///
    /// - Returns: the time until PINGRESP.
    /// - Throws: as that; ``MQTTClientError/notConnected`` between two connections.
    public func ping() async throws(MQTTClientError) -> Duration { try await self.core.client.ping() }

    /// What happens to the connections, from now on: what each CONNACK said, and how each connection ended.
    ///
    /// A reader who is more than 256 events late misses the oldest. Each stream tells all.
    public var events: AsyncStream<MQTTClientEvent> { self.core.client.events }

    /// The state now.
    public var state: MQTTManagerState { self.core.state }

    /// The state now, and then every change of it.
    ///
    /// A reader who is more than 256 changes late misses the oldest. Each stream tells all.
    public var states: AsyncStream<MQTTManagerState> { self.core.states.stream() }

    /// Why there is no connection, or why the last one ended; set before the state tells of it, and `nil` from the
    /// next connection on.
    public var lastError: MQTTClientError? { self.core.lastError }

    // MARK: Messages

    /// Publishes a message, and returns when it is acknowledged; see ``MQTTClient/publish(_:)``.
    ///
    /// At QoS 1 and 2 a message waits in the store for a connection. At QoS 0 it is refused without one. Where nobody
    /// has asked for a connection yet, or somebody has ended it, this asks for one; a wait between two attempts is not
    /// cut short.
    ///
    /// - Parameter message: an expiry is lowered by the time that it waits.
    /// - Returns: success, or that nobody has subscribed to it (MQTT 5).
    /// - Throws: as ``MQTTClient/publish(_:)``; at QoS 0 without a connection ``MQTTClientError/notConnected``.
    @discardableResult
    public func publish(_ message: MQTTMessage) async throws(MQTTClientError) -> MQTTPublishResult {
        self.core.step { $0.wantsToSend() }
        return try await self.core.client.publish(message)
    }

    /// What comes from the server, over all connections.
    public var messages: MQTTMessages { self.core.client.messages }

    // MARK: Subscriptions

    /// Says what is to be subscribed to from now on, in place of what was said before.
    ///
    /// The difference to what is in effect, also in QoS and options, goes out in one UNSUBSCRIBE and one SUBSCRIBE at
    /// most: at once or with the next connection. A session that the server has kept is not subscribed to again, so
    /// retained messages do not come twice.
    ///
    /// - Parameter subscriptions: of two with the same filter the later one counts.
    public func setSubscriptions(_ subscriptions: [Subscription]) { self.core.step { $0.declare(subscriptions) } }

    /// What is to be subscribed to.
    public var subscriptions: [Subscription] { self.core.declared }

    /// What the server has said to the filters: a granted QoS, or why not.
    ///
    /// Of a connection that is lost these are the last known, until the next one tells whether they hold.
    public var effectiveSubscriptions: [MQTTSubscribeResult] { self.core.effectiveNow }

    /// ``effectiveSubscriptions`` now, and then after every change.
    ///
    /// A reader who is more than 256 changes late misses the oldest. Each stream tells all.
    public var effectiveSubscriptionChanges: AsyncStream<[MQTTSubscribeResult]> { self.core.effective.stream() }
}
