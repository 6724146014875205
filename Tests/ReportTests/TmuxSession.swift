import Foundation
import TestSupport

/// A terminal of its own in which a program runs: a tmux server that nothing else uses.
final class TmuxSession: Sendable {
    static let isInstalled = (try? RunningProgram.run("/usr/bin/env", ["tmux", "-V"]).status) == 0

    private let folder: ScratchFolder
    private let name = "board"

    /// Starts `command` in a shell, on a terminal of this size.
    init(_ folder: ScratchFolder, columns: Int, rows: Int, command: String) async throws {
        self.folder = folder
        // Without a status line the window has all rows.
        try folder.write("set -g status off\n", to: "tmux.conf")
        try await self.tmux(["new-session", "-d", "-s", self.name, "-x", "\(columns)", "-y", "\(rows)", command])
    }

    func resize(columns: Int, rows: Int) async throws {
        try await self.tmux(["resize-window", "-t", self.name, "-x", "\(columns)", "-y", "\(rows)"])
    }

    /// The lines on the screen, without the empty ones at its end.
    func screen() async throws -> [String] {
        let text = try await self.tmux(["capture-pane", "-p", "-t", self.name])
        var lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        while lines.last?.isEmpty == true { lines.removeLast() }
        return lines
    }

    func end() async throws { try await self.tmux(["kill-server"]) }

    struct Failure: Error { var errors: String }

    @discardableResult
    private func tmux(_ arguments: [String]) async throws -> String {
        // A player that crashes must not wait for keys on its terminal.
        let environment = [
            "-u", "TMUX", "LC_ALL=C.UTF-8", "TERM=xterm-256color", "SWIFT_BACKTRACE=interactive=no",
            "TMUX_TMPDIR=\(self.folder.path)",
        ]
        let own = ["tmux", "-u", "-L", self.name, "-f", self.folder.path("tmux.conf")]
        let ending = try await RunningProgram("/usr/bin/env", environment + own + arguments).ended()
        guard ending.status == 0 else { throw Failure(errors: ending.errors) }
        return ending.output
    }
}
