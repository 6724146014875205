import Measurement

/// An event before it has its number, with its weight for the sentence.
struct FoundEvent {
    var event: FindingEvent
    /// The sentence of the run, if this event is what broke first.
    var sentence: String
    /// Whether it alone says that something broke; otherwise it is only a mark.
    var isBreak: Bool
    /// Seconds from the start of the run, and then its rank in a second.
    var start: Double

    init(
        _ kind: FindingEvent.Kind,
        _ intervals: FindingIntervals,
        _ place: Int,
        start: Double? = nil,
        seconds: Double? = nil,
        isBreak: Bool,
        text: String,
        sentence: String? = nil
    ) {
        let interval = intervals.all[place]
        let start = start ?? interval.start
        self.event = FindingEvent(
            number: 0,
            kind: kind,
            second: Int(bounded: start),
            seconds: seconds,
            stage: interval.stage,
            text: text
        )
        self.sentence = sentence ?? text
        self.isBreak = isBreak
        self.start = start
    }
}

/// The marks of a time line.
struct FindingEvents {
    let record: RunRecord
    let intervals: FindingIntervals
    let lanes: [FindingLane]
    let stalls: [FindingStall]
    let objectives: [FindingObjective]
    let planned: Int?

    private enum Limit {
        /// The share of the clients that lose their connection in one interval, so that it is a break.
        static let lostClients = 0.05
        /// A median this many times its level before, for that many intervals, has left it.
        static let change = 5.0
        static let changeLength = 3
        static let changeSeconds = 0.001
        /// Marks of one kind; of more the longest are kept.
        static let marks = 20
    }

    static let plannedReasons: Set = ["churn", "storm", "offline", "inactive"]

    /// In the order of time.
    var all: [FoundEvent] {
        let kinds = [
            self.generator, FindingServer(run: self.record, intervals: self.intervals, lanes: self.lanes).events,
            self.silent, self.storms, self.errors,
            self.broken, self.changes,
        ]
        return kinds.flatMap { events in
            events.count <= Limit.marks
                ? events
                : Array(events.sorted { $0.event.seconds ?? 0 > $1.event.seconds ?? 0 }.prefix(Limit.marks))
        }.enumerated().sorted { left, right in
            // In a second the kinds are in the order of causes before effects.
            (left.element.event.second, left.offset) < (right.element.event.second, right.offset)
        }.map(\.element)
    }

    // MARK: - Stalls

    private var silent: [FoundEvent] {
        self.stalls.map { stall in
            let at = "at \(Int(bounded: stall.start)) s\(self.intervals.stageWords(stall.place))"
            let length = FindingWords.duration(stall.seconds)
            guard !stall.isOwn else {
                let text = "an event loop of the generator stood still \(at): the longest delay was \(length)"
                return FoundEvent(
                    .generator,
                    self.intervals,
                    stall.place,
                    start: stall.start,
                    seconds: stall.seconds,
                    isBreak: false,
                    text: text
                )
            }
            let isWhole = Set(stall.lanes).count == Set(self.lanes.map(\.kind)).count
            let names = stall.groups.compactMap(\.self).sorted()
            let groups = Set(self.lanes.compactMap(\.group)).count
            let whose = !names.isEmpty && names.count < groups ? " to \(names.joined(separator: ", "))" : ""
            let what =
                isWhole
                ? "answers\(whose) stopped"
                : stall.lanes == [.deliveries] ? "deliveries stopped" : "acks\(whose) stopped"
            let waiting = stall.waiting > 0 ? " with \(FindingWords.count(stall.waiting, "message")) in flight" : ""
            let text = "\(what) \(at) for \(length)\(waiting)"
            return FoundEvent(
                .stall,
                self.intervals,
                stall.place,
                start: stall.start,
                seconds: stall.seconds,
                isBreak: true,
                text: text,
                sentence: text + self.lossWords
            )
        }
    }

    /// `; 0 lost`; nothing where it is unknown.
    var lossWords: String {
        guard self.record.ledger.on, let lost = self.record.ledger.lost else { return "" }
        return "; \(Words.count(lost.values.reduce(0, +))) lost"
    }

    // MARK: - Connections

