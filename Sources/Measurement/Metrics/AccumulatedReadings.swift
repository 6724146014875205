/// The errors of one kind, over all loops of a group.
struct GroupError {
    let group: String?
    let kind: String
    let tally: ErrorTally

    func counter(_ count: UInt64, rate: Double?) -> Metric {
        let labels: Labels = ["kind": self.kind]
        return Metric(
            name: "errors",
            labels: labels.of(group: self.group, metric: "errors"),
            reading: .counter(CounterReading(value: Double(count), rate: rate))
        )
    }
}
