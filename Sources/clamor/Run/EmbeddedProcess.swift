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
    private let process: SelfProcess
    private var answers: SelfProcess.Lines

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

    /// What the broker counted up to now.
    func counters() -> BrokerCounters? {
        guard self.process.isRunning, self.process.say("counters") else { return nil }
        let line = self.answers.next() ?? ""
        return try? JSONDecoder().decode(BrokerCounters.self, from: Data(line.utf8))
    }

    /// Ends it and waits.
    func stop() {
        self.process.closeInput()
        self.process.wait()
    }
}
