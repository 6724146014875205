import CPosix
import Coordination
import LoadEngine
import MQTT
import Measurement
import Report
import RunResult
import Scenario
import Synchronization

/// A segment's link to the coordinator of its run; see ``SegmentLink``.
final class CoordinatorLink: RunLeader {
    let orders: AsyncStream<SegmentOrder>
    private let order: AsyncStream<SegmentOrder>.Continuation
    private let starts: AsyncStream<Int64>
    private let link: SegmentLink
    private let screen: ProgressScreen
    private let passing: Task<Void, Never>
    private let signals: Task<Void, Never>
    private let thinner: Mutex<IntervalThinner>

    /// Joins the run; fails if the coordinator does not answer, or refuses the segment.
    static func join(
        _ coordinator: CoordinatorOptions,
        _ hello: SegmentHello,
        clock: OwnClock,
        _ screen: ProgressScreen
    ) async throws(RunRefusal) -> (link: CoordinatorLink, welcome: SegmentWelcome) {
        var settings = SegmentLink.Settings(
            host: coordinator.place.host,
            port: coordinator.place.port,
            joinTimeout: .nanoseconds(coordinator.joinTimeout)
        )
        settings.credentials = coordinator.credentials
        if coordinator.isSecure {
            var tls = MQTTTLS()
            tls.authorityFile = coordinator.authorityFile
            settings.transport = try RunRefusal.unless("--coordinator: ") { try .tls(tls) }
        }
        let link = SegmentLink(settings, hello, clock: clock) { screen.warn($0) }
        do throws(SegmentLinkError) {
            let welcome = try await link.join()
            let joined = CoordinatorLink(link, welcome, screen)
            // At once: exchanges of times also show that the segment lives while it is prepared.
            try await link.synchronize(welcome) { [order = joined.order] _ in
                order.yield(.clock(link.commonOffset(at: clamor_monotonic_nanoseconds())))
            }
            return (joined, welcome)
        } catch {
            await link.close()
            throw RunRefusal("--coordinator: \(error)", .unavailable)
        }
    }

    private init(_ link: SegmentLink, _ welcome: SegmentWelcome, _ screen: ProgressScreen) {
        self.link = link
        self.screen = screen
        self.thinner = Mutex(IntervalThinner(every: welcome.histogramSeconds))
        (self.orders, self.order) = AsyncStream<SegmentOrder>.makeStream()
        let (starts, start) = AsyncStream<Int64>.makeStream()
        self.starts = starts
        // Before the start nothing else ends this process; later the run itself takes signals, and does so again.
        self.signals = Task {
            for await _ in Signals.stream() { start.finish() }
        }
        self.passing = Task { [order] in
            var hasStarted = false
            for await read in link.orders {
                if case .stop = read, !hasStarted { start.finish() }
                if case .start(let time) = read {
                    hasStarted = true
                    start.yield(time)
                } else {
                    order.yield(read)
                }
            }
            start.finish()
        }
    }

    var clockOffset: Int64 { self.link.commonOffset(at: clamor_monotonic_nanoseconds()) }
    var clock: ClockRecord? { self.link.clockRecord }

    func start() async -> Int64? {
        self.link.tell(.ready)
        return await self.starts.first { _ in true }
    }

    func tell(_ report: SegmentReport) {
        guard case .interval(let interval) = report else { return self.link.tell(report) }
        self.link.tell(.interval(self.thinner.withLock { $0.next(interval) }))
    }

    /// Lets the coordinator fetch the results, and leaves.
    ///
    /// - Parameters:
    ///   - status: the segment's own.
    ///   - directory: of its results; `nil` if there are none.
    ///   - words: the reason for that.
    func finish(_ status: ExitStatus, directory: String?, words: String?) async {
        let leaving = Task { [link] in
            for await _ in Signals.stream() { link.giveUp() }
        }
        let files = await SelfProcess.onThread { directory.map { ResultFile.all(in: $0) } ?? [] }
        let ending = SegmentEnding(status: status.rawValue, words: words, files: files)
        let isFetched = await self.link.finish(ending, directory: directory)
        leaving.cancel()
        if !isFetched, let directory {
            self.screen.warn(
                "the coordinator did not fetch the results; they are in \(directory), and clamor merge adds all segments'"
            )
        }
        self.passing.cancel()
        self.signals.cancel()
        await self.link.close()
    }
}
