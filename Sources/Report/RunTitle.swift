import Measurement

/// Name and tags of a run, which plans are compared without.
enum RunTitle {
    /// Keys of the plan record.
    static let keys = ["name", "tags"]

    /// A plan without its titles.
    static func without(_ plan: [String: JSONValue]) -> [String: JSONValue] {
        plan.filter { !self.keys.contains($0.key) }
    }

    /// The titles of a run, for headings.
    static func words(_ record: RunRecord) -> [String] {
        self.keys.flatMap { key in
            switch record.plan[key] {
            case .string(let text)?: [text]
            case .array(let tags)?: tags.compactMap { if case .string(let tag) = $0 { tag } else { nil } }
            default: [String]()
            }
        }
    }

    /// The titles that all runs of a side have.
    static func words(_ runs: [ComparedRun]) -> [String] {
        guard let first = runs.first else { return [] }
        return self.words(first.record).filter { word in runs.allSatisfy { self.words($0.record).contains(word) } }
    }
}
