import MQTT
import TestSupport
import Testing

@Suite("The back-off of the session manager")
struct ReconnectBackoffTests {
    private func policy(
        first: Duration = .seconds(1),
        maximum: Duration = .seconds(64),
        jitter: Bool = false
    )
        -> MQTTReconnectPolicy
    {
        var policy = MQTTReconnectPolicy()
        policy.firstDelay = first
        policy.maximumDelay = maximum
        policy.hasJitter = jitter
        return policy
    }

    @Test("[SPEC A12] doubles from 1 s to 64 s by default, and stays there")
    func doubles() {
        let policy = MQTTReconnectPolicy()
        #expect((policy.firstDelay, policy.maximumDelay, policy.hasJitter) == (.seconds(1), .seconds(64), true))
        var backoff = ReconnectBackoff(self.policy())
        var generator = SeededGenerator(seed: 1)
        let delays = (0..<9).map { _ in backoff.delay(using: &generator) }
        #expect(delays == [1, 2, 4, 8, 16, 32, 64, 64, 64].map { Duration.seconds($0) })
        backoff.reset()
        #expect(backoff.delay(using: &generator) == .seconds(1))
    }

    @Test(
        "[SPEC A12] reaches a cap that is no power of two exactly",
        arguments: [
            (1, 10, [1, 2, 4, 8, 10, 10]), (3, 7, [3, 6, 7, 7]), (5, 5, [5, 5]), (9, 4, [4, 4]), (0, 4, [0, 0, 0]),
            (1, 0, [0, 0]), (1, 3, [1, 2, 3, 3]),
        ]
    )
    func caps(_ first: Int, _ maximum: Int, _ delays: [Int]) {
        var backoff = ReconnectBackoff(self.policy(first: .seconds(first), maximum: .seconds(maximum)))
        var generator = SeededGenerator(seed: 1)
        #expect(delays.map { _ in backoff.delay(using: &generator) } == delays.map { Duration.seconds($0) })
    }

    @Test("survives durations that no clock has")
    func extremes() {
        let long = Duration(secondsComponent: .max, attosecondsComponent: 0)
        var backoff = ReconnectBackoff(self.policy(first: long, maximum: long, jitter: true))
        var generator = SeededGenerator(seed: 1)
        for _ in 0..<3 { #expect(backoff.delay(using: &generator) >= .zero) }
    }

    @Test("[SPEC A12] draws each wait between nothing and its full length")
    func jitter() {
        var generator = SeededGenerator(seed: 3)
        var sums = [Duration](repeating: .zero, count: 8)
        let rounds = 2_000
        for _ in 0..<rounds {
            var backoff = ReconnectBackoff(self.policy(jitter: true))
            for step in sums.indices {
                let delay = backoff.delay(using: &generator)
                #expect(delay >= .zero && delay <= .seconds(min(1 << step, 64)))
                sums[step] += delay
            }
        }
        for (step, sum) in sums.enumerated() {
            let share = sum / rounds / .seconds(min(1 << step, 64))
            #expect(share > 0.46 && share < 0.54)
        }
    }
}
