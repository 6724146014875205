/// A message of the coordinator to a segment.
package enum SegmentOrder: Codable, Hashable, Sendable {
    case welcome(SegmentWelcome)
    /// The segment is not one of the run, or its results were not fetched; the reason.
    case refused(String)
    /// Another process is that segment; it may be gone in a moment.
    case taken(String)
    /// The run begins, in nanoseconds of the coordinator's clock.
    case start(at: Int64)
    /// All clients of all segments are up: the load begins then.
    case load(at: Int64)
    /// All messages for a group have arrived.
    case complete(group: Int)
    case stop(SegmentStop)
    /// The common clock minus CLOCK_MONOTONIC, measured again; a process tells it to its children on the same host.
    case clock(Int64)
    /// The answer of one exchange of times; `sent` is the segment's, the rest the coordinator's.
    case echo(sent: Int64, received: Int64, answered: Int64)
    /// The next part of a file, from its byte `offset` on.
    case want(file: String, offset: Int64)
    /// All files have been received.
    case done
}

/// The answer to a segment that joins.
package struct SegmentWelcome: Codable, Hashable, Sendable {
    /// The name of the run, which no other run has.
    package var run: String
    package var seed: UInt64
    /// The identity of the coordinator's clock: a segment with the same one needs no correction.
    package var clock: String?
    /// Seconds between two intervals with histograms.
    package var histogramSeconds: Int
    /// Those of the whole run, which the coordinator judges.
    package var thresholds: [String]

    package init(run: String, seed: UInt64, clock: String?, histogramSeconds: Int = 1, thresholds: [String] = []) {
        self.run = run
        self.seed = seed
        self.clock = clock
        self.histogramSeconds = histogramSeconds
        self.thresholds = thresholds
    }
}

/// The reason why a run ends before its time.
package enum SegmentStop: Codable, Hashable, Sendable {
    /// A signal to the coordinator: a second one ends the drain.
    case ordered
    /// Another segment was lost.
    case lost
    /// A threshold that aborts was broken on the whole.
    case threshold(String)
    /// All segments are done: a watch looks once more, and leaves.
    case over
}
