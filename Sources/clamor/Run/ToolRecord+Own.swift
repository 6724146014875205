import CPosix
import Measurement

extension ToolRecord {
    /// This program.
    static let own = Version.tool
}

extension RunRecord {
    /// The record of a run on this host that begins now, for the board and the endpoint.
    static func begun(_ command: [String], plan: [String: JSONValue]) -> RunRecord {
        RunRecord(
            command: command,
            tool: .own,
            host: HostFacts.read(),
            plan: plan,
            startedAt: WallClock.rfc3339(clamor_realtime_nanoseconds())
        )
    }
}
