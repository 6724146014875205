/// How a value is spread over clients: a histogram, and a box above it.
package struct Distribution: Sendable {
    package var name: String
    package var unit: ChartUnit
    package var style: ChartStyle
    /// One for each client; what is not finite is left out.
    package var values: [Double]
    /// The name of what is counted, such as `clients`.
    package var counted: String
    /// Of the histogram, in CSS pixels.
    package var height: Double

    package init(
        _ name: String,
        unit: ChartUnit,
        style: ChartStyle,
        values: [Double],
        counted: String = "clients",
        height: Double = 100
    ) {
        self.name = name
        self.unit = unit
        self.style = style
        self.values = values
        self.counted = counted
        self.height = height
    }

    /// The chart as an `svg` element, `width` CSS pixels wide with its labels.
    package func svg(width: Double) -> String {
        var canvas = Canvas(width: width, plotHeight: self.height)
        let values = self.values.filter(\.isFinite).sorted()
        let bins = Bins(values, count: Int(min(max(canvas.plotWidth / 24, 5), 40)))
        let x = ValueScale(
            bins.low,
            bins.high,
            scaling: .linear,
            bottom: canvas.left,
            top: canvas.left + canvas.plotWidth
        )
        let ticks = x.ticks(Canvas.tickCount(canvas.plotWidth, distance: 64))
        let labels = x.labels(ticks, unit: self.unit)
        canvas.header(self.name, unit: "number of \(self.counted)", keys: [])
        // The box has a lane of its own.
        canvas.top += 22
        let most = Double(bins.counts.max() ?? 0)
        let y = ValueScale(0, max(most, 1), scaling: .linear, bottom: canvas.bottom, top: canvas.top)
        let yTicks = y.ticks(Canvas.tickCount(canvas.plotHeight, distance: 24)).filter { $0 == $0.rounded() }
        if values.isEmpty {
            canvas.empty()
        } else {
            canvas.yAxis(y, ticks: yTicks, labels: y.labels(yTicks, unit: .count(self.counted)))
        }
        canvas.beginPlot()
        canvas.path(bins.path(x: x, y: y, bottom: canvas.bottom), class: "bars \(self.style.classes)")
        canvas.endPlot()
        self.box(values, x: x, on: &canvas)
        canvas.xAxis(values.isEmpty ? [] : zip(ticks, labels.texts).map { (x.pixel($0), $1) })
        canvas.xName(labels.unit)
        return canvas.svg(
            kind: "distribution",
            label: "\(self.name): how it is spread over \(values.count) \(self.counted)",
            attributes: Canvas.domains(x: (bins.low, bins.high), xScale: "linear", y: y)
        )
    }

    /// Quartiles as a box, the median as a line in it, and whiskers that leave 5 % out at each end.
    private func box(_ values: [Double], x: ValueScale, on canvas: inout Canvas) {
        guard values.count > 1 else { return }
        func pixel(_ share: Double) -> Double {
            x.pixel(values[Int((Double(values.count - 1) * share).rounded())])
        }
        let y = canvas.top - 12
        var path = PathText()
        path.move(pixel(0.05), y)
        path.line(pixel(0.25), y)
        path.move(pixel(0.75), y)
        path.line(pixel(0.95), y)
        path.rectangle(pixel(0.25), y - 5, pixel(0.75) - pixel(0.25), 10)
        path.move(pixel(0.5), y - 7)
        path.line(pixel(0.5), y + 7)
        canvas.path(path, class: "box \(self.style.classes)")
    }
}

/// A histogram with edges at round values.
private struct Bins {
    var low: Double
    var high: Double
    var counts: [Int]
    private let step: Double

    init(_ values: [Double], count: Int) {
        let domain = LinearScale.domain(values.first ?? 0, values.last ?? 1)
        self.step = LinearScale.step(domain.1 - domain.0, count)
        let first = (domain.0 / self.step + 1e-9).rounded(.down)
        let last = (domain.1 / self.step + 1e-9).rounded(.down) + 1
        self.low = first * self.step
        self.high = last * self.step
        self.counts = Array(repeating: 0, count: Int(min(max(last - first, 1), 200)))
        for value in values {
            let place = (value / self.step + 1e-9).rounded(.down) - first
            self.counts[Int(min(max(place, 0), Double(self.counts.count - 1)))] += 1
        }
    }

    func path(x: ValueScale, y: ValueScale, bottom: Double) -> PathText {
        var path = PathText()
        for (place, count) in self.counts.enumerated() where count > 0 {
            let begin = x.pixel(self.low + Double(place) * self.step)
            let end = x.pixel(self.low + Double(place + 1) * self.step)
            // One client among thousands is a pixel high at least.
            let top = min(y.pixel(Double(count)), bottom - 1)
            path.rectangle(begin + 0.5, top, max(end - begin - 1, 1), bottom - top)
        }
        return path
    }
}
