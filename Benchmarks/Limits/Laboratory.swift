import Foundation
import Glibc

/// The measured program: the C program (or, where brokers are compared, mosquitto), or Clamor.
enum Side: String, Codable {
    case reference, clamor
}

/// One billed process, as stored in `limits.json`.
struct SingleRun: Codable {
    var row = ""
    var pair = 0
    var side = Side.reference
    var command: [String]
    var server: String
    var cpuSeconds: Double
    var wallSeconds: Double
    var messages: UInt64?
    var serverCPUSeconds: Double?
    /// The server's CPU time over the client's wall time.
    var serverCoreShare: Double?
}

/// The two programs, the two cores and the directory in between.
final class Laboratory {
    static let clientCore = Core.allowed.first ?? 0
    static let serverCore = Core.allowed.dropFirst().first ?? 0

    let clamor: String
    let climit: String
    let mosquitto: String
    /// jemalloc counts what a thread allocates; without it those figures are absent.
    let jemalloc: String?
    let directory: String
    /// Of servers with TLS; made when the first is started.
    private(set) lazy var certificates = Result { try Certificates(in: self.directory) }
    /// Whether this `clamor` has the command.
    private(set) var hasDecode = false
    private var number = 0
    private var runs: [SingleRun] = []

    init(_ options: Options) throws {
        guard Core.allowed.count >= 2 else {
            throw Refusal("client and server need a core each, and this process may use \(Core.allowed.count)")
        }
        guard let mosquitto = Self.find("mosquitto", in: ["/usr/sbin", "/usr/local/sbin"]) else {
            throw Refusal("mosquitto is missing: apt-get install mosquitto")
        }
        for program in [options.clamor, options.climit] where access(program, X_OK) != 0 {
            throw Refusal("\(program) is missing: make limits builds it")
        }
        self.clamor = options.clamor
        self.climit = options.climit
        self.mosquitto = mosquitto
        let libraries = ["lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu", "lib64", "local/lib"].map { "/usr/\($0)" }
        self.jemalloc = Self.find("libjemalloc.so.2", in: libraries)
        var template = Array("/tmp/clamor-limits-XXXXXX".utf8CString)
        guard let made = mkdtemp(&template) else { throw Refusal("no directory can be made in /tmp") }
        self.directory = String(cString: made)
        let help = try Child(
            [self.clamor, "decode", "--help"],
            core: Self.clientCore,
            directory: self.directory,
            name: "help"
        )
        self.hasDecode = try help.wait(limit: 20).status == 0
    }

    func close() { try? FileManager.default.removeItem(atPath: self.directory) }

    private static func find(_ name: String, in places: [String]) -> String? {
        let path = ProcessInfo.processInfo.environment["PATH", default: ""].split(separator: ":").map(String.init)
        return (path + places).map { "\($0)/\(name)" }.first { access($0, R_OK) == 0 }
    }

    /// A name that no other file in the directory has.
    func unique(_ name: String) -> String {
        self.number += 1
        return "\(self.number)-\(name)"
    }

    /// Does `body` and returns, beside its result, the processes that were billed meanwhile.
    func record<R>(_ body: () throws -> R) rethrows -> ([SingleRun], R) {
        self.runs = []
        let result = try body()
        return (self.runs, result)
    }

    // MARK: Clients

    /// Runs a client against a server, calls `during` meanwhile, and bills it.
    func bill(
        _ command: [String],
        server: Server?,
        limit: Double = 180,
        during: (Child) throws -> Void = { _ in }
    ) throws -> (ending: Child.Ending, counts: SinkCounts?) {
        let before = try server?.cpuSeconds()
        let child = try Child(
            command,
            core: Self.clientCore,
            directory: self.directory,
            name: self.unique("client"),
            preload: command[0] == CommandLine.arguments[0] ? self.jemalloc : nil
        )
        var failure: (any Error)?
        do {
            try during(child)
        } catch {
            failure = error
            child.signal(SIGKILL)
        }
        let waited = Result { try child.wait(limit: limit) }
        if let failure { throw failure }
        let ending = try waited.get()
        guard ending.status == 0 else {
            let why = ending.errors.split(separator: "\n").first ?? "no message"
            throw Mismatch("\(command.joined(separator: " ")): status \(ending.status): \(why)")
        }
        self.lastRest = try server?.untilIdle() ?? 0
        let after = try server?.cpuSeconds()
        let counts = try server?.served()
        let used = before.flatMap { before in after.map { $0 - before } }
        self.runs.append(
            SingleRun(
                command: command,
                server: server?.name ?? "none",
                cpuSeconds: ending.cpuSeconds,
                wallSeconds: ending.wallSeconds,
                serverCPUSeconds: used,
                serverCoreShare: used.map { $0 / (ending.wallSeconds + self.lastRest) }
            )
        )
        return (ending, counts)
    }

    /// Adds to the last billed process how many messages it is billed for.
    func billed(messages: UInt64) { self.runs[self.runs.count - 1].messages = messages }

    /// Seconds for which the server read what the last client had left it: a client that waits for no answer, such as
    /// libmosquitto at QoS 0, is gone long before.
    private(set) var lastRest = 0.0

    /// How much of its core the server used while the last billed process ran.
    var lastServerShare: Double { self.runs.last?.serverCoreShare ?? 0 }
}
