/// The deliveries of one series and one stage that did not come, each at its age when the drain ended.
package struct AbsentValues: Sendable {
    /// The labels of the series, without one of the stage.
    package var labels: Labels
    package var stage: String?
    /// Whether they enter the totals of the run.
    package var isMeasured: Bool
    /// `nil`: the duration of the group's deliveries.
    package var metric: MetricDefinition?
    package var values = Unanswered()

    package init(labels: Labels, stage: String? = nil, isMeasured: Bool) {
        (self.labels, self.stage, self.isMeasured) = (labels, stage, isMeasured)
    }
}

extension [Metric] {
    /// Adds deliveries that did not come to the durations of the run and of its stages.
    package mutating func add(_ absent: [AbsentValues]) {
        for own in absent {
            let metric = own.metric ?? self.delivery(own.labels)
            if own.isMeasured { self.add(own.values, metric, own.labels) }
            guard let stage = own.stage else { continue }
            self.add(own.values, metric, own.labels.adding(Labels.stage, stage))
        }
    }

    /// The duration of a group's deliveries; in a group of requests they are the answers.
    package func delivery(_ labels: Labels) -> MetricDefinition {
        let isRequest = self.contains {
            $0.isOf(.requestsAnswered) && $0.labels[Labels.group] == labels[Labels.group]
        }
        return isRequest ? .request : .delivery
    }

    private mutating func add(_ unanswered: Unanswered, _ metric: MetricDefinition, _ labels: Labels) {
        let place = self.firstIndex { $0.isOf(metric) && $0.labels == labels }
        var values = place.flatMap { self[$0].duration?.decodedValues() } ?? DurationValues()
        values.unanswered.merge(unanswered)
        guard let reading = DurationReading(values, isEncoded: true) else { return }
        guard let place else {
            let end = self.firstIndex { $0.duration == nil } ?? self.endIndex
            return self.insert(Metric(metric, labels: labels, reading: .duration(reading)), at: end)
        }
        self[place].reading = .duration(reading)
    }
}
