import Crypto
import DataEncodings

extension ScenarioOptions {
    /// Which encoding the digits after it are the hash of.
    private static let scheduleEncoding = 2

    /// SHA-256 of what decides which client does what when, but for the seed.
    ///
    /// Files that mean the same have the same, however they are written, and whatever servers they name.
    package var scheduleHash: String {
        let text = self.scheduleLines.joined(separator: "\n")
        return "\(Self.scheduleEncoding):\(SHA256.hash(data: Array(text.utf8)).hex)"
    }

    /// The lines that are hashed: `path=value`, sorted by bytes, by the rules of `results/README.md`.
    package var scheduleLines: [String] {
        var run = PlanFacts()
        run.nanoseconds("duration", self.common.duration ?? 0)
        run.nanoseconds("warmup", self.common.warmup)
        run.nanoseconds("drain", self.common.drain)
        run.flag("bridged", self.bridged)
        for (index, stage) in self.common.stages.enumerated() {
            let path = "stages[\(index)]"
            run.text("\(path).name", stage.name)
            run.nanoseconds("\(path).for", stage.length)
            run.number("\(path).load", stage.load, unless: 1)
            run.flag("\(path).warmup", stage.isWarmup)
            run.number("\(path).reconnect", stage.reconnect, unless: 0)
            run.number("\(path).offline", stage.offline, unless: 0)
        }
        var lines = run.facts.flatMap { $0.lines(below: "") }
        for group in self.groups {
            let facts = group.work.facts.facts.filter(\.isScheduled)
            lines += facts.flatMap { $0.lines(below: "group.\(group.name).") }
        }
        return lines.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }
}
