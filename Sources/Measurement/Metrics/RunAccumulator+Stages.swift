// The metrics of a run's stages.
extension RunAccumulator {
    /// The metrics of each stage that has begun, with its label.
    ///
    /// `seconds`: the length of each stage; without it there are no rates.
    package func stageMetrics(seconds: [Double]?) -> [Metric] {
        self.catalog.stages.indices.flatMap { stage in
            let durations = self.catalog.durations.enumerated().compactMap { index, definition in
                self.stageTotals[stage][index].reading.map { reading in
                    Metric(duration: definition.name, labels: definition.labels, reading: reading)
                }
            }
            let all = durations + self.stageCounts(stage, seconds: seconds?[stage])
            return all.map { metric in
                var metric = metric
                metric.labels = metric.labels.adding(Labels.stage, self.catalog.stages[stage].name)
                return metric
            }
        }
    }

    /// The metrics of one stage, as thresholds read them during the run; there are no rates before the stage has ended.
    func readings(of name: String, stage: String) -> [MetricReading] {
        guard let index = self.catalog.stages.firstIndex(where: { $0.name == stage }) else { return [] }
        var readings: [MetricReading] = []
        for (number, duration) in self.catalog.durations.enumerated()
        where duration.name == name && !self.stageTotals[index][number].isEmpty {
            readings.append(
                MetricReading(
                    labels: duration.labels.adding(Labels.stage, stage),
                    value: .duration(self.stageTotals[index][number].values)
                )
            )
        }
        for metric in self.stageCounts(index, seconds: nil) where metric.name == name {
            guard let counter = metric.counter else { continue }
            readings.append(MetricReading(labels: metric.labels.adding(Labels.stage, stage), value: .counter(counter)))
        }
        return readings
    }

    /// Stages that have ended on every loop; they get only late values.
    var endedStages: Int { self.loops.values.map { MetricLane.ended($0.stageMarks, $0.stageEnd) }.min() ?? 0 }

    /// Durations of stages whose counts are in memory, 248 KiB each.
    package var heldStageDurations: Int { self.stageTotals.reduce(0) { $0 + $1.count { $0.isOpen } } }

    /// The counts of a stage; empty before it has begun on every loop.
    private func stageCounts(_ stage: Int, seconds: Double?) -> [Metric] {
        guard !self.loops.isEmpty, self.loops.values.allSatisfy({ $0.stageMarks.count > stage }) else { return [] }
        let counters = self.joined.counters.enumerated().map { index, places in
            let gain = places.reduce(UInt64(0)) { sum, place in
                self.loops(of: place.group).reduce(sum) { $0 + $1.gain(of: place.index, in: stage) }
            }
            return self.counter(index, gain, rate: Self.rate(gain, seconds))
        }
        let rare = self.rareCounters().compactMap { counter in
            let count = counter.tally.count(of: stage)
            return count > 0 ? counter.metric(count, rate: Self.rate(count, seconds)) : nil
        }
        return counters + rare
    }

    /// The errors and other rare events, by group, and by name and labels.
    func rareCounters() -> [RareCounter] {
        self.groups.enumerated().flatMap { number, group in
            var all: [Series: ErrorTally] = [:]
            for loop in self.loops(of: number) {
                for (kind, tally) in loop.errors {
                    let series = Series(name: MetricDefinition.errors.name, labels: ["kind": kind])
                    all[series] = all[series]?.merged(with: tally) ?? tally
                }
                all.merge(loop.rare) { $0.merged(with: $1) }
            }
            return all.sorted { ($0.key.name, $0.key.labels) < ($1.key.name, $1.key.labels) }
                .map { RareCounter(group: group, series: $0.key, tally: $0.value) }
        }
    }
}

extension RunAccumulator.LoopState {
    fileprivate func gain(of counter: Int, in stage: Int) -> UInt64 {
        let end = stage + 1 < self.stageMarks.count ? self.stageMarks[stage + 1] : self.stageEnd ?? self.counters
        return end[counter] - self.stageMarks[stage][counter]
    }
}
