/// Rows of dots along one x axis: phases of a connection by percentile, metrics of two builds by run.
package struct DotRows: Sendable {
    /// A kind of dot, once in the legend.
    package struct Kind: Sendable {
        package var name: String
        package var style: ChartStyle
        package var shape: ChartShape

        package init(_ name: String, style: ChartStyle, shape: ChartShape = .circle) {
            self.name = name
            self.style = style
            self.shape = shape
        }
    }

    package struct Dot: Sendable {
        package var value: Double
        /// The place in `kinds`.
        package var kind: Int
        /// Shown by the pointer; absent it is the name of the kind and the value.
        package var text: String?

        package init(_ value: Double, kind: Int, text: String? = nil) {
            self.value = value
            self.kind = kind
            self.text = text
        }
    }

    /// An interval, drawn as a bar below the dots of its row.
    package struct Bar: Sendable {
        package var low: Double
        package var high: Double
        package var middle: Double?
        /// A class of the page beside `bar`, such as `better` or `worse`.
        package var verdict: String?
        package var text: String?

        package init(low: Double, high: Double, middle: Double? = nil, verdict: String? = nil, text: String? = nil) {
            self.low = low
            self.high = high
            self.middle = middle
            self.verdict = verdict
            self.text = text
        }
    }

    package struct Row: Sendable {
        package var name: String
        package var dots: [Dot]
        package var bar: Bar?
        /// The text at the right end of the row, such as `+3.2 %`.
        package var note: String?

        package init(_ name: String, dots: [Dot], bar: Bar? = nil, note: String? = nil) {
            self.name = name
            self.dots = dots
            self.bar = bar
            self.note = note
        }
    }

    package var name: String
    package var unit: ChartUnit
    package var scaling: ChartScaling
    package var kinds: [Kind]
    package var rows: [Row]
    /// A vertical rule, such as 0 of a difference.
    package var objective: ChartObjective?
    /// Whether each kind has a lane of its own in a row, as the runs of two builds have.
    package var hasLanes = false

    package init(
        _ name: String,
        unit: ChartUnit,
        scaling: ChartScaling,
        kinds: [Kind],
        rows: [Row],
        objective: ChartObjective? = nil
    ) {
        self.name = name
        self.unit = unit
        self.scaling = scaling
        self.kinds = kinds
        self.rows = rows
        self.objective = objective
    }

    /// The chart as an `svg` element, `width` CSS pixels wide with its labels.
    package func svg(width: Double) -> String {
        var canvas = Canvas(width: width, plotHeight: 20)
        let layout = Layout(self, width: canvas.width)
        canvas.left = layout.left
        canvas.right = layout.right
        canvas.plotHeight = max(layout.rowHeight * Double(self.rows.count), 20)
        let domain = ValueScale.domain(
            self.rows.lazy.flatMap(Self.values),
            scaling: self.scaling,
            objective: self.objective?.value,
            fromZero: false
        )
        // A dot at an end of the axis is not cut.
        let end = canvas.left + canvas.plotWidth - 6
        let x = ValueScale(domain, scaling: self.scaling, bottom: canvas.left + 6, top: end)
        let ticks = x.ticks(Canvas.tickCount(canvas.plotWidth, distance: 60))
        let labels = x.labels(ticks, unit: self.unit)
        let keys = self.kinds.map {
            LegendKey(name: $0.name, classes: $0.style.classes, swatch: .shape($0.shape))
        }
        canvas.header(self.name, unit: labels.unit, keys: keys)
        let hasRule = self.objective.map { !$0.label.isEmpty } ?? false
        if hasRule { canvas.top += 14 }
        if domain != nil { self.grid(ticks, x, &canvas) }
        self.rule(x, &canvas)
        for (place, row) in self.rows.enumerated() {
            self.draw(row, y: canvas.top + Double(place) * layout.rowHeight, layout, x, &canvas)
        }
        if self.rows.isEmpty { canvas.empty() }
        canvas.xAxis(domain == nil ? [] : zip(ticks, labels.texts).map { (x.pixel($0), $1) })
        let y = ValueScale(0, Double(max(self.rows.count, 1)), scaling: .linear, bottom: canvas.bottom, top: canvas.top)
        return canvas.svg(
            kind: "dots",
            label: "\(self.name): " + self.rows.map(\.name).joined(separator: ", "),
            attributes: Canvas.domains(x: x.domain, xScale: x.name, y: y)
        )
    }

    private static func values(_ row: Row) -> [Double] {
        row.dots.map(\.value) + (row.bar.map { [$0.low, $0.high] } ?? [])
    }

    /// The places of names, lanes and notes of the rows.
    private struct Layout {
        var left: Double
        var right: Double
        var rowHeight: Double
        /// The distance from the top of a row to its name; next its first lane and its bar.
        var nameY: Double
        var laneY: Double
        var barY: Double
        /// Whether the name stands above the lanes.
        var isNarrow: Bool

        init(_ chart: DotRows, width: Double) {
            self.isNarrow = width < 480
            let names = chart.rows.map { TextWidth.of($0.name) }.max() ?? 0
            let notes = chart.rows.compactMap(\.note).map { TextWidth.of($0) }.max() ?? 0
            self.left = self.isNarrow ? 4 : min(max(names + 10, 56), width * 0.3)
            self.right = notes > 0 && !self.isNarrow ? min(notes + 14, width * 0.3) : self.isNarrow ? 4 : 16
            let lanes = chart.hasLanes ? max(chart.kinds.count, 1) : 1
            self.laneY = self.isNarrow ? 26 : 11
            self.barY = self.laneY + Double(lanes) * 12
            self.nameY = self.isNarrow ? 13 : 15
            let hasBars = chart.rows.contains { $0.bar != nil }
            self.rowHeight = self.barY + (hasBars ? 10 : 0)
        }
    }

    private func grid(_ ticks: [Double], _ x: ValueScale, _ canvas: inout Canvas) {
        var grid = PathText()
        for tick in ticks {
            let place = x.pixel(tick).rounded(.down) + 0.5
            grid.move(place, canvas.top)
            grid.line(place, canvas.bottom)
        }
        canvas.path(grid, class: "grid")
    }

    private func rule(_ x: ValueScale, _ canvas: inout Canvas) {
        guard let objective, x.shows(objective.value), objective.value <= x.domain.high * (1 + 1e-9) else { return }
        let place = x.pixel(objective.value)
        canvas.segment(place, canvas.top - 3, to: (place, canvas.bottom), class: "objective")
        let length = min(TextWidth.of(objective.label), canvas.width)
        let begin = min(max(place - length / 2, 0), canvas.width - length)
        canvas.fitted(
            objective.label,
            x: begin + length / 2,
            y: canvas.top - 5,
            width: canvas.width,
            class: "objective",
            anchor: "middle"
        )
    }

    private func draw(_ row: Row, y: Double, _ layout: Layout, _ x: ValueScale, _ canvas: inout Canvas) {
        let note = row.note ?? ""
        let noteWidth = layout.isNarrow ? min(TextWidth.of(note), canvas.width * 0.5) : layout.right - 10
        let nameWidth = layout.isNarrow ? canvas.width - noteWidth - 12 : layout.left - 8
        canvas.fitted(row.name, x: 0, y: y + layout.nameY, width: nameWidth, class: "rowname")
        canvas.fitted(
            note,
            x: layout.isNarrow ? canvas.width - 2 : canvas.width - layout.right + 10,
            y: y + layout.nameY,
            width: noteWidth,
            class: "note\(row.bar?.verdict.map { " \($0)" } ?? "")",
            anchor: layout.isNarrow ? "end" : "start"
        )
        for dot in row.dots where x.shows(dot.value) && self.kinds.indices.contains(dot.kind) {
            let kind = self.kinds[dot.kind]
            canvas.add(
                kind.shape.markup(
                    x: x.pixel(dot.value),
                    y: y + layout.laneY + (self.hasLanes ? Double(dot.kind) * 12 : 0),
                    classes: kind.style.classes,
                    title: dot.text ?? "\(row.name), \(kind.name): \(TickLabels.value(dot.value, unit: self.unit))"
                )
            )
        }
        if let bar = row.bar { self.draw(bar, y: y + layout.barY, x, &canvas) }
    }

    private func draw(_ bar: Bar, y: Double, _ x: ValueScale, _ canvas: inout Canvas) {
        guard x.shows(bar.low), x.shows(bar.high), bar.low <= bar.high else { return }
        let verdict = bar.verdict.map { " \(escapedMarkup($0))" } ?? ""
        canvas.add("<g class=\"bar\(verdict)\">")
        if let text = bar.text { canvas.add("<title>\(escapedMarkup(text))</title>") }
        var path = PathText()
        let (begin, end) = (x.pixel(bar.low), x.pixel(bar.high))
        path.move(begin, y)
        path.line(max(end, begin + 1), y)
        for edge in [begin, end] {
            path.move(edge, y - 4)
            path.line(edge, y + 4)
        }
        canvas.path(path, class: "interval")
        if let middle = bar.middle, x.shows(middle) {
            canvas.add(ChartShape.diamond.markup(x: x.pixel(middle), y: y, classes: ""))
        }
        canvas.add("</g>")
    }
}
