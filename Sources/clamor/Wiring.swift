/// The places where the command line meets the rest of the program.
enum Wiring {
    /// What only other targets can judge.
    static let checks = OptionChecks()

    static func run(_ options: RunOptions) async -> ExitStatus {
        .unavailable
    }

    static func serve(_ options: BrokerOptions) async -> ExitStatus {
        .unavailable
    }

    static func report(_ options: ReportOptions) async -> ExitStatus {
        .dataError
    }
}
