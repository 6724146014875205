import Measurement

extension Summary {
    /// How evenly the clients were served.
    var fairness: [String] {
        var table = TextTable(["Fairness over clients", "clients", "min", "p5", "p50", "p95", "max", "Jain"])
        var worst: [String] = []
        for (name, group) in self.record.clients.sorted(by: { $0.key < $1.key }) {
            var spreads: [(String, ClientSpread?, (Double) -> String)] = [
                ("sent", group.sent, Human.number), ("acked", group.acked, Human.number),
                ("received", group.received, Human.number), ("longest ack", group.longestAckSeconds, Human.duration),
            ]
            // Where clients do nothing but connect, that is what they share out.
            if spreads.allSatisfy({ $0.1 == nil }) {
                spreads = [("connect time", group.connectSeconds, Human.duration)]
            }
            for case (let title, .some(let spread), let text) in spreads {
                let values = [(0, spread.min), (5, spread.p5), (50, spread.p50), (95, spread.p95), (100, spread.max)]
                let cells = values.map { percent, value in
                    percent.isMultiple(of: 100) || Cell.isCarried(Double(percent), by: UInt64(clamping: spread.clients))
                        ? text(value) : Human.unknown
                }
                let jain = spread.jain.map { Human.fixed($0, digits: 3) }
                table.add(["\(name), \(title)", Human.count(UInt64(clamping: spread.clients))] + cells + [jain])
                // Below 0.9 a tenth of the clients may have had nothing: worth their names.
                if let index = spread.jain, index < 0.9, ["sent", "acked", "received"].contains(title) {
                    let names = spread.worst.map { "\($0.id) \(text($0.value))" }.joined(separator: ", ")
                    worst += self.paragraph("least \(title): \(names)", indent: 4, hanging: 2)
                }
            }
        }
        return self.section(table) + worst
    }

    /// The equations of the design, per QoS, with their figures.
    var books: [String] {
        let books = self.record.books
        guard !books.isEmpty else { return [] }
        let imbalances = books.flatMap(\.imbalances)
        var lines: [String] = []
        if imbalances.isEmpty {
            lines.append(self.style.paint("Books", .bold) + "  balanced")
        } else {
            lines.append(self.style.paint("Books", .bold) + "  " + self.style.paint("NOT BALANCED", .red))
            lines += imbalances.flatMap { self.paragraph("! \($0)", indent: 2, hanging: 2) }
        }
        for book in books {
            let head = "  \(book.name)  "
            var line = head
            for equation in book.equations {
                if line.count > head.count, line.count + 3 + equation.count > self.width {
                    lines.append(line.trimmedAtEnd)
                    line = String(repeating: " ", count: head.count)
                } else if line.count > head.count {
                    line += " · "
                }
                line += equation
            }
            if !book.equations.isEmpty { lines.append(line) }
        }
        return lines
    }

    /// The generator's own resource use and lag.
    var generator: [String] {
        let facts = self.record.generator
        var parts: [String] = []
        if let seconds = facts.cpuSeconds {
            let cores = self.record.generatorCores.map { " (\(Human.significant($0)) cores)" } ?? ""
            parts.append("CPU \(Human.duration(seconds))\(cores)")
        }
        if let shares = facts.loopCPUShares, let highest = shares.max() {
            let loops = shares.count == 1 ? "1 event loop" : "\(shares.count) event loops, busiest"
            parts.append("\(loops) at \(Human.percent(highest))")
        } else if let loops = facts.eventLoops {
            parts.append(loops == 1 ? "1 event loop" : "\(loops) event loops")
        }
        if let bytes = facts.peakMemoryBytes { parts.append("memory \(Human.bytes(Double(bytes)))") }
        if let steal = facts.hostSteal { parts.append("host stole \(Human.percent(steal))") }
        if let idle = self.record.metrics(named: "host_cpu_idle").first?.gauge?.mean {
            parts.append("host idle \(Human.percent(idle))")
        }

        var table = TextTable(["", "count", "p50", "p99", "p99.9", "max"])
        for name in ["schedule_lag", "connect_lag", "loop_lag", "store_commit_duration"] {
            for metric in self.record.metrics(named: name) {
                let title = ([name] + metric.labels.all.map(\.value)).joined(separator: " ")
                table.add(title, metric, [\.p50, \.p99, \.p999, \.max])
            }
        }
        guard !parts.isEmpty || !table.isEmpty else { return [] }
        let facing = parts.isEmpty ? [] : self.paragraph(parts.joined(separator: " · "), indent: 2)
        return [self.style.paint("Generator", .bold)] + facing + (table.isEmpty ? [] : table.lines())
    }

    var whereFilesAre: [String] {
        guard let files = self.files else { return [] }
        let directory = files.hasSuffix("/") ? files : files + "/"
        let names = [self.page, "run.json metrics.csv timeline.csv latency.hlog"].compactMap(\.self)
        return [self.style.paint("Files", .bold) + "  \(directory)  \(names.joined(separator: " "))"]
    }
}

extension Books {
    /// `offered 12 = sent 12 + not sent 0`, and the others that can be written down.
    fileprivate var equations: [String] {
        let answers: [(String, UInt64?)] =
            self.isAnswered
            ? [
                ("acked", self.acked), ("in flight", self.inFlight), ("timed out", self.timedOut),
                ("failed", self.failed),
            ] : [("confirmed", self.confirmed), ("unconfirmed", self.unconfirmed)]
        let owed = [("outstanding", self.deliveryOutstanding)].filter { $0.1 ?? 0 > 0 }
        return [
            self.equation(("offered", self.offered), [("sent", self.sent), ("not sent", self.notSent)]),
            self.equation(("sent", self.sent), answers),
            self.equation(("expected", self.expected), [("received", self.received), ("lost", self.lost)] + owed),
        ].compactMap { $0 }
    }

    private func equation(_ whole: (String, UInt64?), _ parts: [(String, UInt64?)]) -> String? {
        let terms = parts.compactMap { name, count in count.map { "\(name) \(Human.count($0))" } }
        guard let total = whole.1, terms.count == parts.count else { return nil }
        // If they differ, the line above reports it; here both figures are printed.
        let sum = parts.compactMap(\.1).reduce(0, &+)
        return "\(whole.0) \(Human.count(total)) \(sum == total ? "=" : "≠") \(terms.joined(separator: " + "))"
    }
}
