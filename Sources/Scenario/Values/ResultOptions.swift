package import Report

/// Options that an entry of the option table can write to.
package protocol OptionsRoot: Sendable {
    static var usual: Self { get }
}

/// Where the figures of a command go, and how it judges them.
package struct ResultOptions: Hashable, Sendable, OptionsRoot {
    package static let usual = Self()

    package var thresholds: [String] = []
    package var outputDirectory: String?
    package var files = ReportFileOptions()
    package var json = false
    package var quiet = false
    /// As if standard output were no terminal.
    package var isPlain = false
    package var colour = ColourOption.auto
    package var summary = Summary.Detail.compact
    package var strict = false
    /// The command as typed, with every secret replaced by `***`; for `run.json`.
    package var redactedCommand: [String] = []

    package init() {}
}

/// The options of a command with results: those of the results, under the same names, and its own.
@dynamicMemberLookup
package protocol HasResults {
    var results: ResultOptions { get set }
}

extension HasResults {
    package subscript<Value>(dynamicMember path: WritableKeyPath<ResultOptions, Value>) -> Value {
        get { self.results[keyPath: path] }
        set { self.results[keyPath: path] = newValue }
    }
}

/// Files for the programs around a run.
package struct ReportFileOptions: Hashable, Sendable, OptionsRoot {
    package static let usual = Self()

    /// Replaced.
    package var junit: String?
    /// Added to.
    package var markdown: String?
    /// Appended to if possible.
    ///
    /// It comes from the environment, not from the command line, so a failure is no error.
    package var inherited: String?
    /// Added to: a directory with a file for each run.
    package var history: String?
    /// Replaced: a page of what `report`, `compare` and `trend` show.
    package var html: String?
    /// Whether a result directory gets a page.
    package var writesPage = true

    package init() {}
}
