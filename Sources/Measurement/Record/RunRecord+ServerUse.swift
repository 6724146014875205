// Figures of a watched server per message and per connection.
extension RunRecord {
    /// The names of the metrics in ``serverUse``.
    package static let serverUseNames: Set = ["server_cpu_per_message", "server_memory_per_connection"]

    /// The cost of a message and of a connection at the watched server; empty without a watched process.
    ///
    /// - `server_cpu_per_message`, seconds: CPU time of the measured phase ÷ messages that the server took in and
    ///   passed on in it.
    /// - `server_memory_per_connection`, bytes: the highest resident memory less that before the first connect, ÷ the
    ///   most clients connected at a time.
    package var serverUse: [Metric] {
        var use: [Metric] = []
        func add(_ name: String, _ unit: String, _ value: Double?) {
            guard let value else { return }
            use.append(Metric(name: name, unit: unit, reading: .gauge(GaugeReading(value: value))))
        }
        add("server_cpu_per_message", "seconds", self.serverCPUPerMessage)
        add("server_memory_per_connection", "bytes", self.serverMemoryPerConnection)
        return use
    }

    package func whole(_ names: String...) -> [Metric] {
        self.metrics.filter { names.contains($0.name) && $0.labels[Labels.stage] == nil }
    }

    private var serverCPUPerMessage: Double? {
        let times = self.whole("server_cpu_time").compactMap { $0.counter?.rate }
        let messages = self.whole("publish_sent", "stanza_sent", "received").compactMap { $0.counter?.rate }
        let (cpu, rate) = (times.reduce(0, +), messages.reduce(0, +))
        return !times.isEmpty && rate > 0 ? cpu / rate : nil
    }

    private var serverMemoryPerConnection: Double? {
        let idle = self.whole("server_memory_idle_bytes").compactMap { $0.gauge?.value }
        let most = self.whole("server_memory_bytes").compactMap { $0.gauge?.max }
        let clients = self.whole("clients").filter { $0.labels["state"] ?? "connected" == "connected" }
            .compactMap { $0.gauge?.max }
        let (gain, count) = (most.reduce(0, +) - idle.reduce(0, +), clients.reduce(0, +))
        // Groups may have their most clients at different times.
        return !idle.isEmpty && gain > 0 && count > 0 ? gain / count : nil
    }
}
