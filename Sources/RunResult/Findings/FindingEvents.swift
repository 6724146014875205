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
    /// Whether the plan asked for it.
    var isPlanned = false
}

extension FindingIntervals {
    /// An event of one of the intervals; `start`: where it is not that of the interval.
    func event(
        _ kind: FindingEvent.Kind,
        _ place: Int,
        start: Double? = nil,
        seconds: Double? = nil,
        isBreak: Bool,
        text: String,
        sentence: String? = nil
    ) -> FoundEvent {
        let interval = self.all[place]
        let start = start ?? interval.start
        let event = FindingEvent(
            number: 0,
            kind: kind,
            second: Int(bounded: start),
            seconds: seconds,
            stage: interval.stage,
            text: text
        )
        return FoundEvent(event: event, sentence: sentence ?? text, isBreak: isBreak, start: start)
    }
}

/// The marks of a time line.
extension FindingsSearch {
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

    /// In the order of time.
    var found: [FoundEvent] {
        let kinds = [
            self.generator, FindingServer(search: self).events,
            self.silent, self.storms, self.errors,
            self.broken, self.changes, self.recovery.map { [$0.event(self.intervals)] } ?? [],
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
                return self.intervals.event(
                    .generator,
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
            return self.intervals.event(
                .stall,
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
        guard self.run.ledger.on, let lost = self.run.ledger.lost else { return "" }
        return "; \(Words.count(lost.values.reduce(0, +))) lost"
    }

    // MARK: - Connections

    private var storms: [FoundEvent] {
        let lost = self.intervals.columns(.disconnects) { !$0.isOfPlannedDeparture }
        let left = self.intervals.columns(.disconnects) {
            $0.isOfPlannedDeparture && !["churn", "cycle"].contains($0["reason"])
        }
        let whole = Double(self.run.clientsPlanned ?? 0)
        let isLoad: (Int) -> Bool = { self.intervals.all[$0].isLoad }
        return self.storms(lost, isIn: isLoad) { count, at, reasons in
            // A client that comes back may lose several.
            let lost =
                whole >= count && whole > 0
                ? "\(Words.count(Int64(bounded: count))) of \(Words.count(Int64(bounded: whole))) clients lost the connection"
                : FindingWords.count(count, "connection") + (count == 1 ? " was lost" : " were lost")
            return ("\(lost) \(at) (\(reasons))", whole > 0 && count >= Swift.max(1, whole * Limit.lostClients))
        }
            + self.storms(left, isIn: isLoad) { count, at, _ in
                let left =
                    whole >= count
                    ? "\(FindingWords.count(count, "client")) left"
                    : "clients left \(FindingWords.count(count, "time"))"
                return ("\(left) as planned \(at)", false)
            }.map { found in
                var found = found
                found.isPlanned = true
                return found
            }
    }

    private func storms(
        _ columns: [Timeline.Column],
        isIn: (Int) -> Bool,
        _ words: (Double, String, String) -> (text: String, isBreak: Bool)
    ) -> [FoundEvent] {
        guard let counts = self.intervals.sum(columns) else { return [] }
        return self.intervals.spans { counts[$0] > 0 && isIn($0) }.map { span in
            let reasons = columns.filter { column in span.contains { column.values[$0] > 0 } }
                .compactMap { $0.labels["reason"] }
            let place = span.lowerBound
            let (first, last) = (self.intervals.all[place].second, self.intervals.all[span.upperBound - 1].second)
            let times = first == last ? "at \(first) s" : "from \(first) s to \(last) s"
            let at = times + self.intervals.stageWords(place)
            let count = span.reduce(0) { $0 + counts[$1] }
            let (text, isBreak) = words(count, at, Set(reasons).sorted().joined(separator: ", "))
            return self.intervals.event(
                .storm,
                place,
                seconds: self.intervals.length(span),
                isBreak: isBreak,
                text: text,
                sentence: isBreak ? text + self.backWords + self.lossWords : text
            )
        }
    }

    /// `; all were back within 2.4 s` of their loss; nothing where clients do not come back.
    private var backWords: String {
        let all = self.run.whole(.downtime).compactMap(\.duration).filter { $0.count > 0 }
        guard let longest = all.map(\.max).max() else { return "" }
        let missing = all.reduce(0) { $0 + $1.count - $1.answered }
        guard missing > 0 else { return "; all were back within \(FindingWords.duration(longest))" }
        return "; \(FindingWords.count(Double(missing), "client")) did not come back"
    }

    // MARK: - Errors

    private var errors: [FoundEvent] {
        let columns = self.intervals.columns(.errors)
        let kinds = Set(columns.compactMap { $0.labels["kind"] }).sorted()
        return kinds.compactMap { kind in
            let own = columns.filter { $0.labels["kind"] == kind }
            guard let counts = self.intervals.sum(own), let place = counts.firstIndex(where: { $0 > 0 }) else {
                return nil
            }
            let known = self.run.errors.filter { $0.kind == kind }
            let total = known.isEmpty ? counts.reduce(0, +) : Double(known.reduce(0) { $0 + $1.count })
            let example = known.first { !$0.example.isEmpty }.map { ", such as: \($0.example)" } ?? ""
            let many = total > 1 ? ", the first of \(Words.count(Int64(bounded: total)))" : ""
            let at = "at \(self.intervals.all[place].second) s\(self.intervals.stageWords(place))"
            return self.intervals.event(.error, place, isBreak: false, text: "error \(kind) \(at)\(many)\(example)")
        }
    }

    // MARK: - Objectives and levels

    private var broken: [FoundEvent] {
        self.objectives.flatMap { objective in
            let worst = objective.breaks.map(\.worst).max() ?? 0
            // A break of less than half the worst is not what failed an objective.
            return objective.breaks.map { broken in
                self.event(broken, of: objective, isBreak: !objective.result.ok && broken.worst * 2 >= worst)
            }
        }
    }

    private func event(_ broken: FindingObjective.Break, of objective: FindingObjective, isBreak: Bool) -> FoundEvent {
        let place = broken.span.lowerBound
        let threshold = objective.threshold
        let at = "at \(self.intervals.all[place].second) s\(self.intervals.stageWords(place))"
        let limit = FindingWords.duration(threshold.limit)
        let seconds = self.intervals.length(broken.span)
        let more = broken.isBound ? " or more" : ""
        let worst =
            broken.worst > 0 ? ": \(FindingWords.duration(broken.worst))\(more), over \(limit)" : ": over \(limit)"
        let level = self.level(objective.values, before: place).map { ", \(FindingWords.duration($0)) before" } ?? ""
        let text =
            "\(threshold.findingName) broke its objective \(at)\(worst)\(level), for \(FindingWords.duration(seconds))"
        // An objective of the whole run may hold although it did not in every second.
        let held = "the objective \(threshold.expression) held, though not \(at)\(worst)\(level), "
        return self.intervals.event(
            .threshold,
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
        return known.count >= Limit.changeLength ? known.median : nil
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
                    self.intervals.event(.change, place, isBreak: false, text: "\(whose)\(name) rose \(words) \(at)")
                )
            }
            return events
        }
    }

    // MARK: - The generator

    /// The first interval that shows why the verdict is on the generator.
    private var generator: [FoundEvent] {
        guard self.run.verdict?.state == .generatorLimited, let reason = self.run.verdict?.reasons.first,
            let place = self.limitedPlace(reason.code)
        else { return [] }
        let from = self.intervals.all[place].second
        return [
            self.intervals.event(
                .generator,
                place,
                isBreak: true,
                text: "\(reason.limited) from \(from) s on: \(reason.line)"
            )
        ]
    }

    private func limitedPlace(_ code: String) -> Int? {
        func first(_ isLimited: (Int) -> Bool) -> Int? {
            self.intervals.all.indices.first { self.intervals.all[$0].isLoad && isLimited($0) }
        }
        switch code {
        case "schedule-lag":
            let lag = self.intervals.highest(self.intervals.columns(.scheduleLag), \.p99)
            let acks = self.intervals.highest(self.intervals.columns(.publishAck) { $0.isWhole() }, \.p99)
            return first { lag[$0] ?? 0 > Swift.max(0.005, (acks[$0] ?? 0) / 10) }
        case "generator-cpu":
            let columns = self.intervals.columns(.generatorCPU)
            return first { place in columns.contains { $0.values[place] > 0.9 } }
        default: return nil
        }
    }
}
