// Figures of a watched server per message and per connection.
extension RunRecord {
    /// The metrics in ``serverUse``, in their order.
    package static let serverUseMetrics: [MetricDefinition] = [.serverCPUPerMessage, .serverMemoryPerConnection]

    /// The cost of a message and of a connection at the watched server; empty without a watched process.
    ///
    /// - `server_cpu_per_message`, seconds: CPU time of the measured phase ÷ messages that the server took in and
    ///   passed on in it.
    /// - `server_memory_per_connection`, bytes: the highest resident memory less that before the first connect, ÷ the
    ///   most clients connected at a time.
    package var serverUse: [Metric] {
        zip(Self.serverUseMetrics, [self.serverCPUPerMessage, self.serverMemoryPerConnection]).compactMap {
            metric,
            value in
            value.map { Metric(metric, reading: .gauge(GaugeReading(value: $0))) }
        }
    }

    package func whole(_ metrics: MetricDefinition...) -> [Metric] {
        self.metrics.filter { $0.isOf(metrics) && $0.labels[Labels.stage] == nil }
    }

    private var serverCPUPerMessage: Double? {
        let times = self.whole(.serverCPUTime).compactMap { $0.counter?.rate }
        let messages = self.whole(.publishSent, .stanzaSent, .received).compactMap { $0.counter?.rate }
        let (cpu, rate) = (times.reduce(0, +), messages.reduce(0, +))
        return !times.isEmpty && rate > 0 ? cpu / rate : nil
    }

    private var serverMemoryPerConnection: Double? {
        let idle = self.whole(.serverMemoryIdle).compactMap { $0.gauge?.value }
        let most = self.whole(.serverMemory).compactMap { $0.gauge?.max }
        let clients = self.whole(.clients).filter { $0.labels["state"] ?? "connected" == "connected" }
            .compactMap { $0.gauge?.max }
        let (gain, count) = (most.reduce(0, +) - idle.reduce(0, +), clients.reduce(0, +))
        // Groups may have their most clients at different times.
        return !idle.isEmpty && gain > 0 && count > 0 ? gain / count : nil
    }
}
