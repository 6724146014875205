package import Measurement

extension JUnitXML {
    /// A test case for each threshold of a run, and one for its verdict.
    ///
    /// `isStrict`: a run that measured the generator, or could not account for every message, failed.
    package init(_ record: RunRecord, isStrict: Bool) {
        let summary = Summary(record)
        let name = summary.commandName
        let losses = record.lossTexts
        let thresholds = record.thresholds.map { result in
            let isOfLoss = (try? Threshold.parse(result.expression))?.name == "delivery_lost"
            let remedy = [result.remedy].compactMap(\.self)
            let words = (["measured: \(result.valueText)"] + remedy + (isOfLoss ? losses : [])).joined(separator: "\n")
            return Case(
                group: name,
                name: result.expression,
                outcome: result.ok ? .passed : .failed(words, type: result.state.rawValue),
                output: result.ok ? words : nil
            )
        }
        self.init(
            suite: name,
            seconds: record.durationSeconds,
            timestamp: record.startedAt,
            cases: [Self.verdict(record, name, isStrict)] + thresholds
        )
    }

    private static func verdict(_ record: RunRecord, _ name: String, _ isStrict: Bool) -> Case {
        guard let verdict = record.verdict else {
            return Case(group: name, name: "verdict", outcome: .error("the run is not finished"))
        }
        let reasons = verdict.reasons.map(\.line)
        let words = ([verdict.state.rawValue] + reasons).joined(separator: "\n")
        switch verdict.state {
        case .valid: return Case(group: name, name: "verdict", outcome: .passed)
        case .aborted: return Case(group: name, name: "verdict", outcome: .error(words))
        case .unreconciled, .generatorLimited:
            let outcome: Case.Outcome = isStrict ? .failed(words) : .passed
            return Case(group: name, name: "verdict", outcome: outcome, output: isStrict ? nil : words)
        }
    }
}
