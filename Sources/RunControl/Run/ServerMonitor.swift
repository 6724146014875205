import CPosix
import Measurement
import Scenario
import ServerWatch

/// The watched servers of a run: read once a second, beside the load.
struct ServerMonitor: Sendable {
    private let watch: ServerWatch
    private let screen: ProgressScreen
    private let readsSys: Bool
    /// Whether the broker counts the messages of this process alone.
    private let comparesBooks: Bool
    /// A line for each watched process.
    let found: [String]

    /// Finds the servers, and reads them as they are before the first client.
    ///
    /// `isAlone`: this process has the whole load.
    init(
        _ options: LiveOptions,
        _ clients: [MQTTGroup],
        isAlone: Bool,
        _ screen: ProgressScreen
    ) async throws(RunRefusal) {
        var settings = ServerWatch.Settings()
        settings.processes = options.processes
        settings.exporters = options.pages.compactMap { page in
            ExporterAddress(page.url).map {
                PrometheusSettings(address: $0, patterns: page.patterns.compactMap { SeriesPattern($0) })
            }
        }
        let targets = clients.map(\.targets)
        self.comparesBooks = isAlone && Set(targets).count == 1 && targets.first?.count == 1
        self.readsSys = options.readsSys
        if options.readsSys {
            if clients.contains(where: \.options.isEmbedded) {
                throw RunRefusal(
                    "--watch-sys: the counts of the embedded broker are in the books already; leave it out"
                )
            }
            guard let client = clients.lazy.compactMap(\.watcher).first else {
                throw RunRefusal(
                    "--watch-sys: no client beside the load can log in as this one does; use --watch-prometheus"
                )
            }
            var sys = SysWatch.Settings(client: client)
            if !self.comparesBooks { sys.lastPatience = .zero }
            settings.sys = sys
        }
        self.screen = screen
        self.watch = ServerWatch(settings) { screen.warn(Self.words($0, $1)) }
        do throws(ServerWatchError) {
            self.found = try await self.watch.begin(at: clamor_monotonic_nanoseconds())
            for line in self.found { screen.say("watching \(line)") }
        } catch {
            _ = await self.watch.end()
            throw RunRefusal(Self.words(error))
        }
    }

    private static func words(_ source: WatchSource, _ line: String) -> String {
        switch source {
        case .process: "\(OptionTable[\.watchedProcesses].name) \(line)"
        case .exporter: "\(OptionTable[\.watchedPages].name) \(line)"
        case .sys: "\(OptionTable[\.readsSys].name): \(line)"
        }
    }

    private static func words(_ error: ServerWatchError) -> String {
        switch error {
        case .process(.noProcFiles):
            "\(OptionTable[\.watchedProcesses].name): \(ProcessWatchError.noProcFiles): use \(OptionTable[\.watchedPages].name)"
        case .process(let error): "\(OptionTable[\.watchedProcesses].name): \(error)"
        case .exporter(let address, let text): self.words(.exporter, "\(address): \(text)")
        }
    }

    /// The cores that the first watched process may use.
    var cores: Double { get async { await self.watch.cores() ?? 1 } }

    /// The metrics of the interval that ends now; it does not wait for a server.
    ///
    /// It is concurrent because an actor that awaited it in its own isolation went on outside of it (Swift 6.3).
    @concurrent func look() async -> [Metric] { await self.watch.look(at: clamor_monotonic_nanoseconds()) }

    /// Ends the watch; with `$SYS` it takes until two updates of the broker agree, or until a signal.
    func end() async -> Observed {
        if self.readsSys, self.comparesBooks { self.screen.say("reading $SYS until two updates agree, at most 25 s") }
        let result = await Signals.cancelling { [watch] in await watch.end() }
        return Observed(last: result.last, server: result.server, books: self.comparesBooks ? result.books : nil)
    }

    /// The results of the watch that only the end of a run has.
    struct Observed {
        var last: [Metric]
        var server: ServerRecord?
        var books: SysBooks?

        /// Adds a note for each count of the broker that differs from the run's.
        func complete(_ record: inout RunRecord) {
            guard let books = self.books else { return }
            func total(_ kinds: MetricDefinition..., where isWanted: (Labels) -> Bool) -> UInt64 {
                let counters = record.metrics.filter {
                    $0.isOf(kinds) && $0.labels[Labels.stage] == nil && isWanted($0.labels)
                }
                return counters.compactMap { $0.counter.map { UInt64(bounded: max(0, $0.value)) } }.reduce(0, +)
            }
            var sent = (0...2).map { qos in total(.publishSent, .publishResent) { $0["qos"] == "\(qos)" } }
            // Answers are at QoS 0.
            sent[0] += total(.requestsAnswered, .repliesSent) { _ in true }
            let received = total(.received) { $0["stanza"] == nil }
            let lines = books.differences(sent: sent, received: received)
            guard !lines.isEmpty else { return }
            record.notes = (record.notes ?? []) + lines.map { Verdict.Reason(code: "server-books", text: $0) }
        }
    }
}

/// The metrics of the load, and those of the watched servers.
struct RunSource: MetricSource {
    let load: LiveMetrics
    let observed: [Metric]

    func readings(of name: String, stage: String?) -> [MetricReading] {
        self.load.readings(of: name, stage: stage)
            + (stage == nil ? self.observed.filter { $0.name == name }.compactMap(\.levelReading) : [])
    }
}
