import Ledger
import Measurement

extension LedgerRecord {
    /// Losses in words: `lost 3 (violated 2, dropped 1); first violated: message 42 of ops-3 to device-7; ...`.
    ///
    /// `nil` if nothing was lost, or it is unknown.
    var lossText: String? {
        let lost = (self.lost ?? [:]).filter { $0.value > 0 }
        let causes = Self.inOrder(lost.keys)
        guard !causes.isEmpty else { return nil }
        let parts = causes.map { "\(Self.words($0)) \(Words.count(lost[$0] ?? 0))" }
        let all = causes.count == 1 ? Self.words(causes[0]) : parts.joined(separator: ", ")
        var text = "lost \(Words.count(lost.values.reduce(0, +))) (\(all))"
        let examples = causes.compactMap { cause in
            self.examples?.first { $0.finding == .lost && $0.cause == cause }.flatMap { example in
                example.words.map { (cause, $0) }
            }
        }
        for (cause, words) in examples {
            text += causes.count == 1 ? "; first: \(words)" : "; first \(Self.words(cause)): \(words)"
        }
        return text
    }

    static func inOrder(_ causes: some Collection<String>) -> [String] {
        let known = LossCause.allCases.map(\.rawValue)
        return known.filter { causes.contains($0) } + causes.filter { !known.contains($0) }.sorted()
    }

    /// `server admitted`.
    static func words(_ cause: String) -> String { cause.replacing("-", with: " ") }
}

extension RunRecord {
    /// The losses of each group, under its name in a run of several.
    var lossTexts: [String] {
        guard let groups = self.groups else { return self.ledger.lossText.map { [$0] } ?? [] }
        return groups.compactMap { group in group.ledger.lossText.map { "\(group.name): \($0)" } }
    }
}
