/// The required result of a line of the table.
enum Goal: Hashable {
    /// Clamor's figure over the reference's, at most.
    case atMostTimes(Double)
    /// Clamor's figure over the reference's, at least.
    case atLeastTimes(Double)
    /// Clamor's figure itself, at most.
    case atMost(Double)
    /// Clamor's figure itself, at least.
    case atLeast(Double)
    /// There is none; the figure is stated.
    case none
}

/// One line of the table: a figure of a workload, by its key in what the workload measures.
struct Line: Hashable {
    let label: String
    let key: String
    let unit: String
    let goal: Goal
    /// Not all figures are measured on both sides.
    var hasReference = true
    /// The cost of another load generator for the same work, with the reference on its host; printed below the table.
    var peer: String?
}

/// Something that both programs do, and the figures that come of it.
struct Workload {
    let name: String
    let lines: [Line]
    /// No more than these, whatever `--pairs` says.
    var mostPairs: Int? = nil
    let measure: (Side, Laboratory) throws -> [String: Double]
}

extension Workload {
    static let cost = "cpu_us"

    /// Of what is beside the MQTT table of goals, which has five pairs: the whole has to end within 20 minutes.
    static let otherPairs = 3

    /// All rows of the goal table.
    static func all(seconds: Double) -> [Workload] {
        let discard = Server.Kind.sink("discard")
        let ack = Server.Kind.sink("ack")
        let shorter = max(1, seconds - 1)
        return [
            Publishing("qos0-64", "QoS 0, discard sink, 64 a write", discard, qos: 0, window: 64, goal: 1.2),
            Publishing("qos0-1", "QoS 0, discard sink, one a write", discard, qos: 0, window: 1, goal: 1.3),
            Publishing("qos0-mosquitto", "QoS 0 by default, mosquitto", .mosquitto, qos: 0, window: 16),
            Publishing("qos1-ack", "QoS 1, window 16, acknowledging sink", ack, qos: 1, window: 16, goal: 1.5),
            Publishing("qos1-mosquitto", "QoS 1, window 16, mosquitto", .mosquitto, qos: 1, window: 16, goal: 1.1),
            Publishing("qos1-w1", "QoS 1, window 1, mosquitto", .mosquitto, qos: 1, window: 1, goal: 1.15),
            Publishing("qos2-ack", "QoS 2, window 16, acknowledging sink", ack, qos: 2, window: 16, goal: 1.8),
            Publishing("qos2-mosquitto", "QoS 2, window 16, mosquitto", .mosquitto, qos: 2, window: 16, goal: 1.1),
        ].map { $0.workload(seconds: seconds) } + [
            Self.receive(seconds: seconds),
            Self.endToEnd(seconds: seconds),
            Self.decode("contiguous", "contiguous 64 KiB", goal: 1.1),
            Self.decode("segments", "1,460 bytes", goal: 1.3),
            Self.decode("fragments", "1 to 7 bytes", goal: 1.5),
            Self.xml("contiguous", "contiguous 64 KiB", goal: 0.5),
            Self.xml("fragments", "1 to 7 bytes", goal: 1),
            Self.connect(),
            Self.connectAndClose(addresses: 4, goal: 1.5),
            Self.connectAndClose(addresses: 1, goal: 1.5),
            Self.recording(),
            Self.openLoop(rate: 5_000, seconds: seconds),
            Self.openLoop(rate: 20_000, seconds: seconds),
            Self.openLoop(rate: 50_000, seconds: seconds),
            Self.brokers(seconds: shorter),
            Self.store(),
        ] + Self.wires(seconds: shorter) + Self.xmpp(seconds: shorter)
    }

    /// 1 publisher to 1,000 subscribers, and the ledger on.
    private static func receive(seconds: Double) -> Workload {
        let load = Delivering(pairs: nil, rate: 100, server: .sink("fanout"))
        return Workload(
            name: "receive",
            lines: [
                Line(
                    label: "receive: 1 publisher to 1,000 subscribers, 100,000/s, per delivery",
                    key: Self.cost,
                    unit: "CPU-µs",
                    goal: .atMostTimes(1.5)
                )
            ]
        ) { try load.measure($0, $1, seconds: seconds) }
    }

