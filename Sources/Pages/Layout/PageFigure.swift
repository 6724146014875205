import Charts

/// A chart in three widths, of which the style sheet shows one, so that labels never shrink below their size.
package enum PageFigure {
    /// The classes of the style sheet, and widths in CSS pixels: a window of 1,000, paper or a tablet, a phone of 320.
    package static let widths = [("wide", 960.0), ("medium", 600.0), ("narrow", 296.0)]

    /// - Parameters:
    ///   - name: the key of the chart's series in ``PageData``; absent for charts without exact values.
    ///   - caption: plain words below the chart.
    ///   - hue: of the cells of a heat map; absent is that of acknowledgements.
    ///   - chart: makes the SVG of one width.
    /// - Returns: an element `figure`.
    package static func html(
        _ name: String? = nil,
        caption: String? = nil,
        hue: Int? = nil,
        chart: (Double) -> String
    ) -> String {
        let key = name.map { " data-panel=\"\(escapedMarkup($0))\"" } ?? ""
        let words = caption.map { "<figcaption>\(escapedMarkup($0))</figcaption>" } ?? ""
        let charts = self.widths.map { "<div class=\"\($0)\">\(chart($1))</div>" }
        return "<figure class=\"chart-box\(hue.map { " hue\($0)" } ?? "")\"\(key)>\(charts.joined())\(words)</figure>\n"
    }

    /// A folded part within a section, such as the table behind a chart.
    package static func folded(_ title: String, isOpen: Bool = false, html: String) -> String {
        guard !html.isEmpty else { return "" }
        return "<details class=\"part\"\(isOpen ? " open" : "")><summary>\(escapedMarkup(title))</summary>\n"
            + "\(html)</details>\n"
    }

    /// Names and values, such as key figures.
    package static func facts(_ facts: [(name: String, value: String)]) -> String {
        guard !facts.isEmpty else { return "" }
        let rows = facts.map {
            "<div><dt>\(escapedMarkup($0.name))</dt><dd>\(escapedMarkup($0.value))</dd></div>\n"
        }
        return "<dl class=\"facts\">\n\(rows.joined())</dl>\n"
    }

    /// One hue a quantity, on every chart.
    package enum Hue {
        package static let offered = 0
        package static let acknowledged = 1
        package static let delivered = 2
        package static let errors = 3
        package static let disconnects = 4
        package static let generator = 5
        package static let server = 6
        package static let connections = 7
    }
}
