package import LoadEngine
package import Measurement

/// A message of a segment to the coordinator of its run.
package enum SegmentReport: Codable, Hashable, Sendable {
    case hello(SegmentHello)
    /// The segment is prepared, and knows the coordinator's clock.
    case ready
    /// All its clients are up: its load waits for the others'.
    case settled
    case interval(TimelineInterval)
    /// The messages that its publishers caused and that its subscribers received; sent in the drain.
    case balance(DeliveryBalance, group: Int)
    /// A line of its standard error.
    case line(String)
    /// The request of one exchange of times, in nanoseconds of the segment's clock.
    case echo(sent: Int64)
    /// The segment has ended; its files can be fetched.
    case ended(SegmentEnding)
    /// The will: the segment's connection was lost, and it did not come back in time.
    case lost
}

package struct SegmentHello: Codable, Hashable, Sendable {
    /// The program's version.
    package var version: String
    /// The name of the run; empty if the segment joins any.
    package var run: String
    /// The hash of the schedule.
    package var plan: String
    /// The segment's number, counted from 1.
    package var segment: Int
    package var segments: Int
    /// The host's name, for messages.
    package var host: String
    /// Processes that share the segment.
    package var processes: Int
    /// Of a server watch, which is no segment: a line about each server.
    package var watched: [String]?

    package init(
        version: String,
        run: String,
        plan: String,
        segment: Int,
        segments: Int,
        host: String,
        processes: Int = 1
    ) {
        self.version = version
        self.run = run
        self.plan = plan
        self.segment = segment
        self.segments = segments
        self.host = host
        self.processes = processes
    }
}

package struct SegmentEnding: Codable, Hashable, Sendable {
    /// The exit status of a run alone.
    package var status: Int32
    /// The reason why it has no results.
    package var words: String?
    package var files: [ResultFile]

    package init(status: Int32, words: String? = nil, files: [ResultFile] = []) {
        self.status = status
        self.words = words
        self.files = files
    }
}

package struct ResultFile: Codable, Hashable, Sendable {
    /// The name has no directory.
    package var name: String
    /// The length in bytes.
    package var length: Int64
    /// Hexadecimal.
    package var sha256: String

    package init(name: String, length: Int64, sha256: String) {
        self.name = name
        self.length = length
        self.sha256 = sha256
    }

    /// The files that a merge reads; percentile tables and pages are made anew from them.
    static let names: Set = ["run.json", "metrics.csv", "timeline.csv", "clients.csv", "ledger.csv", "latency.hlog"]

    /// Whether the name is one of the files that a merge reads.
    package var isSafe: Bool { Self.names.contains(self.name) && self.length >= 0 }
}