    private static func endToEnd(seconds: Double) -> Workload {
        let load = Delivering(pairs: 100, rate: 10_000, server: .mosquitto)
        return Workload(
            name: "end-to-end",
            lines: [
                Line(
                    label: "end to end, mosquitto, 100 pairs × 100 msg/s, both ends",
                    key: Self.cost,
                    unit: "CPU-µs",
                    goal: .atMostTimes(1.3)
                ),
                Line(label: "the same, delivery p50", key: "p50_us", unit: "µs", goal: .atMost(300)),
                Line(label: "the same, delivery p99", key: "p99_us", unit: "µs", goal: .none),
            ]
        ) { try load.measure($0, $1, seconds: seconds) }
    }

    private static func openLoop(rate: Int, seconds: Double) -> Workload {
        let load = PacedPublishing(clients: 1000, rate: rate)
        let what = "open loop, \(rate) msg/s over 1,000 clients, discard sink"
        return Workload(
            name: "open-loop-\(rate / 1_000)k",
            lines: [
                Line(label: "\(what): schedule_lag p50", key: "p50_us", unit: "µs", goal: .atMost(100)),
                Line(label: "the same, schedule_lag p99", key: "p99_us", unit: "µs", goal: .atMost(500)),
                Line(label: "the same, a message", key: Self.cost, unit: "CPU-µs", goal: .atMostTimes(1.2)),
                Line(label: "the same, wake-ups a message", key: "wakes", unit: "", goal: .none),
                Line(label: "the same, share of a core", key: "core_percent", unit: "%", goal: .none),
            ]
        ) { try load.measure($0, $1, seconds: seconds) }
    }

    private static func connect() -> Workload {
        let load = Connecting()
        return Workload(
            name: "connect",
            lines: [
                Line(
                    label: "connect, TCP to CONNACK, 4 source addresses",
                    key: Self.cost,
                    unit: "CPU-µs",
                    goal: .atMostTimes(2)
                ),
                Line(
                    label: "idle connected client, \(load.clients) of them",
                    key: "resident_kib",
                    unit: "KiB",
                    goal: .atMost(1.5),
                    hasReference: false
                ),
            ],
            measure: load.measure
        )
    }

    /// Whole lives: CONNECT, CONNACK, DISCONNECT, FIN and the server's FIN.
    private static func connectAndClose(addresses: Int, goal: Double) -> Workload {
        let load = Connecting(most: 5_000, addresses: addresses)
        return Workload(
            name: "connect-close-\(addresses)",
            lines: [
                Line(
                    label: "connect and close, \(addresses) source address\(addresses == 1 ? "" : "es")",
                    key: "life_cpu_us",
                    unit: "CPU-µs",
                    goal: .atMostTimes(goal)
                ),
                Line(
                    label: "the same beside libmosquitto, which waits for no FIN",
                    key: "library_cpu_us",
                    unit: "CPU-µs",
                    goal: .atMostTimes(1)
                ),
            ],
            measure: load.measureLife
        )
    }

    private static func brokers(seconds: Double) -> Workload {
        let load = BrokerLoad(pairs: 100, window: 16, seconds: seconds)
        return Workload(
            name: "broker",
            lines: [
                Line(
                    label: "embedded broker beside mosquitto: QoS 0 in and out, 100 pairs, 16 under way each",
                    key: "messages_per_second",
                    unit: "msg/s",
                    goal: .atLeastTimes(1)
                ),
                Line(label: "the same, the broker's own CPU a message", key: Self.cost, unit: "CPU-µs", goal: .none),
            ],
            measure: load.measure
        )
    }
}

// MARK: - In memory

