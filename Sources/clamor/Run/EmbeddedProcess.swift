import EmbeddedBroker
import Foundation

/// `clamor broker` as a child process, with its own descriptors and its own core.
///
/// It runs while the pipe to its standard input is open, so it ends with its parent, even if that is killed.
final class EmbeddedProcess {
    struct StartFailed: Error, CustomStringConvertible {
        let description: String
    }

    let port: Int
    private let process: SelfProcess
    private var answers: SelfProcess.Lines

    /// Starts the broker on free ports of 127.0.0.1, with the checked flags of `--broker`.
    ///
    /// - Parameters:
    ///   - arguments: the flags of `--broker`.
    ///   - transport: the clients' transport below MQTT; ``port`` is its port.
    ///   - flags: the broker's flags for this transport, such as `--certfile`.
    ///   - environment: additional environment variables, for values that a command line must not show.
    /// - Throws: the reason why the broker did not start.
    init(
        arguments: [String],
        transport: BrokerListener.Transport = .tcp,
        flags: [String] = [],
        environment: [String: String] = [:]
    ) throws {
        let listener = transport == .tcp ? [] : ["--\(transport.rawValue)-port", "0"]
        do {
            self.process = try SelfProcess(
                ["broker", "--child", "-h", "127.0.0.1", "-p", "0"] + listener + flags + arguments,
                input: .piped,
                output: .piped,
                errors: .inherited,
                environment: environment
            )
        } catch {
            throw StartFailed(description: "the embedded broker did not start: \(error.localizedDescription)")
        }
        self.answers = SelfProcess.Lines(of: self.process.output)
        let line = self.answers.next() ?? ""
        guard let port = BrokerPorts.read(line)?.first(where: { $0.transport == transport })?.port else {
            self.process.wait()
            throw StartFailed(description: "the embedded broker did not start, it said: \(line)")
        }
        self.port = port
    }

    /// The broker's final counters: it serves no longer.
    func counters() -> BrokerCounters? {
        guard self.process.isRunning, self.process.say("counters") else { return nil }
        let line = self.answers.next() ?? ""
        return try? JSONDecoder().decode(BrokerCounters.self, from: Data(line.utf8))
    }

    /// Ends the broker and waits for its end.
    func stop() {
        self.process.closeInput()
        self.process.wait()
    }
}
