package import Measurement

extension RunRecord {
    /// A watched server in words: its name, and what it used; empty where nothing is known.
    package var serverFacts: [(name: String, value: String)] {
        var facts: [(name: String, value: String)] = []
        let observed = self.metrics.filter {
            $0.definition?.role == .server && $0.labels[Labels.stage] == nil && $0.gauge != nil
        }
        guard !observed.isEmpty || self.servers != nil else { return [] }
        func gauges(_ kind: MetricDefinition) -> [Metric] { observed.filter { $0.isOf(kind) } }
        func whose(_ metric: Metric, _ all: [Metric]) -> String {
            let processes = Set(all.compactMap { $0.labels["process"] })
            return processes.count > 1 ? metric.labels["process"].map { " of \($0)" } ?? "" : ""
        }
        func add(_ title: String, _ all: [Metric], _ words: (GaugeReading) -> String?) {
            for metric in all {
                guard let value = metric.gauge.flatMap(words) else { continue }
                facts.append(("\(title)\(whose(metric, all))", value))
            }
        }
        facts += (self.servers ?? []).facts
        add("CPU", gauges(.serverCPU)) { reading in
            let most = reading.max.map { ", at most \(Words.significant($0))" } ?? ""
            return reading.mean.map { "\(Words.significant($0)) cores\(most)" }
        }
        let threads = gauges(.serverThreadCPU)
        if let busiest = threads.max(by: { $0.gauge?.mean ?? 0 < $1.gauge?.mean ?? 0 }), let share = busiest.gauge?.mean
        {
            let name = busiest.labels["thread"].map { "\($0) at " } ?? ""
            let most = busiest.gauge?.max.map { ", at most \(Words.percent($0))" } ?? ""
            facts.append(
                ("busiest thread\(whose(busiest, threads))", "\(name)\(Words.percent(share)) of a core\(most)")
            )
        }
        add("memory", gauges(.serverMemory)) { $0.max.map { "at most \(Words.bytes($0))" } }
        add("descriptors", gauges(.serverDescriptors)) { $0.max.map { "at most \(Words.number($0))" } }
        if let seconds = gauges(.serverCPUPerMessage).first?.gauge?.value {
            facts.append(("CPU per message", Words.duration(seconds)))
        }
        if let bytes = gauges(.serverMemoryPerConnection).first?.gauge?.value {
            facts.append(("memory per connection", Words.bytes(bytes)))
        }
        return facts
    }

    /// The servers of the plan, and of its groups.
    package var targets: [String] {
        var unique: [String] = []
        for case .array(let all)? in ([self.plan] + self.plans).map({ $0["targets"] }) {
            for case .string(let target) in all where !unique.contains(target) { unique.append(target) }
        }
        return unique
    }

    /// `server broker.example:1883`, and what the servers named themselves.
    package var serverWords: [String] {
        let targets = self.targets
        let names = (targets.count == 1 ? "server " : "servers ") + targets.joined(separator: ", ")
        return (targets.isEmpty ? [] : [names]) + (self.servers ?? []).words
    }

    /// The metrics of each kind in turn, those of one kind by their labels.
    func metrics(named kinds: MetricDefinition...) -> [Metric] {
        kinds.map(\.name).flatMap { name in
            self.metrics.places { $0.name == name }.map { self.metrics[$0] }.sorted { $0.labels < $1.labels }
        }
    }

    package func metric(_ kind: MetricDefinition, _ labels: Labels) -> Metric? {
        let name = kind.name
        return self.metrics.places { $0.name == name && $0.labels == labels }.first.map { self.metrics[$0] }
    }
}

extension [Metric] {
    /// The places of some of many: `filter` would copy each metric before it is looked at.
    func places(where isWanted: (borrowing Metric) -> Bool) -> [Int] { self.indices.filter { isWanted(self[$0]) } }
}

extension [ServerRecord] {
    /// Each server with its version once; its groups are named if there is another one.
    fileprivate var facts: [(name: String, value: String)] {
        var groups = OrderedMap<String, [String]>()
        for server in self {
            groups["\(server.words) (\(server.source))", default: []] += [server.group].compactMap(\.self)
        }
        let found = groups.all
        return found.map { value, groups in
            let isNamed = found.count > 1 && !groups.isEmpty
            return (isNamed ? "server of \(groups.joined(separator: ", "))" : "server", value)
        }
    }
}
