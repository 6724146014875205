package import Measurement

/// The figures of the single runs that a comparison is made of.
package struct RunFigures: Sendable {
    private let sides: Sides

    package init(_ comparison: Comparison) { self.sides = Sides(comparison.base, comparison.new) }

    /// One value for each run of both sides; absent where a run lacks the figure.
    package func values(_ figure: ComparedFigure) -> (base: [Double?], new: [Double?]) {
        let series = Series(name: figure.name, labels: figure.labels)
        let values = (0..<(self.sides.base.count + self.sides.new.count)).map { run in
            self.sides.value(series, figure.field, run: run)
        }
        return (Array(values.prefix(self.sides.base.count)), Array(values.dropFirst(self.sides.base.count)))
    }

    /// All values of a duration on each side; absent without any.
    package func histograms(_ figure: ComparedFigure) -> (base: Histogram?, new: Histogram?) {
        func joined(_ runs: [ComparedRun]) -> Histogram? {
            let series = Series(name: figure.name, labels: figure.labels)
            var whole = Histogram()
            for run in runs {
                if let histogram = run.series[series]?.duration?.decodedHistogram() { whole.merge(histogram) }
            }
            return whole.count > 0 ? whole : nil
        }
        return (joined(self.sides.base), joined(self.sides.new))
    }
}
