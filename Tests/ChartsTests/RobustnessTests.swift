import Charts
import Foundation
import FoundationXML
import Testing

/// Charts of data that nobody draws on purpose.
@Suite struct RobustnessTests {
    static let strange: [[Double]] = [
        [], [5], [0, 0, 0], [7, 7, 7], [.nan, .nan], [.infinity, -.infinity, 1], [1e308, -1e308, 1e308],
        [.leastNonzeroMagnitude, 1e-300], [-1, -2, -3], [.nan, 3, .nan], [1e-9, 1e9],
    ]

    static func charts(_ values: [Double], name: String) -> [(Double) -> String] {
        let frame = TimeFrame(
            begins: values.indices.map(Double.init),
            lengths: Array(repeating: 1, count: values.count),
            bands: [.init(name, begin: 0, end: 1), .init(name, begin: .nan, end: .infinity, isHatched: true)],
            marks: (0..<30).map { .init($0, second: $0 == 7 ? .nan : 0.5, text: name) }
        )
        let first = values.first ?? .nan
        let objective = ChartObjective(first, label: name)
        let style = ChartStyle(-3, shade: 9)
        let series = [TimePanel.Series(name, style: style, values: values + [1])]
        let points = values.map { PercentilePlot.Point(share: $0, value: $0) }
        let dots = values.map { DotRows.Dot($0, kind: 0) } + [.init(1, kind: 5)]
        let axes = [ChartScaling.linear, .log].map { Curve.Axis(name, unit: .count(name), scaling: $0) }
        var cells = HeatMap.Cells(intervals: values.count)
        for (interval, value) in values.enumerated() { cells.add(value, count: 3, interval: interval) }
        return [ChartScaling.linear, .log].flatMap { scaling -> [(Double) -> String] in
            [
                TimePanel(name, frame: frame, unit: .duration, scaling: scaling, series: series, objective: objective)
                    .svg,
                PercentilePlot(
                    name,
                    scaling: scaling,
                    series: [.init(name, style: style, count: 0, points: points)],
                    objective: objective
                ).svg,
                DotRows(
                    name,
                    unit: .bytes,
                    scaling: scaling,
                    kinds: [.init(name, style: style)],
                    rows: [.init(name, dots: dots, bar: .init(low: first, high: 2, middle: first), note: name)],
                    objective: objective
                ).svg,
            ]
        } + [
            HeatMap(name, frame: frame, cells: cells, lines: series, objective: objective).svg,
            { Sparkline(name, style: style, values: values, objective: first).svg(width: $0, height: 20) },
            Curve(
                name,
                x: axes[0],
                y: axes[1],
                series: [.init(name, style: style, points: values.map { .init(x: $0, y: $0, shape: .ring) })],
                rules: [.init(first, label: name), .init(0, end: first, label: name)],
                shapes: [(.cross, name)],
                objective: objective
            ).svg,
        ]
    }

    @Test("No value traps, and no coordinate is anything but a number", arguments: strange)
    func values(_ values: [Double]) throws {
        for chart in Self.charts(values, name: "latency") {
            for width in [344, 960, 0, .nan, .infinity, -1] as [Double] {
                let text = chart(width)
                #expect(!text.contains("nan") && !text.contains("inf"))
                try Self.parse(text)
            }
        }
    }

    @Test("A name of 200 characters is cut where it does not fit", arguments: [344.0, 960])
    func longNames(width: Double) throws {
        let name = String(repeating: "long name ", count: 20)
        for chart in Self.charts([1, 2, 3], name: name) {
            let text = chart(width)
            // No font of 11 px has letters of less than 5 px on average.
            for piece in try Self.parse(text).pieces { #expect(Double(piece.count) * 5 <= width, "\(piece)") }
        }
    }

    @Test("Markup in a name is text")
    func markup() throws {
        let name = #"<script>alert("1")</script>&'x'"#
        for chart in Self.charts([1, 2, 3], name: name) {
            let text = chart(960)
            #expect(!text.contains("<script"))
            try Self.parse(text)
        }
    }

    @Test("A share that stays at its highest is a line within the frame", arguments: [0.2, 1])
    func fullShare(share: Double) throws {
        let frame = TimeFrame(begins: [0, 1, 2], lengths: [1, 1, 1])
        let series = [TimePanel.Series("host", style: ChartStyle(7), values: [share, share, share])]
        let svg = TimePanel("CPU", frame: frame, unit: .share, series: series, height: 48).svg(width: 960)
        let line = DrawnPath.pieces(try #require(DrawnPath.d(class: "line s7", in: svg)))
        #expect(try #require(line.first?.first).y > DrawnPath.attribute("data-plot", in: svg)[1] + 5)
    }

    @Test("A chart without samples says so")
    func empty() {
        let frame = TimeFrame(begins: [], lengths: [])
        let charts = [
            TimePanel("rate", frame: frame, unit: .duration, series: []).svg(width: 960),
            HeatMap("latency", frame: frame, cells: .init(intervals: 0)).svg(width: 960),
            PercentilePlot("latency", series: []).svg(width: 960),
            DotRows("phases", unit: .duration, scaling: .log, kinds: [], rows: []).svg(width: 960),
            Curve("load", x: .init("x", unit: .share), y: .init("y", unit: .share), series: []).svg(width: 960),
        ]
        for chart in charts { #expect(chart.contains(">no samples</text>")) }
    }

    /// Well-formed XML, and the texts in it.
    @discardableResult
    private static func parse(_ text: String) throws -> Texts {
        let texts = Texts()
        let parser = XMLParser(data: Data(text.utf8))
        parser.delegate = texts
        #expect(parser.parse(), "\(parser.parserError.map(String.init(describing:)) ?? "")")
        return texts
    }
}

/// The texts that are drawn; titles are not.
private final class Texts: NSObject, XMLParserDelegate {
    private(set) var pieces: [String] = []
    private var isText = false

    func parser(
        _ parser: XMLParser,
        didStartElement name: String,
        namespaceURI: String?,
        qualifiedName: String?,
        attributes: [String: String]
    ) {
        self.isText = name == "text"
        if self.isText { self.pieces.append("") }
    }

    func parser(_ parser: XMLParser, foundCharacters text: String) {
        if self.isText { self.pieces[self.pieces.count - 1] += text }
    }

    func parser(_ parser: XMLParser, didEndElement name: String, namespaceURI: String?, qualifiedName: String?) {
        self.isText = false
    }
}
