import DataEncodings
import Foundation
package import Measurement
package import Report
package import Scenario
import Synchronization

/// The output of a running command: progress to standard output, warnings to standard error.
package struct ProgressScreen: Sendable {
    /// Prints neither progress nor summary.
    let isQuiet: Bool
    /// Standard output is reserved for `run.json`.
    package let isJSON: Bool
    let isTerminal: Bool
    let isColoured: Bool
    private let detail: Summary.Detail
    /// Draws a running run in place; `nil` where there is no terminal for it.
    private let board: TerminalBoard?
    /// Takes the lines for standard error in its place.
    private let hears: (@Sendable (String) -> Void)?

    package init(
        quiet: Bool,
        json: Bool,
        plain: Bool = false,
        colour: ColourOption = .auto,
        detail: Summary.Detail = .compact,
        hears: (@Sendable (String) -> Void)? = nil
    ) {
        self.hears = hears
        let environment = ProcessInfo.processInfo.environment
        self.detail = detail
        self.isQuiet = quiet
        self.isJSON = json
        self.isTerminal = !plain && isatty(STDOUT_FILENO) == 1 && environment["TERM"] != "dumb"
        switch colour {
        // https://no-color.org: any value but an empty one.
        case .auto: self.isColoured = self.isTerminal && environment["NO_COLOR", default: ""].isEmpty
        case .always: self.isColoured = true
        case .never: self.isColoured = false
        }
        guard self.isTerminal, !quiet, !json else {
            self.board = nil
            return
        }
        self.board = TerminalBoard(style: TerminalStyle(isColoured: self.isColoured)) {
            WindowSize.read(STDOUT_FILENO)
        } write: {
            Self.write($0, to: .standardOutput)
        }
    }

    package init(_ options: some HasResults, hears: (@Sendable (String) -> Void)? = nil) {
        self.init(
            quiet: options.quiet,
            json: options.json,
            plain: options.isPlain,
            colour: options.colour,
            detail: options.summary,
            hears: hears
        )
    }

    var width: Int { WindowSize.read(STDOUT_FILENO)?.columns ?? 100 }
    package var style: TerminalStyle { TerminalStyle(isColoured: self.isColoured, width: self.width) }

    // MARK: - Progress

    /// Shows a running run: on the board, or its last second as a line.
    ///
    /// `accountsDone`: in a run that only makes or removes accounts.
    package func show(_ run: LiveRun, accountsDone: Double? = nil) {
        guard !self.isQuiet, !self.isJSON, let latest = run.latest else { return }
        if accountsDone == nil, let board = self.board { return board.show(run) }
        let errors = run.standing.errors.reduce(UInt64(0)) { $0 &+ $1.count }
        let line = ProgressLine(latest, clientsPlanned: run.clientsPlanned, errors: errors)
        self.show(accountsDone.map { line.of(accounts: $0) } ?? line)
    }

    package func show(_ line: ProgressLine) {
        guard !self.isQuiet, !self.isJSON else { return }
        self.write(self.isTerminal ? line.inPlace(width: self.width) : line.plain)
    }

    /// Lets the board follow the terminal until the task is cancelled: its size, and Ctrl-Z.
    func followTerminal() -> Task<Void, Never>? {
        guard let board = self.board else { return nil }
        return Task {
            for await event in Signals.terminal() {
                switch event {
                case .resized: board.resized()
                case .stop:
                    board.suspend()
                    // Goes on behind this line when the shell continues the process.
                    kill(getpid(), SIGSTOP)
                    board.resume()
                }
            }
        }
    }

    /// Ends the board or the progress line, so that later output begins on a new line.
    package func endProgress() {
        guard self.isTerminal, !self.isQuiet, !self.isJSON else { return }
        if let messages = self.board?.end() {
            for message in messages { Self.write("clamor: \(message)\n", to: .standardError) }
        }
        self.write(ProgressLine.erase)
    }

    // MARK: - Results

    package func show(_ record: RunRecord, files: String?) {
        let page = files.flatMap { PageFiles.exists(in: $0) ? PageFiles.name : nil }
        self.show(Summary(record, detail: self.detail, files: files, page: page, style: self.style).text)
    }

    package func show(_ summary: String) {
        if !self.isQuiet, !self.isJSON { self.write(summary) }
    }

    /// Prints a line that is neither progress nor result.
    func say(_ line: String) { self.show(line + "\n") }

    /// Prints where something is that nothing else tells: to standard error where standard output is not for people.
    func announce(_ line: String) {
        if self.isQuiet || self.isJSON { self.warn(line) } else { self.say(line) }
    }

    package func write(_ text: String) { Self.write(text, to: .standardOutput) }

    /// Prints one line to standard error.
    package func warn(_ line: String) {
        let line = OneLine.of(line, most: 4_000)
        if let hears { return hears(line) }
        // On one terminal with the board, the line is shown there, and printed after the run.
        let isBoardShown = self.board?.isShown ?? false
        if isBoardShown, isatty(STDERR_FILENO) == 1, self.board?.message(line) == true { return }
        if self.isTerminal, !self.isQuiet, !self.isJSON, !isBoardShown { self.write(ProgressLine.erase) }
        Self.write("clamor: \(line)\n", to: .standardError)
    }

    private static let outputCode = Mutex<Int32>(0)

    /// Why standard output did not take all; a closed pipe, as with `| head`, ends the output and is no error.
    package static var outputError: String? {
        let code = self.outputCode.withLock(\.self)
        return code == 0 ? nil : String(cString: strerror(code))
    }

    private static func write(_ text: String, to file: FileHandle) {
        do {
            try file.write(contentsOf: Data(text.utf8))
        } catch {
            let code = errno
            guard file === FileHandle.standardOutput, code != EPIPE, code != EAGAIN else { return }
            self.outputCode.withLock { $0 = code }
        }
    }
}
