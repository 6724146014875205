import Synchronization

/// Draws the board of a running run in place on a terminal.
///
/// It uses the alternate screen, so the lines before it are back after its end. Every function may be called on any
/// thread; after ``end()`` none of them writes anything, and after ``suspend()`` only ``resume()`` does.
package final class TerminalBoard: Sendable {
    private struct State {
        /// Whether the alternate screen is on.
        var hasScreen = false
        var isSuspended = false
        var hasEnded = false
        var run: LiveRun?
        var messages: [String] = []
    }

    private let style: TerminalStyle
    private let size: @Sendable () -> WindowSize?
    private let write: @Sendable (String) -> Void
    private let state = Mutex(State())

    /// The size of a terminal that does not say it.
    private static let usualSize = WindowSize(columns: 80, rows: 24)

    /// - Parameters:
    ///   - style: the colours.
    ///   - size: of the screen, asked for before each painting.
    ///   - write: takes each painting as one text.
    package init(
        style: TerminalStyle,
        size: @escaping @Sendable () -> WindowSize?,
        write: @escaping @Sendable (String) -> Void
    ) {
        self.style = style
        self.size = size
        self.write = write
    }

    package var isShown: Bool { self.state.withLock { $0.hasScreen } }

    package func show(_ run: LiveRun) {
        self.state.withLock { state in
            guard !state.hasEnded else { return }
            state.run = run
            if !state.isSuspended { self.paint(&state) }
        }
    }

    /// Paints again what was shown last, at the present size of the screen.
    package func resized() {
        self.state.withLock { state in
            guard state.hasScreen else { return }
            // The terminal may have wrapped or moved the lines.
            self.paint(&state, after: Sequence.clear)
        }
    }

    /// Keeps a line for standard error, without the program's name, and shows it while it is one of the last.
    ///
    /// - Returns: whether the line is kept; the caller prints it where the board does not have the screen.
    package func message(_ line: String) -> Bool {
        self.state.withLock { state in
            guard state.hasScreen else { return false }
            state.messages.append(line)
            self.paint(&state)
            return true
        }
    }

    /// Gives the screen back until ``resume()``, as before a stop by SIGTSTP; a further call does nothing.
    package func suspend() {
        self.state.withLock { state in
            guard !state.hasEnded, !state.isSuspended else { return }
            state.isSuspended = true
            self.leave(&state)
        }
    }

    /// Takes the screen again and paints the latest state, as after SIGCONT; without ``suspend()`` it does nothing.
    package func resume() {
        self.state.withLock { state in
            guard !state.hasEnded, state.isSuspended else { return }
            state.isSuspended = false
            self.paint(&state)
        }
    }

    /// Gives the screen back as it was before.
    ///
    /// - Returns: the lines for standard error, in order; nothing at a second call.
    package func end() -> [String] {
        self.state.withLock { state in
            guard !state.hasEnded else { return [] }
            state.hasEnded = true
            state.run = nil
            self.leave(&state)
            defer { state.messages = [] }
            return state.messages
        }
    }

    private func paint(_ state: inout State, after first: String = "") {
        guard let run = state.run else { return }
        let board = LiveBoard(run, size: self.size() ?? Self.usualSize, style: self.style, messages: state.messages)
        let lines = board.lines.map { $0 + Sequence.eraseLine }.joined(separator: "\r\n")
        let begin = state.hasScreen ? "" : Sequence.begin
        state.hasScreen = true
        self.write(begin + Sequence.beginPaint + first + Sequence.home + lines + Sequence.erase + Sequence.endPaint)
    }

    private func leave(_ state: inout State) {
        guard state.hasScreen else { return }
        state.hasScreen = false
        self.write(Sequence.end)
    }

    /// Control sequences of ECMA-48 and of xterm.
    private enum Sequence {
        /// The alternate screen, without a cursor.
        static let begin = "\u{1B}[?1049h\u{1B}[?25l"
        static let end = "\u{1B}[?7h\u{1B}[?25h\u{1B}[?1049l"
        /// The terminal shows what comes until the end at once; a line that is too long does not wrap.
        static let beginPaint = "\u{1B}[?2026h\u{1B}[?7l"
        static let endPaint = "\u{1B}[?7h\u{1B}[?2026l"
        static let home = "\u{1B}[H"
        static let clear = "\u{1B}[2J"
        static let eraseLine = "\u{1B}[K"
        /// From the cursor to the end of the screen.
        static let erase = "\u{1B}[J"
    }
}
