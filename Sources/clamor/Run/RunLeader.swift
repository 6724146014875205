import LoadEngine
import Measurement
import NIOCore

/// An order to a segment after the start of its run.
enum RunOrder: Hashable, Sendable {
    /// All segments have their clients up.
    case load(at: NIODeadline)
    /// All messages for a group have arrived, in all segments.
    case complete(group: Int)
    /// The run ends before its time.
    case stop(RunStop)
    /// The clock of all segments minus CLOCK_MONOTONIC, in nanoseconds, measured again.
    case clock(Int64)
}

/// Why the leader of a run ends it before its time.
enum RunStop: Hashable, Sendable {
    /// As a signal does: it also ends a drain.
    case signal
    /// Another segment was lost.
    case lost
    /// A threshold was broken on the whole.
    case threshold(String)
}

/// The process that begins a segment's run and knows all segments: a parent on this host, or a coordinator.
protocol RunLeader: Sendable {
    /// Supports one listener.
    var orders: AsyncStream<RunOrder> { get }
    /// Reports that the segment is prepared.
    ///
    /// - Returns: when it begins; `nil` if the run is given up.
    func start() async -> NIODeadline?
    func tell(_ interval: TimelineInterval)
    /// Reports that the load could begin.
    func tellSettled()
    func tell(_ balance: DeliveryBalance, of group: Int)
    /// Reports a problem in words.
    func tell(line: String)
    /// The clock of all segments minus CLOCK_MONOTONIC, in nanoseconds.
    var clockOffset: Int64 { get }
    /// How this segment's clock is corrected; `nil` where that is nothing to tell.
    var clock: ClockRecord? { get }
}

extension RunLeader {
    func tell(line: String) {}
}
