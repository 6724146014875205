import Measurement

extension PrometheusPage {
    /// The page of a running run, or of its final record.
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
