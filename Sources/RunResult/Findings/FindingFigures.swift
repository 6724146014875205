import Measurement

/// The figures of a run that need its time line.
extension FindingsSearch {
    private static let latencies: [MetricDefinition] = [.publishAck, .delivery, .request, .iq, .message, .presence]

    /// The end of the connect stage if all clients were up then, or of the first interval in which they were.
    var allUpSeconds: Double? {
        guard let planned = self.run.clientsPlanned, planned > 0,
            let clients = self.intervals.sum(self.intervals.columns(.clients)),
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
        for metric in Self.latencies {
            for column in self.intervals.columns(metric, where: { $0.isWhole() }) {
                for (place, value) in column.p99.enumerated()
                where self.intervals.all[place].isMeasured && value > worst?.value ?? 0
                    && self.intervals.all[place].length >= TimelineInterval.shortestRated
                {
                    let labels = column.labels.all.map { " \($0.key)=\($0.value)" }.joined()
                    worst = self.point(place, value)
                    worst?.metric = metric.name + labels
                    if column.bounds.contains(place) { worst?.bound = true }
                }
            }
        }
        return worst
    }

    /// The longest span of the load without a result, in a run that has results and the messages they are of.
    var longestSilence: FindingPoint? {
        let columns = self.intervals.columns(.publishAcked, .stanzaAnswered, .received)
        let offered = self.intervals.sum(self.intervals.columns(.publishOffered, .stanzaOffered))
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
    var steadySecond: Int? {
        let all = self.intervals.all
        // Shorter intervals hold too little.
        let measured = all.indices.filter { all[$0].isMeasured && all[$0].length >= 0.5 }
        guard let first = measured.first, let last = measured.last, !self.lanes.isEmpty, measured.count >= 3 else {
            return nil
        }
        var unsteady: Int?
        for lane in self.lanes {
            for stage in Set(measured.map { all[$0].stage }) {
                let own = measured.filter { all[$0].stage == stage }
                let rates = own.map { lane.done[$0] / all[$0].length }
                let rate = rates.median ?? 0
                let level = own.compactMap { lane.p50[$0] }.median
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
        guard let unsteady else { return all[first].second }
        guard let next = measured.first(where: { $0 > unsteady }) else { return nil }
        let half = (all[first].start + all[last].end) / 2
        return all[next].start <= half ? all[next].second : nil
    }
}

/// The answers or deliveries of each interval, and the messages that waited for one.
///
/// A run has a lane for the answers to each group's messages, and one for deliveries.
struct FindingLane {
    enum Kind: Hashable {
        case answers
        case deliveries
    }

    let kind: Kind
    /// `nil` in a run of one group, and for deliveries.
    let group: String?
    let offered: [Double]
    let sent: [Double]
    /// Answered, or delivered.
    let done: [Double]
    /// Sent and not answered at the end of each interval, at least: without messages that failed at any time.
    private(set) var waiting: [Double]
    /// Whether ``waiting`` is exact: no message failed or timed out.
    private(set) var isExact = false
    /// Connected clients; `nil` if unknown.
    let clients: [Double]?
    let typical: Double?
    let longest: [Double?]
    let p50: [Double?]
    let p99: [Double?]

    /// The lanes that the run has.
    static func all(_ record: RunRecord, _ intervals: FindingIntervals) -> [FindingLane] {
        let answered = intervals.columns(.publishAcked, .stanzaAnswered)
        let groups = Set(answered.map { $0.labels[Labels.group] }).sorted { ($0 ?? "") < ($1 ?? "") }
        return groups.map { FindingLane(answersOf: $0, record, intervals) }
            + [FindingLane(deliveries: record, intervals)].compactMap(\.self)
    }

    private init(answersOf group: String?, _ record: RunRecord, _ intervals: FindingIntervals) {
        func isOwn(_ labels: Labels) -> Bool {
            labels[Labels.group] == group && labels["qos"] != "0"
                && (labels["stanza"] == nil || labels["stanza"] == "iq")
        }
        let durations = intervals.columns(.publishAck, .iq) { isOwn($0) && $0.isWhole() }
        let answers = intervals.columns(.publishAcked, .stanzaAnswered, where: isOwn)
        self.init(.answers, of: group, intervals, done: answers, durations, where: isOwn)
        let books = record.books.filter { $0.group == group && $0.isAnswered }
        let failed = books.reduce(UInt64(0)) { $0 + ($1.failed ?? 0) + ($1.timedOut ?? 0) }
        self.isExact = failed == 0 && !books.isEmpty
        var waiting = -Double(failed)
        let refused = intervals.counts(intervals.columns(.stanzaRefused, where: isOwn))
        self.waiting = zip(self.sent, zip(self.done, refused)).map { sent, ends in
            waiting += sent - ends.0 - ends.1
            return Swift.max(0, waiting)
        }
    }

    /// `nil` if no message is both sent and received in this run.
    private init?(deliveries record: RunRecord, _ intervals: FindingIntervals) {
        func isMessage(_ labels: Labels) -> Bool { labels["stanza"] != "iq" }
        let durations = intervals.columns(.delivery, .request)
        let received = intervals.columns(.received, where: isMessage)
        self.init(.deliveries, of: nil, intervals, done: received, durations, where: isMessage)
        guard self.done.contains(where: { $0 > 0 }), self.sent.contains(where: { $0 > 0 }) else { return nil }
    }

    private init(
        _ kind: Kind,
        of group: String?,
        _ intervals: FindingIntervals,
        done: [Timeline.Column],
        _ durations: [Timeline.Column],
        where isOwn: (Labels) -> Bool
    ) {
        self.kind = kind
        self.group = group
        self.offered = intervals.counts(intervals.columns(.publishOffered, .stanzaOffered, where: isOwn))
        self.sent = intervals.counts(intervals.columns(.publishSent, .stanzaSent, where: isOwn))
        self.done = intervals.counts(done)
        self.clients = intervals.sum(intervals.columns(.clients) { kind == .deliveries || $0[Labels.group] == group })
        self.longest = intervals.highest(durations, \.max)
        self.p99 = intervals.highest(durations, \.p99)
        self.p50 = intervals.highest(durations, \.p50)
        self.typical = intervals.median(self.p50)
        self.waiting = self.done.map { _ in 0 }
    }
}
