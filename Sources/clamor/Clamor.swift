import ArgumentParser
import DataEncodings
import Foundation
import RunControl
import RunResult
import Scenario

/// The command itself; all work is in its subcommands.
struct Clamor: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "clamor",
        abstract: "A load generator for MQTT brokers and XMPP servers.",
        version: Version.text,
        subcommands: [
            LoadCommand<Conn>.self, LoadCommand<Pub>.self, LoadCommand<Sub>.self, LoadCommand<PubSub>.self,
            XMPPCommand.self, RunFile.self, CoordinateCommand.self, WatchCommand.self, DecodeCommand.self,
            DoctorCommand.self,
            BrokerCommand.self, ProxyCommand.self, ReportCommand.self, CompareCommand.self, TrendCommand.self,
            MergeCommand.self,
            CapacityCommand.self, PlanCommand.self, CalibrateCommand.self, InitCommand.self,
        ],
        helpNames: [.long]
    )

    static var commandNames: [String] { self.configuration.subcommands.compactMap { $0.configuration.commandName } }
}

@main
enum Main {
    static func main() {
        _ = Descriptors.inherited
        SelfProcess.hideSecrets(by: { Redaction.command($0.map { Redaction.hideSetting($0) }) })
        switch Invocation.parse(SelfProcess.ownArguments, environment: ProcessInfo.processInfo.environment) {
        case .run(let scenario) where scenario.isCheck: self.leave(ScenarioCheck(scenario: scenario).perform())
        case .run(let scenario): self.perform { await Run(RunPlan(scenario)).perform() }
        case .series(let options): self.perform { await SeriesSession(options: options).perform() }
        case .coordinate(let options):
            self.perform { await CoordinateSession(options, RunPlan(options.scenario, isDivided: true)).perform() }
        case .watch(let options): self.perform { await WatchSession(options).perform() }
        case .decode(let options): self.perform { await DecodeSession(options).perform() }
        case .broker(let options): self.perform { await BrokerService(options: options).perform() }
        case .proxy(let options): self.perform { await ProxyService(options: options).perform() }
        case .doctor(let options): self.perform { await DoctorSession(options: options).perform() }
        case .draft(let draft): self.leave(draft.write(ProgressScreen(quiet: false, json: false)))
        case .report(let options): self.leave(ReportSession(options: options).perform())
        case .capacity(let options): self.perform { await CapacitySession(options: options).perform() }
        case .plan(let options): self.perform { await FleetPlanSession(options: options).perform() }
        case .calibrate(let options): self.perform { await CalibrateSession(options: options).perform() }
        case .merge(let options): self.leave(MergeSession(options).perform())
        case .compare(let options): self.leave(CompareSession(options: options).perform())
        case .trend(let options): self.leave(TrendSession(options: options).perform())
        case .text(let text):
            ProgressScreen(quiet: false, json: false).write(text + "\n")
            self.leave(.success)
        case .refused(let lines):
            for line in lines { self.writeError(line) }
            self.leave(.usage)
        case .wrong(let lines):
            for line in lines { self.writeError(line) }
            self.leave(.dataError)
        }
    }

    /// Works on other threads until the end.
    ///
    /// `main` is not `async`, for then its thread would end up in `dispatch_main`, which lets every signal through,
    /// and SIGINT would kill the program instead of ending the run.
    private static func perform(_ work: @escaping @Sendable () async -> ExitStatus) -> Never {
        Signals.block()
        Task { self.leave(await work()) }
        while true { pause() }
    }

    /// A result that standard output did not take is no success.
    private static func leave(_ status: ExitStatus) -> Never {
        guard let words = ProgressScreen.outputError else { exit(status.rawValue) }
        self.writeError("clamor: standard output: \(words)")
        exit(ExitStatus.first([status, .cannotCreate]).rawValue)
    }

    private static func writeError(_ line: String) {
        FileHandle.standardError.write(Data("\(OneLine.of(line, most: 4_000))\n".utf8))
    }
}
