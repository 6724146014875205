import CPosix
import Coordination
import LoadEngine
import MQTT
import Measurement
import NIOCore
import Report
import RunResult
import Synchronization

/// A segment's link to the coordinator of its run; see ``SegmentLink``.
final class CoordinatorLink: RunLeader {
    let orders: AsyncStream<RunOrder>
    private let order: AsyncStream<RunOrder>.Continuation
    private let starts: AsyncStream<NIODeadline>
    private let link: SegmentLink
    private let screen: ProgressScreen
    private let passing: Task<Void, Never>
    private let signals: Task<Void, Never>
    private let thinner: Mutex<IntervalThinner>

    /// Joins the run; fails if the coordinator does not answer, or refuses the segment.
    static func joined(
        _ coordinator: CoordinatorOptions,
        _ segment: SegmentOptions,
        plan: String,
        _ screen: ProgressScreen
    ) async -> Result<(link: CoordinatorLink, welcome: SegmentWelcome), RunRefusal> {
        do throws(RunRefusal) {
            return .success(try await self.join(coordinator, segment, plan: plan, screen))
        } catch {
            return .failure(error)
        }
    }

    private static func join(
        _ coordinator: CoordinatorOptions,
        _ segment: SegmentOptions,
        plan: String,
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
            do throws(MQTTClientError) {
                settings.transport = try .tls(tls)
            } catch {
                throw RunRefusal("--coordinator: \(error)")
            }
        }
        let hello = SegmentHello(
            version: ToolRecord.own.version,
            run: segment.run,
            plan: plan,
            segment: (segment.part?.index ?? 0) + 1,
            segments: segment.part?.count ?? 1,
            host: HostFacts.name ?? "unknown host",
            processes: segment.processes?.count ?? 1
        )
        let link = SegmentLink(settings, hello, clock: segment.clock) { screen.warn($0) }
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
        (self.orders, self.order) = AsyncStream<RunOrder>.makeStream()
        let (starts, start) = AsyncStream<NIODeadline>.makeStream()
        self.starts = starts
        // Before the start nothing else ends this process; later the run itself takes signals, and does so again.
        self.signals = Task {
            for await _ in Signals.stream() { start.finish() }
        }
        self.passing = Task { [order] in
            var hasStarted = false
            for await read in link.orders {
                switch read {
                case .start(let time):
                    hasStarted = true
                    start.yield(Self.deadline(time, link))
                case .load(let time): order.yield(.load(at: Self.deadline(time, link)))
                case .complete(let group): order.yield(.complete(group: group))
                case .stop(let stop):
                    if !hasStarted { start.finish() }
                    switch stop {
                    case .ordered: order.yield(.stop(.signal))
                    case .lost: order.yield(.stop(.lost))
                    case .threshold(let expression): order.yield(.stop(.threshold(expression)))
                    }
                case .welcome, .refused, .taken, .echo, .want, .done: break
                }
            }
            start.finish()
        }
    }

    private static func deadline(_ time: Int64, _ link: SegmentLink) -> NIODeadline {
        RunSegment.deadline(time, clockOffset: link.commonOffset(at: clamor_monotonic_nanoseconds()))
    }

    var clockOffset: Int64 { self.link.commonOffset(at: clamor_monotonic_nanoseconds()) }
    var clock: ClockRecord? { self.link.clockRecord }

    func start() async -> NIODeadline? {
        self.link.tell(.ready)
        return await self.starts.first { _ in true }
    }

    func tell(_ interval: TimelineInterval) { self.link.tell(.interval(self.thinner.withLock { $0.next(interval) })) }
    func tellSettled() { self.link.tell(.settled) }
    func tell(_ balance: DeliveryBalance, of group: Int) { self.link.tell(.balance(balance, group: group)) }
    func tell(line: String) { self.link.tell(.line(line)) }

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