    private var storms: [FoundEvent] {
        let lost = self.intervals.columns("disconnects") { !Self.plannedReasons.contains($0["reason"] ?? "") }
        let left = self.intervals.columns("disconnects") {
            ["storm", "offline", "inactive"].contains($0["reason"] ?? "")
        }
        let whole = Double(self.planned ?? 0)
        let isLoad: (Int) -> Bool = { self.intervals.all[$0].isLoad }
        return self.storms(lost, isIn: isLoad) { count, at, reasons, length in
            // A client that comes back may lose several.
            let lost =
                whole >= count && whole > 0
                ? "\(Words.count(Int64(bounded: count))) of \(Words.count(Int64(bounded: whole))) clients lost the connection"
                : FindingWords.count(count, "connection") + (count == 1 ? " was lost" : " were lost")
            return (
                "\(lost) \(at)\(length) (\(reasons))", whole > 0 && count >= Swift.max(1, whole * Limit.lostClients)
            )
        }
            + self.storms(left, isIn: isLoad) { count, at, _, length in
                let left =
                    whole >= count
                    ? "\(FindingWords.count(count, "client")) left"
                    : "clients left \(FindingWords.count(count, "time"))"
                return ("\(left) by plan \(at)\(length)", false)
            }
    }

    private func storms(
        _ columns: [Timeline.Column],
        isIn: (Int) -> Bool,
        _ words: (Double, String, String, String) -> (text: String, isBreak: Bool)
    ) -> [FoundEvent] {
        guard let counts = self.intervals.sum(columns) else { return [] }
        return self.intervals.spans { counts[$0] > 0 && isIn($0) }.map { span in
            let reasons = columns.filter { column in span.contains { column.values[$0] > 0 } }
                .compactMap { $0.labels["reason"] }
            let place = span.lowerBound
            let at = "at \(self.intervals.all[place].second) s\(self.intervals.stageWords(place))"
            let length = span.count > 1 ? " and in the \(span.count - 1) intervals after it" : ""
            let count = span.reduce(0) { $0 + counts[$1] }
            let (text, isBreak) = words(count, at, Set(reasons).sorted().joined(separator: ", "), length)
            return FoundEvent(
                .storm,
                self.intervals,
                place,
                seconds: self.intervals.length(span),
                isBreak: isBreak,
                text: text,
                sentence: isBreak ? text + self.lossWords : text
            )
        }
    }

    // MARK: - Errors

    /// The first error of each kind.
    private var errors: [FoundEvent] {
        let columns = self.intervals.columns("errors")
        let kinds = Set(columns.compactMap { $0.labels["kind"] }).sorted()
        return kinds.compactMap { kind in
            let own = columns.filter { $0.labels["kind"] == kind }
            guard let counts = self.intervals.sum(own), let place = counts.firstIndex(where: { $0 > 0 }) else {
                return nil
            }
            let known = self.record.errors.filter { $0.kind == kind }
            let total = known.isEmpty ? counts.reduce(0, +) : Double(known.reduce(0) { $0 + $1.count })
            let example = known.first { !$0.example.isEmpty }.map { ", such as: \($0.example)" } ?? ""
            let many = total > 1 ? ", the first of \(Words.count(Int64(bounded: total)))" : ""
            let at = "at \(self.intervals.all[place].second) s\(self.intervals.stageWords(place))"
            return FoundEvent(
                .error,
                self.intervals,
                place,
                isBreak: false,
                text: "error \(kind) \(at)\(many)\(example)"
            )
        }
    }

    // MARK: - Objectives and levels

    private var broken: [FoundEvent] {
        self.objectives.flatMap { objective in
            let worst = objective.breaks.map(\.worst).max() ?? 0
            // Of an objective that failed, a break of less than half the worst is not what failed it.
            return objective.breaks.map { broken in
                self.event(broken, of: objective, isBreak: !objective.result.ok && broken.worst * 2 >= worst)
            }
        }
    }

