import ArgumentParser

struct CompareCommand: OptionsCommand {
    static let configuration = CommandConfiguration(
        commandName: "compare",
        abstract: "Compares two runs, or several of each side; exit 99 if a figure regressed beyond its limit.",
        discussion: """
            Every figure has its change with an interval of 95 %, from the runs of each side drawn anew, and within them \
            blocks of 5 s. A judged figure fails if it regressed beyond its limit, and significantly: of the same build \
            in fewer than 2 of 100 comparisons. Runs of another plan, CPU or number of cores are refused (exit 65).

            One run a side cannot show run-to-run noise. Such a comparison is indicative and exits 0 whatever it finds, \
            unless a noise file or --strict is given. Five runs of each side, taken in turn, are a good number.
            """
    )

    @Argument(
        help: ArgumentHelp(
            "Result directories of two runs, BASE and NEW; either may hold several.",
            valueName: "dir"
        )
    ) var directories: [String] = []
    @Option(
        name: .long,
        parsing: .upToNextOption,
        help: ArgumentHelp("Runs of the base.", valueName: "dir ...")
    ) var base: [String] = []
    @Option(
        name: .long,
        parsing: .upToNextOption,
        help: ArgumentHelp("Runs of what is judged.", valueName: "dir ...")
    ) var new: [String] = []
    @OptionGroup var comparison: ComparisonFlags
    @OptionGroup var files: ReportFlags
    @Flag(name: .long, help: "Also what does not differ.") var all = false
    @Flag(name: .long, help: "Exit 99 if a figure regressed, also with one run a side and no noise file.")
    var strict = false
    @Flag(name: .long, help: "Only JSON on stdout.") var json = false
    @Flag(name: .long, help: "Nothing on stdout.") var quiet = false

    func invocation(_ reader: inout OptionReader) -> Invocation {
        var options = CompareOptions()
        reader.read(self, into: &options)
        return .compare(options)
    }
}

/// What is judged, and what may differ.
struct ComparisonFlags: ParsableArguments {
    @Option(
        name: .long,
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            """
            What may get worse by how much, such as 'publish_ack_duration{qos=1} p99 10%'. Repeatable; then nothing else \
            is judged. (default: 5% for medians and rates, 10% for p99 of acknowledgements and deliveries, no more \
            errors and losses)
            """,
            valueName: "sentence"
        )
    ) var maxRegression: [String] = []
    @Option(
        name: .long,
        help: ArgumentHelp(
            """
            What runs of the same build differ by on this host, as clamor calibrate writes it. (default: of a single \
            run on a side results/calibration.json, if it is there and of this host and version)
            """,
            valueName: "file"
        )
    ) var noise: String?
    @Option(
        name: .long,
        help: ArgumentHelp(
            "What may differ, comma-separated: plan, cpu, cores, verdict, version (of --noise).",
            valueName: "kind,..."
        )
    ) var allowDifferent: String?

    /// The names of those that were given.
    var given: [String] {
        [
            ("--max-regression", !self.maxRegression.isEmpty), ("--noise", self.noise != nil),
            ("--allow-different", self.allowDifferent != nil),
        ].filter(\.1).map(\.0)
    }
}

/// Files for the programs around a run.
struct ReportFlags: ParsableArguments {
    @Option(
        name: .long,
        help: ArgumentHelp("What was judged, as JUnit XML; in a directory that exists.", valueName: "file")
    )
    var junit: String?
    @Option(
        name: .long,
        help: ArgumentHelp(
            "Adds a summary in Markdown; without it to the file that GITHUB_STEP_SUMMARY names, if any.",
            valueName: "file"
        )
    ) var summaryMd: String?
}
