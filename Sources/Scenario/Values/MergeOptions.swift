/// The options of `clamor merge`, read and checked.
package struct MergeOptions: Sendable, HasResults {
    package var directories: [String] = []
    package var results = ResultOptions()

    package init() {}
}
