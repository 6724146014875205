import Measurement

/// The figures of a run that need its time line.
struct FindingFigures {
    let run: RunRecord
    let intervals: FindingIntervals
    let lanes: [FindingLane]

    private static let latencies = [
        "publish_ack_duration", "delivery_duration", "request_duration", "iq_duration", "message_duration",
        "presence_duration",
    ]

    /// The end of the connect stage if all clients were up then, or of the first interval in which they were.
    var allUpSeconds: Double? {
        guard let planned = self.run.clientsPlanned, planned > 0,
            let clients = self.intervals.sum(self.intervals.columns("clients")),
            let place = clients.firstIndex(where: { $0 >= Double(planned) })
        else { return nil }
        let end = self.intervals.all[place].end
        guard let connect = self.run.stages.first, connect.name == "connect", self.run.clientsUp == planned else {
            return end
        }
        return Swift.min(end, connect.start + connect.durationSeconds)
    }

    /// Only if each message of the run was answered, so that none in flight had failed already.
    var peakInFlight: FindingPoint? {
        let answers = self.lanes.filter { $0.kind == .answers }
        guard !answers.isEmpty, answers.allSatisfy(\.isExact) else { return nil }
        let waiting = self.intervals.all.indices.map { place in answers.reduce(0) { $0 + $1.waiting[place] } }
        guard let place = waiting.indices.max(by: { waiting[$0] < waiting[$1] }), waiting[place] > 0 else { return nil }
        return self.point(place, waiting[place])
    }

    var worstSecond: FindingPoint? {
        var worst: FindingPoint?
        for name in Self.latencies {
            for column in self.intervals.columns(name, where: { $0.isWhole() }) {
                for (place, value) in column.p99.enumerated()
                where self.intervals.all[place].isMeasured && value > worst?.value ?? 0 {
                    let labels = column.labels.all.map { " \($0.key)=\($0.value)" }.joined()
                    worst = self.point(place, value)
                    worst?.metric = name + labels
                }
            }
        }
        return worst
    }

    /// Of intervals of load, in a run that has results at all, and messages that they are the results of.
    var longestSilence: FindingPoint? {
        let columns = self.intervals.columns("publish_acked", "stanza_answered", "received")
        let offered = self.intervals.sum(self.intervals.columns("publish_offered", "stanza_offered"))
        guard let done = self.intervals.sum(columns), offered?.contains(where: { $0 > 0 }) ?? false else { return nil }
        let spans = self.intervals.spans { self.intervals.all[$0].isLoad && done[$0] == 0 }
        let lengths = spans.map { self.intervals.length($0) }
        guard let longest = lengths.max(), let span = zip(spans, lengths).first(where: { $1 == longest })?.0 else {
            return nil
        }
        return self.point(span.lowerBound, longest)
    }

    private func point(_ place: Int, _ value: Double) -> FindingPoint {
        let interval = self.intervals.all[place]
        return FindingPoint(second: interval.second, value: value, stage: interval.stage)
    }

    /// The first measured second after which rates and medians stayed near those of their stage.
    ///
    /// `nil` if that is less than half of the measured phase.
    static func steadySecond(_ lanes: [FindingLane], _ intervals: FindingIntervals) -> Int? {
        // Shorter intervals hold too little.
        let measured = intervals.all.indices.filter { intervals.all[$0].isMeasured && intervals.all[$0].length >= 0.5 }
        guard let first = measured.first, let last = measured.last, !lanes.isEmpty, measured.count >= 3 else {
            return nil
        }
        var unsteady: Int?
        for lane in lanes {
            for stage in Set(measured.map { intervals.all[$0].stage }) {
                let own = measured.filter { intervals.all[$0].stage == stage }
                let rates = own.map { lane.done[$0] / intervals.all[$0].length }
                let rate = FindingIntervals.median(rates) ?? 0
                let level = FindingIntervals.median(own.compactMap { lane.p50[$0] })
                for (place, own) in zip(own, rates) {
                    // A fifth, and more than counts vary by chance.
                    let isOff = abs(own - rate) > Swift.max(rate / 5, 4 * Swift.max(rate, own).squareRoot())
                    let isSlow =
                        level.flatMap { level in
                            lane.p50[place].map { $0 > level * 3 && $0 > level + 0.001 }
                        } ?? false
                    if isOff || isSlow { unsteady = Swift.max(unsteady ?? 0, place) }
                }
            }
        }
        guard let unsteady else { return intervals.all[first].second }
        guard let next = measured.first(where: { $0 > unsteady }) else { return nil }
        let half = (intervals.all[first].start + intervals.all[last].end) / 2
        return intervals.all[next].start <= half ? intervals.all[next].second : nil
    }
}
