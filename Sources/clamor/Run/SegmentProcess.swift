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
    private let process = Process()
    private let input = Pipe()

    /// Starts it; what it does comes as events, its end behind all it said.
    init(
        _ index: Int,
        _ arguments: [String],
        run: String,
        realtimeOffset: Int64,
        events: AsyncStream<SegmentEvent>.Continuation
    ) throws {
        self.index = index
        let (output, errors) = (Pipe(), Pipe())
        let process = self.process
        process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        process.arguments = arguments
        var environment = ProcessInfo.processInfo.environment
        environment["CLAMOR_RUN"] = run
        environment["CLAMOR_REALTIME_OFFSET"] = "\(realtimeOffset)"
        // One summary of the whole, not one for each.
        environment["GITHUB_STEP_SUMMARY"] = nil
        process.environment = environment
        process.standardInput = self.input
        process.standardOutput = output
        process.standardError = errors
        try process.run()
        let (answers, words) = (output.fileHandleForReading, errors.fileHandleForReading)
        let readers = DispatchGroup()
        readers.enter()
        Thread.detachNewThread {
            Self.lines(of: answers) { line in
                if line == "ready" {
                    events.yield(.ready(index))
                } else if line == "settled" {
                    events.yield(.settled(index))
                } else if let (group, balance) = Self.balance(line) {
                    events.yield(.balance(index, balance, group: group))
                } else if let interval = try? JSONDecoder().decode(TimelineInterval.self, from: Data(line.utf8)) {
                    events.yield(.interval(index, interval))
                }
            }
            readers.leave()
        }
        readers.enter()
        Thread.detachNewThread {
            Self.lines(of: words) { events.yield(.line(index, $0)) }
            readers.leave()
        }
        Thread.detachNewThread {
            readers.wait()
            process.waitUntilExit()
            let isSignal = process.terminationReason == .uncaughtSignal
            events.yield(.ended(index, status: process.terminationStatus, isSignal: isSignal))
        }
    }

    /// Has it begin at that moment, nanoseconds of CLOCK_REALTIME; told a second time, its load.
    func begin(at start: Int64) { self.say("\(start)") }

    /// Everything has come to a group, in all segments.
    func complete(_ group: Int) { self.say("complete \(group)") }

    private func say(_ line: String) {
        try? self.input.fileHandleForWriting.write(contentsOf: Data("\(line)\n".utf8))
    }

    private static func balance(_ line: String) -> (group: Int, balance: DeliveryBalance)? {
        guard line.hasPrefix("balance ") else { return nil }
        let numbers = line.split(separator: " ").dropFirst().compactMap { Int64($0) }
        guard numbers.count == 4 else { return nil }
        let balance = DeliveryBalance(expected: numbers[1], received: numbers[2], uncertain: numbers[3])
        return (Int(numbers[0]), balance)
    }

    /// Has it end as SIGINT would, or, before it has begun, at once.
    func giveUp() { try? self.input.fileHandleForWriting.close() }

    func interrupt() { kill(self.process.processIdentifier, SIGINT) }

    /// Blocks until the other end is closed.
    private static func lines(of handle: FileHandle, _ take: (String) -> Void) {
        var rest: [UInt8] = []
        while case let data = handle.availableData, !data.isEmpty {
            rest += data
            while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
                take(String(decoding: rest[..<end], as: UTF8.self))
                rest.removeSubrange(...end)
            }
        }
        if !rest.isEmpty { take(String(decoding: rest, as: UTF8.self)) }
    }
}
