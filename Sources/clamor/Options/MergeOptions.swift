package import Report

/// The options of `clamor merge`, read and checked.
package struct MergeOptions: Sendable, ResultOptions {
    package var directories: [String] = []
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
    package var redactedCommand: [String] = []
}
