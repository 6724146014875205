import Charts
import Measurement
import Report

extension RunPage {
    /// The counters, alike for MQTT and XMPP.
    enum Counters {
        static let offered = MetricDefinition.all(.offered)
        static let acknowledged = MetricDefinition.all(.acked)
        static let delivered: [MetricDefinition] = [.received]
        static let answered: [MetricDefinition] = [.requestsAnswered]
        /// The answers of requests are no deliveries.
        static func isDelivery(_ labels: Labels) -> Bool { labels["stanza"] != "iq" }
    }

    var tiles: [PageTile] {
        if self.isDecode { return self.decoderTiles }
        let tiles = [
            self.clientTile, self.flowTile, self.latencyTile(self.main(.answer) ?? self.main(.connect)),
            self.latencyTile(self.main(.delivery)), self.lossTile, self.errorTile,
        ]
        return tiles.compactMap(\.self)
    }

    private var clientTile: PageTile? {
        guard let planned = self.planned, let up = self.record.findings?.clientsUp else { return nil }
        var tile = PageTile("clients up", value: Words.count(UInt64(max(up, 0))), unit: "of \(Words.count(planned))")
        if up < planned { tile.tone = .bad }
        if let seconds = self.record.findings?.allUpSeconds {
            tile.notes.append(.init("all up after \(Words.coarse(seconds))"))
        }
        // A part of a second at the end of the load ends with every client gone.
        if let values = self.course.sum(self.course.columns([.clients])).map(self.course.whole) {
            tile.spark = self.spark("connected clients", PageFigure.Hue.connections, values, .lowest)
            if let worst = self.course.worst(values, isHighest: false), worst.value < Double(planned) {
                tile.worst = "least \(Words.number(worst.value)) \(self.course.time(worst.place))"
            }
        }
        return tile
    }

    private var planned: UInt64? {
        if let planned = self.record.findings?.clientsPlanned { return UInt64(max(planned, 0)) }
        if case .integer(let planned)? = self.record.plan["clients"], planned > 0 { return UInt64(planned) }
        return nil
    }

    private var flowTile: PageTile? {
        var tile = PageTile("messages")
        let steps = [
            ("offered", Counters.offered), ("acked", Counters.acknowledged), ("delivered", Counters.delivered),
        ]
        for (name, counters) in steps {
            let isWanted = name == "delivered" ? Counters.isDelivery : { _ in true }
            guard var value = self.total(counters, where: isWanted), value > 0 || name != "acked" else { continue }
            var rate = self.rate(counters, where: isWanted)
            if name == "delivered" {
                // A request that arrived and was answered is no delivery.
                value -= self.total(Counters.answered) ?? 0
                rate = rate.map { $0 - (self.rate(Counters.answered) ?? 0) }
            }
            tile.rows.append((name, rate.map(Words.rate) ?? Words.number(value)))
        }
        guard !tile.rows.isEmpty else { return nil }
        let courses: [(String, [MetricDefinition], Int)] = [
            ("acked", Counters.acknowledged, PageFigure.Hue.acknowledged),
            ("delivered", Counters.delivered, PageFigure.Hue.delivered),
            ("offered", Counters.offered, PageFigure.Hue.offered),
        ]
        for (name, counters, hue) in courses where tile.rows.contains(where: { $0.name == name }) {
            guard let values = self.course.rate(counters), values.contains(where: { $0 > 0 }) else { continue }
            tile.spark = self.spark("\(name) over time", hue, values, .lowest)
            if let worst = self.course.worst(values, isHighest: false, isWhole: true) {
                tile.worst = "\(name) \(Words.rate(worst.value)) \(self.course.time(worst.place))"
            }
            break
        }
        return tile
    }

    private func latencyTile(_ latency: MetricDefinition?) -> PageTile? {
        guard let latency else { return nil }
        let series = self.series(latency).compactMap { metric in metric.duration.map { (metric, $0) } }
        guard let worst = series.max(by: { $0.1.p99 < $1.1.p99 }) else { return nil }
        // With fewer samples a percentile equals the maximum.
        let isCarried = Cell.isCarried(99, by: worst.1.count)
        let shown = isCarried ? worst.1 : series.map(\.1).max { $0.max < $1.max } ?? worst.1
        let field: KeyPath<DurationReading, Double> = isCarried ? \.p99 : \.max
        var tile = PageTile("\(latency.title) \(isCarried ? "p99" : "max")", value: Cell.duration(shown, field))
        let objectives = self.objectives([latency])
        let objective = Objective.first(objectives)
        // The figure that decided an objective, of the series that it is on, is that of the tile.
        let judged = objective.flatMap { objective in
            objective.result.value == nil ? nil : objective.threshold.field.map { (objective, $0) }
        }
        if let (objective, field) = judged {
            (tile.label, tile.value) = ("\(latency.title) \(field.text)", objective.result.valueText)
        } else if series.count > 1, isCarried {
            tile.notes.append(.init("highest of \(series.count): \(SeriesName.text(worst.0.labels))"))
        }
        if let objective { tile.notes.append(.init(objective.words, tone: objective.result.ok ? .good : .bad)) }
        if objectives.contains(where: { !$0.result.ok }) { tile.tone = .bad }
        let wanted = judged?.0.threshold.labels.removing(Labels.stage) ?? [:]
        let columns = self.course.columns([latency]) { MetricDefinition.isWhole($0) && $0.contains(wanted) }
        if let values = self.course.highest(columns, \.p99).map(self.course.trimmed), latency.role != .connect {
            // Each second has its p99, which is no p95.
            let isSame = judged.map { $0.1 == .percentile(99) } ?? true
            let limit = isSame ? objective?.threshold.limit : nil
            tile.spark = self.spark("\(latency.title) p99", latency.hue, values, .highest, objective: limit)
            if let worst = self.course.worst(values, isHighest: true) {
                let isBound = columns.contains {
                    $0.bounds.contains(worst.place) && $0.p99[worst.place] == worst.value
                }
                let value = Words.atLeast(Words.duration(worst.value), if: isBound)
                // Operations that no second has an answer for are in the figure alone.
                if isBound || !shown.isBound(field) {
                    tile.worst = "worst \(isSame ? "" : "p99 ")\(value) \(self.course.time(worst.place))"
                }
            }
        }
        return tile
    }

