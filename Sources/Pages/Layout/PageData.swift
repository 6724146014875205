package import Charts

/// The exact values behind charts over time, as JSON for the script.
package struct PageData {
    package struct Series {
        /// The key of the chart, as in ``PageFigure``.
        package var panel: String
        package var name: String
        /// `s` for durations, `%` for shares, `/s` for rates, `` for counts.
        package var unit: String
        /// The look, as in the chart's classes.
        package var style: ChartStyle
        package var values: [Double]

        package init(_ panel: String, _ name: String, unit: String, style: ChartStyle, values: [Double]) {
            self.panel = panel
            self.name = name
            self.unit = unit
            self.style = style
            self.values = values
        }
    }

    /// More values than these are joined interval by interval: about 400 kB.
    private static let mostValues = 80_000

    private let begins: [Double]
    private let lengths: [Double]
    /// The names of phases or stages, with the first interval of each.
    private let stages: [(name: String, first: Int)]
    package var series: [Series] = []

    package init(begins: [Double], lengths: [Double], stages: [String]) {
        self.begins = begins
        self.lengths = lengths
        self.stages = stages.enumerated().filter { $0 == 0 || stages[$0 - 1] != $1 }.map { ($1, $0) }
    }

    /// The text of an element of type `application/json`.
    package var json: String {
        let values = self.begins.count * max(self.series.count, 1)
        let step = max(1, (values + Self.mostValues - 1) / Self.mostValues)
        let places = stride(from: 0, to: self.begins.count, by: step)
        var json = "{\"begin\":[\(places.map { Self.number(self.begins[$0], digits: 6) }.joined(separator: ","))]"
        let lengths = places.map { place in
            let last = min(place + step, self.begins.count) - 1
            return self.begins[last] + self.lengths[last] - self.begins[place]
        }
        json += ",\"length\":[\(lengths.map { Self.number($0, digits: 3) }.joined(separator: ","))]"
        let stages = self.stages.map { "[\($0.first / step),\(Self.string($0.name))]" }
        json += ",\"stages\":[\(stages.joined(separator: ","))],\"series\":["
        json += self.series.map { series in
            let values = places.map { place in
                let part = series.values[place..<min(place + step, series.values.count)].filter(\.isFinite)
                guard !part.isEmpty else { return "null" }
                // Joined intervals have the mean of a rate, and the highest value of other series.
                let value = series.unit == "/s" ? part.reduce(0, +) / Double(part.count) : part.max() ?? .nan
                // Histograms have three significant digits, and ticks of CPU time are hundredths.
                return Self.number(value, digits: ["s", "%"].contains(series.unit) ? 3 : 4)
            }
            return "{\"panel\":\(Self.string(series.panel)),\"name\":\(Self.string(series.name)),"
                + "\"unit\":\(Self.string(series.unit)),\"style\":\(Self.string(series.style.classes)),"
                + "\"values\":[\(values.joined(separator: ","))]}"
        }.joined(separator: ",")
        return json + "]}"
    }

    /// A number of JSON with some significant digits; `null` if it is not finite.
    package static func number(_ value: Double, digits: Int = 4) -> String {
        guard value.isFinite else { return "null" }
        guard value != 0 else { return "0" }
        var scale = 1.0
        var size = value.magnitude
        let limit = (0..<digits).reduce(1.0) { power, _ in power * 10 }
        while size >= limit, scale > 1e-300 {
            size /= 10
            scale /= 10
        }
        while size < limit / 10, scale < 1e300 {
            size *= 10
            scale *= 10
        }
        let rounded = (value * scale).rounded() / scale
        if let whole = Int64(exactly: rounded) { return String(whole) }
        return String(rounded)
    }

    /// A string of JSON within an element `script`, in which `<` would end it.
    private static func string(_ text: String) -> String {
        var escaped = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": escaped += "\\\""
            case "\\": escaped += "\\\\"
            case "<": escaped += "\\u003c"
            case _ where scalar.value < 0x20 || scalar.value == 0x2028 || scalar.value == 0x2029:
                let hex = String(scalar.value, radix: 16)
                escaped += "\\u" + String(repeating: "0", count: 4 - hex.count) + hex
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped + "\""
    }
}
