/// The endpoint of a running run, and the servers that it watches.
package struct LiveOptions: Hashable, Sendable, OptionsRoot {
    package static let usual = Self()

    package struct Endpoint: Hashable, Sendable {
        package static let usualHost = "127.0.0.1"
        package static let usualPort = 9464

        package var host = Self.usualHost
        /// 0: a free port.
        package var port = Self.usualPort

        package init(host: String = Self.usualHost, port: Int = Self.usualPort) {
            self.host = host
            self.port = port
        }
    }

    /// A page of metrics to read, and the series to take from it.
    package struct MetricsPage: Hashable, Sendable {
        package var url: String
        /// With `*` and `?`; empty: all.
        package var patterns: [String] = []
    }

    package var endpoint: Endpoint?
    /// Nanoseconds that the endpoint waits for one more request of the final result.
    package var linger: Int64 = 5_000_000_000
    /// Process identifiers or names.
    package var processes: [String] = []
    package var pages: [MetricsPage] = []
    /// Whether a client asks the server for its name and version after the run.
    package var asksServer = true
    /// Whether the server's `$SYS` topics are read.
    package var readsSys = false

    package init() {}

    package var watches: Bool { !self.processes.isEmpty || !self.pages.isEmpty || self.readsSys }
}

/// When the terminal is written to in colour.
package enum ColourOption: String, CaseIterable, Sendable {
    /// On a terminal, unless NO_COLOR is set.
    case auto
    case always
    case never
}
