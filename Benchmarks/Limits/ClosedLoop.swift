import Measurement

/// Publishers that send as much as socket or window take.
struct Publishing {
    let name: String
    let label: String
    let server: Server.Kind
    let wire: Server.Wire
    let clients: Int
    let qos: Int
    let window: Int
    let goal: Goal

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
        let line = Line(label: self.label, key: Workload.cost, unit: "CPU-µs", goal: self.goal)
        return Workload(name: self.name, lines: [line]) { side, laboratory in
            let server = try Server(self.server, over: self.wire, in: laboratory)
            return switch side {
            case .reference: try self.reference(laboratory, server, seconds: seconds)
            case .clamor: try self.clamor(laboratory, server, seconds: seconds)
            }
        }
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
