package import Foundation
import Synchronization

/// A child process whose output is read as it comes.
///
/// Whoever waits for it and is cancelled (by a test's time limit, say) kills it.
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
    }

    package let pid: pid_t
    private let state = Mutex(State())

    private struct State {
        var output = Text()
        var errors = Text()
        var status: Int32?
        var waiting: [(isReady: @Sendable (State) -> Bool, continuation: CheckedContinuation<Void, Never>)] = []

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

    package init(_ path: String, _ arguments: [String]) throws {
        let process = Process()
        let output = Pipe()
        let errors = Pipe()
        process.executableURL = URL(filePath: path)
        process.arguments = arguments
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        process.standardError = errors
        let ended = Mutex<(@Sendable (Int32) -> Void)?>(nil)
        let status = Mutex<Int32?>(nil)
        process.terminationHandler = { process in
            let code = process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus
            status.withLock { $0 = code }
            ended.withLock { $0 }?(code)
        }
        try process.run()
        self.pid = process.processIdentifier
        // It may have ended before this is set, or while.
        ended.withLock { $0 = { code in self.change { $0.status = code } } }
        if let code = status.withLock({ $0 }) { self.change { $0.status = code } }
        self.read(output.fileHandleForReading) { $1.output.take($0) }
        self.read(errors.fileHandleForReading) { $1.errors.take($0) }
    }

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
        return self.state.withLock { state in
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

    private func read(_ handle: FileHandle, _ take: @escaping @Sendable ([UInt8], inout State) -> Void) {
        Thread.detachNewThread {
            while true {
                let bytes = [UInt8](handle.availableData)
                self.change { take(bytes, &$0) }
                if bytes.isEmpty { return }
            }
        }
    }

    private func change(_ body: (inout sending State) -> Void) {
        let ready = self.state.withLock { state in
            body(&state)
            let now = state
            let ready = state.waiting.filter { $0.isReady(now) }.map(\.continuation)
            if !ready.isEmpty { state.waiting.removeAll { $0.isReady(now) } }
            return ready
        }
        for continuation in ready { continuation.resume() }
    }

    private func wait(until isReady: @escaping @Sendable (State) -> Bool) async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isNow = self.state.withLock { state in
                    guard !isReady(state) else { return true }
                    state.waiting.append((isReady, continuation))
                    return false
                }
                if isNow { continuation.resume() }
            }
        } onCancel: {
            self.send(SIGKILL)
        }
    }
}
