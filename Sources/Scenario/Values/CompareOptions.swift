package import Report

/// The options of `clamor compare`, read and checked.
package struct CompareOptions: Sendable, HasResults, OptionsRoot {
    package static let usual = Self()

    package var base: [String] = []
    package var new: [String] = []
    /// `nil`: the usual.
    package var limits: [RegressionLimit]?
    package var noise: String?
    package var allowed: Set<Comparability.Kind> = []
    /// Where `compare.json` and `compare.md` are left too.
    package var directory: String?
    package var showsAll = false
    /// A strict comparison fails by a regression between two single runs too.
    package var results = ResultOptions()
}
