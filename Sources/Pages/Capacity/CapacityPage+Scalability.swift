import Charts
import Measurement
import Report

extension CapacityPage {
    /// The curve has this many points; more do not show.
    private static let curvePoints = 60

    /// Throughput over the operations in flight, and the Universal Scalability Law that fits it.
    var scalability: PageSection? {
        guard let law = self.record.law else { return nil }
        let measured = self.record.steps.enumerated().compactMap { place, step -> Curve.Point? in
            // The fit left out the steps that have no residual.
            guard place < law.residuals.count, law.residuals[place] != nil, let concurrency = step.concurrency,
                let throughput = step.throughput
            else { return nil }
            return Curve.Point(x: concurrency, y: throughput, text: self.record.line(step))
        }
        guard let most = measured.map(\.x).max(), most > 0 else { return nil }
        let end = min(max(most, law.peakConcurrency ?? 0) * 1.1, most * 3)
        let loads = (1...Self.curvePoints).map { end * Double($0) / Double(Self.curvePoints) }
        // About 95 of 100 measurements lie within two typical residuals.
        func curve(_ factor: Double) -> [Curve.Point] {
            loads.map { Curve.Point(x: $0, y: law.throughput(at: $0) * factor) }
        }
        let spread = 2 * law.deviation
        let grey = ChartStyle(PageFigure.Hue.offered, isDashed: true)
        let style = ChartStyle(PageFigure.Hue.acknowledged)
        var series = [
            Curve.Series("measured", style: style, points: measured, hasLine: false),
            Curve.Series("law", style: ChartStyle(PageFigure.Hue.offered), points: curve(1), hasPoints: false),
        ]
        if spread > 0 {
            series.append(.init("± 2 residuals", style: grey, points: curve(1 + spread), hasPoints: false))
            series.append(.init("", style: grey, points: curve(max(1 - spread, 0)), hasPoints: false))
        }
        let chart = PageFigure.html(
            caption: "Gunther's Universal Scalability Law, fitted to the steps that measured the server. Dashed: two"
                + " typical residuals above and below."
        ) { width in
            Curve(
                "throughput by operations in flight",
                x: .init("in flight", unit: .count("operations")),
                y: .init("done", unit: .count("operations/s")),
                series: series,
                rules: law.peakConcurrency.map { $0 <= end ? [.init($0, label: "peak of the law")] : [] } ?? []
            ).svg(width: width)
        }
        return PageSection(
            folded: "scalability",
            "Scalability",
            summary: "contention \(Words.percent(law.contention)), coherency \(Words.percent(law.coherency))",
            html: chart + PageFigure.facts(self.facts(of: law))
        )
    }

    private func facts(of law: CapacityRecord.Law) -> [(name: String, value: String)] {
        var facts = [
            ("throughput of one in flight", Words.rate(law.rateOfOne)),
            ("contention", Words.percent(law.contention)), ("coherency", Words.percent(law.coherency)),
            ("typical residual", Words.percent(law.deviation)),
        ]
        if let throughput = law.peakThroughput, let concurrency = law.peakConcurrency {
            let margin = throughput * 2 * law.deviation
            let interval = "\(Words.rate(throughput - margin)) … \(Words.rate(throughput + margin))"
            facts.append(("peak", "\(Words.rate(throughput)) at \(Words.significant(concurrency)) in flight"))
            facts.append(("peak, ± 2 residuals", interval))
        } else {
            facts.append(("peak", "none within the law"))
        }
        return facts
    }
}

extension CapacityRecord.Law {
    /// Operations per second with this number of them in flight.
    fileprivate func throughput(at concurrency: Double) -> Double {
        let others = concurrency - 1
        return self.rateOfOne * concurrency / (1 + self.contention * others + self.coherency * concurrency * others)
    }
}
