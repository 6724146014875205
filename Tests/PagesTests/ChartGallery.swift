import Charts
import Measurement

/// Charts of data that are hard to draw, on one page: wide ones, and narrow ones for a narrow window.
enum ChartGallery {
    static var page: Browser.Page {
        let boxes = zip(Self.charts(928), Self.charts(296)).map { wide, narrow in
            "<figure><div class=\"wide\">\(wide)</div><div class=\"narrow\">\(narrow)</div></figure>"
        }
        let html = """
            <!doctype html><html lang="en"><head><meta charset="utf-8"><title>Charts</title>
            <meta name="viewport" content="width=device-width, initial-scale=1"><style>
            :root { color-scheme: light dark; background: light-dark(#fff, #121212); color: light-dark(#111, #eee) }
            body { font: 15px sans-serif; margin: 12px } figure { margin: 0 0 24px }
            .narrow { display: none } .chart { font: 11px sans-serif; display: block } .chart text { fill: currentColor }
            .line, .bar, .rule, .mark .rule, .dot { stroke: currentColor; fill: none }
            .bars, .box, .dot, .worst { fill: #0072b2 } .mark text { fill: light-dark(#fff, #121212) }
            .mark circle { fill: currentColor }
            [class^=h] { stroke: #0072b2 } .grid, .axis, .objective:not(text) { stroke: #888; fill: none }
            @media (max-width: 1000px) { .wide { display: none } .narrow { display: block } }
            </style></head><body><main><h1>Charts of data that are hard to draw, one below the other</h1>
            <p>Each stands here as in a wide window, and as in a narrow one.</p>
            \(boxes.joined(separator: "\n"))</main></body></html>
            """
        return Browser.Page(name: "charts", html: html)
    }

    private static let longName = String(String(repeating: "group with a long name ", count: 10).prefix(200))

    /// As many intervals, with bands and marks that stand close together.
    private static func frame(_ count: Int, length: Double = 1, bands: Int = 3, marks: [Double] = []) -> TimeFrame {
        let all = Double(count) * length
        let names = ["connect", "settle", "peak", Self.longName, "storm", "drain"]
        return TimeFrame(
            begins: (0..<count).map { Double($0) * length },
            lengths: [Double](repeating: length, count: count),
            bands: (0..<bands).map { (number: Int) -> TimeFrame.Band in
                let begin = all * Double(number) / Double(bands)
                let end = all * Double(number + 1) / Double(bands)
                return TimeFrame.Band(names[number % 6], begin: begin, end: end, isHatched: number == 0)
            },
            marks: marks.enumerated().map { TimeFrame.Mark($0 + 1, second: $1, text: "event \($0 + 1)") }
        )
    }

    private static func wave(_ count: Int, _ height: Double) -> [Double] {
        (0..<count).map { (index: Int) -> Double in height * (0.6 + Double((index * 7919) % 101) / 250) }
    }

    private static func panel(
        _ name: String,
        _ frame: TimeFrame,
        _ unit: ChartUnit,
        _ names: [String],
        scaling: ChartScaling = .linear,
        heights: [Double]
    ) -> TimePanel {
        let count = frame.begins.count
        let series = names.enumerated().map { place, name in
            TimePanel.Series(name, style: ChartStyle(place), values: Self.wave(count, heights[place % heights.count]))
        }
        return TimePanel(name, frame: frame, unit: unit, scaling: scaling, series: series)
    }

    private static func charts(_ width: Double) -> [String] {
        Self.panels(width) + Self.latencies(width) + Self.others(width)
    }

    private static func panels(_ width: Double) -> [String] {
        [
            Self.panel("rates", Self.frame(1), .count("messages/s"), ["offered"], heights: [1]).svg(width: width),
            Self.panel("rates", Self.frame(60), .count("messages/s"), ["offered", "sent", "received"], heights: [1234])
                .svg(width: width),
            Self.panel(
                "rates of twelve",
                Self.frame(3600, bands: 24, marks: [10, 11, 12, 13, 1800, 1801, 3599]),
                .count("messages/s"),
                (1...12).map { "stream \($0) of a fleet" },
                heights: [12_345_678, 3]
            ).svg(width: width),
            Self.panel(
                "bytes",
                Self.frame(8640, length: 10, bands: 1, marks: Array(stride(from: 0, to: 86_400, by: 4000))),
                .bytes,
                [Self.longName, Self.longName],
                heights: [9e9]
            ).svg(width: width),
            Self.panel("share", Self.frame(3, length: 0.3), .share, ["CPU"], heights: [1e-7]).svg(width: width),
            Self.panel("level", Self.frame(30), .count("clients"), ["up"], heights: [0]).svg(width: width),
            Self.panel("ack", Self.frame(90), .duration, ["p50", "p99"], scaling: .log, heights: [1e-6, 700]).svg(
                width: width
            ),
            {
                let marks = TimePanel.Series("errors", style: ChartStyle(3), kind: .bars, values: [0, 0, 1, 0, 40, 0])
                let objective = ChartObjective(38, label: "error_count{group=\(Self.longName)} < 38")
                let panel = TimePanel(
                    "errors",
                    frame: Self.frame(6),
                    unit: .count(""),
                    series: [marks],
                    objective: objective
                )
                return panel.svg(width: width)
            }(),
        ]
    }

