import ArgumentParser

struct MergeCommand: OptionsCommand {
    static let configuration = CommandConfiguration(
        commandName: "merge",
        abstract: "Adds the results of all segments of a run to those of the whole, and judges its thresholds.",
        discussion: """
            Histograms are added bucket by bucket and counters one to one; levels add up, but of host_cpu_idle the lowest \
            counts and of host_cpu_pressure the highest. The verdict is the worst of all. Refused (exit 65) are a segment \
            that is missing, there twice, of another run or plan, not ended, or not whole.
            """
    )

    @Argument(help: ArgumentHelp("The result directories of all segments of one run.", valueName: "dir"))
    var directories: [String] = []
    @OptionGroup var results: ResultFlags

    func invocation(_ reader: inout OptionReader) -> Invocation {
        var options = MergeOptions()
        if self.directories.isEmpty { reader.report("DIR", "is missing; give the result directories of all segments") }
        for directory in self.directories { reader.check(directory: directory) }
        options.directories = self.directories
        options.redactedCommand = ["clamor"] + Redaction.command(reader.arguments)
        // Whether there is a ledger to ask is known by the segments.
        reader.read(self.results, hasLedger: true, into: &options)
        return .merge(options)
    }
}
