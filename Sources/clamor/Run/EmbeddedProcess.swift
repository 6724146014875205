import EmbeddedBroker
import Foundation

/// `clamor broker` as a child process: its own descriptors and its own core.
///
/// It lives as long as the pipe to its standard input is open, so it ends with its parent, however that ends.
final class EmbeddedProcess {
    struct StartFailed: Error, CustomStringConvertible {
        let description: String
    }

    let port: Int
    private let process: Process
    private let input: FileHandle
    private let output: FileHandle
    private var unread: [UInt8] = []

    /// Starts the broker on free ports of 127.0.0.1, with the flags of `--broker`, which were checked
    /// before.
    ///
    /// - Parameters:
    ///   - arguments: those flags.
    ///   - transport: what the run's clients speak below MQTT; ``port`` is its port.
    ///   - flags: what the broker needs for it, such as `--certfile`.
    ///   - environment: what it needs beside the environment of this process, and no command line may show.
    /// - Throws: why there is no broker.
    init(
        arguments: [String],
        transport: BrokerListener.Transport = .tcp,
        flags: [String] = [],
        environment: [String: String] = [:]
    ) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        let listener = transport == .tcp ? [] : ["--\(transport.rawValue)-port", "0"]
        process.arguments = ["broker", "--child", "-h", "127.0.0.1", "-p", "0"] + listener + flags + arguments
        if !environment.isEmpty {
            process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        }
        let input = Pipe()
        let output = Pipe()
        process.standardInput = input
        process.standardOutput = output
        do {
            try process.run()
        } catch {
            throw StartFailed(description: "the embedded broker did not start: \(error.localizedDescription)")
        }
        self.process = process
        self.input = input.fileHandleForWriting
        self.output = output.fileHandleForReading
        var first: [UInt8] = []
        var rest: [UInt8] = []
        Self.readLine(self.output, &rest, into: &first)
        let line = String(decoding: first, as: UTF8.self)
        guard let port = BrokerPorts.read(line)?.first(where: { $0.transport == transport })?.port else {
            process.waitUntilExit()
            throw StartFailed(description: "the embedded broker did not start, it said: \(line)")
        }
        self.port = port
        self.unread = rest
    }

    /// What the broker counted up to now.
    func counters() -> BrokerCounters? {
        guard self.process.isRunning, (try? self.input.write(contentsOf: Data("counters\n".utf8))) != nil else {
            return nil
        }
        var line: [UInt8] = []
        Self.readLine(self.output, &self.unread, into: &line)
        return try? JSONDecoder().decode(BrokerCounters.self, from: Data(line))
    }

    /// Ends it and waits.
    func stop() {
        try? self.input.close()
        self.process.waitUntilExit()
    }

    /// Blocks until a whole line has come, or the child is gone.
    private static func readLine(_ handle: FileHandle, _ unread: inout [UInt8], into line: inout [UInt8]) {
        while true {
            if let end = unread.firstIndex(of: UInt8(ascii: "\n")) {
                line += unread[..<end]
                unread.removeSubrange(...end)
                return
            }
            let data = handle.availableData
            if data.isEmpty {
                line += unread
                unread = []
                return
            }
            unread += data
        }
    }
}
