import Measurement

/// Publishers that send as much as socket or window take.
struct Publishing {
    let name: String
    let label: String
    let server: Server.Kind
    let wire: Server.Wire
    let clients: Int
    let qos: Int
    /// Messages that are under way; at QoS 0 those of one write.
    let window: Int
    let goal: Goal
    /// Also measured on libmosquitto, which has no TLS and no WebSocket here.
    private var hasLibrary: Bool {
        if case (.mosquitto, .plain) = (self.server, self.wire) { true } else { false }
    }

    init(
        _ name: String,
        _ label: String,
        _ server: Server.Kind,
        over wire: Server.Wire = .plain,
        clients: Int = 100,
        qos: Int,
        window: Int,
        goal: Double? = nil
    ) {
        self.name = name
        self.label = label
        self.server = server
        self.wire = wire
        self.clients = clients
        self.qos = qos
        self.window = window
        self.goal = goal.map { .atMostTimes($0) } ?? .none
    }

    func workload(seconds: Double) -> Workload {
        // A C program that fills mosquitto's sockets at QoS 0 waits for minutes until mosquitto has read them.
        let hasPlain = !(self.hasLibrary && self.qos == 0)
        var lines = [
            Line(label: self.label, key: Workload.cost, unit: "CPU-µs", goal: self.goal, hasReference: hasPlain)
        ]
        if self.hasLibrary {
            lines += [
                Line(
                    label: "the same, libmosquitto as C",
                    key: "library_cpu_us",
                    unit: "CPU-µs",
                    goal: .atMostTimes(1)
                ),
                Line(
                    label: "the same, libmosquitto as C",
                    key: "library_per_second",
                    unit: "msg/s",
                    goal: .atLeastTimes(1)
                ),
                Line(
                    label: "the same, Clamor's CPU a message by mosquitto's",
                    key: "by_server",
                    unit: "",
                    goal: .atMost(0.5),
                    hasReference: false
                ),
            ]
        }
        return Workload(name: self.name, lines: lines) { side, laboratory in
            let server = try Server(self.server, over: self.wire, in: laboratory)
            switch side {
            case .reference:
                var figures = hasPlain ? try self.reference(laboratory, server, seconds: seconds) : [:]
                if self.hasLibrary { figures.merge(try self.library(laboratory, seconds: seconds)) { $1 } }
                return figures
            case .clamor:
                var figures = try self.clamor(laboratory, server, seconds: seconds)
                figures["library_cpu_us"] = figures[Workload.cost]
                figures["library_per_second"] = figures["per_second"]
                return figures
            }
        }
    }

    /// The cost of each further message of a longer run, as it sends a number of messages and not for a time.
    private func library(_ laboratory: Laboratory, seconds: Double) throws -> [String: Double] {
        let short = try self.library(laboratory, messages: self.clients * 100)
        let long = try self.library(laboratory, messages: self.clients * Int(400 * seconds))
        let wall = long.wall - short.wall
        guard wall > 0 else { throw Mismatch("libmosquitto's longer run took no longer") }
        return [
            "library_cpu_us": try long.bill.cost(beyond: short.bill),
            "library_per_second": Double(long.bill.messages - short.bill.messages) / wall,
        ]
    }

    private func library(_ laboratory: Laboratory, messages: Int) throws -> (bill: Bill, wall: Double) {
        let server = try Server(self.server, in: laboratory)
        let result = try laboratory.client(
            [
                laboratory.climit, "library", "--port", "\(server.port)", "--clients", "\(self.clients)", "--size",
                "64",
                "--topic", topic, "--qos", "\(self.qos)", "--window", "\(self.window)", "--messages", "\(messages)",
                "--seconds", "0",
            ],
            server: server
        )
        let sent = UInt64(try result.figure("messages"))
        laboratory.billed(messages: sent)
        let bill = Bill(cpuSeconds: result.ending.cpuSeconds, messages: sent)
        return (bill, result.ending.wallSeconds + laboratory.lastRest)
    }

    private func reference(_ laboratory: Laboratory, _ server: Server, seconds: Double) throws -> [String: Double] {
        let result = try laboratory.client(
            [
                laboratory.climit, "publish", "--port", "\(server.port)", "--clients", "\(self.clients)", "--size",
                "64",
                "--topic", topic, "--qos", "\(self.qos)", "--batch", "\(self.qos == 0 ? self.window : 1)",
                "--window", "\(self.window)", "--seconds", "\(seconds)",
            ] + laboratory.arguments(.reference, self.wire),
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
                "pub", "-p", "\(server.port)", "-V", "4", "-c", "\(self.clients)", "-s", "64", "-t", topic + "%i",
                "-q", "\(self.qos)", "-F", "\(self.window)", "--duration", "\(seconds)s",
            ] + laboratory.arguments(.clamor, self.wire),
            server: server
        )
        guard let books = run.record.books.first else { throw Mismatch("run.json has no books") }
        let answered = self.qos == 0 ? ("confirmed", books.confirmed ?? 0) : ("acknowledged", books.acked ?? 0)
        var figures = try self.figures(laboratory, run.ending, run.counts, [("sent", books.sent ?? 0), answered])
        // From the first message until the server has read the last one, as in the difference of libmosquitto's runs.
        let seconds = run.record.stages.filter { ["measure", "drain"].contains($0.name) }
            .reduce(0) { $0 + $1.durationSeconds }
        figures["per_second"] = seconds > 0 ? Double(books.sent ?? 0) / seconds : nil
        return figures
    }

    private func figures(
        _ laboratory: Laboratory,
        _ ending: Child.Ending,
        _ sink: SinkCounts?,
        _ counts: [(String, UInt64)]
    ) throws -> [String: Double] {
        try agree(self.name, counts + (sink.map { [("the sink counted", $0.publishes[self.qos])] } ?? []))
        laboratory.billed(messages: counts[0].1)
        let share = laboratory.lastServerShare
        return [
            Workload.cost: ending.cpuSeconds * 1e6 / Double(counts[0].1),
            "messages_per_second": Double(counts[0].1) / ending.wallSeconds,
            "server_share": share,
            "by_server": share > 0
                ? ending.cpuSeconds / (share * (ending.wallSeconds + laboratory.lastRest)) : .infinity,
        ]
    }
}
