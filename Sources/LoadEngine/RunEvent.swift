package import NIOCore

package enum RunPhase: String, Hashable, Sendable {
    case connect
    case warmup
    case measure
    case drain
}

package enum StopReason: Hashable, Sendable {
    /// The planned time is over, or the limit is spent.
    case planned
    /// Stopped from outside before the plan's end, by a signal.
    case interrupted
    /// Stopped by the process that leads the segments of the run.
    case ordered
    /// A threshold that aborts was broken.
    case thresholdBroken
    case everyConnectFailed
    /// No operator of a load with operators and listeners came up, or no listener.
    case everyOperatorFailed
    case everyListenerFailed
    case everyConnectionLost
}

/// Events that control a run, from outside and from its shards.
package enum RunEvent: Hashable, Sendable {
    case shard(ShardEvent, group: Int = 0)
    case tick
    /// A condition that the run checks by asking may have changed.
    case look
    /// The other processes are ready too: the load begins then.
    case begin(at: NIODeadline)
    case stop(StopReason)
    /// The same, but a drain that is under way goes on.
    case endLoad(StopReason)
    /// The second signal: close everything now.
    case abort
}

package protocol RunObserver<Sample>: Sendable {
    associatedtype Sample: Sendable

    /// Second 0 begins then; called before the first interval.
    func begins(at time: NIODeadline) async

    /// A second is over, or a phase.
    ///
    /// - Parameters:
    ///   - second: whole seconds since the run began.
    ///   - phase: the one that the samples belong to.
    ///   - span: what the samples cover.
    ///   - groups: samples and facts of all shards, one entry for each group of the run; the observer may change them.
    /// - Returns: a reason to stop.
    func interval(
        second: Int,
        phase: RunPhase,
        span: TimeAmount,
        groups: consuming [GroupSample<Sample>]
    ) async -> StopReason?

    /// Whether the receivers of a group, and of those that it exchanges messages with, have received all that will come.
    ///
    /// - Parameters:
    ///   - balance: that of all their shards.
    ///   - group: the first of these groups.
    ///   - quiet: how long no message has come, since the server had read all of them.
    /// - Returns: whether they may leave.
    func isComplete(_ balance: DeliveryBalance, of group: Int, quiet: TimeAmount) async -> Bool
}

extension RunObserver {
    package func begins(at time: NIODeadline) async {}
}

/// When the parts of a run took place.
package struct RunOutcome: Hashable, Sendable {
    package var began: NIODeadline
    /// When the load began; `nil` if it never did.
    package var loadBegan: NIODeadline?
    /// The measured phase.
    package var measured: Range<NIODeadline>?
    /// Those of the plan that began, in their order.
    package var stages: [Range<NIODeadline>] = []
    package var ended: NIODeadline
    package var stop: StopReason
    /// One for each group of the run.
    package var groups: [GroupOutcome]
    /// Clients never closed in good order, since the time for it ran out.
    package var wasAborted = false

    package init(began: NIODeadline, ended: NIODeadline, stop: StopReason, groups: [GroupOutcome]) {
        self.began = began
        self.ended = ended
        self.stop = stop
        self.groups = groups
    }

    /// Clients that came up at first.
    package var up: Int { self.groups.reduce(0) { $0 + $1.up } }
}

/// The time that a run goes by, and what wakes it.
package protocol RunClock: Sendable {
    var now: NIODeadline { get }

    /// Calls `body` once, at `time` or a little later.
    func wake(at time: NIODeadline, _ body: @escaping @Sendable () -> Void)
}

package struct SystemRunClock: RunClock {
    package init() {}

    package var now: NIODeadline { .now() }

    package func wake(at time: NIODeadline, _ body: @escaping @Sendable () -> Void) {
        Task {
            // The clock that sleeps is another one, and may wake a moment too early.
            while case let wait = time - .now(), wait > .zero {
                try? await Task.sleep(for: .nanoseconds(wait.nanoseconds))
            }
            body()
        }
    }
}
