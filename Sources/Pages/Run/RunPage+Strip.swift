import Charts
import Measurement
import Report

/// One line of a panel over time.
private struct StripSeries {
    var name: String
    var unit: String
    var style: ChartStyle
    var kind = TimePanel.Series.Kind.line
    var values: [Double]

    /// The drawn values, if they are fewer than all.
    var drawn: [Double]?

    var chart: TimePanel.Series {
        .init(self.name, style: self.style, kind: self.kind, values: self.drawn ?? self.values)
    }

    func data(_ panel: String) -> PageData.Series {
        .init(panel, self.name, unit: self.unit, style: self.style, values: self.values)
    }
}

/// One panel over time; with cells it is a heat map.
private struct StripPanel {
    var name: String
    var unit: ChartUnit
    var series: [StripSeries]
    /// A series without a line of its own.
    var highest: StripSeries?
    var height: Double
    var cells: HeatMap.Cells?
    var objective: ChartObjective?

    init(_ name: String, _ unit: ChartUnit, _ series: [StripSeries], height: Double) {
        self.name = name
        self.unit = unit
        self.series = series
        self.height = height
    }

    func html(_ frame: TimeFrame, hasTimeLabels: Bool) -> String {
        PageFigure.html(self.name, hue: self.cells == nil ? nil : self.series.first?.style.hue) { width in
            guard let cells = self.cells else {
                return TimePanel(
                    self.name,
                    frame: frame,
                    unit: self.unit,
                    series: self.series.map(\.chart),
                    objective: self.objective,
                    height: self.height,
                    hasTimeLabels: hasTimeLabels
                ).svg(width: width)
            }
            var map = HeatMap(
                self.name,
                frame: frame,
                cells: cells,
                lines: self.series.map(\.chart),
                objective: self.objective,
                height: self.height,
                hasTimeLabels: hasTimeLabels
            )
            // A page has two of them, and is smaller than 1 MB.
            map.budget = 30_000
            return map.svg(width: width)
        }
    }
}

extension RunPage {
    private typealias Hue = PageFigure.Hue

    private var marks: [TimeFrame.Mark] {
        (self.record.findings?.events ?? []).map { event in
            TimeFrame.Mark(event.number, second: self.course.place(ofSecond: event.second), text: event.text)
        }
    }

    /// The panels over one x axis, the events, and their table; nothing without a time line.
    var strip: (section: PageSection, data: String)? {
        guard !self.course.isEmpty, !self.isDecode else { return nil }
        var data = PageData(begins: self.course.begins, lengths: self.course.lengths, stages: self.course.stages)
        var frame = self.course.frame(marks: self.marks)
        var panels: [StripPanel] = []
        let rates = self.rates
        panels.append(StripPanel("rates", .count("messages/s"), rates, height: 90))
        let latencies = [self.main(.answer), self.main(.delivery)].compactMap(\.self)
        panels += latencies.compactMap { self.heat($0, height: latencies.count > 1 ? 130 : 170) }
        if rates.isEmpty { panels.append(StripPanel("connections", .count("clients"), self.connections, height: 110)) }
        panels.append(StripPanel("errors and disconnects", .count("per second"), self.troubles, height: 48))
        panels.append(StripPanel("CPU", .share, self.processors, height: 48))
        panels.append(StripPanel("server memory", .bytes, self.serverMemory, height: 48))
        panels.removeAll { $0.series.isEmpty && $0.cells == nil }
        guard !panels.isEmpty else { return nil }
        var html = "<div class=\"strip\" id=\"strip\">\n"
        for (place, panel) in panels.enumerated() {
            // One axis for all: names of stages and marks above the first, times below the last.
            frame.hasHeads = place == 0
            data.series += (panel.series + [panel.highest].compactMap(\.self)).map { $0.data(panel.name) }
            html += panel.html(frame, hasTimeLabels: place == panels.count - 1)
        }
        html += "</div>\n"
        html += self.eventList
        html += PageFigure.folded("Table of the charts", html: self.stripTable(data))
        return (PageSection("course", "Course of the run", html: html), data.json)
    }

