package import MQTTCodec

/// The state machine of a session manager.
///
/// Pure: events go in, actions come out, in the order in which they must start. A user's call overrides events of a
/// connection: no event reopens a connection that is being closed.
package struct ManagerMachine: Sendable {
    package enum Action: Hashable, Sendable {
        /// Connect to the configured server or to another one. A client event reports the result.
        ///
        /// With `begins` the client's session does not belong to this server.
        case connect(attempt: Int, ServerReference?, begins: Bool = false)
        /// Give up the current attempt, disconnect, then call ``ManagerMachine/disconnected()``.
        case disconnect(keepsQueue: Bool)
        /// Call ``ManagerMachine/waited(_:)`` after this time; replaces any earlier wait.
        case wait(Duration, number: Int)
        case cancelWait
        /// Send both packets, then call ``ManagerMachine/roundEnded(_:unsubscribed:subscribed:)``.
        case subscribe(SubscriptionReconciler.Round, number: Int)
    }

    /// The state to enter after closing.
    private enum Goal {
        case closed
        case suspended
        case connected
    }

    package private(set) var state = MQTTManagerState.starting
    package private(set) var lastError: MQTTClientError?
    package private(set) var subscriptions = SubscriptionReconciler()

    /// The parts of a configuration that decide where connections go, and what becomes of a session.
    package struct Setup: Hashable, Sendable {
        /// The configured server, with its port.
        package var server: ServerReference
        /// Whether each connection starts a new session.
        package var cleanStart: Bool
        /// The port for a redirect that names none.
        package var usualPort: UInt16?

        package init(server: ServerReference, cleanStart: Bool, usualPort: UInt16? = nil) {
            self.server = server
            self.cleanStart = cleanStart
            self.usualPort = usualPort
        }
    }

    private let policy: MQTTReconnectPolicy
    package private(set) var setup: Setup
    private var generator: any RandomNumberGenerator & Sendable
    private var backoff: ReconnectBackoff
    private var goal = Goal.closed
    /// Numbers attempts, waits and rounds, so that late results of old ones are recognised.
    private var number = 0
    private var round: Int?
    private var wait: Int?
    private var attempt: Int?

    /// The server of a permanent redirect; `nil` is the configured one.
    private var home: ServerReference?
    /// The server of a temporary redirect.
    private var detour: ServerReference?
    private var redirects = 0
    /// The server of the current attempt or connection.
    private var server: ServerReference?
    /// The same, with the configured one by its name.
    private var serverInUse: ServerReference?
    /// The server that the client's session belongs to, since the first connection.
    private var sessionServer: ServerReference?
    /// The user has set another server, and no connection has succeeded since.
    private var isChosen = false
    /// The user called `disconnect` during a closing that keeps the queue.
    private var owesDrop = false

    /// - Parameters:
    ///   - policy: delays and limits for reconnects.
    ///   - setup: of the client's configuration.
    ///   - generator: the random source of the jitter.
    package init(
        _ policy: MQTTReconnectPolicy,
        setup: Setup,
        generator: any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator()
    ) {
        self.policy = policy
        self.setup = setup
        self.generator = generator
        self.backoff = ReconnectBackoff(policy)
    }

    // MARK: The user

    /// Connects at once, unless the client is connected or connecting.
    package mutating func connect() -> [Action] {
        self.backoff.reset()
        self.redirects = 0
        switch self.state {
        case .connecting, .connected: return []
        case .closing:
            self.goal = .connected
            return []
        case .waiting: return [.cancelWait] + self.begin()
        case .starting, .failed, .closed, .suspended: return self.begin()
        }
    }

    /// Connects with another configuration, and uses it for later reconnects.
    ///
    /// Messages that wait go along, unless the client is another one: its announcement has ended them.
    package mutating func connect(with setup: Setup, change: MQTTConfigurationChange) -> [Action] {
        let isOtherServer = setup.server != self.detour ?? self.home ?? self.setup.server
        let isOtherClient = change == .client
        self.setup = setup
        self.home = nil
        self.detour = nil
        guard isOtherServer || change != .none else { return self.connect() }
        if isOtherClient {
            self.sessionServer = nil
            self.isChosen = false
        } else if isOtherServer {
            self.isChosen = true
        }
        // There may be a session already, whose subscriptions differ from the last one's.
        if isOtherServer || isOtherClient { self.subscriptions.serverChanged() }
        switch self.state {
        case .connecting, .connected: break
        case .closing:
            // The other client's messages may wait already.
            if isOtherClient { self.owesDrop = false }
            return self.connect()
        case .waiting, .failed, .suspended, .starting, .closed: return self.connect()
        }
        self.backoff.reset()
        self.redirects = 0
        return self.close(.connected)
    }

    /// A message waits to be sent: connects if no connection is requested, and shortens no wait.
    package mutating func wantsToSend() -> [Action] {
        switch self.state {
        case .starting, .closed: self.connect()
        // After `disconnect` the connection is not waited for: a later publish requests a new one.
        case .closing where self.goal == .closed: self.connect()
        default: []
        }
    }

    package mutating func disconnect() -> [Action] {
        guard self.state != .starting && self.state != .closed else {
            self.state = .closed
            return []
        }
        if self.state == .closing, self.goal != .closed { self.owesDrop = true }
        return self.close(.closed)
    }

    /// Suspends only if a connection is requested; otherwise there is nothing to resume.
    package mutating func suspend() -> [Action] {
        switch self.state {
        case .connecting, .connected, .waiting: return self.close(.suspended)
        case .closing:
            if self.goal == .connected { self.goal = .suspended }
            return []
        case .starting, .failed, .closed, .suspended: return []
        }
    }

    package mutating func resume() -> [Action] {
        switch self.state {
        case .suspended: return self.connect()
        case .closing where self.goal == .suspended: return self.connect()
        default: return []
        }
    }

    package mutating func declare(_ subscriptions: [Subscription]) -> [Action] {
        self.run(self.subscriptions.declare(subscriptions))
    }

    // MARK: The client

    /// CONNACK accepted.
    ///
    /// An event of an earlier attempt may arrive during the next one: the later event counts.
    package mutating func connected(sessionPresent: Bool) -> [Action] {
        switch self.state {
        case .connecting, .waiting, .failed, .connected: break
        case .starting, .closing, .closed, .suspended: return []
        }
        let actions: [Action] = self.wait == nil ? [] : [.cancelWait]
        self.wait = nil
        self.round = nil
        self.state = .connected
        self.lastError = nil
        self.backoff.reset()
        self.sessionServer = self.serverInUse
        self.isChosen = false
        let round = self.subscriptions.connected(sessionPresent: sessionPresent, cleanStart: self.setup.cleanStart)
        return actions + self.run(round)
    }

    /// An attempt or a connection has ended without a request.
    package mutating func ended(_ error: MQTTClientError) -> [Action] {
        guard self.state == .connecting || self.state == .connected else { return [] }
        // Only this machine cancels attempts, to start the next one.
        if error == .cancelled { return [] }
        self.subscriptions.disconnected()
        self.round = nil
        self.lastError = error
        switch ReconnectVerdict(error) {
        case .giveUp where self.policy.retriesRefusedLogin && error.isRefusedLogin: return self.retry()
        case .giveUp:
            self.state = .failed
            return []
        case .retry: return self.retry()
        case .redirect(var server, let isPermanent):
            if server.port == nil { server = ServerReference(host: server.host, port: self.setup.usualPort) }
            self.redirects += 1
            guard self.redirects <= self.policy.maximumRedirects else { return self.retry() }
            if isPermanent { self.home = server }
            self.detour = isPermanent ? nil : server
            return self.begin()
        }
    }

    /// The client refused to start an attempt; a started attempt ends with an event.
    package mutating func attemptRefused(_ attempt: Int, _ error: MQTTClientError) -> [Action] {
        guard self.state == .connecting, self.attempt == attempt else { return [] }
        switch error {
        case .invalid, .shutDown: return self.ended(error)
        default: return []
        }
    }

    package mutating func disconnected() -> [Action] {
        guard self.state == .closing else { return [] }
        if self.owesDrop {
            self.owesDrop = false
            return [.disconnect(keepsQueue: false)]
        }
        switch self.goal {
        case .closed: self.state = .closed
        case .suspended: self.state = .suspended
        case .connected: return self.begin()
        }
        return []
    }

    package mutating func waited(_ number: Int) -> [Action] {
        guard self.state == .waiting, self.wait == number else { return [] }
        return self.begin()
    }

    package mutating func roundEnded(_ number: Int, unsubscribed: [ReasonCode]?, subscribed: [ReasonCode]?) -> [Action]
    {
        guard self.round == number else { return [] }
        self.round = nil
        return self.run(self.subscriptions.ended(unsubscribed: unsubscribed, subscribed: subscribed))
    }

    // MARK: -

    private mutating func begin() -> [Action] {
        self.wait = nil
        self.number += 1
        self.attempt = self.number
        self.state = .connecting
        self.server = self.detour ?? self.home
        self.serverInUse = self.server ?? self.setup.server
        let isOther = self.sessionServer.map { $0 != self.serverInUse } ?? false
        let begins = isOther && self.isChosen && !self.setup.cleanStart
        return [.connect(attempt: self.number, self.server, begins: begins)]
    }

    private mutating func retry() -> [Action] {
        // A redirect that failed falls back to the redirecting server.
        self.detour = nil
        self.redirects = 0
        self.number += 1
        self.wait = self.number
        self.state = .waiting
        return [.wait(self.backoff.delay(using: &self.generator), number: self.number)]
    }

    private mutating func close(_ goal: Goal) -> [Action] {
        let actions: [Action] = self.wait == nil ? [] : [.cancelWait]
        self.wait = nil
        self.round = nil
        self.subscriptions.disconnected()
        self.goal = goal
        if self.state == .closing { return actions }
        self.state = .closing
        return actions + [.disconnect(keepsQueue: goal != .closed)]
    }

    private mutating func run(_ round: SubscriptionReconciler.Round?) -> [Action] {
        guard let round else { return [] }
        self.number += 1
        self.round = self.number
        return [.subscribe(round, number: self.number)]
    }
}

extension MQTTClientError {
    /// The server rejected this user name or password.
    fileprivate var isRefusedLogin: Bool {
        guard case .refused(let refusal) = self else { return false }
        if let reason = refusal.reason { return reason == .badUserNameOrPassword || reason == .notAuthorized }
        let code = ConnectReturnCode(rawValue: refusal.code)
        return code == .badUserNameOrPassword || code == .notAuthorized
    }
}
