import BoardPlayer
import Foundation
import Report
import TestSupport
import Testing

/// Plays a scripted run in a terminal, step by step.
private final class BoardTheatre: Sendable {
    private static let player = URL(filePath: CommandLine.arguments[0]).resolvingSymlinksInPath()
        .deletingLastPathComponent().appending(path: "BoardPlayer").path

    private let folder: ScratchFolder
    private let control: FileHandle
    let terminal: TmuxSession

    init(_ size: WindowSize) async throws {
        let folder = try ScratchFolder()
        self.folder = folder
        guard mkfifo(folder.path("control"), 0o600) == 0 else { throw CocoaError(.fileWriteUnknown) }
        // For writing alone it would wait for the player; and the player ends when it is closed.
        let descriptor = open(folder.path("control"), O_RDWR | O_CLOEXEC)
        self.control = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        try folder.write("", to: "log")
        let words = ["exec", Self.player, folder.path("control"), folder.path("log")]
        self.terminal = try await TmuxSession(
            folder,
            columns: size.columns,
            rows: size.rows,
            command: "echo before the run; \(words.joined(separator: " "))"
        )
        try await self.wait(for: "ready")
    }

    /// Has the player do something, and waits until it has.
    func tell(_ line: String) async throws {
        try self.control.write(contentsOf: Data("\(line)\n".utf8))
        try await self.wait(for: "did \(line)")
    }

    func resize(_ size: WindowSize) async throws {
        try await self.terminal.resize(columns: size.columns, rows: size.rows)
        try await self.wait(for: "resized \(size.columns)x\(size.rows)")
    }

    private func wait(for line: String) async throws {
        while try !String(contentsOfFile: self.folder.path("log"), encoding: .utf8).split(separator: "\n").contains(
            Substring(line)
        ) {
            try await Self.pause()
        }
    }

    /// Waits until the screen is as wanted, which the suite's time limit bounds.
    ///
    /// - Returns: the screen; another one only where the time is up.
    func screen(wanted: [String]) async throws -> [String] {
        while true {
            let lines = try await self.terminal.screen()
            if lines == wanted || Task.isCancelled { return lines }
            do { try await Self.pause() } catch { return lines }
        }
    }

    /// The terminal does not announce that it has drawn; the pause only separates two looks.
    private static func pause() async throws { try await Task.sleep(for: .milliseconds(10)) }
}

@Suite("The board in a terminal", .enabled(if: TmuxSession.isInstalled, "tmux is missing"), .timeLimit(.minutes(2)))
struct BoardInTmuxTests {
    static let sizes = [(80, 24), (200, 50)].map(WindowSize.init(columns:rows:))

    @Test(
        "is on the screen as wanted, stands a resize and a stop in mid-run, and leaves the screen as it was",
        arguments: Self.sizes
    )
    func plays(size: WindowSize) async throws {
        let theatre = try await BoardTheatre(size)
        do {
            try await self.play(theatre, size)
        } catch {
            try? await theatre.terminal.end()
            throw error
        }
        try await theatre.terminal.end()
    }

    private func play(_ theatre: BoardTheatre, _ size: WindowSize) async throws {
        let other = try #require(Self.sizes.first { $0 != size })
        try await theatre.tell("step 39")
        try await Self.expect("stall", size, theatre)
        let warnings = ScriptedRun.mixed(isWatched: true).warnings.sorted { $0.key < $1.key }.map(\.value)
        for warning in warnings { try await theatre.tell("message \(warning)") }
        try await theatre.tell("step 50")
        try await Self.expect("errors", size, theatre)
        try await theatre.resize(other)
        try await Self.expect("errors", other, theatre)
        try await theatre.resize(size)
        try await Self.expect("errors", size, theatre)
        try await theatre.tell("suspend")
        #expect(try await theatre.screen(wanted: ["before the run"]) == ["before the run"])
        try await theatre.tell("resume")
        try await Self.expect("errors", size, theatre)
        try await theatre.tell("end")
        // Long lines wrap again outside the board.
        let last = ["before the run"] + (warnings + ["the run has ended"]).flatMap { Self.wrapped($0, size.columns) }
        let screen = try await theatre.screen(wanted: last)
        #expect(screen == last)
    }

    private static func expect(_ name: String, _ size: WindowSize, _ theatre: BoardTheatre) async throws {
        let moment = try #require(BoardMoment.all.first { $0.name == name })
        let wanted = try Golden.text(moment.golden(size)).split(separator: "\n", omittingEmptySubsequences: false)
            .map(String.init).dropLast()
        let screen = try await theatre.screen(wanted: Array(wanted))
        #expect(screen == Array(wanted), "\(name) at \(size.columns)x\(size.rows)")
    }

    private static func wrapped(_ line: String, _ width: Int) -> [String] {
        guard line.count > width else { return [line] }
        return [String(line.prefix(width))] + self.wrapped(String(line.dropFirst(width)), width)
    }
}
