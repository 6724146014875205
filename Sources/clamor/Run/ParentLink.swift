import Foundation
import LoadEngine
import Measurement
import NIOCore
import Synchronization

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

/// A segment's link to the `clamor` that started it: receives the start, and sends measurements.
///
/// It writes lines to standard output: `ready`, then an interval each second, `settled` when all clients are up, and
/// `balance GROUP EXPECTED RECEIVED UNCERTAIN` in the drain. It reads the start and then the begin of the load, in
/// nanoseconds of the common clock, `complete GROUP` when all messages have arrived, `stop` with the threshold that was
/// broken, `stop-lost`, and `clock OFFSET`. If standard input ends, the parent is gone, and the run ends as after SIGINT.
final class ParentLink: RunLeader {
    /// The environment of a child that runs by itself, and only sends its intervals.
    static let tellsIntervals = ["CLAMOR_INTERVALS": "1"]

    private let starts: AsyncStream<NIODeadline>
    let orders: AsyncStream<RunOrder>
    private let offset: Mutex<Int64>
    var clockOffset: Int64 { self.offset.withLock(\.self) }
    var clock: ClockRecord? { nil }

    /// - Parameters:
    ///   - clockOffset: the common clock minus CLOCK_MONOTONIC.
    ///   - isTold: the parent sends orders on standard input.
    init(clockOffset: Int64, isTold: Bool = true) {
        self.offset = Mutex(clockOffset)
        let (starts, start) = AsyncStream<NIODeadline>.makeStream()
        let (orders, order) = AsyncStream<RunOrder>.makeStream()
        self.starts = starts
        self.orders = orders
        guard isTold else { return }
        // Reading blocks, so it has its own thread.
        Thread.detachNewThread { [self] in
            var hasStart = false
            while let line = Self.readLine() {
                guard let read = self.order(line) else { continue }
                if case .load(let time) = read, !hasStart {
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

    /// Reads a line of the parent; a time is the start, and after it the begin of the load.
    private func order(_ line: String) -> RunOrder? {
        let words = line.split(separator: " ", maxSplits: 1)
        let rest = words.count > 1 ? String(words[1]) : nil
        switch words.first {
        case "complete": return rest.flatMap { Int($0) }.map { .complete(group: $0) }
        case "stop": return .stop(rest.map { .threshold($0) } ?? .signal)
        case "stop-lost": return .stop(.lost)
        case "clock":
            guard let offset = rest.flatMap({ Int64($0) }) else { return nil }
            self.offset.withLock { $0 = offset }
            return .clock(offset)
        default: return Int64(line).map { .load(at: RunSegment.deadline($0, clockOffset: self.clockOffset)) }
        }
    }

    /// Writes `ready`, and waits for the start.
    func start() async -> NIODeadline? {
        self.write("ready\n")
        return await self.starts.first { _ in true }
    }

    func tell(_ interval: TimelineInterval) {
        guard let text = try? JSONEncoder().encode(interval) else { return }
        self.write(String(decoding: text, as: UTF8.self) + "\n")
    }

    static func interval(_ line: String) -> TimelineInterval? {
        try? JSONDecoder().decode(TimelineInterval.self, from: Data(line.utf8))
    }

    func tellSettled() { self.write("settled\n") }

    func tell(_ balance: DeliveryBalance, of group: Int) {
        self.write("balance \(group) \(balance.expected) \(balance.received) \(balance.uncertain)\n")
    }

    /// Errors are ignored: the parent may be gone.
    private func write(_ text: String) { try? FileHandle.standardOutput.write(contentsOf: Data(text.utf8)) }

    /// `nil` at the end of the input, and for an incomplete last line.
    private static func readLine() -> String? {
        var line: [UInt8] = []
        while let byte = self.readByte() {
            guard byte != UInt8(ascii: "\n") else { return String(decoding: line, as: UTF8.self) }
            line.append(byte)
        }
        return nil
    }

    private static func readByte() -> UInt8? {
        var byte: UInt8 = 0
        while true {
            let count = read(STDIN_FILENO, &byte, 1)
            if count == 1 { return byte }
            guard count < 0, errno == EINTR else { return nil }
        }
    }
}

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
