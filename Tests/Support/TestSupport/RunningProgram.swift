import CSpawn
package import Foundation
import NIOCore
import NIOPosix
import Synchronization

/// A child process whose output is read as it comes.
///
/// Cancelling a task that waits for it, for example by a test's time limit, kills it.
package final class RunningProgram: Sendable {
    package struct Ending: Sendable {
        /// The exit code; of a signal that killed it, the negative number.
        package var status: Int32
        package var output: String
        package var errors: String

        package var outputLines: [String] { Self.lines(self.output) }
        package var errorLines: [String] { Self.lines(self.errors) }

        private static func lines(_ text: String) -> [String] { text.split(separator: "\n").map(String.init) }
    }

    package enum Stream: Sendable {
        case output, errors
    }

    /// It ended, or closed the stream, before what was awaited had come.
    package struct EndedEarly: Error, CustomStringConvertible {
        package let description: String

        package init(description: String) { self.description = description }
    }

    package struct NotStarted: Error, CustomStringConvertible {
        package let description: String
    }

    package let pid: pid_t
    private let state = Mutex(State())

    private struct State {
        var output = Text()
        var errors = Text()
        var status: Int32?
        var waiting: [(isReady: @Sendable (State) -> Bool, resume: @Sendable () -> Void)] = []

        var isOver: Bool { self.status != nil && !self.output.isOpen && !self.errors.isOpen }
    }

    private struct Text {
        var isOpen = true
        var bytes: [UInt8] = []
        /// The whole ones.
        var lines: [String] = []
        private var lineStart = 0

        /// No bytes are the end.
        mutating func take(_ new: [UInt8]) {
            if new.isEmpty { self.isOpen = false }
            var searched = self.bytes.count
            self.bytes += new
            while let end = self.bytes[searched...].firstIndex(of: UInt8(ascii: "\n")) {
                self.lines.append(String(decoding: self.bytes[self.lineStart..<end], as: UTF8.self))
                searched = end + 1
                self.lineStart = searched
            }
        }
    }

    /// Starts it with the environment of the tests, nothing on its standard input, and none of the tests' descriptors.
    package init(_ path: String, _ arguments: [String]) throws {
        var words = ([path] + arguments).map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        var output: Int32 = -1
        var errors: Int32 = -1
        self.pid = clamor_spawn(path, &words, &output, &errors)
        guard self.pid > 0 else { throw NotStarted(description: "\(path): \(String(cString: strerror(-self.pid)))") }
        Thread.detachNewThread { self.reap() }
        self.read(output) { $1.output.take($0) }
        self.read(errors) { $1.errors.take($0) }
    }

    /// Starts a program that the kernel kills when this process ends, also by a crash.
    ///
    /// The kernel looks at the thread that started the program; those of this group stay as long as the process.
    package static func endingWithThisProcess(_ path: String, _ arguments: [String]) async throws -> RunningProgram {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        return try await loop.submit {
            try RunningProgram("/usr/bin/setpriv", ["--pdeathsig", "KILL", path] + arguments)
        }.get()
    }

    /// Runs one to its end on this thread, for what cannot be asynchronous.
    package static func run(_ path: String, _ arguments: [String]) throws -> Ending {
        let program = try RunningProgram(path, arguments)
        let over = DispatchSemaphore(value: 0)
        program.whenReady({ $0.isOver }, { over.signal() })
        over.wait()
        return program.ending
    }

    package var hasEnded: Bool { self.state.withLock { $0.status != nil } }

    /// Does nothing once it has ended.
    package func send(_ signal: Int32) {
        self.state.withLock { state in
            if state.status == nil { _ = kill(self.pid, signal) }
        }
    }

    /// Waits until it has ended and both its streams are read.
    package func ended() async throws -> Ending {
        await self.wait { $0.isOver }
        try Task.checkCancellation()
        return self.ending
    }

    private var ending: Ending {
        self.state.withLock { state in
            Ending(
                status: state.status ?? 0,
                output: String(decoding: state.output.bytes, as: UTF8.self),
                errors: String(decoding: state.errors.bytes, as: UTF8.self)
            )
        }
    }

    /// Waits for a line and returns it.
    @discardableResult
    package func line(
        on stream: Stream = .output,
        where isRight: @escaping @Sendable (String) -> Bool = { _ in true }
    ) async throws -> String {
        try await self.lines(on: stream) { $0.contains(where: isRight) }.first(where: isRight) ?? ""
    }

    /// Waits until the lines that have come on a stream are what is awaited, and returns them.
    @discardableResult
    package func lines(
        on stream: Stream = .output,
        until isEnough: @escaping @Sendable ([String]) -> Bool
    ) async throws -> [String] {
        await self.wait { state in
            let text = stream == .output ? state.output : state.errors
            return isEnough(text.lines) || !text.isOpen
        }
        try Task.checkCancellation()
        let (lines, errors) = self.state.withLock { state in
            (stream == .output ? state.output.lines : state.errors.lines, state.errors.lines)
        }
        guard isEnough(lines) else {
            let last = "last \(lines.suffix(3)), errors \(errors.suffix(3))"
            throw EndedEarly(description: "ended before the awaited line; \(last)")
        }
        return lines
    }

    // MARK: - What the threads tell

    private func read(_ descriptor: Int32, _ take: @escaping @Sendable ([UInt8], inout State) -> Void) {
        Thread.detachNewThread {
            defer { close(descriptor) }
            while true {
                let bytes = [UInt8](unsafeUninitializedCapacity: 65536) { buffer, count in
                    repeat {
                        count = Foundation.read(descriptor, buffer.baseAddress, buffer.count)
                    } while count < 0 && errno == EINTR
                    count = max(0, count)
                }
                self.change { take(bytes, &$0) }
                if bytes.isEmpty { return }
            }
        }
    }

    /// The process stays until its end is noted: a signal cannot meet another one with its number.
    private func reap() {
        var info = siginfo_t()
        while waitid(P_PID, id_t(self.pid), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR {}
        self.change { state in
            var status: Int32 = 0
            waitpid(self.pid, &status, 0)
            let signal = status & 0x7f
            state.status = signal == 0 ? (status >> 8) & 0xff : -signal
        }
    }

    private func change(_ body: (inout sending State) -> Void) {
        let ready = self.state.withLock { state in
            body(&state)
            let now = state
            let ready = state.waiting.filter { $0.isReady(now) }.map(\.resume)
            if !ready.isEmpty { state.waiting.removeAll { $0.isReady(now) } }
            return ready
        }
        for resume in ready { resume() }
    }

    private func whenReady(_ isReady: @escaping @Sendable (State) -> Bool, _ resume: @escaping @Sendable () -> Void) {
        let isNow = self.state.withLock { state in
            guard !isReady(state) else { return true }
            state.waiting.append((isReady, resume))
            return false
        }
        if isNow { resume() }
    }

    private func wait(until isReady: @escaping @Sendable (State) -> Bool) async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                self.whenReady(isReady) { continuation.resume() }
            }
        } onCancel: {
            self.send(SIGKILL)
        }
    }
}
