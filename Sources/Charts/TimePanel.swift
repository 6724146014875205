package struct TimePanel: Sendable {
    package struct Series: Sendable {
        package enum Kind: Sendable {
            case line
            /// Bars from 0, of rare things such as errors.
            case bars
        }

        package var name: String
        package var style: ChartStyle
        package var kind: Kind
        /// One for each interval of the frame; NaN is a gap.
        package var values: [Double]

        package init(_ name: String, style: ChartStyle, kind: Kind = .line, values: [Double]) {
            self.name = name
            self.style = style
            self.kind = kind
            self.values = values
        }
    }

    package var name: String
    package var frame: TimeFrame
    package var unit: ChartUnit
    package var scaling: ChartScaling
    package var series: [Series]
    package var objective: ChartObjective?
    /// The height of the plot, in CSS pixels.
    package var height: Double
    /// Whether the x axis has tick labels; of panels in a column the last one has.
    package var hasTimeLabels: Bool

    package init(
        _ name: String,
        frame: TimeFrame,
        unit: ChartUnit,
        scaling: ChartScaling = .linear,
        series: [Series],
        objective: ChartObjective? = nil,
        height: Double = 120,
        hasTimeLabels: Bool = true
    ) {
        self.name = name
        self.frame = frame
        self.unit = unit
        self.scaling = scaling
        self.series = series
        self.objective = objective
        self.height = height
        self.hasTimeLabels = hasTimeLabels
    }

    /// The chart as an `svg` element, `width` CSS pixels wide with its labels.
    package func svg(width: Double) -> String {
        var canvas = Canvas(width: width, plotHeight: self.height)
        // The line of a full share, which stays so, is not the frame's.
        let values = self.series.lazy.flatMap(\.values).map { self.unit == .share ? $0 * 1.1 : $0 }
        let domain = ValueScale.domain(values, scaling: self.scaling, objective: self.objective?.value)
        // The unit follows from the ticks alone, so that a first scale of any place tells it.
        func scale() -> ValueScale {
            ValueScale(domain, scaling: self.scaling, bottom: canvas.bottom, top: canvas.top)
        }
        let ticks = scale().ticks(Canvas.tickCount(canvas.plotHeight, distance: 24))
        let labels = scale().labels(ticks, unit: self.unit)
        canvas.header(self.name, unit: labels.unit, keys: self.keys)
        canvas.lanes(self.frame)

        let time = canvas.timeScale(self.frame)
        let y = scale()
        if domain != nil { canvas.yAxis(y, ticks: ticks, labels: labels) }
        canvas.beginPlot()
        canvas.bands(self.frame, scale: time)
        for (place, series) in self.series.enumerated() { self.draw(series, place, time, y, &canvas) }
        canvas.markRules(self.frame, scale: time)
        canvas.endPlot()
        if let objective { canvas.objective(objective, scale: y) }
        if domain == nil { canvas.empty() }
        canvas.timeAxis(time, isLabelled: self.hasTimeLabels)
        canvas.bandNames(self.frame, scale: time)
        canvas.markHeads(self.frame, scale: time)
        return canvas.svg(
            kind: "time",
            label: Self.label(self.name, unit: labels.unit, series: self.series.map(\.name), frame: self.frame),
            attributes: Canvas.domains(time: self.frame, y: y)
        )
    }

    private var keys: [LegendKey] {
        self.series.enumerated().map { place, series in
            LegendKey(
                name: series.name,
                classes: series.style.classes,
                swatch: series.kind == .bars ? .bars : .line,
                series: place
            )
        }
    }

    private func draw(_ series: Series, _ place: Int, _ time: TimeScale, _ y: ValueScale, _ canvas: inout Canvas) {
        let attributes = " data-series=\"\(place)\""
        switch series.kind {
        case .line:
            let path = canvas.linePath(series.values, frame: self.frame, scale: time, yScale: y)
            canvas.path(path, class: "line \(series.style.classes)", attributes: attributes)
        case .bars:
            let path = canvas.barPath(series.values, frame: self.frame, scale: time, yScale: y)
            canvas.path(path, class: "bars \(series.style.classes)", attributes: attributes)
        }
    }

    /// Such as `rates, messages/s, over time from 0 to 60 s: offered, acknowledged`.
    static func label(_ name: String, unit: String, series: [String], frame: TimeFrame) -> String {
        let span = frame.span
        let step = span.end - span.begin < 10 ? 0.1 : 1.0
        let unit = unit.isEmpty ? "" : ", \(unit)"
        let times = "from \(TickLabels.time(span.begin, step: step)) to \(TickLabels.time(span.end, step: step))"
        let names = series.filter { !$0.isEmpty }.joined(separator: ", ")
        return "\(name)\(unit), over time \(times)" + (names.isEmpty ? "" : ": \(names)")
    }
}
