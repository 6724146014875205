import Measurement

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
    let waiting: [Double]
    /// Whether ``waiting`` is exact: no message failed or timed out.
    let isExact: Bool
    /// Connected clients; `nil` if unknown.
    let clients: [Double]?
    let typical: Double?
    let longest: [Double?]
    let p50: [Double?]
    let p99: [Double?]

    /// The lanes that the run has.
    static func all(_ record: RunRecord, _ intervals: FindingIntervals) -> [FindingLane] {
        let answered = intervals.columns("publish_acked", "stanza_answered")
        let groups = Set(answered.map { $0.labels[Labels.group] }).sorted { ($0 ?? "") < ($1 ?? "") }
        return groups.map { FindingLane(answersOf: $0, record, intervals) }
            + [FindingLane(deliveries: record, intervals)].compactMap(\.self)
    }

    private init(answersOf group: String?, _ record: RunRecord, _ intervals: FindingIntervals) {
        func isOwn(_ labels: Labels) -> Bool {
            labels[Labels.group] == group && labels["qos"] != "0"
                && (labels["stanza"] == nil || labels["stanza"] == "iq")
        }
        func sum(_ names: String...) -> [Double] {
            let columns = names.flatMap { intervals.columns($0, where: isOwn) }
            return intervals.sum(columns) ?? intervals.all.map { _ in 0 }
        }
        self.kind = .answers
        self.group = group
        self.offered = sum("publish_offered", "stanza_offered")
        self.sent = sum("publish_sent", "stanza_sent")
        self.done = sum("publish_acked", "stanza_answered")
        let books = record.books.filter { $0.group == group && $0.isAnswered }
        let failed = books.reduce(UInt64(0)) { $0 + ($1.failed ?? 0) + ($1.timedOut ?? 0) }
        self.isExact = failed == 0 && !books.isEmpty
        var waiting = -Double(failed)
        self.waiting = zip(self.sent, zip(self.done, sum("stanza_refused"))).map { sent, ends in
            waiting += sent - ends.0 - ends.1
            return Swift.max(0, waiting)
        }
        self.clients = intervals.sum(intervals.columns("clients") { $0[Labels.group] == group })
        let durations = intervals.columns("publish_ack_duration", "iq_duration") { isOwn($0) && $0.isWhole() }
        self.longest = intervals.highest(durations, \.max)
        self.p99 = intervals.highest(durations, \.p99)
        self.p50 = intervals.highest(durations, \.p50)
        self.typical = intervals.median(self.p50)
    }

    /// `nil` if no message is both sent and received in this run.
    private init?(deliveries record: RunRecord, _ intervals: FindingIntervals) {
        func isMessage(_ labels: Labels) -> Bool { labels["stanza"] != "iq" }
        func sum(_ columns: [Timeline.Column]) -> [Double] { intervals.sum(columns) ?? [] }
        let received = intervals.columns("received", where: isMessage)
        let done = sum(received)
        let sent = sum(intervals.columns("publish_sent", "stanza_sent", where: isMessage))
        guard done.contains(where: { $0 > 0 }), sent.contains(where: { $0 > 0 }) else { return nil }
        self.kind = .deliveries
        self.group = nil
        self.offered = sum(intervals.columns("publish_offered", "stanza_offered", where: isMessage))
        self.sent = sent
        self.done = done
        self.waiting = done.map { _ in 0 }
        self.isExact = false
        self.clients = intervals.sum(intervals.columns("clients"))
        let durations = intervals.columns("delivery_duration", "request_duration")
        self.longest = intervals.highest(durations, \.max)
        self.p99 = intervals.highest(durations, \.p99)
        self.p50 = intervals.highest(durations, \.p50)
        self.typical = intervals.median(self.p50)
    }
}
