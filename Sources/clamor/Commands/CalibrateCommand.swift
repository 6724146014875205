import ArgumentParser

struct CalibrateCommand: OptionsCommand {
    static let configuration = CommandConfiguration(
        commandName: "calibrate",
        abstract: "Proves the meter on this host, and says what host and generator can do.",
        discussion: """
            Against the embedded broker: delays, stalls, losses, duplicates and swaps that it makes and counts, beside what \
            the runs report; how exactly a rate is kept; what a message costs the generator, by its own account and the \
            kernel's; what runs of the same differ by; the largest rate and number of clients before the generator is the \
            limit. Each check prints what was injected, what was reported, the difference, and ok or not ok. Exit 99 where \
            one is not ok. The file it leaves is what clamor compare takes the noise between runs from where a side is a \
            single run. Nothing else should run meanwhile; it takes some four minutes, --quick half of one.
            """
    )

    @Flag(name: .long, help: "Seconds in the place of minutes, and less sure.") var quick = false
    @Option(name: .long, help: ArgumentHelp("The file. (default: results/calibration.json)", valueName: "file"))
    var out: String?
    @Flag(name: .long, help: "Only the file's text on stdout.") var json = false
    @Flag(name: .long, help: "Nothing on stdout.") var quiet = false

    func invocation(_ reader: inout OptionReader) -> Invocation {
        var options = CalibrateOptions()
        reader.read(self, into: &options)
        return .calibrate(options)
    }
}
