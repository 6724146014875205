import Measurement
import Report
import RunResult

/// The metrics of the load, and those of the watched servers.
struct RunSource: MetricSource {
    let load: LiveMetrics
    let observed: [Metric]

    func readings(of name: String, stage: String?) -> [MetricReading] {
        self.load.readings(of: name, stage: stage)
            + (stage == nil ? self.observed.filter { $0.name == name }.compactMap(\.levelReading) : [])
    }
}
