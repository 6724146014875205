/// One metric with one set of labels.
package struct Series: Hashable, Sendable {
    package var name: String
    package var labels: Labels

    package init(name: String, labels: Labels) {
        self.name = name
        self.labels = labels
    }
}

extension Metric {
    package var series: Series { Series(name: self.name, labels: self.labels) }
}

extension TimelineInterval.Lane {
    package var series: Series { Series(name: self.name, labels: self.labels) }
}
