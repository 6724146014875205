package import Report

/// The options of `clamor compare`, read and checked.
package struct CompareOptions: Sendable, HasResults, OptionsRoot {
    package static let usual = Self()

    package var base: [String] = []
    package var new: [String] = []
    /// `nil`: the usual.
    package var limits: [RegressionLimit]?
    package var allowed: Set<Comparability.Kind> = []
    /// Where `compare.json` and `compare.md` are left too.
    package var directory: String?
    package var showsAll = false
    /// Run N of one side was taken next to run N of the other.
    package var isPaired = false
    /// A strict comparison fails by a regression between two single runs too.
    package var results = ResultOptions()
}

/// The options of `clamor trend`, read and checked.
package struct TrendOptions: Sendable, HasResults, OptionsRoot {
    package static let usual = Self()

    /// Results of runs, or histories.
    package var directories: [String] = []
    /// A change for the worse ends with status 99.
    package var isGate = false
    /// The tag or date from which on the gate looks.
    package var since: String?
    package var otava: String?
    package var results = ResultOptions()
}