    private static func cells(_ count: Int) -> HeatMap.Cells {
        var cells = HeatMap.Cells(intervals: count)
        for interval in 0..<count {
            for step in 0..<12 {
                let seconds = 0.0008 * Double(step * step + 1)
                cells.add(seconds, count: UInt64(1 + step), interval: interval)
            }
        }
        cells.add(9, count: 1, interval: count / 2)
        return cells
    }

    private static func latencies(_ width: Double) -> [String] {
        [1, 45, 3600].map { count in
            let frame = Self.frame(count, marks: [Double(count) / 2])
            let line = TimePanel.Series("p99", style: ChartStyle(1), values: Self.wave(count, 0.02))
            let objective = ChartObjective(0.05, label: "p99 < 50 ms")
            return HeatMap("latency", frame: frame, cells: Self.cells(count), lines: [line], objective: objective).svg(
                width: width
            )
        }
    }

    private static func others(_ width: Double) -> [String] {
        [
            PercentilePlot(
                "percentiles",
                series: ["QoS 1 response", "QoS 1 service", Self.longName].enumerated().map { place, name in
                    let points = [0, 0.5, 0.9, 0.99, 0.999, 0.9999, 1].enumerated().map { step, share in
                        PercentilePlot.Point(share: share, value: 1e-5 * Double((step * step * step + 1) * (place + 1)))
                    }
                    return PercentilePlot.Series(
                        name,
                        style: ChartStyle(1, isDashed: place == 1),
                        count: 54_321,
                        points: points
                    )
                },
                objective: ChartObjective(0.05, label: "p99 < 50 ms")
            ).svg(width: width),
            PercentilePlot(
                "percentiles of one",
                series: [.init("one", style: ChartStyle(1), count: 1, points: [.init(share: 1, value: 0.0012)])]
            ).svg(width: width),
            DotRows(
                "connect phases",
                unit: .duration,
                scaling: .log,
                kinds: [.init("p50", style: ChartStyle(1)), .init("p99", style: ChartStyle(2), shape: .diamond)],
                rows: ["tcp", "session", Self.longName, "total"].enumerated().map { place, name in
                    let dots = [DotRows.Dot(1e-6 * Double(place + 1), kind: 0), .init(900, kind: 1, text: "900 s")]
                    let bar = DotRows.Bar(low: 1e-5, high: 10, middle: 0.1, verdict: "+12.3 %", text: "worse")
                    return DotRows.Row(
                        name,
                        dots: dots,
                        bar: place == 1 ? bar : nil,
                        note: place == 2 ? "n = 12,345" : nil
                    )
                }
            ).svg(width: width),
            Curve(
                "p99 by load",
                x: .init("offered", unit: .count("messages/s")),
                y: .init("p99", unit: .duration, scaling: .log),
                series: [
                    .init(
                        "steps",
                        style: ChartStyle(1),
                        points: (1...8).map { step in
                            let shape: ChartShape = step > 6 ? .cross : .circle
                            let value = step > 6 ? 2.0 : 0.001
                            return Curve.Point(
                                x: 5000 + 100 * Double(step),
                                y: value,
                                shape: shape,
                                text: "step \(step)"
                            )
                        },
                        hasLine: true,
                        hasPoints: true
                    )
                ],
                rules: [.init(5620, label: "held"), .init(5630, label: "capacity"), .init(5640, label: "broke")],
                shapes: [(.circle, "held"), (.cross, "broke")],
                objective: ChartObjective(0.05, label: "p99 < 50 ms")
            ).svg(width: width),
            Sparkline("one value", style: ChartStyle(1), values: [3]).svg(),
            Sparkline("gaps", style: ChartStyle(1), values: [.nan, 3, .nan, 4, 9, .nan]).svg(),
        ]
    }
}
