import Foundation
import LoadEngine
import Measurement
import NIOCore
import Synchronization

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
