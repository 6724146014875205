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
        var bytes: (output: [UInt8], errors: [UInt8]) = ([], [])
        var isOpen = (output: true, errors: true)
        var status: Int32?
        var waiting: [(isReady: @Sendable (State) -> Bool, continuation: CheckedContinuation<Void, Never>)] = []

        var isOver: Bool { self.status != nil && !self.isOpen.output && !self.isOpen.errors }

        func lines(_ stream: Stream) -> [String] {
            let bytes = stream == .output ? self.bytes.output : self.bytes.errors
            return bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).dropLast()
                .map { String(decoding: $0, as: UTF8.self) }
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
        self.read(output.fileHandleForReading) { bytes, state in
            bytes.isEmpty ? state.isOpen.output = false : state.bytes.output.append(contentsOf: bytes)
        }
        self.read(errors.fileHandleForReading) { bytes, state in
            bytes.isEmpty ? state.isOpen.errors = false : state.bytes.errors.append(contentsOf: bytes)
        }
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
                output: String(decoding: state.bytes.output, as: UTF8.self),
                errors: String(decoding: state.bytes.errors, as: UTF8.self)
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
    package func lines(
        on stream: Stream = .output,
        until isEnough: @escaping @Sendable ([String]) -> Bool
    ) async throws -> [String] {
        await self.wait { state in
            isEnough(state.lines(stream)) || !(stream == .output ? state.isOpen.output : state.isOpen.errors)
        }
        try Task.checkCancellation()
        let (lines, errors) = self.state.withLock {
            ($0.lines(stream), String(decoding: $0.bytes.errors, as: UTF8.self))
        }
        guard isEnough(lines) else {
            throw EndedEarly(description: "ended before the awaited line; last \(lines.suffix(3)), errors \(errors)")
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
