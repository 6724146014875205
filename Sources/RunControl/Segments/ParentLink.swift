package import Coordination
import Foundation
package import Measurement
import Synchronization

/// The process that begins a segment's run and knows all segments: a parent on this host, or a coordinator.
///
/// Times are nanoseconds of the segments' common clock.
package protocol RunLeader: Sendable {
    /// Orders after the start: load, complete, stop, clock. Supports one listener.
    var orders: AsyncStream<SegmentOrder> { get }
    /// Reports that the segment is prepared.
    ///
    /// - Returns: when it begins; `nil` if the run is given up.
    func start() async -> Int64?
    func tell(_ report: SegmentReport)
    /// The clock of all segments minus CLOCK_MONOTONIC, in nanoseconds.
    var clockOffset: Int64 { get }
    /// How this segment's clock is corrected; `nil` where that is nothing to tell.
    var clock: ClockRecord? { get }
}

/// A segment's link to the `clamor` that started it: orders come, and reports go.
///
/// If it ends, the parent is gone, and the run ends as after SIGINT.
final class ParentLink: RunLeader {
    /// The environment of a child that runs by itself, and only sends its intervals.
    static let tellsIntervals = ["CLAMOR_INTERVALS": "1"]

    private let starts: AsyncStream<Int64>
    let orders: AsyncStream<SegmentOrder>
    private let offset: Mutex<Int64>
    var clockOffset: Int64 { self.offset.withLock(\.self) }
    var clock: ClockRecord? { nil }

    /// - Parameters:
    ///   - clockOffset: the common clock minus CLOCK_MONOTONIC.
    ///   - isTold: the parent sends orders.
    init(clockOffset: Int64, isTold: Bool = true) {
        self.offset = Mutex(clockOffset)
        let (starts, start) = AsyncStream<Int64>.makeStream()
        let (orders, order) = AsyncStream<SegmentOrder>.makeStream()
        self.starts = starts
        self.orders = orders
        guard isTold else { return }
        // Reading blocks, so it has its own thread.
        Thread.detachNewThread { [self] in
            var hasStart = false
            while let read: SegmentOrder = MessageSocket.toParent.receive() {
                if case .clock(let offset) = read { self.offset.withLock { $0 = offset } }
                if case .start(let time) = read {
                    hasStart = true
                    start.yield(time)
                } else {
                    order.yield(read)
                }
            }
            start.finish()
            if hasStart { kill(getpid(), SIGINT) }
        }
    }

    /// The link of a child that runs by itself; `nil` if its parent does not want its intervals.
    static func telling(_ environment: [String: String]) -> ParentLink? {
        guard let (name, value) = self.tellsIntervals.first, environment[name] == value else { return nil }
        return ParentLink(clockOffset: 0, isTold: false)
    }

    func start() async -> Int64? {
        self.tell(.ready)
        return await self.starts.first { _ in true }
    }

    func tell(_ report: SegmentReport) { MessageSocket.toParent.send(report) }
}

/// An event among the processes of a run.
package enum SegmentEvent: Sendable {
    /// A segment's report, or a line of its standard error.
    case report(Int, SegmentReport)
    /// The process has exited with a status, or by a signal.
    case ended(Int, status: Int32, isSignal: Bool)
    /// The start that a coordinator gives; `nil` if it gives the run up.
    case start(Int64?)
    case order(SegmentOrder)
    /// SIGINT or SIGTERM to this process.
    case signal
}

/// How a segment of a run is started.
package struct SegmentStart: Sendable {
    package var index: Int
    /// Its command line.
    package var arguments: [String]
    /// The name of the run, which its segments have in common.
    package var run: String
    /// CLOCK_REALTIME less CLOCK_MONOTONIC, for all segments.
    package var realtimeOffset: Int64
    /// Takes its reports, and its end as the last one.
    package var events: @Sendable (SegmentEvent) -> Void
}

/// A segment of a run, as its leader sees it.
package protocol SegmentPeer: AnyObject {
    func tell(_ order: SegmentOrder)
    /// Ends the segment as SIGINT would; before its start it ends at once.
    func giveUp()
    func interrupt()
}

/// One segment as a child process, and the socket to it; see ``ParentLink``.
final class SegmentProcess: SegmentPeer {
    private let process: SelfProcess

    init(_ start: SegmentStart) throws {
        let (index, events) = (start.index, start.events)
        let process = try SelfProcess(
            start.arguments,
            input: .messages,
            errors: .piped,
            environment: ["CLAMOR_RUN": start.run, "CLAMOR_REALTIME_OFFSET": "\(start.realtimeOffset)"]
        )
        self.process = process
        let readers = DispatchGroup()
        readers.enter()
        Thread.detachNewThread {
            while let report: SegmentReport = process.messages?.receive() { events(.report(index, report)) }
            readers.leave()
        }
        readers.enter()
        Thread.detachNewThread {
            for line in SelfProcess.Lines(of: process.errors) { events(.report(index, .line(line))) }
            readers.leave()
        }
        Thread.detachNewThread {
            readers.wait()
            let (status, isSignal) = process.wait()
            events(.ended(index, status: status, isSignal: isSignal))
        }
    }

    package func tell(_ order: SegmentOrder) { self.process.messages?.send(order) }
    package func giveUp() { self.process.messages?.finish() }
    package func interrupt() { self.process.interrupt() }
}
