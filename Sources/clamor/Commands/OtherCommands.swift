import ArgumentParser
import Scenario

struct RunFile: TableCommand {
    static let name = CommandName.run
    @Argument(help: ArgumentHelp("The scenario, YAML.", valueName: "file")) var file: String
    @OptionGroup var options: CommandOptions<Self>
    func invocation(_ given: inout GivenOptions) -> Invocation { given.scenario(self.file) }
}

struct CoordinateCommand: TableCommand {
    static let name = CommandName.coordinate
    @Argument(help: ArgumentHelp("The scenario, YAML.", valueName: "file")) var file: String
    @OptionGroup var options: CommandOptions<Self>
    func invocation(_ given: inout GivenOptions) -> Invocation { given.coordinate(self.file) }
}

struct WatchCommand: TableCommand {
    static let name = CommandName.watch
    @OptionGroup var options: CommandOptions<Self>
    func invocation(_ given: inout GivenOptions) -> Invocation { given.watch() }
}

struct CapacityCommand: TableCommand {
    static let name = CommandName.capacity
    @OptionGroup var options: CommandOptions<Self>
    @Argument(
        parsing: .captureForPassthrough,
        help: ArgumentHelp("The load: a command and its options.", valueName: "command")
    ) var load: [String] = []
    func invocation(_ given: inout GivenOptions) -> Invocation {
        let options = given.capacity(self.load)
        if let step = given.step(of: options) { given.check(step: .parse(step, environment: given.environment)) }
        return .capacity(options)
    }
}

struct PlanCommand: TableCommand {
    static let name = CommandName.plan
    @Argument(help: ArgumentHelp("The fleet: a scenario, YAML.", valueName: "file")) var file: String
    @OptionGroup var options: CommandOptions<Self>
    func invocation(_ given: inout GivenOptions) -> Invocation { given.plan(self.file) }
}

struct DecodeCommand: TableCommand {
    static let name = CommandName.decode
    @OptionGroup var options: CommandOptions<Self>
    func invocation(_ given: inout GivenOptions) -> Invocation { .decode(given.decode()) }
}

struct CalibrateCommand: TableCommand {
    static let name = CommandName.calibrate
    @OptionGroup var options: CommandOptions<Self>
    func invocation(_ given: inout GivenOptions) -> Invocation { .calibrate(given.calibrate()) }
}

struct DoctorCommand: TableCommand {
    static let name = CommandName.doctor
    @Argument(help: ArgumentHelp("A scenario, YAML: how many hosts like this one it needs.", valueName: "file"))
    var file: String?
    @OptionGroup var options: CommandOptions<Self>
    func invocation(_ given: inout GivenOptions) -> Invocation { given.doctor(self.file) }
}

struct BrokerCommand: TableCommand {
    static let name = CommandName.broker
    @OptionGroup var options: CommandOptions<Self>
    func invocation(_ given: inout GivenOptions) -> Invocation { .broker(given.broker()) }
}

struct ProxyCommand: TableCommand {
    static let name = CommandName.proxy
    @Argument(help: ArgumentHelp("The server, such as 127.0.0.1:1883.", valueName: "host:port")) var target: String
    @OptionGroup var options: CommandOptions<Self>
    func invocation(_ given: inout GivenOptions) -> Invocation { .proxy(given.proxy(self.target)) }
}

struct ReportCommand: TableCommand {
    static let name = CommandName.report
    @Argument(help: ArgumentHelp("The result directory of a run.", valueName: "dir")) var directories: [String] = []
    @OptionGroup var options: CommandOptions<Self>
    func invocation(_ given: inout GivenOptions) -> Invocation { .report(given.report(self.directories)) }
}

struct TrendCommand: TableCommand {
    static let name = CommandName.trend
    @Argument(help: ArgumentHelp("A history, or the result directories of several runs.", valueName: "dir"))
    var directories: [String] = []
    @OptionGroup var options: CommandOptions<Self>
    func invocation(_ given: inout GivenOptions) -> Invocation { .trend(given.trend(self.directories)) }
}

struct CompareCommand: TableCommand {
    static let name = CommandName.compare
    @Argument(
        help: ArgumentHelp("Result directories of two runs, BASE and NEW; either may hold several.", valueName: "dir")
    ) var directories: [String] = []
    @OptionGroup var options: CommandOptions<Self>
    func invocation(_ given: inout GivenOptions) -> Invocation { .compare(given.compare(self.directories)) }
}

struct MergeCommand: TableCommand {
    static let name = CommandName.merge
    @Argument(help: ArgumentHelp("The result directories of all segments of one run.", valueName: "dir"))
    var directories: [String] = []
    @OptionGroup var options: CommandOptions<Self>
    func invocation(_ given: inout GivenOptions) -> Invocation { .merge(given.merge(self.directories)) }
}

struct InitCommand: TableCommand {
    static let name = CommandName.draft
    @Argument(help: ArgumentHelp("The ready scenario. (default: \(ReadyScenario.all[0].name))", valueName: "name"))
    var scenario: String?
    @OptionGroup var options: CommandOptions<Self>
    func invocation(_ given: inout GivenOptions) -> Invocation { given.draft(self.scenario) }
}
