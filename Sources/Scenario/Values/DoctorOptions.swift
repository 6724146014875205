package struct DoctorOptions: Sendable, HasResults {
    /// Targets, source addresses, event loops, publishers and subscribers, rate: as the command that runs them has it.
    package var load = MQTTOptions(kind: .pubsub)
    /// Publishers and subscribers together; `nil` to ask only how many there could be.
    package var clients: Int?
    /// A scenario in place of all these.
    package var scenario: ScenarioOptions?
    /// Hosts like this one that are to carry it; `nil` to ask how many it needs.
    package var hosts: Int?
    package var results = ResultOptions()
}
