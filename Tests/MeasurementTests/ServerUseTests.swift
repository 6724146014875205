import Measurement
import Testing

@Suite("A watched server per message and per connection")
struct ServerUseTests {
    private func record(_ metrics: [Metric]) -> RunRecord {
        var record = RunRecord(
            command: ["clamor"],
            tool: ToolRecord(name: "clamor", version: "1"),
            host: HostFacts(),
            plan: [:],
            startedAt: "2026-11-21T01:37:09Z"
        )
        record.metrics = metrics
        return record
    }

    private func counter(_ name: String, _ labels: Labels = [:], rate: Double?) -> Metric {
        Metric(name: name, labels: labels, reading: .counter(CounterReading(value: 1, rate: rate)))
    }

    private func gauge(_ name: String, _ labels: Labels = [:], most: Double) -> Metric {
        Metric(name: name, labels: labels, reading: .gauge(GaugeReading(value: most, min: 0, mean: 0, max: most)))
    }

    private func value(_ name: String, _ metrics: [Metric]) -> Double? {
        self.record(metrics).serverUse.first { $0.name == name }?.gauge?.value
    }

    @Test("CPU per message counts what the server took in and passed on, of all its processes")
    func messages() {
        let metrics = [
            self.counter("server_cpu_time", ["process": "beam"], rate: 0.5),
            self.counter("server_cpu_time", ["process": "epmd"], rate: 0.1),
            self.counter("publish_sent", ["qos": "1"], rate: 1000), self.counter("received", rate: 2000),
        ]
        #expect(self.value("server_cpu_per_message", metrics) == 0.6 / 3000)
    }

    @Test("memory per connection is the growth since the time before the first connect")
    func connections() {
        let metrics = [
            self.gauge("server_memory_idle_bytes", ["process": "mosquitto"], most: 4_000_000),
            self.gauge("server_memory_bytes", ["process": "mosquitto"], most: 9_000_000),
            self.gauge("clients", ["state": "connected"], most: 1000),
        ]
        #expect(self.value("server_memory_per_connection", metrics) == 5000)
    }

    @Test("without a divisor, and for a server that was not watched, nothing is claimed")
    func absent() {
        let cpu = self.counter("server_cpu_time", rate: 0.5)
        #expect(self.record([cpu]).serverUse.isEmpty)
        #expect(self.record([cpu, self.counter("publish_sent", rate: 0)]).serverUse.isEmpty)
        #expect(self.record([self.counter("publish_sent", rate: 10)]).serverUse.isEmpty)
        let memory = [
            self.gauge("server_memory_bytes", most: 5), self.gauge("clients", ["state": "connected"], most: 5),
        ]
        #expect(self.record(memory).serverUse.isEmpty)
        // A server that gave memory back cost nothing that could be told.
        #expect(self.record(memory + [self.gauge("server_memory_idle_bytes", most: 9)]).serverUse.isEmpty)
    }
}