    private var rates: [StripSeries] {
        let all: [(String, [MetricDefinition], ChartStyle)] = [
            // From the widest to the narrowest line, so that equal ones are all seen.
            ("delivered", Counters.delivered, ChartStyle(Hue.delivered)),
            ("acknowledged", Counters.acknowledged, ChartStyle(Hue.acknowledged)),
            ("offered", Counters.offered, ChartStyle(Hue.offered, isDashed: true)),
        ]
        return all.compactMap { name, counters, style in
            guard self.total(counters, where: Counters.isDelivery) ?? 0 > 0 || name != "delivered",
                self.total(counters) ?? 0 > 0, let values = self.course.rate(counters)
            else { return nil }
            var series = StripSeries(name: name, unit: "/s", style: style, values: values)
            // The few messages of connect and drain are no rate: a fall to them would be read as one.
            series.drawn = zip(values, self.course.isLoad).map { $1 ? $0 : .nan }
            return series
        }
    }

    private var connections: [StripSeries] {
        guard let values = self.course.sum(self.course.columns([.clients])) else { return [] }
        var series = StripSeries(name: "connected", unit: "", style: ChartStyle(Hue.connections), values: values)
        series.drawn = self.course.withoutEnd(values)
        return [series]
    }

    /// Errors, lost connections and clients that left by plan; nothing where there were none.
    private var troubles: [StripSeries] {
        let lost = self.course.rate([.disconnects], isRare: true) { !$0.isOfPlannedDeparture }
        let planned = self.course.rate([.disconnects], isRare: true) { $0.isOfPlannedDeparture }
        let all: [(String, [Double]?, Int, Int?)] = [
            ("errors", self.course.rate([.errors], isRare: true), Hue.errors, nil),
            ("lost connections", lost, Hue.disconnects, nil),
            ("left by plan", planned, Hue.connections, nil),
        ]
        return all.compactMap { name, values, hue, shade in
            guard let values, values.contains(where: { $0 > 0 }) else { return nil }
            return StripSeries(
                name: name,
                unit: "/s",
                style: ChartStyle(hue, shade: shade),
                kind: .bars,
                values: values
            )
        }
    }

    private var processors: [StripSeries] {
        let loops = self.course.columns([.generatorCPU])
        guard let busiest = self.course.highest(loops, \.values).map(self.course.trimmed) else { return [] }
        let name = loops.count > 1 ? "generator, busiest of \(loops.count) loops" : "generator, event loop"
        var series = [StripSeries(name: name, unit: "%", style: ChartStyle(Hue.generator), values: busiest)]
        if let idle = self.course.sum(self.course.columns([.hostCPUIdle])) {
            // A hue of its own: this panel has no connections.
            let style = ChartStyle(Hue.connections)
            let values = self.course.trimmed(idle.map { 1 - $0 })
            series.append(StripSeries(name: "whole host", unit: "%", style: style, values: values))
        }
        let threads = self.course.columns([.serverThreadCPU])
        if let busiest = self.course.highest(threads, \.values).map(self.course.trimmed) {
            let name = threads.count > 1 ? "server, busiest of \(threads.count) threads" : "server, thread"
            series.append(StripSeries(name: name, unit: "%", style: ChartStyle(Hue.server), values: busiest))
        }
        return series
    }

    /// The resident memory of a watched server.
    private var serverMemory: [StripSeries] {
        guard let values = self.course.sum(self.course.columns([.serverMemory])) else { return [] }
        return [StripSeries(name: "resident", unit: "B", style: ChartStyle(Hue.server), values: values)]
    }

