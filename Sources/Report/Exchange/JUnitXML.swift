package import Measurement

/// Results as build servers read them: the `testsuites` of JUnit.
package struct JUnitXML: Sendable {
    package struct Case: Sendable {
        package enum Outcome: Sendable {
            case passed
            /// `type`: the kind of the failure, if there are several.
            case failed(String, type: String? = nil)
            /// It could not be judged.
            case error(String)
            case skipped(String)
        }

        package var group: String
        package var name: String
        package var outcome: Outcome
        /// Output that is shown in any case.
        package var output: String?

        package init(group: String, name: String, outcome: Outcome, output: String? = nil) {
            self.group = group
            self.name = name
            self.outcome = outcome
            self.output = output
        }
    }

    private let suite: String
    private let seconds: Double?
    private let timestamp: String?
    private let cases: [Case]

    /// One suite with all that was judged.
    ///
    /// `seconds`: how long what was judged took. `timestamp`: when it began, RFC 3339.
    package init(suite: String, seconds: Double? = nil, timestamp: String? = nil, cases: [Case]) {
        self.suite = suite
        self.seconds = seconds
        self.timestamp = timestamp
        self.cases = cases
    }

    package var text: String {
        let counts = self.counts
        var attributes = [("name", self.suite)] + counts
        if let seconds { attributes.append(("time", Words.plain((seconds * 1000).rounded() / 1000))) }
        if let timestamp { attributes.append(("timestamp", String(timestamp.prefix(19)))) }
        var text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        text += "<testsuites\(Self.attributes(counts))>\n"
        text += "  <testsuite\(Self.attributes(attributes))>\n"
        for test in self.cases { text += self.element(test) }
        return text + "  </testsuite>\n</testsuites>\n"
    }

    private var counts: [(String, String)] {
        func count(_ isCounted: (Case.Outcome) -> Bool) -> String {
            String(self.cases.count { isCounted($0.outcome) })
        }
        return [
            ("tests", String(self.cases.count)),
            ("failures", count { if case .failed = $0 { true } else { false } }),
            ("errors", count { if case .error = $0 { true } else { false } }),
            ("skipped", count { if case .skipped = $0 { true } else { false } }),
        ]
    }

    private func element(_ test: Case) -> String {
        var inner = ""
        switch test.outcome {
        case .passed: break
        case .failed(let words, let type): inner += Self.message("failure", words, type: type)
        case .error(let words): inner += Self.message("error", words)
        case .skipped(let words): inner += Self.message("skipped", words)
        }
        if let output = test.output { inner += "      <system-out>\(Self.escaped(output))</system-out>\n" }
        let attributes = Self.attributes([("classname", test.group), ("name", test.name)])
        guard !inner.isEmpty else { return "    <testcase\(attributes)/>\n" }
        return "    <testcase\(attributes)>\n\(inner)    </testcase>\n"
    }

    private static func message(_ element: String, _ words: String, type: String? = nil) -> String {
        let attributes = [("message", words)] + (type.map { [("type", $0)] } ?? [])
        return "      <\(element)\(self.attributes(attributes))/>\n"
    }

    private static func attributes(_ attributes: [(String, String)]) -> String {
        attributes.map { " \($0.0)=\"\(self.escaped($0.1))\"" }.joined()
    }

    /// For text and attributes alike; what XML 1.0 §2.2 has no character for becomes U+FFFD.
    static func escaped(_ text: String) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"": escaped += "&quot;"
            // As they are they would become blanks in an attribute.
            case "\n", "\r", "\t": escaped += "&#\(scalar.value);"
            case "\u{00}"..."\u{1F}", "\u{FFFE}", "\u{FFFF}": escaped += "\u{FFFD}"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }

    /// A test case for each threshold of a run, and one for its verdict.
    ///
    /// `isStrict`: a run that measured the generator, or could not account for every message, failed.
    package init(_ record: RunRecord, isStrict: Bool) {
        let summary = Summary(record)
        let name = summary.commandName
        let losses = record.lossTexts
        let thresholds = record.thresholds.map { result in
            let isOfLoss = (try? Threshold.parse(result.expression))?.isOf([.deliveryLost, .retainedLost]) == true
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

    /// A test case for each figure that was judged.
    package init(_ comparison: Comparison) {
        let cases = comparison.judged.map { figure in
            let words =
                "\(figure.baseText) to \(figure.newText): \(figure.changeText) "
                + "(\(comparison.intervalTitle) \(figure.intervalText)), limit \(figure.limitText ?? "")"
            let isBroken = figure.gate?.isBroken == true
            let isUndecided = figure.gate?.isUndecided == true
            let outcome: Case.Outcome =
                if isUndecided { .skipped("undecided: \(words)") } else if !isBroken {
                    .passed
                } else if comparison.hasFailed { .failed(words) } else {
                    .skipped("\(Comparison.indicative): \(words)")
                }
            return Case(
                group: figure.name,
                name: figure.fullTitle,
                outcome: outcome,
                output: isBroken || isUndecided ? nil : words
            )
        }
        self.init(suite: "clamor compare", cases: cases)
    }
}
