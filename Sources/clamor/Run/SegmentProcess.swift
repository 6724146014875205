import Foundation
import LoadEngine
import Measurement
import NIOCore

/// An event among the processes of a run.
enum SegmentEvent: Sendable {
    /// The segment is prepared.
    case ready(Int)
    case interval(Int, TimelineInterval)
    /// All its clients are up: its load waits for the others'.
    case settled(Int)
    /// In the drain: the messages that its publishers caused, and those that its subscribers received.
    case balance(Int, DeliveryBalance, group: Int)
    /// A line of its standard error.
    case line(Int, String)
    /// The process has exited with a status, or by a signal.
    case ended(Int, status: Int32, isSignal: Bool)
    /// The start that a coordinator gives; `nil` if it gives the run up.
    case start(NIODeadline?)
    /// An order of the coordinator.
    case order(RunOrder)
    /// SIGINT or SIGTERM to this process.
    case signal
}

/// One segment as a child process, and the pipes to it; see ``ParentLink``.
final class SegmentProcess {
    let index: Int
    private let process: SelfProcess

    /// Starts the process; its output arrives as events, its end as the last one.
    init(
        _ index: Int,
        _ arguments: [String],
        run: String,
        realtimeOffset: Int64,
        events: AsyncStream<SegmentEvent>.Continuation
    ) throws {
        self.index = index
        let process = try SelfProcess(
            arguments,
            input: .piped,
            output: .piped,
            errors: .piped,
            environment: ["CLAMOR_RUN": run, "CLAMOR_REALTIME_OFFSET": "\(realtimeOffset)"]
        )
        self.process = process
        let readers = DispatchGroup()
        readers.enter()
        Thread.detachNewThread {
            for line in SelfProcess.Lines(of: process.output) {
                if let event = Self.event(line, of: index) { events.yield(event) }
            }
            readers.leave()
        }
        readers.enter()
        Thread.detachNewThread {
            for line in SelfProcess.Lines(of: process.errors) { events.yield(.line(index, line)) }
            readers.leave()
        }
        Thread.detachNewThread {
            readers.wait()
            let (status, isSignal) = process.wait()
            events.yield(.ended(index, status: status, isSignal: isSignal))
        }
    }

    /// Sends the start in nanoseconds of CLOCK_REALTIME; the second call sends the begin of the load.
    func begin(at start: Int64) { self.process.say("\(start)") }

    /// Sends that all messages for a group have arrived, in all segments.
    func complete(_ group: Int) { self.process.say("complete \(group)") }

    private static func event(_ line: String, of index: Int) -> SegmentEvent? {
        if line == "ready" { return .ready(index) }
        if line == "settled" { return .settled(index) }
        if let (group, balance) = Self.balance(line) { return .balance(index, balance, group: group) }
        return ParentLink.interval(line).map { .interval(index, $0) }
    }

    private static func balance(_ line: String) -> (group: Int, balance: DeliveryBalance)? {
        guard line.hasPrefix("balance ") else { return nil }
        let numbers = line.split(separator: " ").dropFirst().compactMap { Int64($0) }
        guard numbers.count == 4 else { return nil }
        let balance = DeliveryBalance(expected: numbers[1], received: numbers[2], uncertain: numbers[3])
        return (Int(numbers[0]), balance)
    }

    /// Sends that the run ends before its time.
    func stop(_ stop: RunStop) {
        switch stop {
        case .signal: self.process.say("stop")
        case .lost: self.process.say("stop-lost")
        case .threshold(let expression): self.process.say("stop \(expression)")
        }
    }

    /// Sends the common clock minus CLOCK_MONOTONIC.
    func correct(_ clockOffset: Int64) { self.process.say("clock \(clockOffset)") }

    /// Ends the segment as SIGINT would; before its start it ends at once.
    func giveUp() { self.process.closeInput() }

    func interrupt() { self.process.interrupt() }
}
