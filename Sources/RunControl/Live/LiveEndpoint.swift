import LiveServer
import Measurement
import NIOCore
import Pages
import Report
import RunResult
import Scenario
import Synchronization

/// The endpoint of `--prometheus`: `/metrics`, `/healthz`, and the live page at `/` with its events.
///
/// It renders on request and off the run's tasks. The page is rendered only while a browser follows it.
final class LiveEndpoint: Sendable {
    private let server: LiveServer
    private let linger: TimeAmount
    private let source: LiveSource
    private let pages: LivePages
    private let changes: AsyncStream<Void>.Continuation

    /// Starts the server; a problem is a warning, and the run goes on without it.
    static func start(_ options: LiveOptions, _ screen: ProgressScreen) async -> LiveEndpoint? {
        guard let place = options.endpoint else { return nil }
        let source = LiveSource()
        let pages = LivePages(source)
        do throws(LiveServerError) {
            let server = try await LiveServer.start(
                host: place.host,
                port: place.port,
                routes: [
                    "/metrics": .response { Self.metrics(source, accept: $0.accept) },
                    "/healthz": .response { _ in LiveResponse(text: "ok\n") },
                    "/": .response { _ in await Self.page(pages) },
                    "/events": .events,
                ]
            )
            let host = place.host.contains(":") ? "[\(place.host)]" : place.host
            let address = "http://\(host):\(server.address.port ?? place.port)/"
            let line = "metrics at \(address)metrics, live page at \(address)"
            // A free port is known to nothing else.
            if place.port == 0 { screen.announce(line) } else { screen.say(line) }
            return LiveEndpoint(server, linger: .nanoseconds(options.linger), source, pages)
        } catch {
            screen.warn("--prometheus: \(error); the run goes on without it")
            return nil
        }
    }

    private init(_ server: LiveServer, linger: TimeAmount, _ source: LiveSource, _ pages: LivePages) {
        self.server = server
        self.linger = linger
        self.source = source
        self.pages = pages
        let (changes, continuation) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        self.changes = continuation
        Task {
            for await _ in changes { await Self.send(pages, to: server) }
        }
    }

    /// Shows another run; its current state is asked for when it is rendered.
    func follow(_ source: @escaping @Sendable () -> LiveRun) {
        self.source.set(source)
        self.changed()
    }

    /// The run has a new interval.
    func changed() { self.changes.yield() }

    /// Serves the result until it was scraped, the time for that is over, or a signal ends the wait.
    ///
    /// A run that was never scraped before does not wait. `files`: the directory of the results.
    func finish(files: String?) async {
        let wasScraped = self.server.requests(of: "/metrics") > 0
        if let report = await self.pages.finish(files: files) {
            self.server.send(event: LiveEvent(name: "final", data: report, isLast: true))
        }
        if wasScraped {
            await Signals.cancelling { [source, linger] in await source.awaitResultShown(within: linger) }
        }
        self.changes.finish()
        await self.server.close()
    }

    // MARK: - The routes

    private static let notBegun = LiveResponse(status: 503, text: "the run has not begun\n")

    private static func metrics(_ source: LiveSource, accept: String?) -> LiveResponse {
        guard let run = source.run else { return self.notBegun }
        if run.final != nil { source.resultIsShown() }
        let format = PrometheusFormat(accept: accept)
        return LiveResponse(contentType: format.contentType, body: PrometheusPage(run).text(format))
    }

    private static func page(_ pages: LivePages) async -> LiveResponse {
        guard let text = await pages.page else { return self.notBegun }
        return LiveResponse(contentType: "text/html; charset=utf-8", text: text)
    }

    /// Sends the page's content to the browsers that follow it, at most a twentieth of the time.
    private static func send(_ pages: LivePages, to server: LiveServer) async {
        guard server.listeners > 0 else { return }
        let began = ContinuousClock.now
        if let body = await pages.body { server.send(event: LiveEvent(name: "state", data: body)) }
        // A long run has large charts: they may be drawn less often, and never at the cost of the load.
        try? await Task.sleep(for: (ContinuousClock.now - began) * 19)
    }
}

/// The run that the endpoint shows; the routes need it before the server exists.
private final class LiveSource: Sendable {
    private struct State {
        var run: (@Sendable () -> LiveRun)?
        /// Ends when the run's result is shown for the first time.
        var shown = AsyncStream<Void>.makeStream()
    }

    private let state = Mutex(State())

    func set(_ run: @escaping @Sendable () -> LiveRun) { self.state.withLock { $0 = State(run: run) } }
    var run: LiveRun? { self.state.withLock(\.run)?() }
    func resultIsShown() { self.state.withLock { $0.shown.continuation.finish() } }

    /// A scrape may have shown the result already; the sleep is the limit that `--prometheus-linger` gives.
    func awaitResultShown(within time: TimeAmount) async {
        let shown = self.state.withLock(\.shown.stream)
        await withTaskGroup { group in
            group.addTask { for await _ in shown {} }
            group.addTask { try? await Task.sleep(for: .nanoseconds(time.nanoseconds)) }
            _ = await group.next()
            group.cancelAll()
        }
    }
}

/// Renders the live page, once for each interval and one at a time, whatever the number of requests.
private actor LivePages {
    private let source: LiveSource
    private var report: String?
    private var rendered: (elapsed: Double, isFinal: Bool, page: String?, body: String?)?

    init(_ source: LiveSource) { self.source = source }

    /// The whole page; `nil` before the run has begun.
    var page: String? {
        if let report = self.report { return report }
        guard let run = self.source.run else { return nil }
        if let rendered = self.known(run), let page = rendered.page { return page }
        let page = try? self.live(run).text()
        self.rendered = (run.elapsed, run.final != nil, page, self.known(run)?.body)
        return page
    }

    /// Header and content; `nil` before the run has begun and behind its report.
    var body: String? {
        guard self.report == nil, let run = self.source.run else { return nil }
        if let rendered = self.known(run), let body = rendered.body { return body }
        let body = try? self.live(run).body()
        self.rendered = (run.elapsed, run.final != nil, self.known(run)?.page, body)
        return body
    }

    /// The report of a run that has ended; `nil` for one that has no result.
    func finish(files: String?) -> String? {
        guard let run = self.source.run, let final = run.final else { return nil }
        self.report = files.flatMap { PageFiles.read(in: $0) } ?? (try? RunPage(final, timeline: run.timeline).text())
        return self.report
    }

    private func known(_ run: LiveRun) -> (elapsed: Double, isFinal: Bool, page: String?, body: String?)? {
        self.rendered.flatMap { $0.elapsed == run.elapsed && $0.isFinal == (run.final != nil) ? $0 : nil }
    }

    /// With the findings so far, in the words of the report.
    private func live(_ run: LiveRun) -> LivePage { LivePage(run, findings: run.record.findings(in: run.timeline)) }
}

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
