/// Values by percentile, with the tail drawn wide: 50, 90, 99, 99.9 … at equal distances.
package struct PercentilePlot: Sendable {
    package struct Point: Sendable {
        /// 0 to 1: the share of the samples that are not above `value`.
        package var share: Double
        package var value: Double

        package init(share: Double, value: Double) {
            self.share = share
            self.value = value
        }
    }

    package struct Series: Sendable {
        package var name: String
        package var style: ChartStyle
        /// The number of samples: a line is grey from where fewer than 10 of them lie beyond.
        package var count: UInt64
        /// The points in the order of shares.
        package var points: [Point]

        package init(_ name: String, style: ChartStyle, count: UInt64, points: [Point]) {
            self.name = name
            self.style = style
            self.count = count
            self.points = points
        }
    }

    package var name: String
    package var unit: ChartUnit
    package var scaling: ChartScaling
    package var series: [Series]
    package var objective: ChartObjective?
    /// The height of the plot, in CSS pixels.
    package var height: Double

    package init(
        _ name: String,
        unit: ChartUnit = .duration,
        scaling: ChartScaling = .log,
        series: [Series],
        objective: ChartObjective? = nil,
        height: Double = 220
    ) {
        self.name = name
        self.unit = unit
        self.scaling = scaling
        self.series = series
        self.objective = objective
        self.height = height
    }

    /// The chart as an `svg` element, `width` CSS pixels wide with its labels.
    package func svg(width: Double) -> String {
        var canvas = Canvas(width: width, plotHeight: self.height)
        let values = self.series.lazy.flatMap(\.points).map(\.value)
        let domain = ValueScale.domain(values, scaling: self.scaling, objective: self.objective?.value)
        func scale() -> ValueScale {
            ValueScale(domain, scaling: self.scaling, bottom: canvas.bottom, top: canvas.top)
        }
        let ticks = scale().ticks(Canvas.tickCount(canvas.plotHeight, distance: 24))
        let labels = scale().labels(ticks, unit: self.unit)
        let keys = self.series.enumerated().map { place, series in
            LegendKey(name: series.name, classes: series.style.classes, swatch: .line, series: place)
        }
        canvas.header(self.name, unit: labels.unit, keys: keys)

        let y = scale()
        let deepest = self.deepest
        let x = LinearScale(0, deepest, begin: canvas.left, end: canvas.left + canvas.plotWidth)
        if domain != nil { canvas.yAxis(y, ticks: ticks, labels: labels) }
        canvas.beginPlot()
        for (place, series) in self.series.enumerated() { self.draw(series, place, x, y, &canvas) }
        canvas.endPlot()
        if let objective { canvas.objective(objective, scale: y) }
        if domain == nil { canvas.empty() }
        canvas.xAxis(Self.ticks(deepest).map { (x.pixel($0.depth), $0.label) })
        canvas.xName("percentile")
        let unit = labels.unit.isEmpty ? "" : ", \(labels.unit)"
        let names = self.series.map(\.name).filter { !$0.isEmpty }.joined(separator: ", ")
        return canvas.svg(
            kind: "percentile",
            label: "\(self.name)\(unit), by percentile" + (names.isEmpty ? "" : ": \(names)"),
            attributes: Canvas.domains(x: (0, deepest), xScale: "tail", y: y)
        )
    }

    /// Fewer samples than these beyond a percentile say little about it.
    private static let fewSamples = 10.0

    /// The place on the x axis: each step of 1 takes nine tenths of the rest away.
    private static func depth(_ point: Point, count: UInt64) -> Double {
        let last = Logarithm.log10(Double(max(count, 1)))
        guard point.share < 1 else { return last }
        return min(-Logarithm.log10(1 - max(point.share, 0)), last)
    }

    private var deepest: Double {
        let depths = self.series.lazy.flatMap { series in
            series.points.lazy.filter { $0.share.isFinite && $0.value.isFinite }
                .map { Self.depth($0, count: series.count) }
        }
        return max(depths.max() ?? 2, 1)
    }

    private static func ticks(_ deepest: Double) -> [(depth: Double, label: String)] {
        let middle: [(Double, String)] = [(0, "0"), (Logarithm.log10(2), "50"), (1, "90"), (2, "99")]
        // 99.9, 99.99 …: a nine more at each.
        let tail = stride(from: 3, through: max(3, Int(deepest)), by: 1).map { depth in
            (Double(depth), "99." + String(repeating: "9", count: depth - 2))
        }
        return (middle + tail).filter { $0.0 <= deepest + 1e-9 }
    }

    private func draw(_ series: Series, _ place: Int, _ x: LinearScale, _ y: ValueScale, _ canvas: inout Canvas) {
        let points = series.points.filter { $0.share.isFinite && y.shows($0.value) }
        let few = points.firstIndex { Double(series.count) * (1 - $0.share) < Self.fewSamples } ?? points.count
        let whole = Array(points[..<few])
        // The grey part begins where the other ends.
        let rest = Array(points[max(few - 1, 0)...])
        for (part, classes) in [(whole, series.style.classes), (rest, series.style.classes + " grey")] {
            guard !part.isEmpty, part.count > 1 || points.count == 1 else { continue }
            let pixels = part.map { point in
                LinePaths.Point(x: x.pixel(Self.depth(point, count: series.count)), y: y.pixel(point.value))
            }
            let path = LinePaths(pixels, left: canvas.left)
                .path(pointWidth: 6, within: canvas.left...(canvas.left + canvas.plotWidth))
            canvas.path(path, class: "line \(classes)", attributes: " data-series=\"\(place)\"")
        }
    }
}
