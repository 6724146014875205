/// A line without axes, for a tile or a cell of a table.
package struct Sparkline: Sendable {
    /// Which end of the values is marked.
    package enum Worst: Sendable {
        case highest, lowest, none
    }

    /// The words for those who do not see it, such as `ack p99 over time`.
    package var name: String
    package var style: ChartStyle
    /// The values at equal distances; NaN is a gap.
    package var values: [Double]
    package var worst: Worst
    package var objective: Double?

    package init(
        _ name: String,
        style: ChartStyle,
        values: [Double],
        worst: Worst = .highest,
        objective: Double? = nil
    ) {
        self.name = name
        self.style = style
        self.values = values
        self.worst = worst
        self.objective = objective
    }

    /// The line as an `svg` element; both lengths are in CSS pixels.
    package func svg(width: Double = 120, height: Double = 28) -> String {
        let width = width.isFinite ? min(max(width, 20), 2000) : 120
        let height = height.isFinite ? min(max(height, 10), 500) : 28
        // Room for the circle of the worst value at every edge.
        let domain = ValueScale.domain(self.values, scaling: .linear, objective: self.objective, hasMargin: false)
        let scale = ValueScale(domain, scaling: .linear, bottom: height - 3, top: 3)
        let step = (width - 6) / Double(max(self.values.count - 1, 1))
        func x(_ place: Int) -> Double { self.values.count == 1 ? width / 2 : 3 + Double(place) * step }
        let points = self.values.enumerated().map { place, value in
            LinePaths.Point(x: x(place), y: scale.shows(value) ? scale.pixel(value) : nil)
        }
        var parts: [String] = []
        if let objective, objective.isFinite, objective <= scale.domain.high * (1 + 1e-9) {
            var line = PathText()
            line.move(0, scale.pixel(objective))
            line.line(width, scale.pixel(objective))
            parts.append("<path class=\"objective\" d=\"\(line.text)\"/>")
        }
        let path = LinePaths(points, left: 0).path(pointWidth: max(step, 4), within: 0...width)
        if !path.isEmpty { parts.append("<path class=\"line \(self.style.classes)\" d=\"\(path.text)\"/>") }
        if let worst = self.worstPlace {
            let (cx, cy) = (NumberText.coordinate(x(worst)), NumberText.coordinate(scale.pixel(self.values[worst])))
            parts.append("<circle class=\"worst\" cx=\"\(cx)\" cy=\"\(cy)\" r=\"2.5\"/>")
        }
        let size = (NumberText.coordinate(width), NumberText.coordinate(height))
        return
            "<svg class=\"chart spark\" xmlns=\"http://www.w3.org/2000/svg\" width=\"\(size.0)\" height=\"\(size.1)\""
            + " viewBox=\"0 0 \(size.0) \(size.1)\" role=\"img\" aria-label=\"\(escapedMarkup(self.name))\""
            + " data-chart=\"spark\">\(parts.joined())</svg>\n"
    }

    private var worstPlace: Int? {
        let places = self.values.indices.filter { self.values[$0].isFinite }
        // Of equal values none is the worst.
        guard places.count == 1 || Set(places.map { self.values[$0] }).count > 1 else { return nil }
        switch self.worst {
        case .none: return nil
        case .highest: return places.max { self.values[$0] < self.values[$1] }
        case .lowest: return places.min { self.values[$0] < self.values[$1] }
        }
    }
}
