package import HostFit
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
        // Clients come before the measured phase, which is no part of theirs.
        let objectives =
            self.objectives.flatMap { ["--threshold", $0] } + (self.variesClients ? [] : ["--end-decided"])
        let duration = ["--duration", DurationText.text(self.hold)]
        return self.load + varied + duration + objectives + ["--out", directory, "--quiet", "--no-page"]
    }
}

/// The options of `clamor plan`, read and checked.
package struct FleetPlanOptions: Sendable, HasResults, OptionsRoot {
    package static let usual = Self()

    /// The fleet.
    package var scenario: ScenarioOptions?
    package var node = FleetPlan.Node(cores: 1, memoryBytes: 0)
    /// Of CPU and memory, 0 to 1.
    package var headroom = 0.3
    package var losses = 0
    package var sessions = 2_000
    /// A file of costs.
    package var costs: String?
    /// Of the server that is measured; empty where the costs are known.
    package var processes: [String] = []
    package var results = ResultOptions()
}
