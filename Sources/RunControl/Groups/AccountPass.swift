import LoadEngine
import LoopContext
import Measurement
import NIOCore
import NIOPosix
import Report
import Transport
import Workloads

/// A pass that creates accounts before a run, or removes them after it; it is a separate run without measurements.
struct AccountPass: Sendable {
    let load: XMPPLoad
    let tls: TLSContext?
    let plan: LoadPlan
    let threads: Int
    let readSize: Int
    let connectors: @Sendable (LoopContext) -> any ClientConnector
    let progress: PassProgress
    /// Time limit of the pass, in any state.
    let limit: TimeAmount?

    struct Outcome: Sendable {
        /// The results, by account number.
        var accounts: [AccountResult] = []
        var seconds = 0.0
    }

    /// - Parameter signals: signals that end the pass too.
    /// - Returns: the result for each account.
    func perform(_ signals: SignalRoute) async -> Outcome {
        let events = AsyncStream<RunEvent>.makeStream()
        // The clean-up after a run continues after one signal.
        signals.add(events.continuation, hearsFirst: !self.progress.isBehind)
        let group = MultiThreadedEventLoopGroup(numberOfThreads: self.threads)
        let work = XMPPWorkload(self.load, metrics: XMPPMetrics(for: self.load, loops: self.threads), tls: self.tls)
        let handles = await Shards.make(
            work,
            on: Array(group.makeIterator()),
            plan: self.plan,
            readSize: self.readSize,
            connectors: self.connectors,
            events: events.continuation
        )
        let run = LoadRun(
            groups: [LoadGroup(plan: self.plan, shards: handles, reconnects: false)],
            events: events,
            observer: PassObserver(
                work,
                patience: 3 * self.load.connectTimeout,
                limit: self.limit,
                progress: self.progress
            )
        )
        let outcome = await run.perform()
        self.progress.screen.endProgress()
        events.continuation.finish()
        var result = Outcome(seconds: Double((outcome.ended - outcome.began).nanoseconds) / 1e9)
        for handle in handles { result.accounts += await handle.ask { $0.work?.takeResult().accounts ?? [] } ?? [] }
        result.accounts.sort { $0.number < $1.number }
        try? await group.shutdownGracefully()
        withExtendedLifetime(handles) {}
        return result
    }
}

/// The progress output of a pass, in the form of a run's.
struct PassProgress: Sendable {
    let screen: ProgressScreen
    /// The word in place of a run's phase.
    let word: String
    let accounts: Int
    /// Whether the pass comes after the run.
    let isBehind: Bool
}

/// Shows the progress of a pass, and ends one without progress: a lost server would cost a timeout per account.
private actor PassObserver: RunObserver {
    private var accumulator: RunAccumulator
    private let patience: TimeAmount
    private let limit: TimeAmount?
    private let progress: PassProgress
    private var began: NIODeadline?
    private var lastProgress: NIODeadline?
    private var done = 0.0

    init(_ work: XMPPWorkload, patience: TimeAmount, limit: TimeAmount?, progress: PassProgress) {
        self.accumulator = RunAccumulator(catalog: work.catalog)
        self.patience = patience
        self.limit = limit
        self.progress = progress
    }

    func interval(
        second: Int,
        phase: RunPhase,
        span: TimeAmount,
        groups: [GroupSample<LoadSample>]
    ) async -> StopReason? {
        let now = NIODeadline.now()
        let metrics = groups.flatMap(\.samples).map(\.metrics)
        let interval = self.accumulator.add(
            second: second,
            phase: self.progress.word,
            seconds: Double(max(0, span.nanoseconds)) / 1e9,
            samples: metrics
        )
        if interval.accountsDone > 0 { self.lastProgress = now }
        self.done += interval.accountsDone
        let line = ProgressLine(
            interval,
            clientsPlanned: self.progress.accounts,
            errors: self.accumulator.errors.reduce(0) { $0 + $1.count }
        )
        self.progress.screen.show(line.of(accounts: self.done))
        let began = self.began ?? now
        self.began = began
        if let limit = self.limit, now > began + limit { return .interrupted }
        let last = self.lastProgress ?? now
        self.lastProgress = last
        return now > last + self.patience ? .interrupted : nil
    }

    func isComplete(_ balance: DeliveryBalance, of group: Int, quiet: TimeAmount) async -> Bool { true }
}
