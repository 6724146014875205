import Foundation
import Measurement
import Report

// What is run. Both programs send the same packets: MQTT 3.1.1, topics of about 20 bytes, payloads of 64.

private let topic = "limits/load/topic/"

/// A run of a program that prints its figures.
struct ClientRun {
    let figures: [String: Double]
    let ending: Child.Ending
    let counts: SinkCounts?
}

/// A run of `clamor`.
struct ClamorRun {
    let record: RunRecord
    let ending: Child.Ending
    let counts: SinkCounts?
}

extension Laboratory {
    /// Runs a client that prints one line of JSON, and returns its numbers.
    func client(_ command: [String], server: Server?) throws -> ClientRun {
        let (ending, counts) = try self.bill(command, server: server)
        return ClientRun(figures: try Self.numbers(ending), ending: ending, counts: counts)
    }

    func figures(_ command: [String]) throws -> [String: Double] {
        let result = try self.client(command, server: nil)
        if let messages = result.figures["messages"] { self.billed(messages: UInt64(messages)) }
        return result.figures
    }

    static func numbers(_ ending: Child.Ending) throws -> [String: Double] {
        guard let object = try JSONSerialization.jsonObject(with: Data(ending.lastLine.utf8)) as? [String: Any] else {
            throw Mismatch("no object: \(ending.lastLine)")
        }
        return object.compactMapValues { ($0 as? NSNumber)?.doubleValue }
    }

    /// Runs `clamor` and reads its `run.json`; a run that is not to be believed is refused.
    func clamorRun(_ arguments: [String], server: Server?) throws -> ClamorRun {
        let out = "\(self.directory)/\(self.unique("run"))"
        let command = [self.clamor] + arguments + ["--quiet", "--out", out]
        let (ending, counts) = try self.bill(command, server: server)
        let record = try RunJSON.read(directory: out)
        try? FileManager.default.removeItem(atPath: out)
        if let verdict = record.verdict, verdict.state >= .unreconciled {
            throw Mismatch("\(command.joined(separator: " ")): \(verdict.state.rawValue)")
        }
        if let error = record.errors.first { throw Mismatch("\(command.joined(separator: " ")): \(error.example)") }
        return ClamorRun(record: record, ending: ending, counts: counts)
    }
}

extension RunRecord {
    func percentile(_ name: String, _ read: (DurationReading) -> Double) throws -> Double {
        guard let reading = self.metrics.first(where: { $0.name == name })?.duration else {
            throw Mismatch("run.json has no \(name)")
        }
        return read(reading) * 1e6
    }
}

/// Refuses a run whose counts differ: a figure per message needs the right number of messages.
private func agree(_ what: String, _ counts: [(String, UInt64)]) throws {
    guard let first = counts.first, counts.contains(where: { $0.1 != first.1 }) || first.1 == 0 else { return }
    throw Mismatch("\(what): " + counts.map { "\($0.0) \($0.1)" }.joined(separator: ", "))
}

// MARK: - Closed loop

/// Publishers that send as much as socket or window take.
struct Publishing {
    let name: String
    let label: String
    let server: Server.Kind
    let qos: Int
    let window: Int
    let goal: Double

    init(_ name: String, _ label: String, _ server: Server.Kind, qos: Int, window: Int, goal: Double) {
        self.name = name
        self.label = label
        self.server = server
        self.qos = qos
        self.window = window
        self.goal = goal
    }

    func workload(seconds: Double) -> Workload {
        let line = Line(label: self.label, key: Workload.cost, unit: "CPU-µs", goal: .atMostTimes(self.goal))
        return Workload(name: self.name, lines: [line]) { side, laboratory in
            let server = try Server(self.server, in: laboratory)
            return switch side {
            case .reference: try self.reference(laboratory, server, seconds: seconds)
            case .clamor: try self.clamor(laboratory, server, seconds: seconds)
            }
        }
    }

    private func reference(_ laboratory: Laboratory, _ server: Server, seconds: Double) throws -> [String: Double] {
        let result = try laboratory.client(
            [
                laboratory.climit, "publish", "--port", "\(server.port)", "--clients", "100", "--size", "64",
                "--topic", topic, "--qos", "\(self.qos)", "--batch", "\(self.qos == 0 ? self.window : 1)",
                "--window", "\(self.window)", "--seconds", "\(seconds)",
            ],
            server: server
        )
        let sent = UInt64(result.figures["messages"] ?? 0)
        var counts = [("sent", sent)]
        if self.qos > 0 { counts.append(("acknowledged", UInt64(result.figures["acked"] ?? 0))) }
        return try self.figures(laboratory, result.ending, result.counts, counts)
    }

