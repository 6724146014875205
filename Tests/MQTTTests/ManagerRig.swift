import MQTT
import Synchronization

/// Waits that end when a test says so.
final class Waits: Sendable {
    private struct State {
        var sleeping: [Int: CheckedContinuation<Bool, Never>] = [:]
        var count = 0
    }

    private let state = Mutex(State())
    /// Each wait that begins.
    let begun: AsyncStream<Duration>
    private let begin: AsyncStream<Duration>.Continuation

    init() { (self.begun, self.begin) = AsyncStream.makeStream() }

    var count: Int { self.state.withLock { $0.count } }

    @Sendable func sleep(_ duration: Duration) async throws {
        let number = self.state.withLock { state in
            state.count += 1
            return state.count
        }
        let isOver = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                self.state.withLock { state in
                    if Task.isCancelled { return continuation.resume(returning: false) }
                    state.sleeping[number] = continuation
                }
                self.begin.yield(duration)
            }
        } onCancel: {
            self.state.withLock { $0.sleeping.removeValue(forKey: number) }?.resume(returning: false)
        }
        if !isOver { throw CancellationError() }
    }

    /// Ends the waits under way.
    func end() {
        let sleeping = self.state.withLock { state in
            defer { state.sleeping = [:] }
            return state.sleeping.values
        }
        for continuation in sleeping { continuation.resume(returning: true) }
    }
}

extension MQTTSessionManager {
    /// Without jitter, with waits of a test's own.
    convenience init(_ configuration: MQTTClientConfiguration, _ waits: Waits) {
        var policy = MQTTReconnectPolicy()
        policy.hasJitter = false
        self.init(MQTTClient(configuration), policy: policy, sleep: waits.sleep)
    }

    /// Returns when the state is this.
    func until(_ state: MQTTManagerState) async {
        for await now in self.states where now == state { break }
    }

    /// Returns when so many filters have an answer.
    func untilEffective(_ count: Int) async {
        for await effective in self.effectiveSubscriptionChanges where effective.count == count { break }
    }
}
