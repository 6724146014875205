package import Report

/// The options of `clamor compare`, read and checked.
package struct CompareOptions: Sendable {
    package var base: [String] = []
    package var new: [String] = []
    /// `nil`: the usual.
    package var limits: [RegressionLimit]?
    package var noise: String?
    package var allowed: Set<Comparability.Kind> = []
    package var files = ReportFileOptions()
    /// Where `compare.json` and `compare.md` are left too.
    package var directory: String?
    package var showsAll = false
    /// A regression between two single runs fails too.
    package var isStrict = false
    package var json = false
    package var quiet = false
}

/// Files for the programs around a run.
package struct ReportFileOptions: Hashable, Sendable {
    /// Replaced.
    package var junit: String?
    /// Added to.
    package var markdown: String?
    /// Appended to if possible.
    ///
    /// It comes from the environment, not from the command line, so a failure is no error.
    package var inherited: String?
    /// Replaced: a page of what `report` and `compare` show.
    package var html: String?
    /// Whether a result directory gets a page.
    package var writesPage = true
}
