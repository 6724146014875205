import Measurement

extension Summary {
    /// How evenly the clients were served.
    var fairness: [String] {
        var table = TextTable(["Fairness over clients", "clients", "min", "p5", "p50", "p95", "max", "Jain"])
        var worst: [String] = []
        for (name, group) in self.record.clients.sorted(by: { $0.key < $1.key }) {
            var spreads: [(String, ClientSpread?, (Double) -> String)] = [
                ("sent", group.sent, Words.number), ("acked", group.acked, Words.number),
                ("received", group.received, Words.number), ("longest ack", group.longestAckSeconds, Words.duration),
            ]
            // Where clients do nothing but connect, that is what they share out.
            if spreads.allSatisfy({ $0.1 == nil }) {
                spreads = [("connect time", group.connectSeconds, Words.duration)]
            }
            for case (let title, .some(let spread), let text) in spreads {
                let values = [(0, spread.min), (5, spread.p5), (50, spread.p50), (95, spread.p95), (100, spread.max)]
                let cells = values.map { percent, value in
                    percent.isMultiple(of: 100) || Cell.isCarried(Double(percent), by: UInt64(clamping: spread.clients))
                        ? text(value) : Words.unknown
                }
                let jain = spread.jain.map { Words.fixed($0, digits: 3) }
                table.add(["\(name), \(title)", Words.count(UInt64(clamping: spread.clients))] + cells + [jain])
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
            let (head, texts) = ("  \(book.name)  ", book.equationTexts)
            var line = head
            for equation in texts {
                if line.count > head.count, line.count + 3 + equation.count > self.width {
                    lines.append(line.trimmedAtEnd)
                    line = String(repeating: " ", count: head.count)
                } else if line.count > head.count {
                    line += " · "
                }
                line += equation
            }
            if !texts.isEmpty { lines.append(line) }
        }
        return lines
    }

    /// The generator's own resource use and lag.
    var generator: [String] {
        let facts = self.record.generator
        var parts: [String] = []
        if let seconds = facts.cpuSeconds {
            let cores = self.record.generatorCores.map { " (\(Words.significant($0)) cores)" } ?? ""
            parts.append("CPU \(Words.duration(seconds))\(cores)")
        }
        if let shares = facts.loopCPUShares, let highest = shares.max() {
            let loops = shares.count == 1 ? "1 event loop" : "\(shares.count) event loops, busiest"
            parts.append("\(loops) at \(Words.percent(highest))")
        } else if let loops = facts.eventLoops {
            parts.append(loops == 1 ? "1 event loop" : "\(loops) event loops")
        }
        if let bytes = facts.peakMemoryBytes { parts.append("memory \(Words.bytes(Double(bytes)))") }
        if let steal = facts.hostSteal { parts.append("host stole \(Words.percent(steal))") }
        if let idle = self.record.metrics(named: .hostCPUIdle).first?.gauge?.mean {
            parts.append("host idle \(Words.percent(idle))")
        }

        var table = TextTable("", Self.tail)
        for metric in self.record.metrics(named: .scheduleLag, .connectLag, .loopLag) {
            table.add(([metric.name] + metric.labels.all.map(\.value)).joined(separator: " "), metric)
        }
        guard !table.isEmpty else { return self.paragraph("Generator", parts) }
        let title = parts.isEmpty ? [self.style.paint("Generator", .bold)] : self.paragraph("Generator", parts)
        return title + table.lines()
    }

    /// The name of the watched server and its use, such as `mosquitto 2.0.11` and `CPU 0.98 cores`.
    var serverParts: [String] {
        self.record.serverFacts.map { $0.name.hasPrefix("server") ? $0.value : "\($0.name) \($0.value)" }
    }

    var server: [String] { self.paragraph("Server", self.serverParts) }
}

extension Books {
    /// `offered 12 = sent 12 + not sent 0`, and the others that can be written down.
    fileprivate var equationTexts: [String] {
        self.equations.compactMap { whole, parts in
            // Few runs have these: they are printed where they are not zero.
            let parts = parts.filter { !["excused", "outstanding"].contains($0.name) || $0.count ?? 0 > 0 }
            let terms = parts.compactMap { name, count in count.map { "\(name) \(Words.count($0))" } }
            guard let total = whole.count, terms.count == parts.count else { return nil }
            // If they differ, the line above reports it; here both figures are printed.
            let sum = parts.compactMap(\.count).reduce(0, &+)
            return "\(whole.name) \(Words.count(total)) \(sum == total ? "=" : "≠") \(terms.joined(separator: " + "))"
        }
    }
}
