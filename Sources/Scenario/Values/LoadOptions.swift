package import LoadEngine
package import Measurement
import NIOCore
package import Transport
package import Workloads

/// Where the clients connect.
package enum RunTarget: Hashable, Sendable {
    /// Real servers, taken in turn.
    case servers([Target])
    /// `clamor broker` as a child process; `arguments` are those of `--broker`, checked.
    case embedded(arguments: [String])
    /// Where the DNS says that an XMPP domain is served (RFC 6120 §3.2.1); `resolver` is the name server that is asked,
    /// `nil` the system's.
    case service(domain: String, resolver: String?)
}

/// When an operation of a client is due.
package enum PacingOption: Hashable, Sendable {
    /// Open loop over all clients together, operations per second.
    case rate(Double)
    /// Open loop per client: nanoseconds between its messages.
    case interval(Int64)
    /// Each client keeps its window full.
    case closedLoop
}

package enum PayloadOption: Hashable, Sendable {
    /// So many bytes, drawn for each message; where there is room they begin with the header that the ledger reads.
    case generated(sizes: ClosedRange<Int>)
    /// A text of the user, with placeholders; the ledger follows it where it holds `%{ledger}`.
    case message([UInt8])
    /// The same from a file, with the placeholders of `emqtt_bench` too; `%RANDOM%` is so many bytes.
    case template([UInt8], randomSizes: ClosedRange<Int>)
    /// Bytes of the user as they are; the ledger is off.
    case file([UInt8])

    package static func generated(size: Int) -> Self { .generated(sizes: size...size) }

    /// Bytes on average; of a text those before its placeholders are replaced.
    package var meanSize: Double {
        switch self {
        case .generated(let sizes): Double(sizes.lowerBound + sizes.upperBound) / 2
        case .message(let bytes), .file(let bytes): Double(bytes.count)
        case .template(let bytes, let sizes): Double(bytes.count + (sizes.lowerBound + sizes.upperBound) / 2)
        }
    }

    /// The text whose placeholders are replaced; empty without one.
    package var text: String {
        switch self {
        case .generated, .file: ""
        case .message(let bytes), .template(let bytes, _): String(decoding: bytes, as: UTF8.self)
        }
    }

    /// Where an MQTT message has the header that the ledger reads; `nil`: nowhere.
    ///
    /// `isAddressed`: a publisher has several audiences.
    package func carrier(isAddressed: Bool) -> LedgerCarrier? {
        switch self {
        case .generated(let sizes): .front(atLeast: sizes.lowerBound, isAddressed: isAddressed)
        case .message, .template: self.draft().hasLedger ? .text : nil
        case .file: nil
        }
    }

    /// Of a text: its variables.
    package func draft(columns: [String] = []) -> Template.Draft {
        switch self {
        case .generated, .file: Template.Draft()
        case .message(let bytes): Template.draft(bytes, columns: columns)
        case .template(let bytes, let sizes): Template.draft(bytes, columns: columns, randomSizes: sizes)
        }
    }
}

