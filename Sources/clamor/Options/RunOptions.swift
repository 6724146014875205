/// One server, as the command line names it.
package struct HostAndPort: Hashable, Sendable {
    package var host: String
    package var port: Int

    package init(host: String, port: Int) {
        self.host = host
        self.port = port
    }
}

/// Where the clients connect.
package enum RunTarget: Hashable, Sendable {
    /// Real servers, taken in turn.
    case servers([HostAndPort])
    /// `clamor broker` as a child process; `arguments` are its faults, checked.
    case embedded(arguments: [String])
}

/// When an operation of a publisher is due.
package enum PacingOption: Hashable, Sendable {
    /// Open loop over all clients together, operations per second.
    case rate(Double)
    /// Open loop per client: nanoseconds between its messages.
    case interval(Int64)
    /// Each client keeps its window full.
    case closedLoop
}

/// What a message carries.
package enum PayloadOption: Hashable, Sendable {
    /// This many bytes; from 32 on they begin with the header that the ledger reads.
    case generated(size: Int)
    /// A text of the user, with placeholders; the ledger is off.
    case message([UInt8])
}

package enum TopologyOption: String, CaseIterable, Sendable {
    case pair
    case fanIn = "fan-in"
    case fanOut = "fan-out"
    case shared
}

/// Everything that `conn`, `pub`, `sub` and `pubsub` are told, read and checked.
///
/// Durations are nanoseconds. Texts may hold placeholders where DESIGN section 2 allows them.
package struct RunOptions: Hashable, Sendable {
    package enum Kind: String, CaseIterable, Sendable {
        case conn, pub, sub, pubsub
    }

    package var kind: Kind
    /// The command as typed, with every secret replaced by `***`; for `run.json`.
    package var redactedCommand: [String] = []

    // Where to.
    package var target = RunTarget.servers([HostAndPort(host: "127.0.0.1", port: 1883)])
    /// The protocol level on the wire: 3 (3.1), 4 (3.1.1) or 5.
    package var protocolLevel: UInt8 = 5
    /// Local addresses to connect from; empty: the system's choice, spread by itself on loopback.
    package var sourceAddresses: [String] = []

    // Who.
    /// Clients that publish; all clients of `conn`; 0 for `sub`.
    package var publishers = 1
    /// Clients that subscribe.
    package var subscribers = 0
    /// `%i` of the first client is this plus 1.
    package var startNumber = 0
    /// Client identifiers of publishers (and of `conn`), and of subscribers.
    package var publisherID = "clamor-pub-%i"
    package var subscriberID = "clamor-sub-%i"
    package var username: String?
    package var password: String?
    /// Seconds; 0 is off.
    package var keepAlive: UInt16 = 300
    package var clean = true
    /// Seconds; MQTT 5 only.
    package var sessionExpiry: UInt32?

    // Connecting.
    /// Connects per second, open loop; `nil`: as fast as it goes with 64 pending per target.
    package var connectRate: Double?
    package var connectTimeout: Int64 = 10_000_000_000
    /// Further attempts of a client whose first connect failed.
    package var connectRetries = 0
    /// Reconnects of a client at most; 0 is off.
    package var reconnects = 0
    package var reconnectPeriod: Int64 = 1_000_000_000

    // Publishing and subscribing.
    package var topology = TopologyOption.pair
    /// The topic that publishers write to.
    package var topic = "clamor/%i"
    /// The filters of `sub`.
    ///
    /// Empty for `pubsub`: there it follows from `topology` and `topic`.
    package var filters: [String] = []
    package var payload = PayloadOption.generated(size: 256)
    /// QoS levels, each once, in the order given; the publishers (of `sub`: the subscribers) are spread over them.
    package var qualities: [UInt8] = [0]
    package var retain = false
    /// Messages of all clients together; `nil`: no limit.
    package var limit: UInt64?
    /// As given with `-F`; see ``window`` and ``batch``.
    package var inflight: Int?
    package var pacing = PacingOption.closedLoop
    /// Publishers wait until every client is up or has failed.
    package var waitsForAll = true
    package var ackTimeout: Int64 = 30_000_000_000

    // Phases.
    /// `nil`: until the limit is spent, or until SIGINT where there is none.
    package var duration: Int64? = 10_000_000_000
    package var warmup: Int64 = 0
    package var drain: Int64 = 10_000_000_000

    // The generator and its results.
    /// Event loops; `nil`: ``defaultThreads(cores:loopback:)``.
    package var threads: Int?
    /// Bytes of one read at most.
    package var readSize = 65_536
    package var seed: UInt64?
    package var validates = true
    package var thresholds: [String] = []
    package var outputDirectory: String?
    package var perClient = false
    package var json = false
    package var quiet = false
    package var strict = false

    package init(kind: Kind) {
        self.kind = kind
    }
}

extension RunOptions {
    /// Publishes in flight per client at QoS 1 and 2; 0: the peer's receive maximum.
    package var window: Int { self.inflight ?? 16 }

    /// Messages per write at QoS 0 in closed loop.
    package var batch: Int {
        switch self.inflight {
        case nil: 1
        case 0: Self.largestBatch
        case let given?: min(given, Self.largestBatch)
        }
    }

    package static let largestBatch = 1_024

    /// The size of the header in front of a payload that the ledger needs.
    package static let headerSize = 32

    /// Whether messages carry the header, so that each can be accounted for.
    package var hasLedger: Bool {
        switch self.payload {
        case .generated(let size): size >= Self.headerSize
        case .message: false
        }
    }

    /// The QoS that subscribers of `pubsub` ask for.
    package var highestQoS: UInt8 { self.qualities.max() ?? 0 }

    /// The run has no end of its own, so SIGINT is its regular end.
    package var endsBySignal: Bool { self.duration == nil && self.limit == nil }

    /// Event loops where none are asked for: on loopback the server needs a core as well.
    package static func defaultThreads(cores: Int, loopback: Bool) -> Int {
        max(1, loopback ? cores - 1 : cores)
    }
}
