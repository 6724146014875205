import Charts
import Measurement
import Report

extension RunPage {
    var isDecode: Bool { self.whole.metrics.contains { $0.isOf(.decodePackets) && $0.labels["form"] != nil } }

    private var decoded: String {
        self.whole.decodeLanes.contains { $0.labels["protocol"] == "xmpp" } ? "stanzas" : "packets"
    }

    var decoderTiles: [PageTile] {
        self.whole.decodeLanes.prefix(8).map { lane in
            let name = [lane.labels["path"], lane.labels["form"]].compactMap(\.self).joined(separator: ", ")
            var tile = PageTile(name)
            let time = self.whole.metric(.decodePacketTime, lane.labels)?.gauge
            tile.value = (time?.median ?? time?.value).map(Words.duration)
            tile.notes.append(.init("per \(self.decoded.dropLast())"))
            if let rate = lane.counter?.rate {
                tile.notes.append(.init("\(Words.number(rate.rounded())) \(self.decoded)/s"))
            }
            if let rate = self.whole.metric(.decodeBytes, lane.labels)?.counter?.rate {
                tile.notes.append(.init("\(Words.fixed(rate / 1e9, digits: 3)) GB/s"))
            }
            return tile
        }
    }

    var decoder: PageSection? {
        let isBenchmark = self.isDecode
        let (one, many) = (String(self.decoded.dropLast()), self.decoded)
        var cost = PageTable(
            "The decoder's cost",
            ["stream", "\(many)/s", "GB/s", "ns/\(one)", "fastest", "slowest"]
        )
        var input = PageTable(
            "The decoder's input",
            ["stream", many, "bytes", "reads", "\(many)/read", "reads/\(one)"]
        )
        for lane in self.whole.decodeLanes {
            let labels = lane.labels
            func counter(_ kind: MetricDefinition) -> CounterReading? { self.whole.metric(kind, labels)?.counter }
            let (count, bytes, reads) = (lane.counter?.value, counter(.decodeBytes), counter(.reads)?.value)
            guard count ?? 0 > 0 else { continue }
            let seconds = counter(.decodeTime)?.value
            let time = self.whole.metric(.decodePacketTime, labels)?.gauge
            func nanoseconds(_ value: Double?) -> PageTable.Cell? {
                .figure(value) { Words.fixed($0 * 1e9, digits: 2) }
            }
            let lane =
                isBenchmark
                ? [labels["path"], labels["form"]].compactMap(\.self).joined(separator: " ") : SeriesName.text(labels)
            let rate = isBenchmark ? self.whole.metric(.decodePackets, labels)?.counter?.rate : ratio(count, seconds)
            cost.add([
                .text(lane), .figure(rate?.rounded(), Words.number),
                .figure(isBenchmark ? bytes?.rate : ratio(bytes?.value, seconds)) {
                    Words.fixed($0 / 1e9, digits: isBenchmark ? 3 : 2)
                },
                nanoseconds(isBenchmark ? time?.median : ratio(seconds, count)), nanoseconds(time?.min),
                nanoseconds(time?.max),
            ])
            input.add([
                .text(lane), .figure(count, Words.number), .figure(bytes?.value, Words.bytes),
                .figure(reads, Words.number), .figure(ratio(count, reads), Words.number),
                .figure(ratio(reads, count), Words.number),
            ])
        }
        guard !input.isEmpty else { return nil }
        let command = self.record.command.dropFirst().first ?? ""
        return PageSection(
            folded: "decoder",
            "Decoder",
            isOpen: isBenchmark || command == "sub",
            html: cost.html + input.html
        )
    }

