import Foundation
import LoadEngine
import Measurement

/// What happens among the processes of a run.
enum SegmentEvent: Sendable {
    /// Everything is prepared.
    case ready(Int)
    case interval(Int, TimelineInterval)
    /// All its clients are up: its load waits for the others'.
    case settled(Int)
    /// In the drain: what its publishers have caused, and what has come to its subscribers.
    case balance(Int, DeliveryBalance, group: Int)
    /// A line of its standard error.
    case line(Int, String)
    /// By itself with an exit status, or by a signal.
    case ended(Int, status: Int32, isSignal: Bool)
    /// SIGINT or SIGTERM, to this process.
    case signal
}

/// One segment as a process of its own, and the pipes to it, see ``ParentLink``.
final class SegmentProcess {
    let index: Int
    private let process: SelfProcess

    /// Starts it; what it does comes as events, its end behind all it said.
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

    /// Has it begin at that moment, nanoseconds of CLOCK_REALTIME; told a second time, its load.
    func begin(at start: Int64) { self.process.say("\(start)") }

    /// Everything has come to a group, in all segments.
    func complete(_ group: Int) { self.process.say("complete \(group)") }

    private static func event(_ line: String, of index: Int) -> SegmentEvent? {
        if line == "ready" { return .ready(index) }
        if line == "settled" { return .settled(index) }
        if let (group, balance) = Self.balance(line) { return .balance(index, balance, group: group) }
        let interval = try? JSONDecoder().decode(TimelineInterval.self, from: Data(line.utf8))
        return interval.map { .interval(index, $0) }
    }

    private static func balance(_ line: String) -> (group: Int, balance: DeliveryBalance)? {
        guard line.hasPrefix("balance ") else { return nil }
        let numbers = line.split(separator: " ").dropFirst().compactMap { Int64($0) }
        guard numbers.count == 4 else { return nil }
        let balance = DeliveryBalance(expected: numbers[1], received: numbers[2], uncertain: numbers[3])
        return (Int(numbers[0]), balance)
    }

    /// Has it end as SIGINT would, or, before it has begun, at once.
    func giveUp() { self.process.closeInput() }

    func interrupt() { self.process.interrupt() }
}
