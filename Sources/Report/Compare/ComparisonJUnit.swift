extension JUnitXML {
    /// A test case for each figure that was judged.
    package init(_ comparison: Comparison) {
        let cases = comparison.judged.map { figure in
            let limit = figure.gate.map { ComparisonText.limit($0, figure.direction) } ?? ""
            let words =
                "\(figure.text(figure.base)) to \(figure.text(figure.new)): \(figure.changeText) "
                + "(95 % interval \(figure.intervalText)), limit \(limit)"
            let isBroken = figure.gate?.isBroken == true
            let outcome: Case.Outcome =
                if !isBroken { .passed } else if comparison.hasFailed { .failed(words) } else {
                    .skipped("\(Comparison.indicative): \(words)")
                }
            return Case(
                group: figure.name,
                name: "\(figure.title) \(figure.field.text)",
                outcome: outcome,
                output: isBroken ? nil : words
            )
        }
        self.init(suite: "clamor compare", cases: cases)
    }
}