    var generator: PageSection? {
        let facts = self.record.generator
        var rows: [(name: String, value: String)] = []
        if let seconds = facts.cpuSeconds {
            let cores = self.record.generatorCores.map { " (\(Words.significant($0)) cores)" } ?? ""
            rows.append(("CPU time", Words.duration(seconds) + cores))
        }
        if let kind = facts.transport { rows.append(("sockets", kind.rawValue)) }
        if let loops = facts.eventLoops { rows.append(("event loops", Words.count(UInt64(max(loops, 0))))) }
        if let busiest = facts.loopCPUShares?.max() {
            rows.append(("busiest event loop", "\(Words.percent(busiest)) of a core"))
        }
        if let bytes = facts.peakMemoryBytes { rows.append(("peak memory", Words.bytes(Double(bytes)))) }
        if let steal = facts.hostSteal { rows.append(("CPU time stolen from the host", Words.percent(steal))) }
        if let idle = self.whole.metrics.first(where: { $0.isOf(.hostCPUIdle) })?.gauge?.mean {
            rows.append(("host idle", Words.percent(idle)))
        }
        let host = self.record.host
        if let model = host.cpuModel { rows.append(("CPU", model)) }
        if let cores = host.cores { rows.append(("cores", String(cores))) }
        if let memory = host.memoryBytes { rows.append(("memory", Words.bytes(Double(memory)))) }
        if let kernel = host.kernel { rows.append(("kernel", kernel)) }
        if let system = host.operatingSystem { rows.append(("system", system)) }
        if let name = host.hypervisor ?? (host.isVirtual == true ? "yes" : nil) {
            rows.append(("virtual machine", name))
        }
        var table = PageTable(
            "The generator's own delays",
            ["delay", "series", "count", "p50", "p99", "p99.9", "max"],
            words: 2
        )
        for kind in [MetricDefinition.scheduleLag, .connectLag, .reconnectLag, .loopLag] {
            for metric in self.whole.metrics where metric.isOf(kind) {
                table.add(
                    [.text(kind.name), .text(SeriesName.text(metric.labels)), .count(metric.duration?.count)]
                        + PageTable.Cell.durations(metric, [\.p50, \.p99, \.p999, \.max])
                )
            }
        }
        guard !rows.isEmpty || !table.isEmpty else { return nil }
        let isLimited = self.record.verdict?.state == .generatorLimited
        let busiest = facts.loopCPUShares?.max().map { "busiest event loop at \(Words.percent($0)) of a core" }
        return PageSection(
            folded: "generator",
            "Generator and host",
            summary: isLimited ? self.record.verdict?.reasons.first?.limited : busiest,
            tone: isLimited ? .warn : .plain,
            isOpen: isLimited,
            html: PageFigure.facts(rows) + table.html
        )
    }

    /// The watched server, with the series that it reported itself.
    var server: PageSection? {
        let facts = self.whole.serverFacts
        var table = PageTable(
            "Series that the server reported",
            ["series", "last", "increase", "lowest", "highest"],
            words: 1
        )
        for metric in self.whole.metrics where metric.isOf([.serverMetric, .serverSys]) {
            table.add([
                .text(SeriesName.text(metric.labels)), .figure(metric.gauge?.value, Words.number),
                .figure(metric.counter?.value, Words.number), .figure(metric.gauge?.min, Words.number),
                .figure(metric.gauge?.max, Words.number),
            ])
        }
        guard !facts.isEmpty || !table.isEmpty else { return nil }
        let isLimit =
            self.record.verdict?.state == .valid
            && self.record.findings?.sentence.contains("server's CPU was the limit") ?? false
        return PageSection(
            folded: "server",
            "Server",
            summary: isLimit ? "its CPU was the limit" : facts.first?.value,
            isOpen: isLimit,
            html: PageFigure.facts(facts) + table.html
        )
    }

    /// The command that reproduces the run, and every setting.
    var plan: PageSection? {
        let command = self.record.command.map(Self.quoted).joined(separator: " ")
        var settings: [(name: String, value: String)] = []
        Self.flatten(.object(self.record.plan), "", &settings)
        var table = PageTable("Settings of the plan", ["setting", "value"], words: 2)
        for setting in settings { table.add([.text(setting.name), .text(setting.value)]) }
        return PageSection(
            folded: "plan",
            "Plan and command",
            html: "<pre><code>\(escapedMarkup(command))</code></pre>\n" + table.html
        )
    }

    /// An argument as a shell needs it.
    private static func quoted(_ argument: String) -> String {
        let isPlain = argument.unicodeScalars.allSatisfy { scalar in
            scalar.properties.isAlphabetic || ("0"..."9").contains(scalar)
                || "-_./:,=@%+".unicodeScalars.contains(scalar)
        }
        return isPlain && !argument.isEmpty ? argument : "'\(argument.replacing("'", with: "'\\''"))'"
    }

    private static func flatten(_ value: JSONValue, _ name: String, _ settings: inout [(name: String, value: String)]) {
        switch value {
        case .object(let members):
            for (key, member) in members.sorted(by: { $0.key < $1.key }) {
                self.flatten(member, name.isEmpty ? key : "\(name).\(key)", &settings)
            }
        case .array(let elements) where elements.contains(where: { if case .object = $0 { true } else { false } }):
            for (place, element) in elements.enumerated() { self.flatten(element, "\(name).\(place + 1)", &settings) }
        case .array(let elements):
            settings.append((name, elements.map(self.words).joined(separator: ", ")))
        default: settings.append((name, self.words(value)))
        }
    }

    private static func words(_ value: JSONValue) -> String {
        switch value {
        case .null: Words.unknown
        case .bool(let value): value ? "yes" : "no"
        case .integer(let value): String(value)
        case .number(let value): Words.plain(value)
        case .string(let value): value
        case .array(let values): values.map(self.words).joined(separator: ", ")
        case .object: ""
        }
    }
}
