public import Logging
import LoopContext
public import MQTTCodec
public import NIOCore
public import NIOPosix

/// Keeps a client connected, and its subscriptions in effect.
///
/// ```swift
/// let manager = MQTTSessionManager(MQTTClientConfiguration(host: "broker.example"))
/// manager.setSubscriptions([Subscription(filter: "greetings/#", qos: .atLeastOnce)])
/// manager.connect()
/// for await message in manager.messages { print(message.topic) }
/// ```
///
/// A lost connection is retried after a wait that doubles each time (``MQTTReconnectPolicy``). Errors that a retry
/// cannot fix end the retries: a bad user name, a rejected client identifier, a ban, a session that another client took
/// over. The state is then ``MQTTManagerState/failed`` until the application calls ``connectToLast()``. If an MQTT 5
/// server redirects the client to another server, the manager connects there.
///
/// A manager that is deallocated closes its connection without DISCONNECT, as its client does.
public final class MQTTSessionManager: Sendable {
    /// The present configuration: the first one, or the last that ``connect(_:)`` was called with.
    public var configuration: MQTTClientConfiguration { self.core.configuration }
    /// The policy for reconnects.
    public let policy: MQTTReconnectPolicy
    private let core: ManagerCore

    /// A manager that is not connected yet.
    ///
    /// - Parameters:
    ///   - configuration: where to, as whom, and how.
    ///   - policy: delays and limits for reconnects.
    ///   - store: keeps messages at QoS 1 and 2 until they are acknowledged; in memory by default.
    ///   - eventLoopGroup: whose next event loop the client lives on.
    ///   - logger: logs connections, retries and refusals of the server; by default nothing is logged.
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
        self.policy = policy
        let machine = ManagerMachine(policy, setup: client.configuration.setup)
        self.core = ManagerCore(client, machine: machine, sleep: sleep)
    }

    deinit { self.core.stop() }

    // MARK: The connection

    /// Requests a connection, and returns at once; ``states`` reports the result.
    ///
    /// The same as ``connectToLast()``; the first call connects to the configured server.
    public func connect() { self.connectToLast() }

    /// Connects with another configuration, and uses it for later reconnects.
    ///
    /// Any part may differ: server, transport, credentials, will, version, client identifier, options. The old
    /// connection or attempt ends first, with DISCONNECT, and all declared filters are subscribed to on a new session.
    /// With an equal configuration this is ``connectToLast()``: nothing happens while a connection is open. Change a
    /// copy of ``configuration``: closures and TLS cannot be compared, and count as changed unless they are copies.
    ///
    /// The fate of messages at QoS 1 and 2, and of the calls that wait for them:
    ///
    /// - With the same client identifier, messages that were not sent stay, and so do their calls. They go out on the
    ///   new connection, without a second check against the version and limits of the new configuration.
    /// - If the sessions persist (``MQTTClientConfiguration/cleanStart`` is `false`) and host and port are the same,
    ///   the session goes on: messages in flight are sent again.
    /// - If the sessions persist and host or port differ, the first connection to the new server ends all flows with
    ///   the previous one. A message that the previous server has not acknowledged is sent to the new one. A QoS 2
    ///   message that the previous server has received counts as published. Messages of the previous server are no
    ///   longer acknowledged. A session that the new server kept from an earlier connection should have ended there
    ///   with ``disconnect()`` and no message in flight.
    /// - If ``MQTTClientConfiguration/cleanStart`` changes from `true` to `false`, the first connection does not resume
    ///   what the server has kept so far. If the version changes from MQTT 5 too, and the old session had an expiry
    ///   interval, the first connection is a clean session: the session that persists begins with the second one.
    /// - Without a session on either side, calls of messages in flight end with
    ///   ``MQTTClientError/disconnected`` or ``MQTTClientError/sessionLost``.
    /// - Another client identifier is another client, as after ``disconnect()``. All waiting calls end with
    ///   ``MQTTClientError/disconnected``. Messages of the old identifier stay in the store under it if its session
    ///   persists, and are removed from it otherwise. They are sent when a client with that identifier connects again.
    ///   Messages that the store has under the new identifier are sent first.
    /// - Messages published after a call with another client identifier are the new client's. Until the store has all
    ///   changes of the old one they wait in memory, within the limits of the new configuration. At QoS 0 they end with
    ///   ``MQTTClientError/notConnected`` until there is a connection.
    ///
    /// Received messages that no task has taken stay in ``messages``. A configuration that cannot work ends in
    /// ``MQTTManagerState/failed``.
    ///
    /// - Parameter configuration: where to, as whom, and how.
    public func connect(_ configuration: MQTTClientConfiguration) { self.core.connect { $0 = configuration } }

    /// Connects to another server; see ``connect(_:)``, with all else as in the present configuration.
    ///
    /// - Parameters:
    ///   - host: a name or an address.
    ///   - port: `nil` uses the transport's default port.
    public func connect(host: String, port: UInt16? = nil) {
        self.core.connect {
            $0.host = host
            $0.port = port
        }
    }

    /// Connects to the last server now: skips the current back-off delay and resets the back-off.
    ///
    /// Nothing happens if the client is connected or connecting.
    public func connectToLast() { self.core.step { $0.connect() } }

    /// Disconnects, and returns when that is done.
    ///
    /// No server event causes a reconnect.
    ///
    /// Waiting calls end with ``MQTTClientError/disconnected``.
    public func disconnect() async { await self.core.disconnect() }

    /// Disconnects until ``resume()``, as for an app in the background; messages that wait stay in the queue.
    ///
    /// Nothing happens unless a connection is open or requested.
    public func suspend() { self.core.step { $0.suspend() } }

    /// Connects again after ``suspend()``; otherwise nothing happens.
    public func resume() { self.core.step { $0.resume() } }

    /// Disconnects for good: the streams end, and every later call fails with ``MQTTClientError/shutDown``.
    public func shutDown() async { await self.core.shutDown() }

    /// Re-authenticates; see ``MQTTClient/reauthenticate()``.
    ///
    /// - Throws: the errors of ``MQTTClient/reauthenticate()``; ``MQTTClientError/notConnected`` between two
    ///   connections.
    public func reauthenticate() async throws(MQTTClientError) { try await self.core.client.reauthenticate() }

    /// Sends PINGREQ; see ``MQTTClient/ping()``.
    ///
    /// - Returns: the time until PINGRESP.
    /// - Throws: the errors of ``MQTTClient/ping()``; ``MQTTClientError/notConnected`` between two connections.
    public func ping() async throws(MQTTClientError) -> Duration { try await self.core.client.ping() }

    /// Events of all connections from now on: the result of each CONNACK, and the reason for each connection's end.
    ///
    /// A reader more than 256 events late misses the oldest. Each stream has all events.
    public var events: AsyncStream<MQTTClientEvent> { self.core.client.events }

    /// The current state.
    public var state: MQTTManagerState { self.core.state }

    /// The current state, then every change of it.
    ///
    /// A reader more than 256 changes late misses the oldest. Each stream has all changes.
    public var states: AsyncStream<MQTTManagerState> { self.core.states.stream() }

    /// The reason why there is no connection, or why the last one ended.
    ///
    /// Set before the state changes; `nil` from the next connection on.
    public var lastError: MQTTClientError? { self.core.lastError }

    // MARK: Messages

    /// Publishes a message, and returns when it is acknowledged; see ``MQTTClient/publish(_:)``.
    ///
    /// At QoS 1 and 2 a message waits in the store for a connection. At QoS 0 a message without a connection is an
    /// error. If no connection has been requested, or the last one was closed on request, this call requests one. It
    /// does not shorten a back-off delay.
    ///
    /// - Parameter message: its expiry interval is lowered by the time that it waits.
    /// - Returns: success, or that the topic has no subscribers (MQTT 5).
    /// - Throws: the errors of ``MQTTClient/publish(_:)``; at QoS 0 without a connection
    ///   ``MQTTClientError/notConnected``.
    @discardableResult
    public func publish(_ message: MQTTMessage) async throws(MQTTClientError) -> MQTTPublishResult {
        self.core.step { $0.wantsToSend() }
        return try await self.core.client.publish(message)
    }

    /// Messages from the server, over all connections.
    public var messages: MQTTMessages { self.core.client.messages }

    // MARK: Subscriptions

    /// Declares all subscriptions; replaces the previous declaration.
    ///
    /// The difference to the subscriptions in effect, including QoS and options, takes at most one UNSUBSCRIBE and one
    /// SUBSCRIBE. They are sent at once or with the next connection. If the server kept the session, its filters are
    /// not subscribed to again, so retained messages do not come twice.
    ///
    /// - Parameter subscriptions: of two with the same filter the later one counts.
    public func setSubscriptions(_ subscriptions: [Subscription]) { self.core.step { $0.declare(subscriptions) } }

    /// The declared subscriptions.
    public var subscriptions: [Subscription] { self.core.declared }

    /// The server's answer for each filter: the granted QoS, or an error.
    ///
    /// After a lost connection these are the last known answers, until the next connection confirms or replaces them.
    public var effectiveSubscriptions: [MQTTSubscribeResult] { self.core.effectiveNow }

    /// The value of ``effectiveSubscriptions`` now, then after every change.
    ///
    /// A reader more than 256 changes late misses the oldest. Each stream has all changes.
    public var effectiveSubscriptionChanges: AsyncStream<[MQTTSubscribeResult]> { self.core.effective.stream() }
}
