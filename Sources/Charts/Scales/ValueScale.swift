/// A map of values to pixels with its ticks.
protocol AxisScale {
    var low: Double { get }
    var high: Double { get }

    func pixel(_ value: Double) -> Double
    func ticks(_ count: Int) -> [Double]
}

extension LinearScale: AxisScale {}
extension LogScale: AxisScale {}

/// A scale of either kind, as a chart needs it.
struct ValueScale {
    private let scale: any AxisScale
    private let scaling: ChartScaling

    /// `bottom` is the pixel of the lowest value, `top` that of the highest.
    init(_ low: Double, _ high: Double, scaling: ChartScaling, bottom: Double, top: Double) {
        self.scaling = scaling
        switch scaling {
        case .linear: self.scale = LinearScale(low, high, begin: bottom, end: top)
        case .log: self.scale = LogScale(low, high, begin: bottom, end: top)
        }
    }

    /// A chart without values has a domain all the same.
    init(_ domain: (low: Double, high: Double)?, scaling: ChartScaling, bottom: Double, top: Double) {
        let (low, high) = domain ?? (scaling == .log ? (1e-3, 1) : (0, 1))
        self.init(low, high, scaling: scaling, bottom: bottom, top: top)
    }

    var domain: (low: Double, high: Double) { (self.scale.low, self.scale.high) }
    var name: String { self.scaling == .log ? "log" : "linear" }
    func pixel(_ value: Double) -> Double { self.scale.pixel(value) }

    /// Whether a value has a place on the scale.
    func shows(_ value: Double) -> Bool { value.isFinite && (self.scaling == .linear || value > 0) }
    func ticks(_ count: Int) -> [Double] { self.scale.ticks(count) }

    /// The tick labels, and what is written once at the axis.
    func labels(_ ticks: [Double], unit: ChartUnit) -> TickLabels {
        self.scaling == .log ? TickLabels(each: ticks, unit: unit) : TickLabels(ticks, unit: unit)
    }

    /// The domain that shows all values, and an objective if the values stay readable beside it.
    ///
    /// With `fromZero` a linear scale begins at 0, as all amounts do.
    /// With `hasMargin` no line touches the edge of the plot.
    static func domain(
        _ values: some Sequence<Double>,
        scaling: ChartScaling,
        objective: Double? = nil,
        fromZero: Bool = true,
        hasMargin: Bool = true
    ) -> (low: Double, high: Double)? {
        var low = Double.infinity
        var high = -Double.infinity
        for value in values where value.isFinite && (scaling == .linear || value > 0) {
            low = min(low, value)
            high = max(high, value)
        }
        guard low <= high else { return nil }
        if scaling == .linear, fromZero {
            low = min(low, 0)
            high = max(high, 0)
        }
        if let objective, objective.isFinite, scaling == .linear || objective > 0 {
            // A far objective would press the data into a line; the chart names it at its edge then.
            if scaling == .log || objective <= high * 4 { high = max(high, objective) }
            low = min(low, objective)
        }
        guard hasMargin else { return (low, high) }
        if scaling == .log { return (self.round(low, up: false), self.round(high, up: true)) }
        return (low, fromZero ? min(high * 1.05, .greatestFiniteMagnitude) : high)
    }

    /// The next of 1, 2 and 5 times a power of ten.
    private static func round(_ value: Double, up: Bool) -> Double {
        let power = Logarithm.pow10(Int(Logarithm.log10(value).rounded(.down)))
        guard power > 0, power.isFinite else { return value }
        let steps = [1.0, 2, 5, 10].map { $0 * power }
        let rounded = up ? steps.first { $0 >= value * (1 - 1e-9) } : steps.last { $0 <= value * (1 + 1e-9) }
        return rounded ?? value
    }
}
