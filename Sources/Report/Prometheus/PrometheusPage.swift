package import Measurement

/// Everything that one scrape shows: the facts of a run and its metrics so far.
package struct PrometheusPage: Sendable {
    private let info: PrometheusInfo
    private let series: [PrometheusSeries]

    /// The upper bounds of a duration's buckets in nanoseconds: 10 µs to 10 s in steps of 1, 2.5 and 5, then 30 s and
    /// 60 s.
    package static let bounds: [Int64] =
        [10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000].flatMap { [$0, $0 / 2 * 5, $0 * 5] }
        + [10_000_000_000, 30_000_000_000, 60_000_000_000]

    /// The percentiles of a duration, with the label `q` that each has.
    ///
    /// The maximum has the label 1.
    static let percentiles: [(percent: Double, label: String)] = [
        (50, "0.5"), (90, "0.9"), (99, "0.99"), (99.9, "0.999"),
    ]

    /// A page of metrics, in their order.
    ///
    /// A gauge that is no finite number, and a counter that is below zero as well, is left out: it is not known. Of two
    /// series with the same name and labels the first counts, since one such pair spoils a whole scrape.
    package init(info: PrometheusInfo, series: [PrometheusSeries]) {
        self.info = info
        self.series = series.filter { series in
            switch series.value {
            case .duration: true
            case .counter(let value): value.isFinite && value >= 0
            case .gauge(let value): value.isFinite
            }
        }
    }

    /// The page of a record: of a run that has ended, or of what is known of one.
    package init(record: RunRecord, server: String? = nil) {
        self.init(info: PrometheusInfo(record: record, server: server), series: [PrometheusSeries](record: record))
    }

    package func text(_ format: PrometheusFormat) -> [UInt8] {
        var writer = PrometheusWriter(format)
        self.writeInfo(&writer)
        var families = OrderedMap<PrometheusName, [PrometheusSeries]>()
        for series in self.series {
            let name = PrometheusName(series.name, kind: series.value.kind, unit: series.unit)
            families[name, default: []].append(series)
        }
        for (name, series) in families.all {
            let help = series.first.flatMap { MetricDefinition.of($0.name)?.help } ?? "A metric of this run."
            switch name.kind {
            case .duration: self.writeDurations(name, help, series, &writer)
            case .counter, .gauge: self.writeNumbers(name, help, series, &writer)
            }
        }
        return writer.finished()
    }

    private func writeNumbers(
        _ name: PrometheusName,
        _ help: String,
        _ series: [PrometheusSeries],
        _ writer: inout PrometheusWriter
    ) {
        let type: PrometheusWriter.FamilyType = name.kind == .counter ? .counter : .gauge
        guard writer.begin(name.family, type, unit: name.unit, help) else { return }
        for series in series {
            guard let labels = writer.labels(series.labels) else { continue }
            switch series.value {
            case .counter(let value), .gauge(let value): writer.sample(name.sample, labels, value)
            case .duration: continue
            }
        }
    }

    private func writeDurations(
        _ name: PrometheusName,
        _ help: String,
        _ series: [PrometheusSeries],
        _ writer: inout PrometheusWriter
    ) {
        var quantiles: [(labels: PrometheusWriter.LabelText, histogram: Histogram)] = []
        if writer.begin(name.family, .histogram, unit: name.unit, help) {
            for series in series {
                guard case .duration(let histogram) = series.value, let labels = writer.labels(series.labels) else {
                    continue
                }
                writer.histogram(name.family, labels, histogram)
                if !histogram.isEmpty { quantiles.append((labels, histogram)) }
            }
        }
        let words = help.hasSuffix(".") ? String(help.dropLast()) : help
        guard !quantiles.isEmpty, writer.begin(name.quantiles, .gauge, unit: name.unit, words + "; percentiles.") else {
            return
        }
        for (labels, histogram) in quantiles {
            for (value, percentile) in zip(histogram.percentiles(Self.percentiles.map(\.percent)), Self.percentiles) {
                writer.sample(name.quantiles, labels, "q", percentile.label, nanoseconds: value)
            }
            if let max = histogram.max { writer.sample(name.quantiles, labels, "q", "1", nanoseconds: max) }
        }
    }

    private func writeInfo(_ writer: inout PrometheusWriter) {
        let prefix = PrometheusName.prefix
        let facts = [
            "name": self.info.name, "command": self.info.command, "version": self.info.version,
            "server": self.info.server,
        ]
        if writer.begin(prefix + "run", .info, "The run: its name and command, and the versions of both sides."),
            let labels = writer.labels(Labels(facts.compactMapValues(\.self)))
        {
            writer.sample(prefix + "run_info", labels, 1)
        }
        let gauges: [(name: String, labels: Labels, unit: String?, value: Double?, help: String)] = [
            (
                "run_phase", self.info.phase.map { ["phase": $0] } ?? [:], nil, self.info.phase.map { _ in 1 },
                "The current phase or stage of the run."
            ),
            ("run_finished", [:], nil, self.info.isFinished ? 1 : 0, "1 when the figures are final, else 0."),
            (
                "run_start_time_seconds", [:], "seconds", self.info.startedAt.map { Double($0 / 1_000_000) / 1000 },
                "Start of the run, in seconds since 1970."
            ),
        ]
        for gauge in gauges {
            guard let value = gauge.value, writer.begin(prefix + gauge.name, .gauge, unit: gauge.unit, gauge.help),
                let labels = writer.labels(gauge.labels)
            else { continue }
            writer.sample(prefix + gauge.name, labels, value)
        }
    }

    package init(_ run: LiveRun) {
        if let final = run.final {
            self.init(record: final, server: final.servers?.words.joined(separator: ", "))
            return
        }
        var info = PrometheusInfo(record: run.first)
        info.isFinished = false
        info.phase = run.place?.stage.name ?? run.latest?.phase
        let durations = run.values.compactMap { series, values in
            values.answered.isEmpty
                ? nil
                : PrometheusSeries(
                    name: series.name,
                    labels: series.labels,
                    unit: "seconds",
                    value: .duration(values.answered)
                )
        }
        self.init(info: info, series: durations + run.levels.compactMap { PrometheusSeries($0) })
    }
}
