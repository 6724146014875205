import Charts
import Testing

@Suite struct HeatMapTests {
    /// An hour of latencies around 2 ms, noisy in each cell.
    private func cells(seconds: Int = 3600) -> HeatMap.Cells {
        var cells = HeatMap.Cells(intervals: seconds)
        for second in 0..<seconds {
            for step in 0..<40 {
                let count = UInt64(1 + (second &* 7919 &+ step &* 104_729) % 97)
                cells.add(0.001 * (1 + Double(step) / 5), count: count, interval: second)
            }
        }
        return cells
    }

    private func frame(_ seconds: Int = 3600) -> TimeFrame {
        TimeFrame(begins: (0..<seconds).map(Double.init), lengths: Array(repeating: 1, count: seconds))
    }

    @Test("An hour of noise is below 60 kB, wide and narrow", arguments: [960.0, 344])
    func size(width: Double) {
        let lines = ["p50", "p99"].map { name in
            TimePanel.Series(name, style: ChartStyle(2), values: (0..<3600).map { 0.002 + Double($0 % 50) * 1e-4 })
        }
        let svg = HeatMap("ack latency", frame: self.frame(), cells: self.cells(), lines: lines).svg(width: width)
        #expect(svg.utf8.count <= 60_000)
        #expect(svg.contains("class=\"h7\""))
    }

    @Test("One slow message in an hour is a cell of its own, at its second")
    func outlier() throws {
        var cells = self.cells()
        cells.add(9.5, count: 1, interval: 2500)
        let svg = HeatMap("ack latency", frame: self.frame(), cells: cells).svg(width: 960)
        let plot = DrawnPath.attribute("data-plot", in: svg)
        let lowest = DrawnPath.pieces(try #require(DrawnPath.d(class: "h1", in: svg)))
        let top = try #require(lowest.min { $0[0].y < $1[0].y })
        #expect(top[0].y < plot[1] + plot[3] / 20)
        let wanted = plot[0] + 2500.5 / 3600 * plot[2]
        #expect(top[0].x <= wanted && wanted <= top[1].x)
        #expect(top[1].x - top[0].x <= 2)
    }

    @Test("Equal cells side by side are one stroke")
    func merged() throws {
        var cells = HeatMap.Cells(intervals: 100)
        for interval in 0..<100 where interval != 50 { cells.add(0.001, count: 8, interval: interval) }
        let svg = HeatMap("ack latency", frame: self.frame(100), cells: cells).svg(width: 960)
        let pieces = DrawnPath.pieces(try #require(DrawnPath.d(class: "h7", in: svg)))
        #expect(pieces.count == 2)
    }

    @Test("The level of a cell follows the logarithm of its count")
    func levels() {
        var cells = HeatMap.Cells(intervals: 7)
        for interval in 0..<7 {
            cells.add(0.001, count: (0..<interval).reduce(1) { count, _ in count * 10 }, interval: interval)
        }
        let svg = HeatMap("ack latency", frame: self.frame(7), cells: cells).svg(width: 960)
        // 10⁰ to 10⁶ are seven counts; 10⁶ alone is the highest level.
        let drawn = (1...7).filter { DrawnPath.d(class: "h\($0)", in: svg) != nil }
        #expect(drawn == [1, 2, 3, 4, 5, 6, 7])
    }

    /// Steps of a timer in µs, the longest time in ms, and rows of a decade: the finest with which no row is left out.
    static let steps: [(step: Int, longest: Int, perDecade: Int)] = [(10, 5, 20), (250, 5, 10), (100, 9999, 10)]

    @Test("Times in steps leave no row empty, and no row is lower than two pixels", arguments: steps)
    func stripes(step: Int, longest: Int, perDecade: Int) throws {
        var cells = HeatMap.Cells(intervals: 4)
        for interval in 0..<4 {
            for time in stride(from: 1000, through: longest * 1000, by: step) {
                cells.add(Double(time) / 1e6, count: 1, interval: interval)
            }
        }
        let svg = HeatMap("ack latency", frame: self.frame(4), cells: cells).svg(width: 960)
        let drawn = (1...7).compactMap { DrawnPath.d(class: "h\($0)", in: svg) }.flatMap(DrawnPath.pieces)
        let rows = Set(drawn.map { $0[0].y }).sorted()
        let height = try #require(zip(rows, rows.dropFirst()).map { $1 - $0 }.max())
        let plot = DrawnPath.attribute("data-plot", in: svg)
        let domain = DrawnPath.attribute("data-y", in: svg)
        #expect(height >= 2 && rows.last.map { $0 - rows[0] } == height * Double(rows.count - 1))
        let decades = plot[3] / height / Double(perDecade)
        #expect(abs(domain[0] * pow10(decades) / domain[1] - 1) < 0.01)
    }

    /// The power of a number of decades.
    private func pow10(_ decades: Double) -> Double {
        (0..<Int((decades * 20).rounded())).reduce(1) { power, _ in power * 1.122_018_454 }
    }

    @Test("A value that is no duration is in the lowest or the highest cell, and never traps")
    func strange() {
        var cells = HeatMap.Cells(intervals: 2)
        for value in [-1, 0, .infinity, .nan, 1e-300, 1e300] { cells.add(value, count: .max, interval: 0) }
        cells.add(1, count: 1, interval: -1)
        cells.add(1, count: 1, interval: 2)
        #expect(HeatMap("", frame: self.frame(2), cells: cells).svg(width: 344).hasSuffix("</svg>\n"))
    }
}
