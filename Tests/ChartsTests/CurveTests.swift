import Charts
import Testing

@Suite("A chart of one value over another")
struct CurveTests {
    @Test("the line goes through the median of the points at one x, and a band from the least to the greatest")
    func repeated() throws {
        let values = [(1, [2.0]), (2, [8, 2, 4]), (3, [4, 6])].flatMap { x, ys in
            ys.map { Curve.Point(x: Double(x), y: $0) }
        }
        let curve = { (points: [Curve.Point]) in
            Curve(
                "load and latency",
                x: .init("offered", unit: .count("")),
                y: .init("p99", unit: .count("")),
                series: [.init("p99", style: ChartStyle(2), points: points)]
            ).svg(width: 960)
        }
        let svg = curve(values)
        let line = DrawnPath.pieces(try #require(DrawnPath.d(class: "line s2", in: svg)))
        let band = DrawnPath.pieces(try #require(DrawnPath.d(class: "area s2", in: svg)))
        #expect(line.map(\.count) == [3] && band.map(\.count) == [6])
        // The height of 1 is that between the medians 4 and 5.
        let (at, edge) = (line[0].map(\.y), band[0].map(\.y))
        let one = at[1] - at[2]
        #expect(one > 0 && abs(at[0] - at[1] - 2 * one) < 0.5)
        let heights = edge.map { ((at[1] - $0) / one).rounded() + 4 }
        #expect(heights == [2, 8, 6, 4, 2, 2])
        #expect(DrawnPath.d(class: "area s2", in: curve([values[0], values[1], values[4]])) == nil)
        #expect(svg.matches(of: #/class="dot circle s2"/#).count == values.count)
    }

    // The points that are near the objective, by their x of 1 to 100; whether its label stands at the left end.
    static let crowds: [([Double], Bool)] = [([1, 2], false), ([99, 100], true), ([1, 99], false)]

    @Test("the label of an objective stands at the end at which fewer points are in its way", arguments: crowds)
    func objectiveLabel(_ near: [Double], _ isLeft: Bool) throws {
        let curve = Curve(
            "load and latency",
            x: .init("offered", unit: .count("messages/s")),
            y: .init("ack p99", unit: .duration),
            // Both ends have two points each, so that only those near the line decide.
            series: [
                .init(
                    "p99",
                    style: ChartStyle(2),
                    points: [1, 2, 99, 100].map { .init(x: $0, y: near.contains($0) ? 0.05 : 0.001) }
                )
            ],
            objective: ChartObjective(0.05, label: "p99 < 50 ms")
        )
        let svg = curve.svg(width: 960)
        let label = try #require(svg.firstRange(of: "<text class=\"objective\""))
        let x = try #require(DrawnPath.attribute("x", in: String(svg[label.lowerBound...])).first)
        #expect((x < 480) == isLeft)
    }
}
