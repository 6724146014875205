import Measurement
package import Scenario

/// A scenario that is to be run, and what its record and its messages say of it.
package struct RunPlan: Sendable {
    package var scenario: ScenarioOptions
    /// How messages name settings.
    package var names: OptionNames
    /// Takes the lines for standard error in its place.
    package var hears: (@Sendable (String) -> Void)?
    /// As it was given, before a coordinator's run took it in.
    private let given: ScenarioOptions

    /// `isDivided`: the scenario's segments compare the hash of the schedule.
    package init(_ scenario: ScenarioOptions, isDivided: Bool = false) {
        self.scenario = scenario
        self.given = scenario
        self.names = scenario.isFile ? .keys : .flags
        if isDivided || scenario.common.segment.part != nil {
            self.scenario.common.segment.schedule = scenario.scheduleHash
        }
    }

    /// The plan in `run.json`: all settings that affect the outcome, without secrets.
    func record(_ seed: UInt64) -> [String: JSONValue] { self.given.plan(seed: seed) }
}
