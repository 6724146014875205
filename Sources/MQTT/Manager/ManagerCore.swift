import LoopContext
import MQTTCodec
import Synchronization

/// Carries out what the machine of a session manager decides.
///
/// All of it happens under one lock: the step, the change of state that it brings, and the beginning of what it asks
/// for. Nothing waits under it. Tasks hold the client while they need it, and this object never.
final class ManagerCore: Sendable {
    private struct Work {
        var machine: ManagerMachine
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

    init(
        _ client: MQTTClient,
        machine: ManagerMachine,
        sleep: @escaping @Sendable (Duration) async throws -> Void
    ) {
        self.client = client
        self.states = Broadcast(initial: machine.state)
        self.effective = Broadcast(initial: [])
        self.work = Mutex(Work(machine: machine))
        self.sleep = sleep
        client.hear { [weak self] in self?.heard($0) }
    }

    var state: MQTTManagerState { self.work.withLock { $0.machine.state } }
    var lastError: MQTTClientError? { self.work.withLock { $0.machine.lastError } }
    var declared: [Subscription] { self.work.withLock { $0.machine.subscriptions.declared } }
    var effectiveNow: [MQTTSubscribeResult] { self.work.withLock { $0.machine.subscriptions.effective } }

    /// One step of the machine, and what follows from it.
    func step(_ event: (inout ManagerMachine) -> [ManagerMachine.Action]) {
        self.work.withLock { work in
            guard !work.isShutDown else { return }
            let (state, effective) = (work.machine.state, work.machine.subscriptions.effective)
            let actions = event(&work.machine)
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
        // One that keeps what waits is followed by one that does not, begun before the end of the first.
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

    /// Nothing is begun any more.
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
        // Told by the end of the call that asked for it.
        case .closed: break
        // The connection stands.
        case .storeFailed: break
        }
    }

    private func begin(_ action: ManagerMachine.Action, _ work: inout Work) {
        switch action {
        case .connect(let attempt, let server, let begins):
            work.attempt = Task { [weak self, client] in
                guard let error = await Self.connect(client, server, begins: begins) else { return }
                self?.step { $0.attemptRefused(attempt, error) }
            }
        case .disconnect(let keepsQueue):
            let attempt = work.attempt
            work.attempt = nil
            attempt?.cancel()
            work.disconnecting = Task { [weak self, client] in
                // An attempt that has not reached the client yet must not come behind the end of it.
                await attempt?.value
                await client.disconnect(keepsQueue: keepsQueue)
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

    /// What the attempt failed with.
    private static func connect(
        _ client: MQTTClient,
        _ server: ServerReference?,
        begins: Bool
    ) async -> MQTTClientError? {
        do throws(MQTTClientError) {
            try await client.connect(server, begins: begins)
            return nil
        } catch {
            return error
        }
    }

    /// What goes goes first: the messages of what comes are told apart from those of what went.
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
