import Foundation
import LoadEngine
import Measurement

/// A segment's link to the `clamor` that started it: receives the start, and sends measurements.
///
/// It writes lines to standard output: `ready`, then an interval each second. If segments wait for each other it also
/// writes `settled` when all clients are up, and `balance GROUP EXPECTED RECEIVED UNCERTAIN` in the drain. It reads the
/// start and then the begin of the load, in nanoseconds of CLOCK_REALTIME, and `complete GROUP` when all messages have
/// arrived. If standard input ends, the parent is gone, and the run ends as after SIGINT.
final class ParentLink: Sendable {
    /// An order after the start.
    enum Order: Hashable, Sendable {
        case load(at: Int64)
        case complete(group: Int)
    }

    /// The environment of a child that runs by itself, and only sends its intervals.
    static let tellsIntervals = ["CLAMOR_INTERVALS": "1"]

    private let starts: AsyncStream<Int64>
    /// Supports one listener.
    let orders: AsyncStream<Order>

    /// `isTold`: the parent sends orders on standard input.
    init(isTold: Bool = true) {
        let (starts, start) = AsyncStream<Int64>.makeStream()
        let (orders, order) = AsyncStream<Order>.makeStream()
        self.starts = starts
        self.orders = orders
        guard isTold else { return }
        // Reading blocks, so it has its own thread.
        Thread.detachNewThread {
            guard let began = Self.readLine().flatMap({ Int64($0) }) else { return start.finish() }
            start.yield(began)
            while let line = Self.readLine() {
                if line.hasPrefix("complete "), let group = Int(line.dropFirst("complete ".count)) {
                    order.yield(.complete(group: group))
                } else if let time = Int64(line) {
                    order.yield(.load(at: time))
                }
            }
            kill(getpid(), SIGINT)
        }
    }

    /// The link of a child that runs by itself; `nil` if its parent does not want its intervals.
    static func telling(_ environment: [String: String]) -> ParentLink? {
        guard let (name, value) = self.tellsIntervals.first, environment[name] == value else { return nil }
        return ParentLink(isTold: false)
    }

    /// Writes `ready`, and waits for the start; `nil` if the parent gives up.
    func start() async -> Int64? {
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

    /// Reports that the load could begin.
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
