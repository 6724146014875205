/// The options of `clamor doctor`.
package struct DoctorOptions: Hashable, Sendable {
    /// Targets, source addresses, event loops, publishers and subscribers, rate: as the command that runs them has it.
    package var load = MQTTOptions(kind: .pubsub)
    /// Publishers and subscribers together; `nil` to ask only how many there could be.
    package var clients: Int?
    /// Only the JSON text on stdout.
    package var json = false
    package var quiet = false

    package init() {}
}
