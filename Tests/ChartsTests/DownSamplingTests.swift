import Charts
import Testing

@Suite struct DownSamplingTests {
    private static let seconds = 3600

    private func panel(_ values: [Double], kind: TimePanel.Series.Kind = .line) -> String {
        let begins = values.indices.map(Double.init)
        let frame = TimeFrame(begins: begins, lengths: Array(repeating: 1, count: values.count))
        return TimePanel(
            "rate",
            frame: frame,
            unit: .count("1/s"),
            series: [.init("acknowledged", style: ChartStyle(1), kind: kind, values: values)]
        ).svg(width: 960)
    }

    private func points(_ svg: String) throws -> [[DrawnPath.Point]] {
        DrawnPath.pieces(try #require(DrawnPath.d(class: "line s1", in: svg)))
    }

    @Test("A stall of one second in an hour reaches the base line at its exact place", arguments: [0, 1, 1234, 3599])
    func stall(second: Int) throws {
        var values = (0..<Self.seconds).map { 1000 + Double($0 * 7919 % 50) }
        values[second] = 0
        let svg = self.panel(values)
        let plot = DrawnPath.attribute("data-plot", in: svg)
        let lowest = try #require(try self.points(svg).joined().max { $0.y < $1.y })
        #expect(lowest.y == plot[1] + plot[3])
        let wanted = plot[0] + (Double(second) + 0.5) / Double(Self.seconds) * plot[2]
        #expect(abs(lowest.x - wanted) <= 0.051)
    }

    @Test("A peak of one second in an hour is the highest point, at its exact place")
    func peak() throws {
        var values = (0..<Self.seconds).map { 10 + Double($0 * 7919 % 5) }
        values[2718] = 900
        let svg = self.panel(values)
        let plot = DrawnPath.attribute("data-plot", in: svg)
        let domain = DrawnPath.attribute("data-y", in: svg)
        let highest = try #require(try self.points(svg).joined().min { $0.y < $1.y })
        #expect(abs(highest.x - (plot[0] + 2718.5 / Double(Self.seconds) * plot[2])) <= 0.051)
        #expect(abs(highest.y - (plot[1] + plot[3] * (1 - 900 / domain[1]))) <= 0.051)
    }

    @Test("An hour has two points in each pixel column at most, and stays small")
    func size() throws {
        let svg = self.panel((0..<Self.seconds).map { Double($0 * 7919 % 1000) })
        let points = try self.points(svg).joined()
        let columns = Dictionary(grouping: points) { ($0.x - 56 + 0.001).rounded(.down) }
        // Rounding to a tenth may move a point into the next column.
        #expect(columns.values.allSatisfy { $0.count <= 3 })
        #expect(points.count <= 2 * 888)
        #expect(svg.utf8.count < 30_000)
    }

    @Test("A short run is drawn as it is: a point for each second")
    func short() throws {
        let values = (0..<30).map { Double($0 * 7 % 10) + 1 }
        let pieces = try self.points(self.panel(values))
        #expect(pieces.map(\.count) == [30])
    }

    @Test("A gap stays a gap, and a second between two gaps is seen")
    func gaps() throws {
        var values: [Double] = Array(repeating: 5, count: 20)
        for gap in [4, 5, 10, 12] { values[gap] = .nan }
        // A line on one level is one stroke from its first second to its last.
        let pieces = try self.points(self.panel(values.enumerated().map { $1 + Double($0 % 2) }))
        #expect(pieces.map(\.count) == [4, 4, 2, 7])
    }

    @Test("One second without a value in an hour ends the line")
    func narrowGap() throws {
        var values = (0..<Self.seconds).map { Double($0 % 3) + 1 }
        values[1800] = .nan
        #expect(try self.points(self.panel(values)).count == 2)
    }

    @Test("Seconds that a time line does not have are a gap")
    func missingIntervals() throws {
        let frame = TimeFrame(begins: [0, 1, 2, 7, 8, 9], lengths: Array(repeating: 1, count: 6))
        let panel = TimePanel(
            "rate",
            frame: frame,
            unit: .count("1/s"),
            series: [.init("acknowledged", style: ChartStyle(1), values: [1, 2, 3, 4, 5, 6])]
        )
        #expect(try self.points(panel.svg(width: 960)).map(\.count) == [3, 3])
    }

    @Test("A single error in an hour is a bar of its own height")
    func bar() throws {
        let svg = self.panel((0..<Self.seconds).map { $0 == 1800 ? 4 : 0 }, kind: .bars)
        let bars = DrawnPath.pieces(try #require(DrawnPath.d(class: "bars s1", in: svg)))
        #expect(bars.count == 1)
        let plot = DrawnPath.attribute("data-plot", in: svg)
        let x = bars[0].map(\.x)
        #expect(abs((x.min() ?? 0) - (plot[0] + plot[2] / 2)) <= 1)
        let height = (bars[0].map(\.y).max() ?? 0) - (bars[0].map(\.y).min() ?? 0)
        #expect(abs(height - plot[3] / 1.05) <= 0.11)
    }
}
