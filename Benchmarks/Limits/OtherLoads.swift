import Foundation
import Glibc
import Measurement

/// Many clients that connect and then hold still.
struct Connecting {
    /// As many as the descriptors allow, up to 15,000.
    let clients: Int
    let wire: Server.Wire
    private let few = 10
    private let addresses: Int
    private let hold = 2

    /// `addresses`: source addresses; 1 leaves the choice to the system.
    init(over wire: Server.Wire = .plain, most: Int = 15_000, addresses: Int = 4) {
        self.wire = wire
        self.addresses = addresses
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        self.clients = min(most, Int(min(limit.rlim_max, 1 << 30)) - 200)
    }

    /// The cost of each client beyond the first ten: from the start until all are up, and to the end of the process.
    func measure(_ side: Side, _ laboratory: Laboratory) throws -> [String: Double] {
        let cost = try self.cost(laboratory) { port, clients in
            side == .reference
                ? try self.plain("connect", port, clients, laboratory) + laboratory.arguments(side, self.wire)
                : try self.clamor(port, clients, laboratory)
        }
        return [
            Workload.cost: cost.connect, "life_cpu_us": cost.life, "resident_kib": cost.resident,
            "per_second": cost.rate, "server_share": laboratory.lastServerShare,
        ]
    }

    /// The same from begin to end, and what libmosquitto takes.
    func measureLife(_ side: Side, _ laboratory: Laboratory) throws -> [String: Double] {
        var figures = try self.measure(side, laboratory)
        if side == .reference {
            figures["library_cpu_us"] = try self.cost(laboratory) { self.plain("library", $0, $1, laboratory) }.life
        } else {
            figures["library_cpu_us"] = figures["life_cpu_us"]
        }
        return figures
    }

    private func plain(_ command: String, _ port: Int, _ clients: Int, _ laboratory: Laboratory) -> [String] {
        [
            laboratory.climit, command, "--port", "\(port)", "--clients", "\(clients)",
            "--sources", "\(self.addresses > 1 ? self.addresses : 0)", "--seconds", "\(self.hold)",
        ]
    }

    private func clamor(_ port: Int, _ clients: Int, _ laboratory: Laboratory) throws -> [String] {
        let sources = (0..<self.addresses).map { "127.0.0.\($0 + 2)" }.joined(separator: ",")
        return try [
            laboratory.clamor, "conn", "-p", "\(port)", "-V", "4", "-c", "\(clients)",
            "--duration", "\(self.hold)s", "--connect-timeout", "60s", "--quiet", "--out",
            "\(laboratory.directory)/\(laboratory.unique("run"))",
        ] + (self.addresses > 1 ? ["--ifaddr", sources] : []) + laboratory.arguments(.clamor, self.wire)
    }

    private func cost(
        _ laboratory: Laboratory,
        command: (_ port: Int, _ clients: Int) throws -> [String]
    ) throws -> (connect: Double, life: Double, resident: Double, rate: Double) {
        let base = try self.run(laboratory, clients: self.few, command: command)
        let full = try self.run(laboratory, clients: self.clients, command: command)
        let more = Double(self.clients - self.few)
        return (
            (full.cpu - base.cpu) * 1e6 / more, (full.life - base.life) * 1e6 / more,
            (full.resident - base.resident) / 1024 / more, full.rate
        )
    }

    private func run(
        _ laboratory: Laboratory,
        clients: Int,
        command: (_ port: Int, _ clients: Int) throws -> [String]
    ) throws -> (cpu: Double, life: Double, resident: Double, rate: Double) {
        let server = try Server(.sink("discard"), over: self.wire, in: laboratory)
        var sample = (cpu: 0.0, life: 0.0, resident: 0.0, rate: 0.0)
        let (ending, _) = try laboratory.bill(try command(server.port, clients), server: server) { child in
            let limit = Date().addingTimeInterval(120)
            // Where the count stood when it was first seen to rise; the server is asked every 50 ms.
            var first: (time: Date, connects: UInt64)?
            var connects = try server.counts().connects
            while connects < UInt64(clients) {
                if first == nil, connects > 0 { first = (Date(), connects) }
                // It says so when the client is gone.
                _ = try child.residentBytes()
                if Date() > limit { throw Mismatch("\(clients) clients were not up after 120 s") }
                usleep(50_000)
                connects = try server.counts().connects
            }
            if let first { sample.rate = Double(connects - first.connects) / Date().timeIntervalSince(first.time) }
            // The last CONNACK has to arrive.
            usleep(300_000)
            sample.cpu = try child.cpuSeconds()
            sample.resident = try child.residentBytes()
            let live = try server.counts().live
            guard live == UInt64(clients) else { throw Mismatch("\(live) of \(clients) clients were up when sampled") }
        }
        laboratory.billed(messages: UInt64(clients))
        sample.life = ending.cpuSeconds
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
            "messages_per_second": try result.figure("steady_received") / result.figure("steady_wall_s"),
            Workload.cost: laboratory.lastServerShare * (wall + laboratory.lastRest) * 1e6 / received,
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
        guard let time = metric?.gauge?.median else { throw Mismatch("run.json has no decode_packet_time of \(name)") }
        return ["command_ns": time * 1e9]
    }
}