/// Options of every run, whatever its protocol; read and checked.
///
/// Durations are nanoseconds.
package struct LoadOptions: Hashable, Sendable, HasResults, OptionsRoot {
    package static let usual = Self(name: "", port: 0, operates: true)

    /// The words behind `clamor`, joined by a hyphen: the name of the results.
    package var name: String
    /// The name of the run, or of its scenario; `nil`: ``name`` says enough.
    package var title: String?
    /// `KEY=VALUE`.
    package var tags: [String] = []

    // Where to.
    package var target: RunTarget
    /// Local addresses to connect from; empty: the system's choice, spread by itself on loopback.
    package var sourceAddresses: [String] = []
    package var transport = TransportOptions()

    // Clients.
    /// Clients that carry out operations, or only connect.
    package var operators = 1
    /// Clients that only receive.
    package var listeners = 0
    /// `%i` of the first client is this plus 1.
    package var startNumber = 0

    // Connecting.
    /// Connects per second, open loop; `nil`: as fast as it goes with 64 pending per target.
    package var connectRate: Double?
    package var connectTimeout: Int64 = 10_000_000_000
    /// Further attempts of a client whose first connect failed.
    package var connectRetries = 0
    /// Reconnects of a client at most; 0 is off.
    package var reconnects = 0
    package var backoff = Backoff()
    package var failsOver = false
    /// Clients that sleep.
    package var sleep = CycleOption()
    /// Clients that leave on purpose and come back.
    package var churn: DeparturePlan.Churn?
    /// In the order of their times.
    package var storms: [DeparturePlan.Storm] = []

    // Operations.
    /// Whether the clients do anything but connect, and receive.
    package var operates: Bool
    package var payload = PayloadOption.generated(size: 256)
    /// The lines of the files that messages name.
    package var lines: [String: RowTable] = [:]
    /// Operations of all clients together; `nil`: no limit.
    package var limit: UInt64?
    /// As given with `-F`.
    package var inflight: Int?
    package var pacing = PacingOption.closedLoop
    /// How a rate goes on; what ``pacing`` says is then its highest.
    package var shape = RateShape.level
    package var arrivals = ArrivalOption.even
    /// In closed loop, nanoseconds: how long a client waits before it sends again.
    package var think: Int64 = 0
    /// Operations wait until every client is up or has failed.
    package var waitsForAll = true
    /// Under a coordinator: clients that are up when the load begins; `nil`: all that can be.
    package var leastClients: TurnoutOption?
    package var ackTimeout: Int64 = 30_000_000_000

    // Phases.
    /// `nil`: until the limit is spent, or until SIGINT where there is none.
    package var duration: Int64? = 10_000_000_000
    package var warmup: Int64 = 0
    package var drain: Int64 = 10_000_000_000
    /// Whether the load ends once an objective cannot be met any more.
    package var endsDecided = false
    /// The parts of the load, one behind the other; with them there is no warm-up but those among them.
    package var stages: [StageOption] = []

    // The generator and its results.
    /// Event loops; `nil`: ``defaultThreads(cores:loopback:)``.
    package var threads: Int?
    /// `nil`: as the load allows.
    package var sockets: SocketKind?
    /// Bytes of one read at most.
    package var readSize = 65_536
    package var seed: UInt64?
    package var validates = true
    package var results = ResultOptions()
    package var perClient = false
    package var segment = SegmentOptions()
    package var live = LiveOptions()

    package init(name: String, port: Int, operates: Bool) {
        self.name = name
        self.target = .servers([Target(host: "127.0.0.1", port: port)])
        self.operates = operates
    }
}

/// The options of one protocol's runs: the common ones, under the same names, and its own.
@dynamicMemberLookup
package protocol ProtocolOptions {
    var common: LoadOptions { get set }
    /// Whether any of its operations have due times of their own.
    var isOpenLoop: Bool { get }
}

extension ProtocolOptions {
    package var isOpenLoop: Bool { self.common.isOpenLoop }

    package subscript<Value>(dynamicMember path: WritableKeyPath<LoadOptions, Value>) -> Value {
        get { self.common[keyPath: path] }
        set { self.common[keyPath: path] = newValue }
    }

    package subscript<Value>(dynamicMember path: KeyPath<LoadOptions, Value>) -> Value { self.common[keyPath: path] }
}

extension LoadOptions {
    /// The name in the default directory of the results: letters and digits that no shell minds.
    package var directoryName: String {
        let plain = self.title?.prefix(60).map { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == ".") ? $0 : "-" }
        guard let plain, plain.contains(where: { $0.isLetter || $0.isNumber }) else { return self.name }
        return String(plain)
    }

    package var clients: Int { self.operators + self.listeners }

    /// Operations under way per client that are answered; 0: as many as the peer allows.
    package var window: Int { self.inflight ?? 16 }

    /// Whether each client makes an account, which is done once.
    package var makesAccounts: Bool { self.name == "xmpp-register" }

    /// Whether operations have due times of their own.
    package var isOpenLoop: Bool { self.pacing != .closedLoop && self.operates }

    /// The run has no end of its own, so SIGINT is its regular end.
    package var endsBySignal: Bool { self.duration == nil && self.limit == nil }

    /// Event loops where none are asked for: on loopback the server needs a core as well.
    package static func defaultThreads(cores: Int, loopback: Bool) -> Int { max(1, loopback ? cores - 1 : cores) }
}
