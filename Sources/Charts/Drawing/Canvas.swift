/// The outer element of a chart, and the rectangle of its data.
///
/// From top to bottom: name and legend, lanes for heads of bands and marks, plot, tick labels, name of the x axis.
struct Canvas {
    static let fontSize = 11.0
    static let line = 16.0

    let width: Double
    var left: Double
    var right: Double
    /// The top of the plot.
    var top = 0.0
    var plotHeight: Double
    /// The space below the plot.
    var bottomMargin = 6.0
    private(set) var added: [String] = []

    var plotWidth: Double { max(self.width - self.left - self.right, 1) }
    var bottom: Double { self.top + self.plotHeight }
    var height: Double { self.bottom + self.bottomMargin }

    /// A width below 120 is 120, one above 10,000 is 10,000.
    init(width: Double, plotHeight: Double) {
        self.width = width.isFinite ? min(max(width, 120), 10_000) : 960
        self.plotHeight = plotHeight.isFinite ? min(max(plotHeight, 20), 2000) : 120
        // The same for all charts of a width, so that one cursor fits the panels of a column.
        self.left = self.width < 480 ? 46 : 56
        self.right = self.width < 480 ? 10 : 16
    }

    mutating func add(_ part: String) { self.added.append(part) }

    mutating func text(
        _ text: String,
        x: Double,
        y: Double,
        class name: String,
        anchor: String = "start",
        size: Double = Self.fontSize
    ) {
        guard !text.isEmpty else { return }
        let anchor = anchor == "start" ? "" : " text-anchor=\"\(anchor)\""
        let size = size == Self.fontSize ? "" : " font-size=\"\(NumberText.coordinate(size))\""
        self.added.append(
            "<text class=\"\(name)\" x=\"\(NumberText.coordinate(x))\" y=\"\(NumberText.coordinate(y))\"\(anchor)\(size)>"
                + "\(escapedMarkup(text))</text>"
        )
    }

    /// A text that may be cut short to fit; the pointer shows all of it then.
    mutating func fitted(
        _ text: String,
        x: Double,
        y: Double,
        width: Double,
        class name: String,
        anchor: String = "start",
        size: Double = Self.fontSize
    ) {
        let fitted = TextWidth.fitted(text, width: width, size: size)
        guard fitted != text, !fitted.isEmpty else {
            return self.text(fitted, x: x, y: y, class: name, anchor: anchor, size: size)
        }
        self.added.append("<g><title>\(escapedMarkup(text))</title>")
        self.text(fitted, x: x, y: y, class: name, anchor: anchor, size: size)
        self.added.append("</g>")
    }

    mutating func path(_ path: PathText, class name: String, attributes: String = "") {
        guard !path.isEmpty else { return }
        self.added.append("<path class=\"\(name)\" d=\"\(path.text)\"\(attributes)/>")
    }

    /// A straight line from one point to another.
    mutating func segment(
        _ x: Double,
        _ y: Double,
        to end: (x: Double, y: Double),
        class name: String,
        attributes: String = ""
    ) {
        var path = PathText()
        path.move(x, y)
        path.line(end.x, end.y)
        self.path(path, class: name, attributes: attributes)
    }

    mutating func rectangle(_ x: Double, _ y: Double, _ width: Double, _ height: Double, class name: String) {
        var path = PathText()
        path.rectangle(x, y, width, height)
        self.path(path, class: name)
    }

    /// Opens the element that holds the data in the coordinates of the chart: a script zooms by its view box.
    ///
    /// It is 2 pixels higher than the plot at both ends, so that a line at an edge is not cut in half.
    mutating func beginPlot() {
        let x = NumberText.coordinate(self.left)
        let y = NumberText.coordinate(self.top - 2)
        let width = NumberText.coordinate(self.plotWidth)
        let height = NumberText.coordinate(self.plotHeight + 4)
        self.add(
            "<svg class=\"plot\" x=\"\(x)\" y=\"\(y)\" width=\"\(width)\" height=\"\(height)\""
                + " viewBox=\"\(x) \(y) \(width) \(height)\" preserveAspectRatio=\"none\">"
        )
    }

    mutating func endPlot() { self.add("</svg>") }

    mutating func empty(_ text: String = "no samples") {
        self.text(
            text,
            x: self.left + self.plotWidth / 2,
            y: self.top + self.plotHeight / 2 + 4,
            class: "empty",
            anchor: "middle"
        )
    }

    /// The whole element.
    ///
    /// `kind` is the value of `data-chart`; each of the further attributes has a space before it.
    func svg(kind: String, label: String, attributes: String) -> String {
        let width = NumberText.coordinate(self.width)
        let height = NumberText.coordinate(self.height)
        let plot = [self.left, self.top, self.plotWidth, self.plotHeight].map { NumberText.coordinate($0) }
        let open =
            "<svg class=\"chart \(kind)\" xmlns=\"http://www.w3.org/2000/svg\" width=\"\(width)\" height=\"\(height)\""
            + " viewBox=\"0 0 \(width) \(height)\" font-size=\"\(NumberText.coordinate(Self.fontSize))\" role=\"img\""
            + " aria-label=\"\(escapedMarkup(label))\" data-chart=\"\(kind)\""
            + " data-plot=\"\(plot.joined(separator: " "))\"\(attributes)>"
        return open + "\n" + self.added.joined(separator: "\n") + "\n</svg>\n"
    }
}
