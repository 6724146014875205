package import Measurement

/// Name and tags of a run, which plans are compared without.
package enum RunTitle {
    /// Keys of the plan record.
    static let keys = ["name", "tags"]

    /// A plan without its titles.
    static func without(_ plan: [String: JSONValue]) -> [String: JSONValue] {
        plan.filter { !self.keys.contains($0.key) }
    }

    /// The title that all plans have; of lists the elements that are in all.
    static func shared(_ values: [JSONValue?]) -> JSONValue? {
        guard case .array(let first)?? = values.first else {
            return values.dropFirst().allSatisfy { $0 == values.first } ? values.first ?? nil : nil
        }
        let shared = first.filter { element in
            values.allSatisfy { if case .array(let all)? = $0 { all.contains(element) } else { false } }
        }
        return shared.isEmpty ? nil : .array(shared)
    }

    /// The titles of a run, for headings.
    package static func words(_ record: RunRecord) -> [String] {
        self.keys.flatMap { key in
            switch record.plan[key] {
            case .string(let text)?: [text]
            case .array(let tags)?: tags.compactMap { if case .string(let tag) = $0 { tag } else { nil } }
            default: [String]()
            }
        }
    }

    /// The titles that all runs of a side have.
    package static func words(_ runs: [ComparedRun]) -> [String] {
        guard let first = runs.first else { return [] }
        return self.words(first.record).filter { word in runs.allSatisfy { self.words($0.record).contains(word) } }
    }
}
