/// A counter without a slot in the meters, over all loops of a group: errors of one kind, or another rare event.
struct RareCounter {
    let group: String?
    let series: Series
    let tally: ErrorTally

    func metric(_ count: UInt64, rate: Double?) -> Metric {
        Metric(
            .named(self.series.name),
            labels: self.series.labels.of(group: self.group, metric: self.series.name),
            reading: .counter(CounterReading(value: Double(count), rate: rate))
        )
    }
}
