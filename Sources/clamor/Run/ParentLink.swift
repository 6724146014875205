import Foundation
import LoadEngine
import Measurement

/// A segment's way to the `clamor` that started it: it hears from there when to begin, and tells what it measures.
///
/// Out go lines on standard output: `ready`, an interval each second, and of a run whose segments wait for each other
/// `settled` when all clients are up, and `balance GROUP EXPECTED RECEIVED UNCERTAIN` in the drain. In come the start and
/// then the beginning of the load, in nanoseconds of CLOCK_REALTIME, and `complete GROUP` when everything has come to all.
/// When standard input ends the parent is gone, and the run ends as by SIGINT.
final class ParentLink: Sendable {
    /// What comes behind the start.
    enum Order: Hashable, Sendable {
        case load(at: Int64)
        case complete(group: Int)
    }

    private let starts: AsyncStream<Int64>
    /// For one listener.
    let orders: AsyncStream<Order>

    init() {
        let (starts, start) = AsyncStream<Int64>.makeStream()
        let (orders, order) = AsyncStream<Order>.makeStream()
        self.starts = starts
        self.orders = orders
        // Reading blocks.
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

    /// Says that everything is prepared, and waits for the start; `nil` if there will be none.
    func start() async -> Int64? {
        self.write("ready\n")
        return await self.starts.first { _ in true }
    }

    func tell(_ interval: TimelineInterval) {
        guard let text = try? JSONEncoder().encode(interval) else { return }
        self.write(String(decoding: text, as: UTF8.self) + "\n")
    }

    /// Says that the load could begin.
    func tellSettled() { self.write("settled\n") }

    func tell(_ balance: DeliveryBalance, of group: Int) {
        self.write("balance \(group) \(balance.expected) \(balance.received) \(balance.uncertain)\n")
    }

    /// To a parent that is gone nothing is told.
    private func write(_ text: String) { try? FileHandle.standardOutput.write(contentsOf: Data(text.utf8)) }

    /// `nil` at the end, and for a last line that was cut.
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
