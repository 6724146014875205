import BoardPlayer
import Measurement
import Report
import Synchronization
import Testing

@Suite("The terminal of the board")
struct TerminalBoardTests {
    /// A terminal that keeps what is written.
    final class Screen: Sendable {
        private let state = Mutex((size: WindowSize?.some(WindowSize(columns: 80, rows: 24)), texts: [String]()))

        var texts: [String] { self.state.withLock { $0.texts } }
        var last: String { self.texts.last ?? "" }

        func resize(_ size: WindowSize?) { self.state.withLock { $0.size = size } }

        func board(isColoured: Bool = false) -> TerminalBoard {
            TerminalBoard(
                style: TerminalStyle(isColoured: isColoured),
                size: { self.state.withLock { $0.size } },
                write: { text in self.state.withLock { $0.texts.append(text) } }
            )
        }
    }

    static let run = ScriptedRun.mixed(isWatched: true)
    static let begin = "\u{1B}[?1049h\u{1B}[?25l"
    static let paint = "\u{1B}[?2026h\u{1B}[?7l"
    static let painted = "\u{1B}[J\u{1B}[?7h\u{1B}[?2026l"
    static let end = "\u{1B}[?7h\u{1B}[?25h\u{1B}[?1049l"

    @Test("takes the alternate screen once, and paints each time from its top in one write")
    func paints() throws {
        let screen = Screen()
        let board = screen.board()
        board.show(Self.run.after(20))
        board.show(Self.run.after(21))
        try #require(screen.texts.count == 2)
        #expect(screen.texts[0].hasPrefix("\(Self.begin)\(Self.paint)\u{1B}[H"))
        #expect(screen.texts[1].hasPrefix("\(Self.paint)\u{1B}[H"))
        #expect(screen.texts.allSatisfy { $0.hasSuffix("\u{1B}[K\(Self.painted)") })
        let size = WindowSize(columns: 80, rows: 24)
        let lines = LiveBoard(Self.run.after(21), size: size, style: TerminalStyle()).lines
        #expect(screen.last.contains(lines.joined(separator: "\u{1B}[K\r\n")))
    }

    @Test("clears the screen and paints the last state at a new size")
    func resizes() {
        let screen = Screen()
        let board = screen.board()
        board.show(Self.run.after(20))
        let wide = WindowSize(columns: 200, rows: 50)
        screen.resize(wide)
        board.resized()
        #expect(screen.last.hasPrefix("\(Self.paint)\u{1B}[2J\u{1B}[H"))
        let lines = LiveBoard(Self.run.after(20), size: wide, style: TerminalStyle()).lines
        #expect(screen.last.contains(lines.joined(separator: "\u{1B}[K\r\n")))
    }

    @Test("takes 80 columns and 24 rows where the terminal does not say")
    func unknownSize() {
        let screen = Screen()
        let board = screen.board()
        board.show(Self.run.after(20))
        let usual = screen.last
        screen.resize(nil)
        board.show(Self.run.after(20))
        #expect(usual == Self.begin + screen.last)
    }

    @Test("shows the last three messages, and returns all of them at the end")
    func messages() {
        let screen = Screen()
        let board = screen.board()
        #expect(!board.message("before the first painting"))
        #expect(screen.texts.isEmpty)
        board.show(Self.run.after(20))
        let more = (1...4).map { "message \($0)" }
        for message in more { #expect(board.message(message)) }
        #expect(screen.texts.count == 5)
        #expect(!screen.last.contains("message 1"))
        for message in more.dropFirst() { #expect(screen.last.contains("! \(message)")) }
        #expect(board.end() == more)
        #expect(!board.message("after the end"))
    }

    @Test("gives the screen back once, and writes nothing afterwards")
    func ends() {
        let screen = Screen()
        let board = screen.board(isColoured: true)
        board.show(Self.run.after(20))
        #expect(board.end().isEmpty)
        #expect(screen.last == Self.end)
        #expect(board.end().isEmpty)
        board.show(Self.run.after(21))
        board.resized()
        #expect(screen.texts.count == 2)
    }

    @Test("leaves a screen alone on which nothing was painted")
    func endsUnpainted() {
        let screen = Screen()
        let board = screen.board()
        board.resized()
        board.suspend()
        board.resume()
        #expect(board.end().isEmpty)
        #expect(screen.texts.isEmpty)
    }

    @Test("gives the screen back while it is suspended, and then paints the latest state")
    func suspends() {
        let screen = Screen()
        let board = screen.board()
        board.resume()
        board.show(Self.run.after(20))
        #expect(board.message("kept"))
        board.suspend()
        board.suspend()
        #expect(screen.texts.count == 3)
        #expect(screen.last == Self.end)
        #expect(!board.isShown)
        board.show(Self.run.after(21))
        board.resized()
        #expect(!board.message("while it is suspended"))
        #expect(screen.texts.count == 3)
        board.resume()
        board.resume()
        #expect(screen.texts.count == 4)
        #expect(board.isShown)
        let size = WindowSize(columns: 80, rows: 24)
        let lines = LiveBoard(Self.run.after(21), size: size, style: TerminalStyle(), messages: ["kept"]).lines
        #expect(screen.last.hasPrefix("\(Self.begin)\(Self.paint)\u{1B}[H"))
        #expect(screen.last.contains(lines.joined(separator: "\u{1B}[K\r\n")))
        #expect(board.end() == ["kept"])
        #expect(screen.last == Self.end)
    }

    @Test("writes nothing at its end while it is suspended, and nothing afterwards")
    func endsSuspended() {
        let screen = Screen()
        let board = screen.board()
        board.show(Self.run.after(20))
        board.suspend()
        #expect(board.end().isEmpty)
        board.resume()
        board.suspend()
        #expect(screen.texts.count == 2)
        #expect(screen.last == Self.end)
    }

    @Test("begins behind a suspension where nothing was painted before")
    func beginsSuspended() {
        let screen = Screen()
        let board = screen.board()
        board.suspend()
        board.show(Self.run.after(20))
        #expect(screen.texts.isEmpty)
        board.resume()
        #expect(screen.last.hasPrefix(Self.begin))
    }
}
