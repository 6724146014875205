package import Measurement

extension RunRecord {
    /// The sum of a counter over all metrics that have these labels.
    package func count(_ name: String, _ labels: Labels = [:]) -> Int {
        let matching = self.metrics.filter { $0.name == name && $0.labels.contains(labels) }
        return matching.reduce(0) { $0 + Int($1.counter?.value ?? 0) }
    }

    package func count(_ name: String, qos: Int) -> Int { self.count(name, ["qos": "\(qos)"]) }

    /// At QoS 0, 1 and 2.
    package func perQoS(_ name: String) -> [Int] { (0...2).map { self.count(name, qos: $0) } }

    package func duration(_ name: String, _ labels: Labels = [:]) -> DurationReading? {
        self.metrics.first { $0.name == name && $0.labels.contains(labels) }?.duration
    }

    /// The turns of `--subscription-churn` that were due, however they ended.
    package var subscriptionTurns: Int {
        ["done", "missed", "failed", "unfinished"].reduce(0) { $0 + self.count("subscription_churn_\($1)") }
    }

    /// The contradictions between the turns of `--subscription-churn` and their answers; some were done, none failed.
    package var wrongSubscriptionTurns: [String] {
        let done = self.count("subscription_churn_done")
        func count(_ leg: String) -> Int {
            Int(self.duration("subscription_churn_duration", ["leg": leg])?.count ?? 0)
        }
        let open = self.count("subscription_churn_unfinished")
        let laws = [
            ("none was done", done > 0), ("one failed", self.count("subscription_churn_failed") == 0),
            ("UNSUBACK: \(count("unsuback")) for \(done) turns", count("unsuback") == done),
            ("SUBACK: \(count("suback")) for \(done) turns", (done...done + open).contains(count("suback"))),
            ("no schedule lag", self.duration("schedule_lag") != nil),
        ]
        return laws.filter { !$0.1 }.map(\.0)
    }

    package var state: Verdict.State? { self.verdict?.state }
    /// Nothing is wrong with it, but what a busy host makes of any run, and a run then has to say.
    package var isSound: Bool { self.state == .valid || self.state == .generatorLimited && self.hasReasonsOfBusyHost() }

    /// No reason is given but those of a busy host, and these; CPU is stolen beside the load too.
    package func hasReasonsOfBusyHost(or others: Set<String> = []) -> Bool {
        let seconds = self.stages.first { $0.measured }?.durationSeconds ?? 0
        let busy: Set = ["unsent", "connect-rate", "cpu-steal"]
        let late: Set = seconds < 0.5 ? [] : ["schedule-lag", "generator-cpu", "host-full"]
        return others.union(busy).union(late).isSuperset(of: self.reasonCodes)
    }
    package var reasonCodes: [String] { self.verdict?.reasons.map(\.code) ?? [] }
}
