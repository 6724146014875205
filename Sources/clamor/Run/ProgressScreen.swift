import Foundation
import Measurement
import Report

/// The output of a running command: progress to standard output, warnings to standard error.
struct ProgressScreen: Sendable {
    /// Prints neither progress nor summary.
    let isQuiet: Bool
    /// Standard output is reserved for `run.json`.
    let isJSON: Bool
    let isTerminal: Bool
    let isColoured: Bool
    private let detail: Summary.Detail

    init(quiet: Bool, json: Bool, plain: Bool = false, detail: Summary.Detail = .compact) {
        self.detail = detail
        self.isQuiet = quiet
        self.isJSON = json
        self.isTerminal = !plain && isatty(STDOUT_FILENO) == 1
        self.isColoured = self.isTerminal && ProcessInfo.processInfo.environment["NO_COLOR"] == nil
    }

    var width: Int {
        var size = winsize()
        guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 100 }
        return Int(size.ws_col)
    }

    var style: TerminalStyle { TerminalStyle(isColoured: self.isColoured, width: self.width) }

    func show(_ line: ProgressLine) {
        guard !self.isQuiet, !self.isJSON else { return }
        self.write(self.isTerminal ? line.inPlace(width: self.width) : line.plain)
    }

    /// Ends the progress line, so that later output begins on a new line.
    func endProgress() {
        if self.isTerminal, !self.isQuiet, !self.isJSON { self.write(ProgressLine.erase) }
    }

    /// Shows a result; `files` is the directory that has it.
    func show(_ record: RunRecord, files: String?) {
        let page = files.flatMap { PageFiles.exists(in: $0) ? PageFiles.name : nil }
        self.show(Summary(record, detail: self.detail, files: files, page: page, style: self.style).text)
    }

    func show(_ summary: String) {
        if !self.isQuiet, !self.isJSON { self.write(summary) }
    }

    /// Errors are ignored: a closed pipe, as with `| head`, ends the output and not the run.
    func write(_ text: String) { try? FileHandle.standardOutput.write(contentsOf: Data(text.utf8)) }

    /// Prints one line to standard error.
    func warn(_ line: String) {
        try? FileHandle.standardError.write(contentsOf: Data("clamor: \(line)\n".utf8))
    }
}
