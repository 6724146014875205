import Charts
import Measurement
package import Report

/// The load that a server holds, and the steps that found it.
package struct CapacityPage {
    let record: CapacityRecord

    package init(_ record: CapacityRecord) { self.record = record }

    package func text() throws -> String {
        var page = PageLayout(title: "capacity", kind: "clamor capacity", heading: "Capacity")
        page.facts = self.facts
        page.badges = self.badges
        page.lead = self.lead
        page.tiles = self.tiles
        page.sections = [self.latency, self.goodput, self.stepTable, self.command]
            .compactMap(\.self)
        page.footer = [
            "Made by clamor from capacity.json. A step holds when every objective was met over its"
                + " \(Words.duration(self.record.holdSeconds)); the server was not measured where the generator was at its"
                + " own limit, or where the step was disturbed."
        ]
        return try page.text()
    }

    private var facts: [String] {
        var facts = [self.record.varies == "clients" ? "clients are varied" : "the rate is varied"]
        facts += self.record.objectives.map { "objective \($0)" }
        facts.append("\(Words.duration(self.record.holdSeconds)) a step")
        return (self.record.environment ?? []) + facts
    }

    private var badges: [PageBadge] {
        let answer = self.record.answer
        let (words, tone): (String, PageTone) =
            switch answer?.kind {
            case "found": answer?.reason == nil ? ("found", .good) : ("found, not settled", .warn)
            case "at-least": ("a lower bound", .warn)
            case "nothing-holds": ("nothing holds", .bad)
            case "generator-limited": ("generator-limited", .warn)
            case nil: ("unfinished", .warn)
            default: ("interrupted", .warn)
            }
        let verdicts = self.record.steps.map(\.verdict)
        let held = verdicts.count { $0 == "held" }
        return [
            PageBadge(label: "Capacity", state: words, tone: tone),
            PageBadge(label: "Steps", state: "\(held) held of \(verdicts.count)", tone: .plain),
        ]
    }

    /// The most that holds, and what breaks beyond it.
    private var lead: PageLead {
        let headline = self.record.headline
        let answer = self.record.answer
        let section = [self.latency, self.goodput, self.stepTable].compactMap(\.self).first
        let evidence = section.map { (href: "#\($0.id)", text: $0.title.lowercased()) }
        func words(_ step: CapacityRecord.Step?, _ verb: String) -> String {
            step.flatMap { step in step.reason.map { "; \(self.record.text(step.load)) \(verb): \($0)" } } ?? ""
        }
        let reason = words(self.broken, "broke")
        let result = headline.words ?? Words.unknown
        func lead(_ words: String, _ tone: PageTone) -> PageLead {
            PageLead(text: words, tone: tone, evidence: evidence)
        }
        switch answer?.kind {
        case "found":
            let load = answer?.load.map(self.record.text) ?? Words.unknown
            let unsettled = answer?.reason.map { "; not settled: \($0)" } ?? ""
            return lead("The server holds \(load)\(reason)\(words(self.best, "held"))\(unsettled).", .good)
        case "at-least": return lead("The server holds \(result)\(words(self.best, "held")).", .warn)
        case "nothing-holds": return lead("Nothing holds, \(result)\(reason).", .bad)
        case "generator-limited": return lead("The generator was the limit, not the server: \(result).", .warn)
        case nil: return lead("The search is not finished.", .warn)
        default: return lead("The search was interrupted: \(result).", .warn)
        }
    }

    /// The smallest load that broke, beyond the one that held more often than it broke.
    private var broken: CapacityRecord.Step? {
        let held = self.record.answer?.load
        return self.record.steps.filter { step in
            step.verdict == "broken"
                && held.map { step.load > $0 && self.record.text(step.load) != self.record.text($0) } ?? true
        }.min { $0.load < $1.load }
    }

    /// The step at the capacity: the largest load that held each time.
    private var best: CapacityRecord.Step? {
        let most = self.record.answer?.load ?? .infinity
        return self.record.steps.filter { $0.verdict == "held" && $0.load <= most }.max { $0.load < $1.load }
    }

    private var tiles: [PageTile] {
        let answer = self.record.answer
        var tiles: [PageTile] = []
        func add(_ label: String, _ value: String?, notes: [String] = [], tone: PageTone = .plain) {
            guard let value else { return }
            var tile = PageTile(label, value: value)
            tile.notes = notes.map { .init($0) }
            tile.tone = tone
            tiles.append(tile)
        }
        let interval = [answer?.low, answer?.high].compactMap(\.self).map(self.record.text)
        add(
            "capacity",
            answer?.load.map(self.record.text),
            notes: interval.count == 2 ? ["interval \(interval[0]) … \(interval[1])"] : []
        )
        add(
            "smallest load that broke",
            self.broken.map { self.record.text($0.load) },
            notes: [self.broken?.reason].compactMap(\.self)
        )
        add("limited by", answer?.limit?.kind.rawValue, notes: [answer?.limit?.words].compactMap(\.self))
        let objective = self.objective.map { ["objective \($0.label)"] } ?? []
        add("p99 at that load", self.best?.words(\.p99Seconds), notes: objective)
        add("goodput at that load", self.best?.throughput.map(Words.rate))
        return tiles
    }

    /// The objective of a p99, as the line of the chart.
    private var objective: ChartObjective? {
        let thresholds = self.record.objectives.compactMap { try? Threshold.parse($0) }
        let times = thresholds.filter { $0.unit == .time && $0.field == .percentile(99) }
        return times.min { $0.limit < $1.limit }.map {
            ChartObjective($0.limit, label: "p99 \($0.comparison.rawValue) \(Words.duration($0.limit))")
        }
    }

    private static let shapes: [(verdict: String, shape: ChartShape)] = [
        ("held", .circle), ("broken", .cross), ("generator-limited", .triangle), ("disturbed", .ring),
    ]

    private var isOfClients: Bool { self.record.varies == "clients" }
    private var loadAxis: Curve.Axis {
        Curve.Axis(self.isOfClients ? "clients" : "offered", unit: .count(self.isOfClients ? "" : "operations/s"))
    }

    /// The interval of the capacity, or the capacity alone.
    private var rules: [Curve.Rule] {
        var rules: [Curve.Rule] = []
        guard let answer = self.record.answer else { return rules }
        if let low = answer.low, let high = answer.high, high > low {
            rules.append(.init(low, end: high, label: "capacity \(self.record.text(low)) … \(self.record.text(high))"))
        } else if let load = answer.load {
            rules.append(
                .init(load, label: "\(answer.kind == "found" ? "capacity" : "held") \(self.record.text(load))")
            )
        }
        return rules
    }

    private func points(_ value: (CapacityRecord.Step) -> Double?) -> [Curve.Point] {
        self.record.steps.sorted { ($0.load, $0.number) < ($1.load, $1.number) }.compactMap { step in
            value(step).map { value in
                let shape = Self.shapes.first { $0.verdict == step.verdict }?.shape ?? .diamond
                return Curve.Point(x: step.load, y: value, shape: shape, text: self.record.line(step))
            }
        }
    }

    private var shownShapes: [(shape: ChartShape, name: String)] {
        Self.shapes.filter { shape in self.record.steps.contains { $0.verdict == shape.verdict } }
            .map { ($0.shape, $0.verdict) }
    }

    private var latency: PageSection? {
        let p99 = self.points(\.p99Seconds)
        guard !p99.isEmpty else { return nil }
        let hue = PageFigure.Hue.acknowledged
        let p50 = Curve.Series(
            "p50",
            style: ChartStyle(hue, isDashed: true),
            points: self.points(\.p50Seconds),
            hasPoints: false
        )
        let caption =
            "Each point is a step; its shape is the verdict. Of repeated steps at one load, the line goes through the"
            + " median, and the band goes from the least to the greatest."
        return self.section(
            "latency",
            caption,
            .init("latency", unit: .duration, scaling: .log),
            [.init("p99", style: ChartStyle(hue), points: p99), p50].filter { !$0.points.isEmpty },
            self.objective
        )
    }

    private var goodput: PageSection? {
        let done = self.points(\.throughput)
        guard !done.isEmpty else { return nil }
        var series = [Curve.Series("done", style: ChartStyle(PageFigure.Hue.acknowledged), points: done)]
        if !self.isOfClients, let most = self.record.steps.map(\.load).max() {
            let all = [0, most].map { Curve.Point(x: $0, y: $0) }
            let style = ChartStyle(PageFigure.Hue.offered, isDashed: true)
            series.append(.init("all that is offered", style: style, points: all, hasPoints: false))
        }
        let caption = self.isOfClients ? nil : "On the dashed line, all that was offered was done."
        return self.section("goodput", caption, .init("done", unit: .count("operations/s")), series)
    }

    /// A figure of each step over its load.
    private func section(
        _ name: String,
        _ caption: String?,
        _ y: Curve.Axis,
        _ series: [Curve.Series],
        _ objective: ChartObjective? = nil
    ) -> PageSection {
        let (rules, shapes) = (self.rules, self.shownShapes)
        let chart = PageFigure.html(caption: caption) { width in
            Curve("", x: self.loadAxis, y: y, series: series, rules: rules, shapes: shapes, objective: objective)
                .svg(width: width)
        }
        return PageSection(name, "Load and \(name)", html: chart)
    }

    private var stepTable: PageSection? {
        let columns = [
            "step", "load", "verdict", "done", "p50", "p99", "mean", "in flight", "limit", "server CPU",
            "busiest thread",
            "server memory", "generator", "host idle", "phase", "reason", "directory",
        ]
        var table = PageTable("The steps of the search, in their order", columns)
        func latency(_ step: CapacityRecord.Step, _ field: KeyPath<CapacityRecord.Step, Double?>) -> PageTable.Cell? {
            step.words(field).map { .text($0, key: step[keyPath: field]) }
        }
        for step in self.record.steps {
            let isGood = step.verdict == "held" && step.reason == nil
            let tone: PageTone = isGood ? .good : step.verdict == "broken" ? .bad : .warn
            table.add([
                .text(String(step.number), key: Double(step.number)),
                .text(self.record.text(step.load), key: step.load), .text(step.verdict, tone: tone),
                .figure(step.throughput, Words.rate), latency(step, \.p50Seconds), latency(step, \.p99Seconds),
                latency(step, \.meanSeconds),
                .figure(step.concurrency, Words.significant), step.limit.map { .text($0.kind.rawValue) },
                .figure(step.use?.serverCPU, Words.significant), .figure(step.use?.serverThread, Words.percent),
                .figure(step.use?.serverMemoryBytes, Words.bytes), .figure(step.use?.generatorLoop, Words.percent),
                .figure(step.use?.hostIdle, Words.percent), .text(step.phase), step.reason.map { .text($0) },
                .text(step.directory),
            ])
        }
        guard !table.isEmpty else { return nil }
        let held = self.record.steps.count { $0.verdict == "held" }
        let broken = self.record.steps.count { $0.verdict == "broken" }
        return PageSection(
            folded: "steps",
            "Steps",
            summary: "\(self.record.steps.count) steps, \(held) held, \(broken) broke",
            html: table.html
        )
    }

    private var command: PageSection {
        PageSection(
            folded: "command",
            "Command",
            html: "<pre>\(escapedMarkup(self.record.command.joined(separator: " ")))</pre>\n"
        )
    }
}
