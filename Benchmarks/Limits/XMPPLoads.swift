import Foundation
import Glibc
import Measurement

// XMPP clients on ejabberd, PLAIN without TLS: what they cost beside the plain C program's.

extension Workload {
    static func xmpp(seconds: Double) -> [Workload] {
        let login = LoggingIn(clients: 10_000)
        let chat = Chatting(clients: 100, window: 4, seconds: seconds)
        return [
            Workload(
                name: "xmpp-login",
                lines: [
                    Line(
                        label: "XMPP login, ejabberd, PLAIN, \(login.clients) clients",
                        key: Self.cost,
                        unit: "CPU-µs",
                        goal: .atMostTimes(2),
                        peer: "tsung 1.7.0 took 5.4 times what C did on its host"
                    ),
                    Line(
                        label: "the same, logins a second",
                        key: "logins_per_second",
                        unit: "1/s",
                        goal: .none,
                        peer: "tsung 1.7.0 made half of what C did on its host"
                    ),
                    Line(
                        label: "idle XMPP session, ejabberd, all \(login.clients) at once",
                        key: "resident_kib",
                        unit: "KiB",
                        goal: .atMost(6),
                        peer: "tsung 1.7.0 took 23 KiB, of 15,000 on a scripted peer"
                    ),
                ],
                mostPairs: Self.otherPairs,
                measure: login.measure
            ),
            Workload(
                name: "xmpp-message",
                lines: [
                    Line(
                        label: "XMPP chat message, ejabberd, \(chat.clients) sessions, \(chat.window) under way each",
                        key: Self.cost,
                        unit: "CPU-µs",
                        goal: .atMostTimes(1.3),
                        peer: "tsung 1.7.0 took 2.0 times what C did on its host, its start among it"
                    )
                ],
                mostPairs: Self.otherPairs,
                measure: chat.measure
            ),
        ]
    }
}

/// The users that log in: the server accepts any name and password.
private func users(_ side: Side, port: Int, clients: Int) -> [String] {
    side == .reference
        ? ["--port", "\(port)", "--clients", "\(clients)"]
        : [
            "-h", "127.0.0.1", "-p", "\(port)", "-c", "\(clients)", "--jid", "u%i@localhost/climit", "--password", "p",
            "--tls", "off", "--mechanism", "PLAIN",
        ]
}

/// Many clients that log in, hold still, and leave.
private struct LoggingIn {
    /// As many as the descriptors allow.
    let clients: Int
    private let few = 10

    init(clients: Int) {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        self.clients = min(clients, Int(min(limit.rlim_max, 1 << 30)) - 200)
    }

    /// The cost of each client beyond the first ten.
    func measure(_ side: Side, _ laboratory: Laboratory) throws -> [String: Double] {
        let server = try Server(.ejabberd, clients: 2, in: laboratory)
        let base = try self.run(side, laboratory, server, clients: self.few)
        let full = try self.run(side, laboratory, server, clients: self.clients)
        let more = Double(self.clients - self.few)
        return [
            Workload.cost: (full.cpu - base.cpu) * 1e6 / more,
            "resident_kib": side == .reference ? full.resident / 1024 : (full.resident - base.resident) / 1024 / more,
            "logins_per_second": full.rate,
            "server_share": laboratory.lastServerShare,
        ]
    }

    private func run(
        _ side: Side,
        _ laboratory: Laboratory,
        _ server: Server,
        clients: Int
    ) throws -> (cpu: Double, resident: Double, rate: Double) {
        let who = users(side, port: server.port, clients: clients)
        if side == .reference {
            let command = [laboratory.climit, "xmpp", "--mode", "login", "--sources", "4", "--seconds", "1"] + who
            let run = try laboratory.client(command, server: server)
            laboratory.billed(messages: UInt64(clients))
            let resident = try run.figure("resident_bytes_per_client")
            return (run.ending.cpuSeconds, resident, Double(clients) / (try run.figure("login_wall_s")))
        }
        let sources = (2...5).map { "127.0.0.\($0)" }.joined(separator: ",")
        let run = try laboratory.clamorRun(
            ["xmpp", "login", "--ifaddr", sources, "--duration", "1s", "--connect-timeout", "60s"] + who,
            server: server
        )
        laboratory.billed(messages: UInt64(clients))
        let logins = run.record.metrics.first { $0.name == "connect_duration" && $0.labels["phase"] == "total" }
        let held = run.record.metrics.first { $0.name == "clients" && $0.labels["state"] == "connected" }?.gauge?.max
        let counts = [
            ("asked for", UInt64(clients)), ("up", logins?.duration?.count ?? 0), ("at once", UInt64(held ?? 0)),
        ]
        try agree("logins", counts)
        if let error = run.record.errors.first { throw Mismatch("a session was lost: \(error.kind)") }
        guard let memory = run.record.generator.peakMemoryBytes,
            let connect = run.record.stages.first(where: { $0.name == "connect" })
        else { throw Mismatch("run.json has no memory, or no connect phase") }
        return (run.ending.cpuSeconds, Double(memory), Double(clients) / connect.durationSeconds)
    }
}

/// Neighbours that write to each other, so many messages under way from each.
private struct Chatting {
    let clients: Int
    let window: Int
    let seconds: Double

    func measure(_ side: Side, _ laboratory: Laboratory) throws -> [String: Double] {
        let server = try Server(.ejabberd, clients: 2, in: laboratory)
        return try steady(seconds: self.seconds, laboratory) { seconds in
            let who = users(side, port: server.port, clients: self.clients)
            let bill =
                side == .reference
                ? try self.reference(laboratory, server, who, seconds)
                : try self.clamor(laboratory, server, who, seconds)
            laboratory.billed(messages: bill.messages)
            return bill
        }
    }

    private func reference(
        _ laboratory: Laboratory,
        _ server: Server,
        _ who: [String],
        _ seconds: Double
    ) throws -> Bill {
        let run = try laboratory.client(
            [
                laboratory.climit, "xmpp", "--mode", "message", "--size", "64", "--window", "\(self.window)",
                "--seconds", "\(seconds)",
            ] + who,
            server: server
        )
        let sent = UInt64(try run.figure("messages"))
        try agree("xmpp", [("sent", sent), ("received", UInt64(try run.figure("received")))])
        guard try run.figure("gaps") + run.figure("foreign") == 0 else {
            throw Mismatch("messages were lost or reordered: \(run.ending.lastLine)")
        }
        return Bill(cpuSeconds: run.ending.cpuSeconds, messages: sent)
    }

    private func clamor(
        _ laboratory: Laboratory,
        _ server: Server,
        _ who: [String],
        _ seconds: Double
    ) throws -> Bill {
        let run = try laboratory.clamorRun(
            ["xmpp", "message", "-s", "64", "-F", "\(self.window)", "--duration", "\(seconds)s"] + who,
            server: server
        )
        guard let books = run.record.books.first, let sent = books.sent else { throw Mismatch("run.json has no books") }
        try agree("xmpp", [("sent", sent), ("received", books.received ?? 0)])
        return Bill(cpuSeconds: run.ending.cpuSeconds, messages: sent)
    }
}
