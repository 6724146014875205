/// `run.json`: all results of a run, schema `clamor.run/2`.
///
/// Every report is made from it. It is first written at the start, without metrics, so most fields may be absent.
public struct RunRecord: Codable, Hashable, Sendable {
    package static let currentSchema = "clamor.run/2"
    /// All that can be read.
    ///
    /// Records of `clamor.run/1` know nothing of operations without an answer.
    package static let knownSchemas = ["clamor.run/1", currentSchema]

    package var schema = Self.currentSchema
    /// The command line, with secrets replaced.
    package var command: [String]
    package var tool: ToolRecord
    package var host: HostFacts
    /// The settings of the run; the keys depend on the command.
    package var plan: [String: JSONValue]
    package var segment: SegmentRecord
    /// RFC 3339.
    package var startedAt: String
    /// The time from the first client's start to the end of the drain; absent during the run.
    package var durationSeconds: Double?
    package var verdict: Verdict?
    package var stages: [StageRecord] = []
    package var thresholds: [ThresholdResult] = []
    package var metrics: [Metric] = []
    package var books: [Books] = []
    /// The clients by role: "publishers", "subscribers".
    package var clients: [String: ClientGroup] = [:]
    package var generator: GeneratorRecord
    package var ledger: LedgerRecord
    package var errors: [ErrorRecord] = []
    package var notes: [Verdict.Reason]?
    /// For a scenario: the groups in order; absent in a run of one command.
    ///
    /// Metrics and errors then name their group, and so do books and the keys of ``clients``.
    package var groups: [GroupRecord]?
    /// The clients of a run of one command; groups have their own counts.
    package var population: ClientCounts?
    /// The run in short; absent until it has ended.
    package var findings: FindingsRecord?
    /// The slowest messages of the measured phase, the slowest first; at most ``slowestLimit``.
    package var slowest: [SlowMessage]?
    /// The versions of TLS that connections negotiated, with the number of connections; absent without TLS.
    package var tlsVersions: [String: UInt64]?
    /// The servers under test, one for each group that knows its own; absent if none has named itself.
    package var servers: [ServerRecord]?

    package static let slowestLimit = 100

    /// The record of a run that begins.
    package init(
        command: [String],
        tool: ToolRecord,
        host: HostFacts,
        plan: [String: JSONValue],
        startedAt: String,
        segment: SegmentRecord = SegmentRecord(),
        generator: GeneratorRecord = GeneratorRecord(),
        ledger: LedgerRecord = LedgerRecord(on: false)
    ) {
        self.command = command
        self.tool = tool
        self.host = host
        self.plan = plan
        self.segment = segment
        self.startedAt = startedAt
        self.generator = generator
        self.ledger = ledger
    }

    /// Whether it is a benchmark of decoders, whose lanes are measured one after the other.
    package var isOfDecoders: Bool { self.metrics.contains { $0.isOf(.decodePackets) && $0.labels["form"] != nil } }

    private enum CodingKeys: String, CodingKey {
        case schema, command, tool, host, plan, segment
        case startedAt = "started_at"
        case durationSeconds = "duration_seconds"
        case verdict, stages, thresholds, metrics, books, clients, generator, ledger, errors, notes, groups, population
        case findings, slowest, servers
        case tlsVersions = "tls_versions"
    }
}

/// The program that made the record.
package struct ToolRecord: Codable, Hashable, Sendable {
    package var name: String
    package var version: String
    /// The commit of the sources, followed by ` (modified)` if they were changed.
    package var revision: String?
    /// The compiler and its target.
    package var compiler: String?
    /// The version of each package that is linked, by its identity.
    package var dependencies: [String: String]?

    package init(name: String, version: String) {
        self.name = name
        self.version = version
    }

    /// Whether results of both may be merged: the same program in the same version.
    package func isSameRelease(as other: ToolRecord) -> Bool {
        self.name == other.name && self.version == other.version
    }
}

/// A part of the run: a phase, or a stage of a scenario.
package struct StageRecord: Codable, Hashable, Sendable {
    package var name: String
    /// Seconds from the start of the run.
    package var start: Double
    package var durationSeconds: Double
    /// Whether totals and rates include it.
    package var measured: Bool

    package init(name: String, start: Double, durationSeconds: Double, measured: Bool) {
        self.name = name
        self.start = start
        self.durationSeconds = durationSeconds
        self.measured = measured
    }

    private enum CodingKeys: String, CodingKey {
        case name
        case start = "start_seconds"
        case durationSeconds = "duration_seconds"
        case measured
    }
}

/// The kinds of sockets that clients can have.
package enum SocketKind: String, CaseIterable, Codable, Hashable, Sendable {
    /// Channels of SwiftNIO, for every layer above TCP.
    case nio
    /// Sockets read and written straight by the clients, for plain TCP.
    case socket
}

/// The resources that the generator itself used.
package struct GeneratorRecord: Codable, Hashable, Sendable {
    package var eventLoops: Int?
    /// The kind of the clients' sockets.
    package var transport: SocketKind?
    /// User and system time of the whole process.
    package var cpuSeconds: Double?
    /// The share of one core that each loop's thread used in the measured phase.
    package var loopCPUShares: [Double]?
    package var peakMemoryBytes: UInt64?
    /// The share of all CPU time, in the seconds of load, that the hypervisor gave to other machines.
    package var hostSteal: Double?

    package init() {}

    private enum CodingKeys: String, CodingKey {
        case eventLoops = "event_loops"
        case transport
        case cpuSeconds = "cpu_seconds"
        case loopCPUShares = "loop_cpu_shares"
        case peakMemoryBytes = "peak_memory_bytes"
        case hostSteal = "host_steal"
    }
}

package struct ErrorRecord: Codable, Hashable, Sendable {
    /// The group's name in a run with several groups.
    package var group: String?
    package var kind: String
    package var count: UInt64
    /// RFC 3339.
    package var firstAt: String
    package var example: String

    /// The kind of a count of live connections that was wrong.
    package static let liveConnections = "live connections"

    package init(kind: String, count: UInt64, firstAt: String, example: String, group: String? = nil) {
        self.group = group
        self.kind = kind
        self.count = count
        self.firstAt = firstAt
        self.example = example
    }

    private enum CodingKeys: String, CodingKey {
        case group, kind, count
        case firstAt = "first_at"
        case example
    }
}