    /// The distribution over time, with its percentiles; nothing without either.
    private func heat(_ latency: MetricDefinition, height: Double) -> StripPanel? {
        let columns = self.course.columns([latency], where: MetricDefinition.isWhole)
        // Percentiles of several series do not add: the highest of them says how bad it was.
        let several = columns.count > 1 ? ", highest of \(columns.count)" : ""
        let figures: [(String, KeyPath<Timeline.Column, [Double]>, Bool)] = [
            ("p50\(several)", \.p50, true), ("p99\(several)", \.p99, false),
        ]
        var lines = figures.compactMap { name, figure, isDashed in
            self.course.highest(columns, figure).map(self.course.trimmed).map { values in
                StripSeries(name: name, unit: "s", style: ChartStyle(latency.hue, isDashed: isDashed), values: values)
            }
        }
        // Operations that never end have no answer to draw: their age is on the chart of answers.
        for kind in latency.role == .delivery ? [] : MetricDefinition.all(.backlog) {
            guard let ages = self.course.highest(self.course.columns([kind]), \.values),
                ages.contains(where: { $0 >= 0.001 })
            else { continue }
            let style = ChartStyle(Hue.errors, isDashed: true)
            lines.append(StripSeries(name: kind.title, unit: "s", style: style, values: ages))
        }
        let family = self.latencies?.families.first { $0.name == latency.name }
        guard !lines.isEmpty || family != nil else { return nil }
        var panel = StripPanel("\(latency.title) latency", .duration, lines, height: height)
        // The cells of a map show it.
        panel.highest =
            family != nil
            ? nil
            : self.course.highest(columns, \.max).map {
                StripSeries(name: "max", unit: "s", style: ChartStyle(latency.hue), values: $0)
            }
        panel.cells = self.cells(family)
        panel.objective = Objective.first(self.objectives([latency]))?.line
        return panel
    }

    private func cells(_ family: LatencyMap.Family?) -> HeatMap.Cells {
        var cells = HeatMap.Cells(intervals: self.course.begins.count)
        guard let family, let map = self.latencies else { return cells }
        var places: [Int: [Int]] = [:]
        for (place, second) in self.course.timeline.seconds.enumerated() { places[second, default: []].append(place) }
        for (interval, second) in map.seconds.enumerated() {
            for (bucket, count) in family.counts(interval: interval).enumerated() where count > 0 {
                // The log has one interval a second, and the time line its parts.
                for place in places[second] ?? [] {
                    cells.add(LatencyMap.middle(ofBucket: bucket), count: count, interval: place)
                }
            }
        }
        return cells
    }

    private var eventList: String {
        let events = self.record.findings?.events ?? []
        guard !events.isEmpty else { return "" }
        let items = events.map { event in
            let isEvidence = event.number == self.record.findings?.evidence
            let place = PageData.number(self.course.place(ofSecond: event.second), digits: 6)
            return "<li id=\"event-\(event.number)\"\(isEvidence ? " class=\"evidence\"" : "") data-at=\"\(place)\">"
                + "<span class=\"number\">\(event.number)</span>\(escapedMarkup(event.text))</li>\n"
        }
        return "<h3 id=\"events\">Events</h3>\n<ol class=\"events\">\n\(items.joined())</ol>\n"
    }

    /// One row for each interval, or for as many as a reader can take in.
    private func stripTable(_ data: PageData) -> String {
        let count = self.course.begins.count
        let step = (count + Self.mostRows - 1) / Self.mostRows
        var caption = "The charts' values."
        if step > 1 {
            caption += " \(step) intervals a row: the lowest and highest rate, and the highest of other values."
        }
        let columns = data.series.map { series in
            series.unit == "/s" || series.unit == "" ? series.name : "\(series.name), \(series.panel)"
        }
        var table = PageTable(caption, ["time", "stage"] + columns, words: 2)
        for first in stride(from: 0, to: count, by: step) {
            let places = first..<min(first + step, count)
            let begin = self.course.begins[first]
            var cells: [PageTable.Cell?] = [
                .text(RunCourse.words(begin), key: begin), .text(self.course.stages[first]),
            ]
            for series in data.series {
                let values = series.values[places].filter(\.isFinite)
                cells.append(values.max().map { Self.cell(values.min() ?? $0, $0, series.unit) })
            }
            table.add(cells)
        }
        return table.html
    }

    private static let mostRows = 120

    private static func cell(_ low: Double, _ high: Double, _ unit: String) -> PageTable.Cell {
        switch unit {
        case "s": .text(Words.duration(high), key: high)
        case "%": .text(Words.percent(high), key: high)
        case "B": .text(Words.bytes(high), key: high)
        default:
            .text(low == high ? Words.number(high) : "\(Words.number(low)) – \(Words.number(high))", key: high)
        }
    }
}

extension LatencyMap {
    /// A duration within a bucket, in seconds.
    static func middle(ofBucket bucket: Int) -> Double {
        (Self.edges[bucket] * Self.edges[bucket + 1]).squareRoot()
    }
}
