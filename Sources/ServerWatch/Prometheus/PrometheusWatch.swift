import LoopContext
import Measurement
import NIOCore
package import Transport

/// Scrapes one exporter, about once a second.
///
/// Confined to its event loop.
final class PrometheusWatch {
    /// The time from an interval's end to the next scrape, whose values are those of the next interval's end.
    private static let pause = TimeAmount.milliseconds(800)

    private let address: ExporterAddress
    private let patterns: [SeriesPattern]
    private let client: ExporterClient
    private let eventLoop: any EventLoop
    private let warn: @Sendable (String) -> Void
    private var values: PrometheusValues
    private var isScraping = false
    private var next: Scheduled<Void>?
    private var isFailing = false
    private var hasWarnedOfMany = false
    private var hasEnded = false

    init(
        _ settings: PrometheusSettings,
        page: String?,
        _ context: LoopContext,
        warn: @escaping @Sendable (String) -> Void
    ) throws(TLSSettingsError) {
        self.address = settings.address
        self.patterns = settings.patterns
        self.values = PrometheusValues(page: page)
        self.eventLoop = context.eventLoop
        self.client = try ExporterClient(settings.address, tls: settings.tls, context)
        self.warn = warn
    }

    /// Makes the first scrape, to which counters refer.
    func begin(_ done: @escaping () -> Void) { self.scrape(done) }

    /// Ends an interval, and returns its metrics at once.
    func look() -> [Metric] {
        self.schedule()
        return self.values.look()
    }

    func end() {
        self.hasEnded = true
        self.next?.cancel()
        self.client.close()
    }

    private func schedule() {
        guard !self.isScraping, self.next == nil, !self.hasEnded else { return }
        let box = NIOLoopBound(self, eventLoop: self.eventLoop)
        self.next = self.eventLoop.scheduleTask(in: Self.pause) {
            box.value.next = nil
            box.value.scrape {}
        }
    }

    private func scrape(_ done: @escaping () -> Void) {
        guard !self.isScraping, !self.hasEnded else { return done() }
        self.isScraping = true
        self.client.get { answer in
            self.isScraping = false
            self.take(answer)
            done()
        }
    }

    private func take(_ answer: ExporterClient.Answer) {
        guard !self.hasEnded else { return }
        switch answer {
        case .success(let body):
            if self.isFailing { self.warn("\(self.address): answers again") }
            self.isFailing = false
            let text = PrometheusText(body, patterns: self.patterns)
            self.values.take(text.samples, at: Int64(clamping: NIODeadline.now().uptimeNanoseconds))
            self.warnOfNumber(text)
        case .failure(let error):
            guard !self.isFailing else { return }
            self.isFailing = true
            self.warn("\(self.address): \(error); its metrics are absent until it answers")
        }
    }

    private func warnOfNumber(_ text: PrometheusText) {
        let isCut = text.matching > text.samples.count
        guard !self.hasWarnedOfMany, text.matching == 0 || isCut || self.values.hasDropped else { return }
        self.hasWarnedOfMany = true
        let number = isCut ? "\(text.matching) series match" : "its series change"
        self.warn(
            text.matching == 0
                ? "\(self.address): no series matches: look at its text for their names"
                : "\(self.address): \(number), and the first \(PrometheusText.mostKept) are kept: "
                    + "give narrower names"
        )
    }
}

package struct PrometheusSettings: Sendable {
    package var address: ExporterAddress
    /// Empty keeps all series.
    package var patterns: [SeriesPattern]
    package var tls: TLSSettings

    package init(address: ExporterAddress, patterns: [SeriesPattern] = [], tls: TLSSettings = TLSSettings()) {
        self.address = address
        self.patterns = patterns
        self.tls = tls
    }

    /// The pages of several settings, each address once, with the label `page` where there are several.
    ///
    /// An address that occurs twice has the patterns of both.
    package static func pages(_ all: [PrometheusSettings]) -> [(settings: PrometheusSettings, page: String?)] {
        var sources: [PrometheusSettings] = []
        for settings in all {
            guard let known = sources.firstIndex(where: { $0.address == settings.address }) else {
                sources.append(settings)
                continue
            }
            let keepsAll = sources[known].patterns.isEmpty || settings.patterns.isEmpty
            sources[known].patterns = keepsAll ? [] : sources[known].patterns + settings.patterns
        }
        guard sources.count > 1 else { return sources.map { ($0, nil) } }
        var labels: Set<String> = []
        return sources.map { settings in
            let address = settings.address
            let isAlone = sources.count { $0.address.authority == address.authority } == 1
            let name = LabelText.safe(isAlone ? address.authority : "\(address.authority)\(address.plainPath)")
            // The query may be a secret, so pages that differ by it alone get a number.
            return (settings, LabelText.unique(name) { !labels.insert($0).inserted })
        }
    }
}
