import Measurement
import ServerWatch

// The run as seen from outside while it goes on.
extension GivenOptions {
    /// The servers that are watched from outside.
    mutating func readWatched(into options: inout LiveOptions) {
        self.store(into: &options)
        for (index, text) in options.processes.enumerated() where text.isEmpty || text.contains("/") {
            self.refuse(
                \.watchedProcesses,
                "'\(text)' is neither a process identifier nor a name; write it like 4711 or mosquitto",
                at: index
            )
        }
        options.pages = self.watchedPages()
    }

    /// The endpoint, and the watched servers.
    mutating func readLive(into options: inout LoadOptions) {
        self.readWatched(into: &options.live)
        options.live.asksServer = self[\.asksServer] ?? (self.inherited(\.asksServer) != "off")
        // The parent of a segment has checked them: it leaves the watch to the first segment. Other hosts may watch too.
        guard self[\.isChild] != true, !self.isGiven(\.coordinator), self[\.watches] ?? 0 == 0 else { return }
        for (index, sentence) in options.thresholds.enumerated() {
            guard let name = (try? Threshold.parse(sentence))?.name, MetricDefinition.of(name)?.role == .server else {
                continue
            }
            let isWatched =
                switch MetricDefinition.named(name) {
                case .serverMetric: !options.live.pages.isEmpty
                case .serverSys: options.live.readsSys
                default: !options.live.processes.isEmpty
                }
            guard !isWatched else { continue }
            let option: OptionWords =
                switch MetricDefinition.named(name) {
                case .serverMetric: "\(\.watchedPages, "URL")"
                case .serverSys: "\(\.readsSys)"
                default: "\(\.watchedProcesses, "NAME")"
                }
            self.refuse(\.thresholds, "'\(sentence)': \(name) needs \(option)", at: index)
        }
    }

    /// Refuses to watch a process beside a load that goes to the embedded broker alone.
    ///
    /// `server`: the option that names another.
    mutating func refuseWatchOfOwn(server: AnyOptionKey) {
        guard self.isGiven(\.watchedProcesses), self[\.isChild] != true else { return }
        self.refuse(
            \.watchedProcesses,
            "the load goes to the embedded broker; name the server with \(server), or leave it out"
        )
    }

    /// Each URL begins a page, and the words after it are its series.
    private mutating func watchedPages() -> [LiveOptions.MetricsPage] {
        var pages: [LiveOptions.MetricsPage] = []
        for (index, word) in (self[\.watchedPages] ?? []).enumerated() {
            if word.contains("://") {
                guard ExporterAddress(word) != nil else {
                    self.refuse(
                        \.watchedPages,
                        "'\(Redaction.hideURLSecrets(in: word))' is no page of metrics; write it like http://127.0.0.1:9090/metrics",
                        at: index
                    )
                    continue
                }
                pages.append(LiveOptions.MetricsPage(url: word))
            } else if pages.isEmpty {
                self.refuse(
                    \.watchedPages,
                    "'\(word)' comes before a URL; write it like http://127.0.0.1:9090/metrics '\(word)'",
                    at: index
                )
            } else if SeriesPattern(word) == nil {
                self.refuse(
                    \.watchedPages,
                    "'\(word)' names no series; write it like emqx_connections_*, or http_requests_total{code=\"200\"}",
                    at: index
                )
            } else {
                pages[pages.count - 1].patterns.append(word)
            }
        }
        return pages
    }
}

extension OptionForm<LiveOptions.Endpoint> {
    /// `[[HOST:]PORT]`.
    static var endpoint: Self {
        Self("[host:]port", fact: { .text("\($0.host):\($0.port)") }) {
            (text: String, _: Bool) throws(QuantityError) in
            if let port = Int(text), (0...65_535).contains(port) { return LiveOptions.Endpoint(port: port) }
            let colon = text.lastIndex(of: ":") ?? text.endIndex
            var host = text[..<colon]
            if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
            let isHost = !host.isEmpty && !host.contains { $0.isWhitespace || "/[]@".contains($0) }
            guard isHost, let port = Int(text[colon...].dropFirst()), (0...65_535).contains(port) else {
                throw QuantityError("'\(text)' is no port of 0 to 65,535; write it like 9464, or 0.0.0.0:9464")
            }
            return LiveOptions.Endpoint(host: String(host), port: port)
        }.with(shape: .toggle(bare: String(LiveOptions.Endpoint.usualPort))).showing { "\($0.host):\($0.port)" }
    }
}
