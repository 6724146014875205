package import Measurement

/// The capacity of a host and generator, and the accuracy of the meter there: the file of schema
/// `clamor.calibration/1`.
package struct Calibration: Codable, Hashable, Sendable {
    package static let currentSchema = "clamor.calibration/1"
    package static let defaultPath = "results/calibration.json"

    /// The generator's cost per message, in closed loop.
    package struct Cost: Codable, Hashable, Sendable {
        package var qos: Int
        package var cpuSecondsPerMessage: Double
        package var messagesPerSecond: Double?

        package init(qos: Int, cpuSecondsPerMessage: Double, messagesPerSecond: Double?) {
            self.qos = qos
            self.cpuSecondsPerMessage = cpuSecondsPerMessage
            self.messagesPerSecond = messagesPerSecond
        }

        private enum CodingKeys: String, CodingKey {
            case qos
            case cpuSecondsPerMessage = "cpu_seconds_per_message"
            case messagesPerSecond = "messages_per_second"
        }
    }

    /// How far a search came, and what ended it.
    package struct Limit: Codable, Hashable, Sendable {
        /// "rate" or "clients".
        package var varies: String
        package var command: String
        /// As in `capacity.json`: "generator-limited", "found" (the broker was the limit), "at-least"...
        package var kind: String
        /// The largest that held; absent where none did.
        package var load: Double?
        package var reason: String?

        package init(varies: String, command: String, kind: String, load: Double?, reason: String?) {
            self.varies = varies
            self.command = command
            self.kind = kind
            self.load = load
            self.reason = reason
        }
    }

    package var schema = Self.currentSchema
    package var tool: ToolRecord
    package var host: HostFacts
    /// RFC 3339.
    package var startedAt: String
    /// Every check in seconds, each less sure than it could be.
    package var quick: Bool
    /// Every check that was made is.
    package var ok = true
    package private(set) var checks: [CalibrationCheck] = []
    package var costs: [Cost] = []
    package var limits: [Limit] = []

    package init(tool: ToolRecord, host: HostFacts, startedAt: String, quick: Bool) {
        self.tool = tool
        self.host = host
        self.startedAt = startedAt
        self.quick = quick
    }

    private enum CodingKeys: String, CodingKey {
        case schema, tool, host
        case startedAt = "started_at"
        case quick, ok, checks, costs, limits
    }

    package mutating func add(_ checks: [CalibrationCheck]) {
        self.checks += checks
        self.ok = self.checks.allSatisfy(\.ok)
    }

    package var text: String { (try? PrettyJSON.text(self, path: "text")) ?? "\n" }
}
