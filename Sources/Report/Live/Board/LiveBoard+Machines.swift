import Measurement

// The load on both ends: the generator and the server.
extension LiveBoard {
    private static let mostLoops = 16
    private static let mostLoopRows = 8
    private static let mostSeries = 3
    private static let barWidth = 20

    /// CPU of the event loops, memory, and what the host has left.
    func generator(_ width: Int) -> BoardRows {
        var rows = BoardRows()
        let loops = (self.run.recent.last?.loops ?? []).sorted { Self.isBefore($0.labels["loop"], $1.labels["loop"]) }
        var parts: [BoardLine] = []
        if let busiest = loops.map(\.value).max() {
            let all = loops.prefix(Self.mostLoops).map { $0.value }
            var part = BoardLine(loops.count == 1 ? "loop " : "loops ")
            part.add(Blocks.sparkline(all, to: 1) + (loops.count > all.count ? "…" : ""), Self.ink(busiest) ?? .cyan)
            part.add(" \(loops.count == 1 ? "" : "busiest ")\(Self.level(busiest))", Self.ink(busiest))
            parts.append(part)
        }
        if let lag = self.latest(.scheduleLag).compactMap(\.duration?.p99).max() {
            parts.append(BoardLine("lag p99 \(Words.duration(lag))"))
        }
        if let bytes = self.latest(.generatorMemory).compactMap(\.gauge?.value).max() {
            parts.append(BoardLine(Words.bytes(bytes)))
        }
        // Of several hosts the one that has least left.
        if let idle = self.latest(.hostCPUIdle).compactMap(\.gauge?.value).min() {
            parts.append(BoardLine("host \(Self.share(idle)) idle"))
        }
        rows.add(Self.titled("Generator", parts, width: width), .generator, then: .reason)
        for loop in loops.prefix(Self.mostLoopRows) where loops.count > 1 {
            rows.add(Self.bar("loop \(loop.labels["loop"] ?? "")", loop.value), .loop)
        }
        let busiest = self.history(max) { $0.loops.map(\.value).max() }
        if let trend = Self.trend(loops.count == 1 ? "loop" : "busiest", busiest, width: width, Self.share) {
            rows.add(trend, .trend)
        }
        return rows
    }

    /// The watched processes of the server and its own figures; nothing where nothing is watched.
    func server(_ width: Int) -> BoardRows {
        let kinds: [MetricDefinition] = [.serverCPU, .serverThreadCPU, .serverMemory, .serverDescriptors]
        let metrics = kinds.flatMap(self.latest)
        var rows = BoardRows()
        for process in metrics.map({ $0.labels["process"] ?? "" }).firstOfEach {
            let own = metrics.filter { $0.labels["process"] ?? "" == process }
            let lines = Self.titled(rows.count == 0 ? "Server" : "", Self.facts(of: process, own), width: width)
            rows.add(lines, .server, then: .reason)
        }
        let series = (self.latest(.serverMetric) + self.latest(.serverSys)).prefix(Self.mostSeries)
        let parts = series.compactMap(Self.series)
        for line in Self.titled(rows.count == 0 ? "Server" : "", parts, width: width) { rows.add(line, .serverSeries) }
        let cpu = self.history(max) { $0.server.isEmpty ? nil : $0.server.reduce(0) { $0 + $1.value } }
        if let trend = Self.trend("CPU", cpu, width: width, Self.share) { rows.add(trend, .trend) }
        return rows
    }

    /// `mosquitto 98 % CPU · thread ▇ 97 % · 312 MB · 1,024 descriptors`: the busiest thread.
    private static func facts(of process: String, _ metrics: [Metric]) -> [BoardLine] {
        func gauges(_ kind: MetricDefinition) -> [Metric] {
            metrics.filter { $0.isOf(kind) && $0.gauge?.value.isFinite == true }
        }
        func sum(_ kind: MetricDefinition) -> Double? {
            let known = gauges(kind).compactMap(\.gauge?.value)
            return known.isEmpty ? nil : known.reduce(0, +)
        }
        var parts: [BoardLine] = []
        var first = BoardLine(process)
        if let cpu = sum(.serverCPU) { first.add("\(process.isEmpty ? "" : " ")\(self.share(cpu)) CPU") }
        parts.append(first)
        if let thread = gauges(.serverThreadCPU).max(by: { $0.gauge?.value ?? 0 < $1.gauge?.value ?? 0 }),
            let cpu = thread.gauge?.value
        {
            let name = thread.labels["thread"].flatMap { $0 == process ? nil : " \($0)" } ?? ""
            var part = BoardLine("thread\(name) ")
            part.add(String(Blocks.height(cpu, of: 1)), self.ink(cpu) ?? .cyan)
            part.add(" \(self.level(cpu))", self.ink(cpu))
            parts.append(part)
        }
        if let bytes = sum(.serverMemory) { parts.append(BoardLine(Words.bytes(bytes))) }
        if let count = sum(.serverDescriptors) { parts.append(BoardLine(Words.counted(count, "descriptor"))) }
        return parts
    }

    /// A series that the server itself publishes, under the values of its labels.
    private static func series(_ metric: Metric) -> BoardLine? {
        let name = metric.labels.all.map(\.value).joined(separator: " ")
        let value: String
        switch metric.reading {
        case .counter(let reading): value = reading.rate.map(Words.rate) ?? Words.number(reading.value)
        case .gauge(let reading):
            value =
                switch metric.unit {
                case "bytes": Words.bytes(reading.value)
                case "seconds": Words.duration(reading.value)
                default: Words.number(reading.value)
                }
        case .duration: return nil
        }
        return BoardLine("\(name) \(value)")
    }

    private static func bar(_ name: String, _ share: Double) -> BoardLine {
        var line = BoardLine("  " + name.truncated(to: self.titleWidth - 3), .dim)
        line.pad(to: self.titleWidth)
        let bar = Blocks.bar(share, width: self.barWidth)
        line.add(bar.filled, self.ink(share) ?? .cyan)
        line.add(bar.empty, .dim)
        line.add("  \(self.level(share))", self.ink(share))
        return line
    }

    /// A share of a core, whole: decimals of a second's CPU are noise.
    private static func share(_ share: Double) -> String {
        share.isFinite ? "\(Words.number((share * 100).rounded())) %" : Words.unknown
    }

    /// The share of a thread, with a sign where it is busy.
    private static func level(_ share: Double) -> String {
        self.share(share) + (share > GeneratorAudit.Limit.cpuShare ? " !" : "")
    }

    /// The colour of a share of a core; beyond the first limit a loop counts as busy.
    private static func ink(_ share: Double) -> TerminalStyle.Ink? {
        share > GeneratorAudit.Limit.cpuShare ? .red : share > GeneratorAudit.Limit.cpuShare * 3 / 4 ? .yellow : nil
    }

    /// Loops by their numbers.
    private static func isBefore(_ left: String?, _ right: String?) -> Bool {
        guard let left = left.flatMap({ Int($0) }), let right = right.flatMap({ Int($0) }) else {
            return left ?? "" < right ?? ""
        }
        return left < right
    }
}
