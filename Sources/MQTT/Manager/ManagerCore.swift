import LoopContext
import MQTTCodec
import Synchronization

/// Executes the actions of a session manager's state machine.
///
/// One lock covers the step, its change of state and the start of its actions. Nothing waits while it is held. Tasks
/// hold the client while they need it, and never this object.
final class ManagerCore: Sendable {
    private struct Work {
        var machine: ManagerMachine
        var configuration: MQTTClientConfiguration
        /// Grows with each change of the client identifier.
        var identity = 0
        var attempt: Task<Void, Never>?
        var wait: Task<Void, Never>?
        var disconnecting: Task<Void, Never>?
        var isShutDown = false
    }

    let client: MQTTClient
    let states: Broadcast<MQTTManagerState>
    let effective: Broadcast<[MQTTSubscribeResult]>
    private let work: Mutex<Work>
    private let sleep: @Sendable (Duration) async throws -> Void

    init(_ client: MQTTClient, machine: ManagerMachine, sleep: @escaping @Sendable (Duration) async throws -> Void) {
        self.client = client
        self.states = Broadcast(initial: machine.state)
        self.effective = Broadcast(initial: [])
        self.work = Mutex(Work(machine: machine, configuration: client.configuration))
        self.sleep = sleep
        client.hear { [weak self] in self?.heard($0) }
    }

    var configuration: MQTTClientConfiguration { self.work.withLock { $0.configuration } }
    var state: MQTTManagerState { self.work.withLock { $0.machine.state } }
    var lastError: MQTTClientError? { self.work.withLock { $0.machine.lastError } }
    var declared: [Subscription] { self.work.withLock { $0.machine.subscriptions.declared } }
    var effectiveNow: [MQTTSubscribeResult] { self.work.withLock { $0.machine.subscriptions.effective } }

    /// Runs one step of the machine, and its actions.
    func step(_ event: (inout ManagerMachine) -> [ManagerMachine.Action]) { self.run { event(&$0.machine) } }

    /// Connects with a configuration that is made of the present one.
    func connect(_ change: (inout MQTTClientConfiguration) -> Void) {
        self.run { work in
            let old = work.configuration
            change(&work.configuration)
            let difference = old.change(to: work.configuration)
            if difference == .client {
                work.identity += 1
                // Before the call returns: messages that are published after it are the new client's.
                self.client.announce(work.configuration, identity: work.identity)
            }
            return work.machine.connect(with: work.configuration.setup, change: difference)
        }
    }

    private func run(_ event: (inout Work) -> [ManagerMachine.Action]) {
        self.work.withLock { work in
            guard !work.isShutDown else { return }
            let (state, effective) = (work.machine.state, work.machine.subscriptions.effective)
            let actions = event(&work)
            for action in actions { self.begin(action, &work) }
            if work.machine.subscriptions.effective != effective {
                self.effective.send(work.machine.subscriptions.effective)
            }
            if work.machine.state != state { self.states.send(work.machine.state) }
        }
    }

    /// Closes, and returns when that is done.
    func disconnect() async {
        self.step { $0.disconnect() }
        // A disconnect that keeps the queue is followed by one that does not, and that starts before the first has
        // ended.
        var ended: Task<Void, Never>?
        while let task = self.work.withLock({ $0.disconnecting }), task != ended {
            await task.value
            ended = task
        }
    }

    func shutDown() async {
        await self.disconnect()
        self.stop()
        await self.client.shutDown()
    }

    /// Prevents all further actions.
    func stop() {
        self.work.withLock { work in
            guard !work.isShutDown else { return }
            work.isShutDown = true
            work.attempt?.cancel()
            work.wait?.cancel()
            self.states.finish()
            self.effective.finish()
        }
    }

    private func heard(_ event: MQTTClientEvent) {
        switch event {
        case .connected(let result): self.step { $0.connected(sessionPresent: result.sessionPresent) }
        case .refused(let refusal): self.step { $0.ended(.refused(refusal)) }
        case .failed(let error), .protocolError(let error), .closedByServer(let error): self.step { $0.ended(error) }
        // The call that requested it reports it.
        case .closed: break
        // The connection stays open.
        case .storeFailed: break
        }
    }

    private func begin(_ action: ManagerMachine.Action, _ work: inout Work) {
        switch action {
        case .connect(let attempt, let server, let begins):
            work.attempt = Task { [weak self, client, configuration = work.configuration, identity = work.identity] in
                let error = await Self.connect(client, configuration, server, begins: begins, identity: identity)
                guard let error else { return }
                self?.step { $0.attemptRefused(attempt, error) }
            }
        case .disconnect(let keepsQueue):
            let attempt = work.attempt
            work.attempt = nil
            attempt?.cancel()
            work.disconnecting = Task { [weak self, client, identity = work.identity] in
                // An attempt that has not reached the client yet must not start after the disconnect.
                await attempt?.value
                await client.disconnect(keepsQueue: keepsQueue, identity: identity)
                self?.step { $0.disconnected() }
            }
        case .wait(let duration, let number):
            self.client.log.waits(duration)
            work.wait?.cancel()
            work.wait = Task { [weak self, sleep] in
                guard (try? await sleep(duration)) != nil else { return }
                self?.step { $0.waited(number) }
            }
        case .cancelWait:
            work.wait?.cancel()
            work.wait = nil
        case .subscribe(let round, let number):
            Task { [weak self, client] in
                let (unsubscribed, subscribed) = await Self.run(round, client)
                self?.step { $0.roundEnded(number, unsubscribed: unsubscribed, subscribed: subscribed) }
            }
        }
    }

    /// Returns the error of the attempt.
    private static func connect(
        _ client: MQTTClient,
        _ configuration: MQTTClientConfiguration,
        _ server: ServerReference?,
        begins: Bool,
        identity: Int
    ) async -> MQTTClientError? {
        do throws(MQTTClientError) {
            try await client.connect(configuration, server, begins: begins, identity: identity)
            return nil
        } catch {
            return error
        }
    }

    /// UNSUBSCRIBE is sent before SUBSCRIBE, so that messages of the old and the new subscriptions can be told apart.
    private static func run(
        _ round: SubscriptionReconciler.Round,
        _ client: MQTTClient
    ) async -> (unsubscribed: [ReasonCode]?, subscribed: [ReasonCode]?) {
        var unsubscribed: [ReasonCode]?
        if !round.unsubscribe.isEmpty { unsubscribed = try? await client.unsubscribe(round.unsubscribe).map(\.reason) }
        var subscribed: [ReasonCode]?
        if !round.subscribe.isEmpty { subscribed = try? await client.subscribe(round.subscribe).map(\.reason) }
        return (unsubscribed, subscribed)
    }
}

extension MQTTClientConfiguration {
    var setup: ManagerMachine.Setup {
        ManagerMachine.Setup(
            server: ServerReference(host: self.host, port: self.port ?? self.transport.defaultPort),
            cleanStart: self.cleanStart,
            usualPort: self.transport.defaultPort
        )
    }
}
