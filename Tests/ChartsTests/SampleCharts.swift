import Charts
import Testing

/// A chart of each kind, of a run that anyone can work out by hand.
enum SampleCharts {
    struct Sample: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let svg: @Sendable (Double) -> String

        init(_ name: String, _ svg: @escaping @Sendable (Double) -> String) {
            self.testDescription = name
            self.svg = svg
        }
    }

    static let all = [
        Sample("rates") { Self.rates().svg(width: $0) },
        Sample("errors") { Self.errors().svg(width: $0) },
        Sample("heat") { Self.heat().svg(width: $0) },
        Sample("percentiles") { Self.percentiles().svg(width: $0) },
        Sample("phases") { Self.phases().svg(width: $0) },
        Sample("comparison") { Self.comparison().svg(width: $0) },
        Sample("capacity") { Self.capacity().svg(width: $0) },
        Sample("sparkline") { Self.sparkline().svg(width: $0 / 8) },
    ]

    /// Five seconds of connecting, a ramp, a stall in second 30 of the load, and a drain.
    static func frame(hasHeads: Bool = true) -> TimeFrame {
        var frame = TimeFrame(
            begins: (0..<65).map { Double($0) - 5 },
            lengths: Array(repeating: 1, count: 65),
            bands: [
                .init("connect", begin: -5, end: 0, isHatched: true),
                .init("ramp", begin: 0, end: 10),
                .init("steady", begin: 10, end: 50),
                .init("storm", begin: 50, end: 57),
                .init("drain", begin: 57, end: 60, isHatched: true),
            ],
            marks: [
                .init(1, second: 30, text: "nothing was acknowledged for 1 s"),
                .init(2, second: 31, text: "first error"),
                .init(3, second: 50, text: "200 clients left"),
            ]
        )
        frame.hasHeads = hasHeads
        return frame
    }

    static func rates() -> TimePanel {
        let offered = (0..<65).map { $0 < 5 ? .nan : min(Double($0 - 4) * 100, 1000) }
        let acknowledged = offered.enumerated().map { $0 == 35 ? 0 : $1 - Double($0 * 7 % 13) }
        return TimePanel(
            "rates",
            frame: self.frame(),
            unit: .count("messages/s"),
            series: [
                .init("offered", style: ChartStyle(0, isDashed: true), values: offered),
                .init("acknowledged", style: ChartStyle(1), values: acknowledged),
            ],
            hasTimeLabels: false
        )
    }

    static func errors() -> TimePanel {
        TimePanel(
            "errors",
            frame: self.frame(hasHeads: false),
            unit: .count("1/s"),
            series: [.init("timeout", style: ChartStyle(3), kind: .bars, values: (0..<65).map { $0 == 36 ? 12 : 0 })],
            height: 60
        )
    }

    static func heat() -> HeatMap {
        var cells = HeatMap.Cells(intervals: 65)
        var p50: [Double] = []
        var p99: [Double] = []
        for interval in 0..<65 {
            guard interval >= 5 else {
                p50.append(.nan)
                p99.append(.nan)
                continue
            }
            let middle = interval == 35 ? 1.2 : 0.002 + Double(interval % 7) * 0.000_1
            for step in 0..<12 {
                cells.add(middle * (1 + Double(step) / 4), count: 1 << UInt64(12 - step), interval: interval)
            }
            p50.append(middle)
            p99.append(middle * 2.5)
        }
        return HeatMap(
            "ack latency",
            frame: self.frame(hasHeads: false),
            cells: cells,
            lines: [
                .init("p50", style: ChartStyle(2), values: p50),
                .init("p99", style: ChartStyle(2, isDashed: true), values: p99),
            ],
            objective: ChartObjective(0.05, label: "p99 < 50 ms")
        )
    }

    static func percentiles() -> PercentilePlot {
        let shares = [0, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.99999, 1]
        let points = shares.enumerated().map {
            PercentilePlot.Point(share: $1, value: 0.001 * Double($0 * $0 + 1))
        }
        return PercentilePlot(
            "ack latency",
            series: [
                .init("response", style: ChartStyle(2), count: 120_000, points: points),
                .init(
                    "service",
                    style: ChartStyle(2, isDashed: true),
                    count: 3000,
                    points: points.map {
                        .init(share: $0.share, value: $0.value / 2)
                    }
                ),
            ],
            objective: ChartObjective(0.05, label: "p99 < 50 ms")
        )
    }

    static func phases() -> DotRows {
        DotRows(
            "connect phases",
            unit: .duration,
            scaling: .log,
            kinds: [.init("p50", style: ChartStyle(5)), .init("p99", style: ChartStyle(5), shape: .square)],
            rows: [
                .init("TCP", dots: [.init(0.000_2, kind: 0), .init(0.001_5, kind: 1)]),
                .init("TLS", dots: [.init(0.004, kind: 0), .init(0.03, kind: 1)]),
                .init("CONNECT", dots: [.init(0.001, kind: 0), .init(0.2, kind: 1)]),
            ]
        )
    }

    static func comparison() -> DotRows {
        var rows = DotRows(
            "difference to the baseline",
            unit: .share,
            scaling: .linear,
            kinds: [.init("A", style: ChartStyle(0)), .init("B", style: ChartStyle(1), shape: .square)],
            rows: [
                .init(
                    "ack p99",
                    dots: [-0.01, 0, 0.01].map { .init($0, kind: 0) } + [0.1, 0.12, 0.13].map { .init($0, kind: 1) },
                    bar: .init(low: 0.09, high: 0.14, middle: 0.117, verdict: "worse", text: "9 % to 14 % slower"),
                    note: "+11.7 % worse"
                )
            ],
            objective: ChartObjective(0, label: "no difference")
        )
        rows.hasLanes = true
        return rows
    }

    static func capacity() -> Curve {
        let steps: [(Double, Double, ChartShape)] = [
            (1000, 0.001, .circle), (2000, 0.0012, .circle), (4000, 0.002, .circle), (8000, 0.02, .circle),
            (10_000, 0.09, .cross), (16_000, 0.3, .cross),
        ]
        return Curve(
            "load and latency",
            x: .init("offered", unit: .count("messages/s")),
            y: .init("ack p99", unit: .duration, scaling: .log),
            series: [
                .init("p99", style: ChartStyle(2), points: steps.map { .init(x: $0.0, y: $0.1, shape: $0.2) })
            ],
            rules: [.init(4000, label: "held 4,000/s"), .init(8000, end: 10_000, label: "8,000 to 10,000/s")],
            shapes: [(.circle, "held"), (.cross, "broken")],
            objective: ChartObjective(0.05, label: "p99 < 50 ms")
        )
    }

    static func sparkline() -> Sparkline {
        Sparkline(
            "ack p99 over time",
            style: ChartStyle(2),
            values: (0..<60).map { second -> Double in
                if second == 20 { return .nan }
                return second == 40 ? 9 : 2 + Double(second % 5) / 10
            },
            objective: 5
        )
    }
}
