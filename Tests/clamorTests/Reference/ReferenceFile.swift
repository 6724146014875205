import clamor

/// A page or a schema that is made from the option table; `make reference` writes them.
struct ReferenceFile: Sendable {
    /// Below the root of the repository.
    let path: String
    let text: String

    static let all = Self.made

    /// The same from the table as it is now.
    static var made: [Self] {
        [
            Self(path: "Sources/clamor/Clamor.docc/Options.md", text: OptionReference.text),
            Self(path: "Sources/clamor/Clamor.docc/ScenarioKeys.md", text: KeyReference.text),
            Self(path: "results/schema/scenario.schema.json", text: ScenarioSchema.text),
        ]
    }
}

extension CommandName {
    /// The keys of the scenario groups that do what the command does, in dotted form.
    var groupKeyPaths: [String] { self.groupKeys.map(\.key) }
}
