struct LegendKey {
    enum Swatch {
        case line, bars
        /// The levels of a heat map, from few to many.
        case heat
        case shape(ChartShape)
    }

    var name: String
    var classes: String
    var swatch: Swatch
    /// The place of the series, which a script hides and shows.
    var series: Int?
}

extension Canvas {
    /// Writes name and unit, and the legend beside them or below, and moves the plot down accordingly.
    ///
    /// Entries without a name are left out.
    mutating func header(_ name: String, unit: String, keys: [LegendKey]) {
        let title = unit.isEmpty ? name : name.isEmpty ? unit : "\(name), \(unit)"
        self.fitted(title, x: 0, y: 12, width: self.width / TextWidth.bold, class: "title", size: 12)
        let shown = keys.filter { !$0.name.isEmpty }
        var x = min(TextWidth.of(title, size: 12) * TextWidth.bold, self.width) + 16
        var y = 12.0
        let longest = max(min(self.width * 0.45, 220), 60)
        for (place, key) in shown.enumerated() {
            let text = TextWidth.fitted(key.name, width: longest)
            let length = 20 + TextWidth.of(text)
            if x + length > self.width {
                x = 0
                y += Self.line
            }
            // Three lines say what there is; more would push the data away.
            let rest = shown.count - place
            let isLastOfLine = x + length + 14 + 60 > self.width
            if y > 12 + 2 * Self.line || (y > 12 + Self.line && isLastOfLine && rest > 1) {
                self.text("+\(rest) more", x: x, y: y, class: "tick")
                break
            }
            self.key(key, text: text, x: x, y: y)
            x += length + 14
        }
        self.top = y + 10
    }

    private mutating func key(_ key: LegendKey, text: String, x: Double, y: Double) {
        let series = key.series.map { " data-series=\"\($0)\"" } ?? ""
        self.add("<g class=\"key\"\(series)>")
        if text != key.name { self.add("<title>\(escapedMarkup(key.name))</title>") }
        switch key.swatch {
        case .line: self.segment(x, y - 4, to: (x + 16, y - 4), class: "line \(key.classes)")
        case .bars: self.rectangle(x + 3, y - 9, 10, 10, class: "bars \(key.classes)")
        case .heat:
            for level in 1...HeatGrid.levels {
                let (begin, end) = (x + Double(level - 1) * 2.2, x + Double(level) * 2.2)
                let width = " stroke-width=\"10\""
                self.segment(begin, y - 4, to: (end, y - 4), class: "h\(level)", attributes: width)
            }
        case .shape(let shape):
            self.add(shape.markup(x: x + 8, y: y - 4, classes: key.classes))
        }
        self.text(text, x: x + 20, y: y, class: "keyname")
        self.add("</g>")
    }
}

extension ChartShape {
    /// A point, about 8 pixels wide; `title` is shown by the pointer.
    func markup(x: Double, y: Double, classes: String, title: String? = nil) -> String {
        let names = "dot \(self.rawValue)\(classes.isEmpty ? "" : " " + classes)"
        let title = title.map { "<title>\(escapedMarkup($0))</title>" } ?? ""
        var path = PathText()
        switch self {
        case .circle, .ring:
            let place = "cx=\"\(NumberText.coordinate(x))\" cy=\"\(NumberText.coordinate(y))\" r=\"4\""
            return title.isEmpty
                ? "<circle class=\"\(names)\" \(place)/>" : "<circle class=\"\(names)\" \(place)>\(title)</circle>"
        case .cross:
            path.move(x - 4, y - 4)
            path.line(x + 4, y + 4)
            path.move(x + 4, y - 4)
            path.line(x - 4, y + 4)
        case .square: path.rectangle(x - 3.5, y - 3.5, 7, 7)
        case .triangle:
            path.move(x, y - 4.5)
            path.line(x + 4.5, y + 3.5)
            path.line(x - 4.5, y + 3.5)
            path.close()
        case .diamond:
            path.move(x, y - 5)
            path.line(x + 5, y)
            path.line(x, y + 5)
            path.line(x - 5, y)
            path.close()
        }
        return title.isEmpty
            ? "<path class=\"\(names)\" d=\"\(path.text)\"/>"
            : "<path class=\"\(names)\" d=\"\(path.text)\">\(title)</path>"
    }
}
