import Foundation

/// This program as a child process.
final class SelfProcess: Sendable {
    /// The target of a child's standard stream.
    enum Stream: Sendable {
        case nowhere
        /// The same as this process's stream.
        case inherited
        /// A pipe to this process.
        case piped
    }

    private let process = Process()
    private let input: FileHandle?
    let output: FileHandle?
    let errors: FileHandle?

    /// Starts the child; `environment` has the differences to this process's environment.
    init(
        _ arguments: [String],
        input: Stream = .nowhere,
        output: Stream = .nowhere,
        errors: Stream = .nowhere,
        environment: [String: String] = [:]
    ) throws {
        self.process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        var all = ProcessInfo.processInfo.environment
        // Any user of the host sees the arguments of a process, and none but this one its environment.
        let shown = Redaction.command(arguments.map { Redaction.hideSetting($0) })
        self.process.arguments = shown
        if shown != arguments, let text = try? JSONEncoder().encode(arguments) {
            all[Self.argumentsName] = String(decoding: text, as: UTF8.self)
        }
        // Only the parent writes the summary.
        all["GITHUB_STEP_SUMMARY"] = nil
        self.process.environment = all.merging(environment) { $1 }
        let (toChild, fromChild, errorsOfChild) = (Self.pipe(input), Self.pipe(output), Self.pipe(errors))
        self.process.standardInput = Self.end(input, toChild, FileHandle.standardInput)
        self.process.standardOutput = Self.end(output, fromChild, FileHandle.standardOutput)
        self.process.standardError = Self.end(errors, errorsOfChild, FileHandle.standardError)
        self.input = toChild?.fileHandleForWriting
        self.output = fromChild?.fileHandleForReading
        self.errors = errorsOfChild?.fileHandleForReading
        try self.process.run()
    }

    private static let argumentsName = "CLAMOR_ARGUMENTS"

    /// The arguments of this process: those of its parent's ``init(_:input:output:errors:environment:)``, if they have
    /// secrets.
    static var ownArguments: [String] {
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

    /// Writes a line to the child's standard input; `false` on an error.
    @discardableResult
    func say(_ line: String) -> Bool {
        (try? self.input?.write(contentsOf: Data("\(line)\n".utf8))) != nil
    }

    /// Closes the child's standard input, which ends a broker or a segment.
    func closeInput() { try? self.input?.close() }

    func interrupt() {
        if self.process.isRunning { kill(self.process.processIdentifier, SIGINT) }
    }

    /// Blocks until the child has exited with a status or by a signal.
    @discardableResult
    func wait() -> (status: Int32, isSignal: Bool) {
        self.process.waitUntilExit()
        return (self.process.terminationStatus, self.process.terminationReason == .uncaughtSignal)
    }

    /// Runs a blocking wait on its own thread, because the threads of tasks must not block.
    static func onThread<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread { continuation.resume(returning: body()) }
        }
    }

    /// The lines of a stream, including an incomplete last one; each read blocks.
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
                guard let data = self.handle?.availableData, !data.isEmpty else {
                    defer { self.unread = [] }
                    return self.unread.isEmpty ? nil : String(decoding: self.unread, as: UTF8.self)
                }
                self.unread += data
            }
        }
    }
}
