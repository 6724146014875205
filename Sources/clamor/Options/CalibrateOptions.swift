import Report

/// What `clamor calibrate` is told, read and checked.
package struct CalibrateOptions: Sendable {
    /// Seconds in the place of minutes, and less sure.
    package var quick = false
    /// The file that is left.
    package var output = Calibration.defaultPath
    package var json = false
    package var quiet = false

    package init() {}
}

extension OptionReader {
    mutating func read(_ command: CalibrateCommand, into options: inout CalibrateOptions) {
        options.quick = command.quick
        options.output = command.out ?? options.output
        if command.out == "" { self.report("--out", "is empty; name a file") }
        (options.json, options.quiet) = (command.json, command.quiet)
        if command.json, command.quiet { self.report("--quiet", "--json writes to stdout; leave one of the two out") }
    }
}
