import RunResult

/// The end of a run, as its coordinator or the shell hears of it.
struct SessionEnd {
    let status: ExitStatus
    /// The directory of the results; `nil` if there are none.
    let directory: String?
    /// The reason for that.
    let words: String?

    init(_ status: ExitStatus, directory: String? = nil, words: String? = nil) {
        self.status = status
        self.directory = directory
        self.words = words
    }
}