extension Workload {
    private static func decode(_ form: String, _ cut: String, goal: Double) -> Workload {
        let lines = [
            Line(label: "decode PUBLISH of 88 bytes, \(cut)", key: "checked_ns", unit: "ns", goal: .atMostTimes(goal)),
            Line(label: "the same, C without the topic's check", key: "parse_only_ns", unit: "ns", goal: .none),
            Line(
                label: "the same, allocated a packet",
                key: "bytes",
                unit: "bytes",
                goal: .atMost(0),
                hasReference: false
            ),
            Line(label: "the same, `clamor decode`", key: "command_ns", unit: "ns", goal: .none, hasReference: false),
        ]
        return Workload(name: "decode-\(form)", lines: lines) { side, laboratory in
            switch side {
            case .reference:
                try laboratory.figures([laboratory.climit, "decode", "--mode", form, "--seconds", "2"])
            case .clamor:
                try laboratory.figures([CommandLine.arguments[0], "--micro", "decode", form])
                    .merging(try DecodeCommand.figures(form, laboratory)) { $1 }
            }
        }
    }

    /// The tokenizer beside libexpat with its namespaces.
    private static func xml(_ form: String, _ cut: String, goal: Double) -> Workload {
        let lines = [
            Line(
                label: "read an XMPP message of 185 bytes beside libexpat, \(cut)",
                key: "read_ns",
                unit: "ns",
                goal: .atMostTimes(goal)
            ),
            Line(label: "the same", key: "megabytes_per_second", unit: "MB/s", goal: .none),
            Line(
                label: "the same, allocated a message",
                key: "bytes",
                unit: "bytes",
                goal: .atMost(0),
                hasReference: false
            ),
        ]
        return Workload(name: "xml-\(form)", lines: lines, mostPairs: Self.otherPairs) { side, laboratory in
            switch side {
            case .reference: try laboratory.figures([laboratory.climit, "xml", "--mode", form, "--seconds", "2"])
            case .clamor: try laboratory.figures([CommandLine.arguments[0], "--micro", "xml", form])
            }
        }
    }

    /// The store on disk, as one client with a long queue uses it, and as many with short windows do.
    private static func store() -> Workload {
        let forms = [
            ("queue", "one client, 256 a commit"), ("clients", "100 clients, 16 a commit"),
            ("window", "one client, 16 a commit"),
        ]
        let lines = forms.flatMap { form, words in
            [
                Line(
                    label: "store on disk: insert, step on and remove 100 bytes, \(words)",
                    key: "\(form)_per_second",
                    unit: "msg/s",
                    goal: .atLeast(50_000),
                    hasReference: false
                ),
                Line(
                    label: "the same, a message",
                    key: "\(form)_cpu_us",
                    unit: "CPU-µs",
                    goal: .none,
                    hasReference: false
                ),
            ]
        }
        return Workload(name: "store", lines: lines, mostPairs: Self.otherPairs) { side, laboratory in
            guard side == .clamor else { return [:] }
            return try forms.reduce(into: [:]) { figures, form in
                let path = "\(laboratory.directory)/\(laboratory.unique("store"))"
                let measured = try laboratory.figures([CommandLine.arguments[0], "--micro", "store", form.0, path])
                for (name, value) in measured { figures["\(form.0)_\(name)"] = value }
            }
        }
    }

    private static func recording() -> Workload {
        let lines = [
            Line(label: "record a latency", key: "record_ns", unit: "ns", goal: .atMost(3), hasReference: false),
            Line(
                label: "ledger entry, 1,000 streams in turn",
                key: "ledger_ns",
                unit: "ns",
                goal: .atMost(20),
                hasReference: false
            ),
        ]
        return Workload(name: "record", lines: lines) { side, laboratory in
            guard side == .clamor else { return [:] }
            return try laboratory.figures([CommandLine.arguments[0], "--micro", "record"])
                .merging(try laboratory.figures([CommandLine.arguments[0], "--micro", "ledger"])) { $1 }
        }
    }
}
