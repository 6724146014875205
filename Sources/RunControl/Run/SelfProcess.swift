package import Foundation
import Scenario
import Synchronization

package final class SelfProcess: Sendable {
    /// The target of a child's standard stream.
    package enum Stream: Sendable {
        case nowhere
        /// The same as this process's stream.
        case inherited
        /// A pipe to this process.
        case piped
        /// Of standard input: messages both ways.
        case messages
    }

    private let process = Process()
    package let messages: MessageSocket?
    package let output: FileHandle?
    let errors: FileHandle?

    /// Starts the child; `environment` has the differences to this process's environment.
    package init(
        _ arguments: [String],
        input: Stream = .nowhere,
        output: Stream = .nowhere,
        errors: Stream = .nowhere,
        environment: [String: String] = [:]
    ) throws {
        self.process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        var all = ProcessInfo.processInfo.environment
        // Any user of the host sees the arguments of a process, and none but this one its environment.
        let shown = Self.hide.withLock(\.self)(arguments)
        self.process.arguments = shown
        if shown != arguments, let text = try? JSONEncoder().encode(arguments) {
            all[Self.argumentsName] = String(decoding: text, as: UTF8.self)
        }
        // Only the parent writes the summary.
        all["GITHUB_STEP_SUMMARY"] = nil
        self.process.environment = all.merging(environment) { $1 }
        let (fromChild, errorsOfChild) = (Self.pipe(output), Self.pipe(errors))
        let pair = input == .messages ? try MessageSocket.pair() : nil
        self.process.standardInput = pair?.child ?? FileHandle.nullDevice
        self.process.standardOutput = Self.end(output, fromChild, FileHandle.standardOutput)
        self.process.standardError = Self.end(errors, errorsOfChild, FileHandle.standardError)
        self.messages = pair?.own
        self.output = fromChild?.fileHandleForReading
        self.errors = errorsOfChild?.fileHandleForReading
        try self.process.run()
        // The child has its own: this one would hide its end.
        try pair?.child.close()
    }

    private static let argumentsName = "CLAMOR_ARGUMENTS"

    /// Without the program's own rules every option is taken to be secret.
    private static let hide = Mutex<@Sendable ([String]) -> [String]> { words in
        words.prefix { !$0.hasPrefix("-") } + [Redaction.mask]
    }

    /// `hide`: replaces the secrets in a command line by ``Redaction/mask``.
    package static func hideSecrets(by hide: @escaping @Sendable ([String]) -> [String]) {
        self.hide.withLock { $0 = hide }
    }

    /// The arguments of this process: those of its parent's ``init(_:input:output:errors:environment:)``, if they have
    /// secrets.
    package static var ownArguments: [String] {
        let isHidden = CommandLine.arguments.contains { $0.contains(Redaction.mask) }
        let given = isHidden ? ProcessInfo.processInfo.environment[self.argumentsName] : nil
        unsetenv(self.argumentsName)
        let hidden = given.flatMap { try? JSONDecoder().decode([String].self, from: Data($0.utf8)) }
        return hidden ?? Array(CommandLine.arguments.dropFirst())
    }

    private static func pipe(_ stream: Stream) -> Pipe? { stream == .piped ? Pipe() : nil }

    private static func end(_ stream: Stream, _ pipe: Pipe?, _ own: FileHandle) -> Any {
        if let pipe { return pipe }
        return stream == .inherited ? own : FileHandle.nullDevice
    }

    var isRunning: Bool { self.process.isRunning }

    func interrupt() {
        if self.process.isRunning { kill(self.process.processIdentifier, SIGINT) }
    }

    /// Blocks until the child has exited with a status or by a signal.
    @discardableResult
    package func wait() -> (status: Int32, isSignal: Bool) {
        self.process.waitUntilExit()
        return (self.process.terminationStatus, self.process.terminationReason == .uncaughtSignal)
    }

    /// Runs a blocking wait on its own thread, because the threads of tasks must not block.
    package static func onThread<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread { continuation.resume(returning: body()) }
        }
    }

    /// The lines of a stream; each read blocks.
    struct Lines: Sequence, IteratorProtocol {
        private let handle: FileHandle?
        private var unread: [UInt8] = []

        init(of handle: FileHandle?) { self.handle = handle }

        mutating func next() -> String? {
            while true {
                if let end = self.unread.firstIndex(of: UInt8(ascii: "\n")) {
                    let line = String(decoding: self.unread[..<end], as: UTF8.self)
                    self.unread.removeSubrange(...end)
                    return line
                }
                var bytes = [UInt8](repeating: 0, count: 4_096)
                let count = self.handle.map { read($0.fileDescriptor, &bytes, bytes.count) } ?? 0
                if count < 0, errno == EINTR { continue }
                guard count > 0 else {
                    defer { self.unread = [] }
                    // A last line without its end is one too.
                    return self.unread.isEmpty ? nil : String(decoding: self.unread, as: UTF8.self)
                }
                self.unread += bytes[..<count]
            }
        }
    }
}
