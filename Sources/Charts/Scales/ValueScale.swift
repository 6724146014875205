/// A scale of either kind, as a chart needs it.
struct ValueScale {
    private enum Kind {
        case linear(LinearScale)
        case log(LogScale)
    }

    private let kind: Kind

    /// `bottom` is the pixel of the lowest value, `top` that of the highest.
    init(_ low: Double, _ high: Double, scaling: ChartScaling, bottom: Double, top: Double) {
        switch scaling {
        case .linear: self.kind = .linear(LinearScale(low, high, begin: bottom, end: top))
        case .log: self.kind = .log(LogScale(low, high, begin: bottom, end: top))
        }
    }

    var domain: (low: Double, high: Double) {
        switch self.kind {
        case .linear(let scale): (scale.low, scale.high)
        case .log(let scale): (scale.low, scale.high)
        }
    }

    var name: String {
        switch self.kind {
        case .linear: "linear"
        case .log: "log"
        }
    }

    func pixel(_ value: Double) -> Double {
        switch self.kind {
        case .linear(let scale): scale.pixel(value)
        case .log(let scale): scale.pixel(value)
        }
    }

    /// Whether a value has a place on the scale.
    func shows(_ value: Double) -> Bool {
        guard value.isFinite else { return false }
        return switch self.kind {
        case .linear: true
        case .log: value > 0
        }
    }

    func ticks(_ count: Int) -> [Double] {
        switch self.kind {
        case .linear(let scale): scale.ticks(count)
        case .log(let scale): scale.ticks(count)
        }
    }

    /// The tick labels, and what is written once at the axis.
    func labels(_ ticks: [Double], unit: ChartUnit) -> TickLabels {
        switch self.kind {
        case .linear: TickLabels(ticks, unit: unit)
        case .log: TickLabels(each: ticks, unit: unit)
        }
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