    private func clamor(_ laboratory: Laboratory, _ server: Server, seconds: Double) throws -> [String: Double] {
        let run = try laboratory.clamorRun(
            [
                "pub", "-p", "\(server.port)", "-V", "4", "-c", "100", "-s", "64", "-t", topic + "%i",
                "-q", "\(self.qos)", "-F", "\(self.window)", "--duration", "\(seconds)s",
            ],
            server: server
        )
        guard let books = run.record.books.first else { throw Mismatch("run.json has no books") }
        let answered = self.qos == 0 ? ("confirmed", books.confirmed ?? 0) : ("acknowledged", books.acked ?? 0)
        return try self.figures(laboratory, run.ending, run.counts, [("sent", books.sent ?? 0), answered])
    }

    private func figures(
        _ laboratory: Laboratory,
        _ ending: Child.Ending,
        _ sink: SinkCounts?,
        _ counts: [(String, UInt64)]
    ) throws -> [String: Double] {
        try agree(self.name, counts + (sink.map { [("the sink counted", $0.publishes[self.qos])] } ?? []))
        laboratory.billed(messages: counts[0].1)
        return [
            Workload.cost: ending.cpuSeconds * 1e6 / Double(counts[0].1),
            "messages_per_second": Double(counts[0].1) / ending.wallSeconds,
            "server_share": laboratory.lastServerShare,
        ]
    }
}

// MARK: - At a rate

/// CPU and messages of one run.
private struct Bill {
    var cpuSeconds: Double
    var messages: UInt64
    var figures: [String: Double] = [:]

    /// What each further message of a longer run cost: start, connects and report are in both, and leave.
    func cost(beyond short: Bill) throws -> Double {
        guard self.messages > short.messages, self.cpuSeconds > short.cpuSeconds else {
            throw Mismatch("the longer run has no more messages, or took no more CPU: this machine is too busy")
        }
        return (self.cpuSeconds - short.cpuSeconds) * 1e6 / Double(self.messages - short.messages)
    }
}

/// A run at a rate keeps a core busy for a part of the time only, so that the start would weigh: a run of one second
/// is taken off.
private func steady(
    seconds: Double,
    _ laboratory: Laboratory,
    _ run: (Double) throws -> Bill
) throws -> [String: Double] {
    let short = try run(1)
    let long = try run(1 + seconds)
    return long.figures.merging([
        Workload.cost: try long.cost(beyond: short), "server_share": laboratory.lastServerShare,
    ]) { $1 }
}

/// Publishers with a plan, into the discard sink.
struct PacedPublishing {
    let clients: Int
    let rate: Int

    func measure(_ side: Side, _ laboratory: Laboratory, seconds: Double) throws -> [String: Double] {
        var figures = try steady(seconds: seconds, laboratory) { seconds in
            let server = try Server(.sink("discard"), in: laboratory)
            return switch side {
            case .reference: try self.reference(laboratory, server, seconds)
            case .clamor: try self.clamor(laboratory, server, seconds)
            }
        }
        figures["core_percent"] = (figures[Workload.cost] ?? 0) * Double(self.rate) / 1e4
        return figures
    }

    private func reference(_ laboratory: Laboratory, _ server: Server, _ seconds: Double) throws -> Bill {
        let result = try laboratory.client(
            [
                laboratory.climit, "publish", "--port", "\(server.port)", "--clients", "\(self.clients)",
                "--size", "64", "--topic", topic, "--qos", "0", "--rate", "\(self.rate)", "--seconds", "\(seconds)",
            ],
            server: server
        )
        let sent = UInt64(result.figures["messages"] ?? 0)
        try agree("open-loop", [("sent", sent), ("the sink counted", result.counts?.publishes[0] ?? 0)])
        laboratory.billed(messages: sent)
        return Bill(
            cpuSeconds: result.ending.cpuSeconds,
            messages: sent,
            figures: ["p50_us": result.figures["lag_p50_us"] ?? 0, "p99_us": result.figures["lag_p99_us"] ?? 0]
        )
    }