    private func event(
        _ broken: FindingObjective.Break,
        of objective: FindingObjective,
        isBreak: Bool
    ) -> FoundEvent {
        let place = broken.span.lowerBound
        let threshold = objective.threshold
        let at = "at \(self.intervals.all[place].second) s\(self.intervals.stageWords(place))"
        let limit = FindingWords.duration(threshold.limit)
        let seconds = self.intervals.length(broken.span)
        let worst = broken.worst > 0 ? ": \(FindingWords.duration(broken.worst)), over \(limit)" : ": over \(limit)"
        let level = self.level(objective.values, before: place).map { ", \(FindingWords.duration($0)) before" } ?? ""
        let text =
            "\(threshold.findingName) broke its objective \(at)\(worst)\(level), for \(FindingWords.duration(seconds))"
        // An objective of the whole run may hold although it did not in every second.
        let held = "the objective \(threshold.expression) held, though not \(at)\(worst)\(level), "
        return FoundEvent(
            .threshold,
            self.intervals,
            place,
            seconds: seconds,
            isBreak: isBreak,
            text: text,
            sentence: objective.result.ok ? held + "for \(FindingWords.duration(seconds))" : text
        )
    }

    /// The median of up to 30 intervals of load before one; `nil` with fewer than 3.
    private func level(_ values: [Double?], before place: Int) -> Double? {
        var known: [Double] = []
        for before in (0..<place).reversed() where self.intervals.all[before].isLoad && known.count < 30 {
            if let value = values[before] { known.append(value) }
        }
        return known.count >= Limit.changeLength ? FindingIntervals.median(known) : nil
    }

    /// Response times without an objective that rose and stayed.
    private var changes: [FoundEvent] {
        self.lanes.flatMap { lane in
            var events: [FoundEvent] = []
            let places = self.intervals.all.indices.filter { self.intervals.all[$0].isLoad && lane.p50[$0] != nil }
            let lowest = places.compactMap { lane.p50[$0] }.min() ?? 0
            for (number, place) in places.enumerated() where number + Limit.changeLength <= places.count {
                guard events.isEmpty, lane.p50[place] ?? 0 > lowest * Limit.change,
                    let before = self.level(lane.p50, before: place)
                else { continue }
                let next = places[number..<(number + Limit.changeLength)].compactMap { lane.p50[$0] }
                guard let lowest = next.min(), lowest > before * Limit.change, lowest > before + Limit.changeSeconds
                else { continue }
                let name = lane.kind == .answers ? "ack p50" : "delivery p50"
                let whose = lane.group.map { "\($0) " } ?? ""
                let at = "at \(self.intervals.all[place].second) s\(self.intervals.stageWords(place))"
                let words = "from \(FindingWords.duration(before)) to \(FindingWords.duration(lowest)) or more"
                events.append(
                    FoundEvent(
                        .change,
                        self.intervals,
                        place,
                        isBreak: false,
                        text: "\(whose)\(name) rose \(words) \(at)"
                    )
                )
            }
            return events
        }
    }

    // MARK: - The generator

    /// The first interval that shows why the verdict is on the generator.
    private var generator: [FoundEvent] {
        guard self.record.verdict?.state == .generatorLimited, let reason = self.record.verdict?.reasons.first,
            let place = self.limitedPlace(reason.code)
        else { return [] }
        let from = self.intervals.all[place].second
        return [
            FoundEvent(
                .generator,
                self.intervals,
                place,
                isBreak: true,
                text: "the generator was the limit from \(from) s on: \(reason.line)"
            )
        ]
    }

    private func limitedPlace(_ code: String) -> Int? {
        func first(_ isLimited: (Int) -> Bool) -> Int? {
            self.intervals.all.indices.first { self.intervals.all[$0].isLoad && isLimited($0) }
        }
        switch code {
        case "schedule-lag":
            let lag = self.intervals.highest(self.intervals.columns("schedule_lag"), \.p99)
            let acks = self.intervals.highest(self.intervals.columns("publish_ack_duration") { $0.isWhole() }, \.p99)
            return first { lag[$0] ?? 0 > Swift.max(0.005, (acks[$0] ?? 0) / 10) }
        case "generator-cpu":
            let columns = self.intervals.columns("generator_cpu")
            return first { place in columns.contains { $0.values[place] > 0.9 } }
        default: return nil
        }
    }
}
