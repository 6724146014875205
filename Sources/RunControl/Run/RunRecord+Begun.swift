import CPosix
package import Measurement

extension RunRecord {
    /// The record of a run on this host that begins now, for the board and the endpoint.
    package static func begun(_ command: [String], plan: [String: JSONValue]) -> RunRecord {
        RunRecord(
            command: command,
            tool: Version.tool,
            host: HostFacts.read(),
            plan: plan,
            startedAt: WallClock.rfc3339(clamor_realtime_nanoseconds())
        )
    }
}