    private func clamor(_ laboratory: Laboratory, _ server: Server, _ seconds: Double) throws -> Bill {
        let run = try laboratory.clamorRun(
            [
                "pub", "-p", "\(server.port)", "-V", "4", "-c", "\(self.clients)", "-s", "64", "-t", topic + "%i",
                "-q", "0", "--rate", "\(self.rate)/s", "--duration", "\(seconds)s",
            ],
            server: server
        )
        let sent = run.record.books.first?.sent ?? 0
        try agree("open-loop", [("sent", sent), ("the sink counted", run.counts?.publishes[0] ?? 0)])
        laboratory.billed(messages: sent)
        return Bill(
            cpuSeconds: run.ending.cpuSeconds,
            messages: sent,
            figures: [
                "p50_us": try run.record.percentile("schedule_lag", \.p50),
                "p99_us": try run.record.percentile("schedule_lag", \.p99),
            ]
        )
    }
}

/// Both ends of deliveries.
struct Delivering {
    /// As many publishers as subscribers, or one publisher to 1,000.
    let pairs: Int?
    /// Of all publishers together.
    let rate: Int
    let server: Server.Kind

    func measure(_ side: Side, _ laboratory: Laboratory, seconds: Double) throws -> [String: Double] {
        try steady(seconds: seconds, laboratory) { seconds in
            let server = try Server(self.server, in: laboratory)
            return switch side {
            case .reference: try self.reference(laboratory, server, seconds)
            case .clamor: try self.clamor(laboratory, server, seconds)
            }
        }
    }

    private func reference(_ laboratory: Laboratory, _ server: Server, _ seconds: Double) throws -> Bill {
        let result = try laboratory.client(
            [laboratory.climit, "receive", "--port", "\(server.port)", "--size", "64", "--topic", topic]
                + (self.pairs.map { ["--clients", "\($0)"] } ?? ["--subscribers", "1000"])
                + ["--rate", "\(self.rate)", "--seconds", "\(seconds)"],
            server: server
        )
        let irregular = ["gaps", "late", "foreign"].reduce(0) { $0 + (result.figures[$1] ?? 0) }
        guard irregular == 0 else { throw Mismatch("the C ledger is not in order: \(result.ending.lastLine)") }
        return try self.bill(
            laboratory,
            result.ending,
            result.counts,
            expected: UInt64(result.figures["expected"] ?? 0),
            received: UInt64(result.figures["received"] ?? 0),
            ["p50_us": result.figures["latency_p50_us"] ?? 0, "p99_us": result.figures["latency_p99_us"] ?? 0]
        )
    }

    private func clamor(_ laboratory: Laboratory, _ server: Server, _ seconds: Double) throws -> Bill {
        let shape =
            self.pairs.map { ["-c", "\($0)", "--topology", "pair", "-t", topic + "%i"] }
            ?? ["-c", "1", "--subscribers", "1000", "--topology", "fan-out", "-t", topic + "1"]
        let run = try laboratory.clamorRun(
            ["pubsub", "-p", "\(server.port)", "-V", "4", "-s", "64", "-q", "0"] + shape
                + ["--rate", "\(self.rate)/s", "--duration", "\(seconds)s"],
            server: server
        )
        guard run.record.ledger.on else { throw Mismatch("the ledger was off") }
        let books = run.record.books.first
        return try self.bill(
            laboratory,
            run.ending,
            run.counts,
            expected: books?.expected ?? 0,
            received: books?.received ?? 0,
            [
                "p50_us": try run.record.percentile("delivery_duration", \.p50),
                "p99_us": try run.record.percentile("delivery_duration", \.p99),
            ]
        )
    }

    private func bill(
        _ laboratory: Laboratory,
        _ ending: Child.Ending,
        _ sink: SinkCounts?,
        expected: UInt64,
        received: UInt64,
        _ figures: [String: Double]
    ) throws -> Bill {
        let counted = sink.map { [("the sink delivered", $0.delivered)] } ?? []
        try agree("deliveries", [("expected", expected), ("received", received)] + counted)
        laboratory.billed(messages: received)
        return Bill(cpuSeconds: ending.cpuSeconds, messages: received, figures: figures)
    }
}

// MARK: - Connects

/// Many clients that connect and then hold still.
struct Connecting {
    /// As many as the descriptors allow, up to 15,000.
    let clients: Int
    private let few = 10
    private let addresses = 4

    init() {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        self.clients = min(15_000, Int(min(limit.rlim_max, 1 << 30)) - 200)
    }

