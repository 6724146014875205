import Measurement

/// CPU and messages of one run.
struct Bill {
    var cpuSeconds: Double
    var messages: UInt64
    var figures: [String: Double] = [:]

    /// The cost of each further message of a longer run: start, connects and report are in both, and cancel out.
    func cost(beyond short: Bill) throws -> Double {
        guard self.messages > short.messages, self.cpuSeconds > short.cpuSeconds else {
            throw Mismatch("the longer run has no more messages, or took no more CPU: this machine is too busy")
        }
        return (self.cpuSeconds - short.cpuSeconds) * 1e6 / Double(self.messages - short.messages)
    }
}

/// A run at a rate, or one that waits for its server, keeps a core busy for a part of the time only, so that the start
/// would weigh: a run of one second is taken off.
func steady(
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
            figures: [
                "p50_us": try result.figure("lag_p50_us"), "p99_us": try result.figure("lag_p99_us"),
                "wakes": Double(result.ending.wakeUps) / Double(max(1, sent)),
            ]
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
                "wakes": Double(run.ending.wakeUps) / Double(max(1, sent)),
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
