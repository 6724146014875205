package import Measurement

extension RunRecord {
    func metrics(named name: String) -> [Metric] {
        self.metrics.filter { $0.name == name }.sorted { $0.labels < $1.labels }
    }

    package func metric(_ name: String, _ labels: Labels) -> Metric? {
        self.metrics.first { $0.name == name && $0.labels == labels }
    }
}
