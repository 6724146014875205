/// What `clamor broker` is told.
package struct BrokerOptions: Hashable, Sendable {
    package var host = "127.0.0.1"
    /// 0: any free port, printed as the first line.
    package var port = 1883
    /// The fault flags with their values, one element each, checked: `["--drop", "0.1%"]`.
    package var faults: [String] = []
    /// Started by a run with `-h embedded`: ends with its parent.
    package var isChild = false
    package var quiet = false

    package init() {}
}

/// What `clamor report` is told.
package struct ReportOptions: Hashable, Sendable {
    package var directory: String
    /// Only `run.json`'s text on stdout.
    package var json = false

    package init(directory: String) {
        self.directory = directory
    }
}
