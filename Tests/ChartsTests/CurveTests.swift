import Charts
import Testing

@Suite("A chart of one value over another")
struct CurveTests {
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
