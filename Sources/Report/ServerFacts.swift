package import Measurement

extension RunRecord {
    /// A watched server in words: its name, and what it used; empty where nothing is known.
    package var serverFacts: [(name: String, value: String)] {
        var facts: [(name: String, value: String)] = []
        let observed = self.metrics.filter {
            $0.name.hasPrefix("server_") && $0.labels[Labels.stage] == nil && $0.gauge != nil
        }
        guard !observed.isEmpty || self.servers != nil else { return [] }
        func gauges(_ name: String) -> [Metric] { observed.filter { $0.name == name } }
        func whose(_ metric: Metric, _ all: [Metric]) -> String {
            let processes = Set(all.compactMap { $0.labels["process"] })
            return processes.count > 1 ? metric.labels["process"].map { " of \($0)" } ?? "" : ""
        }
        facts += (self.servers ?? []).facts
        let cpu = gauges("server_cpu")
        for metric in cpu {
            guard let mean = metric.gauge?.mean else { continue }
            let most = metric.gauge?.max.map { ", at most \(Human.significant($0))" } ?? ""
            facts.append(("CPU\(whose(metric, cpu))", "\(Human.significant(mean)) cores\(most)"))
        }
        let threads = gauges("server_thread_cpu")
        if let busiest = threads.max(by: { $0.gauge?.mean ?? 0 < $1.gauge?.mean ?? 0 }), let share = busiest.gauge?.mean
        {
            let name = busiest.labels["thread"].map { "\($0) at " } ?? ""
            let most = busiest.gauge?.max.map { ", at most \(Human.percent($0))" } ?? ""
            facts.append(
                ("busiest thread\(whose(busiest, threads))", "\(name)\(Human.percent(share)) of a core\(most)")
            )
        }
        let memory = gauges("server_memory_bytes")
        for metric in memory {
            guard let most = metric.gauge?.max else { continue }
            facts.append(("memory\(whose(metric, memory))", "at most \(Human.bytes(most))"))
        }
        let descriptors = gauges("server_descriptors")
        for metric in descriptors {
            guard let most = metric.gauge?.max else { continue }
            facts.append(("descriptors\(whose(metric, descriptors))", "at most \(Human.number(most))"))
        }
        if let seconds = gauges("server_cpu_per_message").first?.gauge?.value {
            facts.append(("CPU per message", Human.duration(seconds)))
        }
        if let bytes = gauges("server_memory_per_connection").first?.gauge?.value {
            facts.append(("memory per connection", Human.bytes(bytes)))
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

    func metrics(named name: String) -> [Metric] {
        self.metrics.filter { $0.name == name }.sorted { $0.labels < $1.labels }
    }

    package func metric(_ name: String, _ labels: Labels) -> Metric? {
        self.metrics.first { $0.name == name && $0.labels == labels }
    }
}

extension [ServerRecord] {
    /// Each server with its version once; its groups are named if there is another one.
    fileprivate var facts: [(name: String, value: String)] {
        var found: [(value: String, groups: [String])] = []
        for server in self {
            let value = "\(server.words) (\(server.source))"
            let place = found.firstIndex { $0.value == value } ?? found.count
            if place == found.count { found.append((value, [])) }
            if let group = server.group { found[place].groups.append(group) }
        }
        return found.map { value, groups in
            let isNamed = found.count > 1 && !groups.isEmpty
            return (isNamed ? "server of \(groups.joined(separator: ", "))" : "server", value)
        }
    }
}

extension Summary {
    /// `Server      mosquitto 2.0.11 · CPU 0.98 cores`.
    var serverParts: [String] {
        self.record.serverFacts.map { $0.name.hasPrefix("server") ? $0.value : "\($0.name) \($0.value)" }
    }

    /// The watched server's use.
    var server: [String] {
        let parts = self.serverParts
        guard !parts.isEmpty else { return [] }
        return [self.style.paint("Server", .bold)] + self.paragraph(parts.joined(separator: " · "), indent: 2)
    }
}
