import Measurement

/// The options of `clamor capacity`, read and checked.
package struct CapacityOptions: Sendable, HasResults, OptionsRoot {
    package static let usual = Self()

    /// The command line of a step, but for what the search decides.
    package var load: [String] = []
    /// Whether clients vary, and not the rate.
    package var variesClients = false
    package var objectives: [String] = []
    /// Nanoseconds.
    package var hold: Int64 = 20_000_000_000
    package var first: Double = 1_000
    package var most = Double.infinity
    package var results = ResultOptions()
    /// The endpoint shows the whole search; the steps watch servers by their own options.
    package var live = LiveOptions()
}

extension CapacityOptions {
    /// The command line of one step.
    package func arguments(load: Double, directory: String) -> [String] {
        let varied =
            self.variesClients
            ? ["-c", String(Int(load))] : ["--rate", "\(Words.plain((load * 1000).rounded() / 1000))/s"]
        let objectives = self.objectives.flatMap { ["--threshold", $0] }
        let duration = ["--duration", DurationText.text(self.hold)]
        return self.load + varied + duration + objectives + ["--out", directory, "--quiet", "--no-page"]
    }
}