    private var lossTile: PageTile? {
        let lost = self.total([.deliveryLost])
        let gaps = self.total([.deliveryGaps])
        guard let value = lost ?? gaps else {
            guard self.total(Counters.delivered, where: Counters.isDelivery) ?? 0 > 0,
                let reason = self.record.ledger.reason
            else { return nil }
            var tile = PageTile("lost", value: Words.unknown)
            tile.notes.append(.init(self.record.ledger.on ? reason : "not counted: \(reason)"))
            return tile
        }
        var tile = PageTile(lost == nil ? "missing numbers" : "lost", value: Words.number(value))
        if value > 0 { tile.tone = .bad }
        if let owed = self.total([.deliveryOutstanding]), owed > 0 {
            tile.notes.append(.init("\(Words.number(owed)) outstanding", tone: .bad))
        }
        tile.unit = self.total([.deliveryExpected]).map { "of \(Words.number($0))" }
        for objective in self.objectives([.deliveryLost, .deliveryGaps]) {
            tile.notes.append(.init(objective.fullWords, tone: objective.result.ok ? .good : .bad))
        }
        for kind in MetricDefinition.irregularities {
            guard let count = self.total([kind]), count > 0 else { continue }
            tile.notes.append(.init("\(Words.number(count)) \(kind.title)"))
        }
        for kind in [MetricDefinition.retainedLost, .retainedOutstanding, .retainedStale] {
            guard let count = self.total([kind]), count > 0 else { continue }
            tile.tone = .bad
            tile.notes.append(.init("\(Words.number(count)) \(kind.title)", tone: .bad))
        }
        return tile
    }

    private var errorTile: PageTile? {
        let errors = self.record.errors
        // Of a run that was killed before its first checkpoint nothing is known.
        guard !self.record.metrics.isEmpty || !errors.isEmpty || self.record.verdict != nil else { return nil }
        let count = errors.reduce(0) { $0 + $1.count }
        var tile = PageTile("errors", value: Words.count(count))
        if let top = self.record.findings?.topError ?? errors.max(by: { $0.count < $1.count })?.kind {
            let kinds = Set(errors.map(\.kind)).count
            tile.notes.append(.init(kinds > 1 ? "top of \(kinds) kinds: \(top)" : top))
        }
        if count > 0 { tile.tone = .warn }
        for objective in self.objectives([.errors, "error_rate"]) {
            tile.notes.append(.init(objective.fullWords, tone: objective.result.ok ? .good : .bad))
            if !objective.result.ok { tile.tone = .bad }
        }
        if count > 0, let values = self.course.rate([.errors], isRare: true) {
            tile.spark = self.spark("errors over time", PageFigure.Hue.errors, values, .highest)
            let all = RunCourse.worst(values)
            if let all { tile.worst = "most \(Words.rate(all.value)) \(self.course.time(all.place))" }
        }
        return tile
    }

    func spark(
        _ name: String,
        _ hue: Int,
        _ values: [Double],
        _ worst: Sparkline.Worst,
        objective: Double? = nil,
        width: Double = 132
    ) -> String? {
        let measured = self.course.measured(values).trimmed
        let known = measured.filter(\.isFinite)
        // A level line says nothing.
        guard known.count > 2, known.min() != known.max() else { return nil }
        let line = Sparkline(name, style: ChartStyle(hue), values: measured, worst: worst, objective: objective)
        return line.svg(width: width, height: 28)
    }
}

extension RunCourse {
    /// The highest value of the whole run.
    static func worst(_ values: [Double]) -> (place: Int, value: Double)? {
        values.enumerated().filter { $0.element.isFinite }.max { $0.element < $1.element }
            .map { (place: $0.offset, value: $0.element) }
    }
}

extension [Double] {
    /// The values without what is unknown at both ends.
    fileprivate var trimmed: [Double] {
        guard let first = self.firstIndex(where: \.isFinite), let last = self.lastIndex(where: \.isFinite)
        else { return [] }
        return Array(self[first...last])
    }
}
