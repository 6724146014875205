import Dispatch
import Foundation
import Report

/// Plays a scripted run on the terminal that it is started on.
///
/// `BoardPlayer CONTROL LOG`: for each line read from the file CONTROL it does one thing, and then appends a line to the
/// file LOG. `step N`: shows the run after its first N steps. `message WORDS`: a warning. `suspend` and
/// `resume`: as at a stop. `end`: gives the screen back and prints the warnings and a last line. `quit`: ends. A new size
/// of the window is painted and logged as well.
@main
struct BoardPlayer {
    static func main() {
        let arguments = CommandLine.arguments
        guard arguments.count == 3, let control = FileHandle(forReadingAtPath: arguments[1]) else { exit(64) }
        let log = open(arguments[2], O_WRONLY | O_CREAT | O_APPEND, 0o644)
        let board = TerminalBoard(
            style: TerminalStyle(isColoured: true),
            size: { WindowSize.read(STDOUT_FILENO) },
            write: { Self.write($0, to: STDOUT_FILENO) }
        )
        signal(SIGWINCH, SIG_IGN)
        let resizes = DispatchSource.makeSignalSource(signal: SIGWINCH, queue: .global())
        // On a queue of its own, not that of the main function.
        resizes.setEventHandler { @Sendable in
            board.resized()
            let size = WindowSize.read(STDOUT_FILENO)
            Self.write("resized \(size?.columns ?? 0)x\(size?.rows ?? 0)\n", to: log)
        }
        resizes.resume()
        let run = ScriptedRun.mixed(isWatched: true)
        Self.write("ready\n", to: log)
        var pending: [UInt8] = []
        while true {
            let bytes = control.availableData
            guard !bytes.isEmpty else { exit(0) }
            pending += bytes
            while let end = pending.firstIndex(of: UInt8(ascii: "\n")) {
                let line = String(decoding: pending[..<end], as: UTF8.self)
                pending.removeSubrange(...end)
                Self.follow(line, run, board)
                Self.write("did \(line)\n", to: log)
                if line == "quit" { exit(0) }
            }
        }
    }

    private static func follow(_ line: String, _ run: ScriptedRun, _ board: TerminalBoard) {
        let words = line.split(separator: " ", maxSplits: 1).map(String.init)
        switch (words.first, words.last) {
        case ("step", let number?): board.show(run.after(Int(number) ?? 0))
        case ("message", let text?): _ = board.message(text)
        case ("suspend", _): board.suspend()
        case ("resume", _): board.resume()
        case ("end", _):
            let messages = board.end()
            self.write((messages + ["the run has ended"]).map { "\($0)\r\n" }.joined(), to: STDOUT_FILENO)
        default: break
        }
    }

    private static func write(_ text: String, to descriptor: Int32) {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }
}
