/// Points and lines of y over x, such as load against p99.
package struct Curve: Sendable {
    package struct Point: Sendable {
        package var x: Double
        package var y: Double
        package var shape: ChartShape
        package var text: String?

        package init(x: Double, y: Double, shape: ChartShape = .circle, text: String? = nil) {
            self.x = x
            self.y = y
            self.shape = shape
            self.text = text
        }
    }

    package struct Series: Sendable {
        package var name: String
        package var style: ChartStyle
        /// The points in the order of the line.
        package var points: [Point]
        package var hasLine: Bool
        package var hasPoints: Bool

        package init(_ name: String, style: ChartStyle, points: [Point], hasLine: Bool = true, hasPoints: Bool = true) {
            self.name = name
            self.style = style
            self.points = points
            self.hasLine = hasLine
            self.hasPoints = hasPoints
        }
    }

    /// A vertical rule or, with two ends, a band.
    package struct Rule: Sendable {
        package var begin: Double
        package var end: Double?
        package var label: String

        package init(_ begin: Double, end: Double? = nil, label: String) {
            self.begin = begin
            self.end = end
            self.label = label
        }
    }

    package struct Axis: Sendable {
        package var name: String
        package var unit: ChartUnit
        package var scaling: ChartScaling
        /// Ticks with texts of their own, such as dates, instead of round values; the axis then need not begin at 0.
        package var ticks: [Tick]?

        package struct Tick: Sendable {
            package var value: Double
            package var text: String

            package init(_ value: Double, _ text: String) {
                self.value = value
                self.text = text
            }
        }

        package init(_ name: String, unit: ChartUnit, scaling: ChartScaling = .linear) {
            self.name = name
            self.unit = unit
            self.scaling = scaling
        }
    }

    package var name: String
    package var x: Axis
    package var y: Axis
    package var series: [Series]
    package var rules: [Rule]
    /// Shapes that the points have, with their meanings, for the legend.
    package var shapes: [(shape: ChartShape, name: String)]
    package var objective: ChartObjective?
    /// The height of the plot, in CSS pixels.
    package var height: Double

    package init(
        _ name: String,
        x: Axis,
        y: Axis,
        series: [Series],
        rules: [Rule] = [],
        shapes: [(shape: ChartShape, name: String)] = [],
        objective: ChartObjective? = nil,
        height: Double = 200
    ) {
        self.name = name
        self.x = x
        self.y = y
        self.series = series
        self.rules = rules
        self.shapes = shapes
        self.objective = objective
        self.height = height
    }

    /// The chart as an `svg` element, `width` CSS pixels wide with its labels.
    package func svg(width: Double) -> String {
        var canvas = Canvas(width: width, plotHeight: self.height)
        let points = self.series.flatMap(\.points).filter { $0.x.isFinite && $0.y.isFinite }
        let yDomain = ValueScale.domain(points.map(\.y), scaling: self.y.scaling, objective: self.objective?.value)
        let edges = self.rules.lazy.flatMap { [$0.begin, $0.end ?? $0.begin] }
        let xDomain = ValueScale.domain(
            points.map(\.x) + Array(edges),
            scaling: self.x.scaling,
            fromZero: self.x.ticks == nil
        )
        func yScale() -> ValueScale {
            ValueScale(yDomain, scaling: self.y.scaling, bottom: canvas.bottom, top: canvas.top + 6)
        }
        let yTicks = yScale().ticks(Canvas.tickCount(canvas.plotHeight, distance: 20))
        let yLabels = yScale().labels(yTicks, unit: self.y.unit)
        let shapes = self.shapes.map { LegendKey(name: $0.name, classes: "", swatch: .shape($0.shape)) }
        let names = [self.y.name, yLabels.unit].filter { !$0.isEmpty }.joined(separator: ", ")
        let isNamed = !self.name.isEmpty && !names.isEmpty
        let mark = self.y.name.isEmpty ? ", " : ": "
        canvas.header(isNamed ? self.name + mark + names : self.name + names, unit: "", keys: self.keys + shapes)

        let xEnds = xDomain ?? (self.x.scaling == .log ? (1, 10) : (0, 1))
        let x = ValueScale(
            xEnds.low,
            xEnds.high,
            scaling: self.x.scaling,
            bottom: canvas.left + 6,
            top: canvas.left + canvas.plotWidth - 6
        )
        self.ruleLabels(x, &canvas)
        let y = yScale()
        if yDomain != nil { canvas.yAxis(y, ticks: yTicks, labels: yLabels) }
        canvas.beginPlot()
        self.rulePaths(x, &canvas)
        for (number, series) in self.series.enumerated() where series.hasLine {
            let places = self.places(series, x, y)
            let mark = " data-series=\"\(number)\""
            if let spread = self.spread(places) {
                canvas.path(spread, class: "area \(series.style.classes)", attributes: mark)
            }
            let line = LinePaths(places.map { .init(x: $0.x, y: $0.middle) }, left: canvas.left)
                .path(pointWidth: 6, within: canvas.left...(canvas.left + canvas.plotWidth))
            canvas.path(line, class: "line \(series.style.classes)", attributes: mark)
        }
        canvas.endPlot()
        self.objective(y, x, &canvas)
        for series in self.series where series.hasPoints { self.dots(series, x, y, &canvas) }
        if yDomain == nil { canvas.empty() }
        self.xAxis(x, hasData: xDomain != nil, &canvas)
        return canvas.svg(
            kind: "curve",
            label: self.label,
            attributes: Canvas.domains(x: x.domain, xScale: x.name, y: y)
        )
    }

    private var label: String {
        let axes = [self.y.name, self.x.name].filter { !$0.isEmpty }.joined(separator: " over ")
        return [self.name, axes].filter { !$0.isEmpty }.joined(separator: ": ")
    }

    /// The label of the objective stands at the end at which fewer points are in its way.
    private func objective(_ y: ValueScale, _ x: ValueScale, _ canvas: inout Canvas) {
        guard let objective, y.shows(objective.value) else { return }
        let line = y.pixel(objective.value)
        let length = min(TextWidth.of(objective.label), canvas.plotWidth * 0.6) + 12
        let near = self.series.flatMap(\.points).filter { point in
            x.shows(point.x) && y.shows(point.y) && abs(y.pixel(point.y) - line) < 20
        }.map { x.pixel($0.x) - canvas.left }
        let left = near.count { $0 < length }
        let right = near.count { $0 > canvas.plotWidth - length }
        canvas.objective(objective, scale: y, isLeft: left < right)
    }

    private func xAxis(_ x: ValueScale, hasData: Bool, _ canvas: inout Canvas) {
        if let ticks = self.x.ticks {
            canvas.xAxis(ticks.filter { x.shows($0.value) }.map { (x.pixel($0.value), $0.text) })
            return canvas.xName(self.x.name)
        }
        let ticks = x.ticks(Canvas.tickCount(canvas.plotWidth, distance: 64))
        let labels = x.labels(ticks, unit: self.x.unit)
        canvas.xAxis(hasData ? zip(ticks, labels.texts).map { (x.pixel($0), $1) } : [])
        canvas.xName([self.x.name, labels.unit].filter { !$0.isEmpty }.joined(separator: ", "))
    }

    private var keys: [LegendKey] {
        self.series.enumerated().map { place, series in
            LegendKey(
                name: series.name,
                classes: series.style.classes,
                swatch: series.hasLine ? .line : .shape(series.points.first?.shape ?? .circle),
                series: place
            )
        }
    }

    /// The points at one place of x, such as repeated steps at one load, in pixels.
    private struct Place {
        var x: Double
        /// Sorted; none in a gap.
        var ys: [Double]

        /// The median, through which the line goes.
        var middle: Double? {
            self.ys.isEmpty ? nil : (self.ys[(self.ys.count - 1) / 2] + self.ys[self.ys.count / 2]) / 2
        }
    }

    private func places(_ series: Series, _ x: ValueScale, _ y: ValueScale) -> [Place] {
        var places: [Place] = []
        for point in series.points where x.shows(point.x) {
            let at = x.pixel(point.x)
            if places.last.map({ abs($0.x - at) < 0.5 }) != true { places.append(Place(x: at, ys: [])) }
            if y.shows(point.y) { places[places.count - 1].ys.append(y.pixel(point.y)) }
        }
        for place in places.indices { places[place].ys.sort() }
        return places
    }

    /// The outline from the least to the greatest value of each place, if a place has several.
    private func spread(_ places: [Place]) -> PathText? {
        let known = places.filter { !$0.ys.isEmpty }
        guard known.contains(where: { $0.ys.count > 1 }) else { return nil }
        let edge = known.map { ($0.x, $0.ys[0]) } + known.reversed().map { ($0.x, $0.ys[$0.ys.count - 1]) }
        var path = PathText()
        path.move(edge[0].0, edge[0].1)
        for (x, y) in edge.dropFirst() { path.line(x, y) }
        path.close()
        return path
    }

    private func dots(_ series: Series, _ x: ValueScale, _ y: ValueScale, _ canvas: inout Canvas) {
        for point in series.points where x.shows(point.x) && y.shows(point.y) {
            let place = TickLabels.value(point.x, unit: self.x.unit)
            let value = TickLabels.value(point.y, unit: self.y.unit)
            canvas.add(
                point.shape.markup(
                    x: x.pixel(point.x),
                    y: y.pixel(point.y),
                    classes: series.style.classes,
                    title: point.text ?? "\(series.name): \(value) at \(place)"
                )
            )
        }
    }

    private func rulePaths(_ x: ValueScale, _ canvas: inout Canvas) {
        for rule in self.rules where x.shows(rule.begin) {
            let begin = x.pixel(rule.begin)
            if let end = rule.end, x.shows(end), end > rule.begin {
                canvas.rectangle(begin, canvas.top, x.pixel(end) - begin, canvas.plotHeight, class: "band")
            } else {
                canvas.segment(begin, canvas.top, to: (begin, canvas.bottom), class: "rule")
            }
        }
    }

    /// Labels of rules above the plot, each in the first lane in which it touches no other.
    private func ruleLabels(_ x: ValueScale, _ canvas: inout Canvas) {
        var lanes: [Double] = []
        var placed: [(text: String, middle: Double, length: Double, lane: Int)] = []
        for rule in self.rules.filter({ x.shows($0.begin) }).sorted(by: { $0.begin < $1.begin }) {
            let text = TextWidth.fitted(rule.label, width: canvas.width * 0.8)
            let length = TextWidth.of(text)
            let middle = (x.pixel(rule.begin) + x.pixel(rule.end ?? rule.begin)) / 2
            let begin = min(max(middle - length / 2, 0), canvas.width - length)
            let lane = lanes.firstIndex { $0 + 8 < begin } ?? lanes.count
            if lane == lanes.count { lanes.append(0) }
            lanes[lane] = begin + length
            placed.append((text, begin + length / 2, length, lane))
        }
        canvas.top += Double(lanes.count) * 14
        for label in placed {
            canvas.text(
                label.text,
                x: label.middle,
                y: canvas.top - 4 - Double(label.lane) * 14,
                class: "rulename",
                anchor: "middle"
            )
        }
    }
}
