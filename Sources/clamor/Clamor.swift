import ArgumentParser
import Foundation

/// The command itself; all work is in its subcommands.
struct Clamor: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "clamor",
        abstract: "A load generator for MQTT brokers whose numbers are true, and which says when they are not.",
        discussion: """
            -h is the host, as in emqtt_bench and mosquitto_pub, so help is --help. For a first run no server is needed:

              clamor pubsub -h embedded -c 100 --rate 1000/s

            Exit codes: 0 all held, 64 wrong usage, 65 wrong result file, 69 no connection, 73 results cannot be \
            written, 97 unreconciled and 98 generator-limited (both with --strict), 99 a threshold failed, \
            105 interrupted.
            """,
        version: "0.1.0",
        subcommands: [Conn.self, Pub.self, Sub.self, PubSub.self, BrokerCommand.self, ReportCommand.self],
        helpNames: [.long]
    )

    static var commandNames: [String] { self.configuration.subcommands.compactMap { $0.configuration.commandName } }
}

@main
enum Main {
    /// Not `async`: that would park the main thread in libdispatch, which on Linux waits there with no signal blocked,
    /// and SIGINT would end the process instead of the run.
    static func main() {
        let invocation = Invocation.parse(
            Array(CommandLine.arguments.dropFirst()),
            environment: ProcessInfo.processInfo.environment,
            checks: Wiring.checks
        )
        switch invocation {
        case .run, .broker: Signals.block()
        case .report, .text, .refused: break
        }
        Task.detached { exit(await self.perform(invocation).rawValue) }
        while true { pause() }
    }

    private static func perform(_ invocation: Invocation) async -> ExitStatus {
        switch invocation {
        case .run(let options): return await Wiring.run(options)
        case .broker(let options): return await Wiring.serve(options)
        case .report(let options): return await Wiring.report(options)
        case .text(let text):
            print(text)
            return .success
        case .refused(let lines):
            for line in lines { self.writeError(line) }
            return .usage
        }
    }

    private static func writeError(_ line: String) {
        FileHandle.standardError.write(Data("\(line)\n".utf8))
    }
}
