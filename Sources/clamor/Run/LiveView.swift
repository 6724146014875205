import Measurement
import Report
import Synchronization

/// A running run for people and programs: the board or a line a second, and the endpoint.
final class LiveView: Sendable {
    private let screen: ProgressScreen?
    private let endpoint: LiveEndpoint?
    private let state: Mutex<State>

    private struct State {
        var run: LiveRun
        /// Accounts that were made or removed, in a run that does nothing else.
        var accountsDone: Double?
    }

    /// - Parameters:
    ///   - screen: `nil` for the endpoint alone.
    ///   - run: before its first interval.
    ///   - endpoint: if it is served too.
    ///   - isOfAccounts: every client only makes or removes an account.
    init(_ screen: ProgressScreen?, _ run: LiveRun, endpoint: LiveEndpoint?, isOfAccounts: Bool = false) {
        self.screen = screen
        self.endpoint = endpoint
        self.state = Mutex(State(run: run, accountsDone: isOfAccounts ? 0 : nil))
        endpoint?.follow { [self] in self.state.withLock(\.run) }
    }

    /// Adds the next interval, and what is known of the result at its end.
    func add(_ interval: TimelineInterval, _ standing: LiveStanding) {
        // Painted outside the lock: a terminal that takes nothing must not hold up the endpoint.
        let (run, accountsDone) = self.state.withLock { state in
            state.run.add(interval, standing)
            state.accountsDone = state.accountsDone.map { $0 + interval.accountsDone }
            return (state.run, state.accountsDone)
        }
        self.screen?.show(run, accountsDone: accountsDone)
        self.endpoint?.changed()
    }

    /// The thresholds as if the run ended now; one without a sample is absent.
    func results(of thresholds: [Threshold]) -> [ThresholdResult] {
        self.state.withLock { state in
            thresholds.map { $0.evaluate(in: state.run) }.filter { $0.value != nil }
        }
    }

    /// The first of the thresholds with `abort` that the run has broken.
    func broken(of thresholds: [Threshold]) -> String? {
        self.state.withLock { state in
            guard state.run.measuredSeconds > Threshold.abortsAfter else { return nil }
            return thresholds.first { $0.aborts && $0.isBroken(in: state.run) }?.expression
        }
    }

    /// Ends the run; the endpoint stays for one more request of its result.
    ///
    /// - Parameters:
    ///   - record: the final record.
    ///   - files: the directory of its results.
    func finish(_ record: RunRecord, files: String?) async {
        self.complete(record)
        await self.endpoint?.finish(files: files)
    }

    /// Ends the run, of which another one follows.
    func complete(_ record: RunRecord) {
        self.state.withLock { $0.run.finish(record) }
        self.endpoint?.changed()
    }
}
