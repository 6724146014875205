import Foundation
import Measurement

/// A segment's way to the `clamor` that started it: it hears from there when to begin, and tells what it measures.
///
/// Out go lines on standard output, `ready` and then an interval each second; in comes one line, the start in nanoseconds
/// of CLOCK_REALTIME. When standard input ends the parent is gone, and the run ends as by SIGINT.
enum ParentLink {
    /// Says that everything is prepared, and waits for the start; `nil` if there will be none.
    static func start() async -> Int64? {
        self.write("ready\n")
        return await withCheckedContinuation { (continuation: CheckedContinuation<Int64?, Never>) in
            // Reading blocks.
            Thread.detachNewThread {
                var line: [UInt8] = []
                while let byte = Self.readByte(), byte != UInt8(ascii: "\n") { line.append(byte) }
                let start = Int64(String(decoding: line, as: UTF8.self))
                continuation.resume(returning: start)
                guard start != nil else { return }
                while Self.readByte() != nil {}
                kill(getpid(), SIGINT)
            }
        }
    }

    static func tell(_ interval: TimelineInterval) {
        guard let text = try? JSONEncoder().encode(interval) else { return }
        self.write(String(decoding: text, as: UTF8.self) + "\n")
    }

    /// To a parent that is gone nothing is told.
    private static func write(_ text: String) { try? FileHandle.standardOutput.write(contentsOf: Data(text.utf8)) }

    private static func readByte() -> UInt8? {
        var byte: UInt8 = 0
        while true {
            let count = read(STDIN_FILENO, &byte, 1)
            if count == 1 { return byte }
            guard count < 0, errno == EINTR else { return nil }
        }
    }
}