    /// What each client beyond the first ten costs, from begin to the moment all are up.
    func measure(_ side: Side, _ laboratory: Laboratory) throws -> [String: Double] {
        let base = try self.run(side, laboratory, clients: self.few)
        let full = try self.run(side, laboratory, clients: self.clients)
        let more = Double(self.clients - self.few)
        return [
            Workload.cost: (full.cpu - base.cpu) * 1e6 / more,
            "resident_kib": (full.resident - base.resident) / 1024 / more,
            "server_share": laboratory.lastServerShare,
        ]
    }

    private func run(
        _ side: Side,
        _ laboratory: Laboratory,
        clients: Int
    ) throws -> (cpu: Double, resident: Double) {
        let server = try Server(.sink("discard"), in: laboratory)
        let hold = 2
        let sources = (0..<self.addresses).map { "127.0.0.\($0 + 2)" }.joined(separator: ",")
        let command =
            side == .reference
            ? [
                laboratory.climit, "connect", "--port", "\(server.port)", "--clients", "\(clients)",
                "--sources", "\(self.addresses)", "--seconds", "\(hold)",
            ]
            : [
                laboratory.clamor, "conn", "-p", "\(server.port)", "-V", "4", "-c", "\(clients)", "--ifaddr", sources,
                "--duration", "\(hold)s", "--connect-timeout", "60s", "--quiet", "--out",
                "\(laboratory.directory)/\(laboratory.unique("run"))",
            ]
        var sample = (cpu: 0.0, resident: 0.0)
        _ = try laboratory.bill(command, server: server) { child in
            let limit = Date().addingTimeInterval(120)
            while try server.counts().connects < UInt64(clients) {
                // It says so when the client is gone.
                _ = try child.residentBytes()
                if Date() > limit { throw Mismatch("\(clients) clients were not up after 120 s") }
                usleep(50_000)
            }
            // The last CONNACK has to arrive.
            usleep(300_000)
            sample = (try child.cpuSeconds(), try child.residentBytes())
            let live = try server.counts().live
            guard live == UInt64(clients) else { throw Mismatch("\(live) of \(clients) clients were up when sampled") }
        }
        laboratory.billed(messages: UInt64(clients))
        return sample
    }
}

// MARK: - Brokers

/// The C client's pairs, which keep a few messages under way each, against mosquitto (the reference) or the embedded
/// broker.
struct BrokerLoad {
    let pairs: Int
    let window: Int
    let seconds: Double

    func measure(_ side: Side, _ laboratory: Laboratory) throws -> [String: Double] {
        let server = try Server(side == .reference ? .mosquitto : .embedded, in: laboratory)
        let result = try laboratory.client(
            [
                laboratory.climit, "receive", "--port", "\(server.port)", "--size", "64", "--topic", topic,
                "--clients", "\(self.pairs)", "--window", "\(self.window)", "--seconds", "\(self.seconds)",
            ],
            server: server
        )
        let figures = result.figures
        let received = figures["received"] ?? 0
        try agree("broker", [("sent", UInt64(figures["expected"] ?? 0)), ("received", UInt64(received))])
        guard (figures["gaps"] ?? 1) + (figures["late"] ?? 1) + (figures["foreign"] ?? 1) == 0 else {
            throw Mismatch("\(server.name) lost or reordered messages: \(result.ending.lastLine)")
        }
        laboratory.billed(messages: UInt64(received))
        let wall = result.ending.wallSeconds
        return [
            "messages_per_second": (figures["steady_received"] ?? 0) / (figures["steady_wall_s"] ?? 1),
            Workload.cost: laboratory.lastServerShare * wall * 1e6 / received,
            "client_share": result.ending.cpuSeconds / wall,
        ]
    }
}

// MARK: - The decode command

/// `clamor decode`, whose figure stands beside the one measured here.
enum DecodeCommand {
    private static let forms = ["contiguous": "pipelined", "segments": "segments", "fragments": "fragments"]

    /// Nothing where the program has no such command.
    static func figures(_ form: String, _ laboratory: Laboratory) throws -> [String: Double] {
        guard laboratory.hasDecode, let name = Self.forms[form] else { return [:] }
        let run = try laboratory.clamorRun(
            [
                "decode", "-V", "4", "-s", "64", "-q", "0", "-t", "limits/decode/topic1",
                "--form", name, "--path", "memory", "--duration", "1s",
            ],
            server: nil
        )
        let metric = run.record.metrics.first { $0.name == "decode_packet_time" && $0.labels["form"] == name }
        guard let time = metric?.gauge?.value else { throw Mismatch("run.json has no decode_packet_time of \(name)") }
        return ["command_ns": time * 1e9]
    }
}
