import Measurement
import Report

/// Finished runs whose figures are known.
enum ComparedSamples {
    /// `median` in seconds; every tenth value is five times as long.
    static func run(
        _ path: String,
        median: Double,
        rate: Double = 1000,
        errors: UInt64 = 0,
        startedAt: String = "2026-11-25T10:00:00Z",
        name: String? = nil,
        state: Verdict.State = .valid
    ) -> ComparedRun {
        var record = RunRecord(
            command: ["clamor", "pub", "-q", "1"],
            tool: ToolRecord(name: "clamor", version: "1.0"),
            host: HostFacts(),
            plan: ["targets": .array([.string("mqtt://127.0.0.1:1883")])],
            startedAt: startedAt
        )
        if let name { record.plan["name"] = .string(name) }
        var verdict = Verdict.valid
        if state != .valid { verdict.add(state, Verdict.Reason(code: "schedule-lag", text: "a loop was busy")) }
        record.verdict = verdict
        record.durationSeconds = 10
        var histogram = Histogram()
        for step in 0..<20_000 {
            let share = 0.9 + 0.2 * Double(step % 100) / 100
            histogram.record(Int64(median * 1e9 * share * (step % 10 == 0 ? 5 : 1)))
        }
        record.metrics = [
            DurationReading(histogram, encoded: histogram.encodedV2()).map {
                Metric(duration: "publish_ack_duration", labels: ["leg": "puback", "qos": "1"], reading: $0)
            },
            Metric(
                name: "publish_acked",
                labels: ["qos": "1"],
                reading: .counter(CounterReading(value: rate * 10, rate: rate))
            ),
        ].compactMap(\.self)
        if errors > 0 {
            record.errors = [
                ErrorRecord(kind: "timeout", count: errors, firstAt: startedAt, example: "no answer in 5 s")
            ]
        }
        return ComparedRun(path: path, record: record)
    }

    /// Runs that differ by a few thousandths.
    static func side(_ name: String, median: Double, count: Int = 4) -> [ComparedRun] {
        (0..<count).map {
            self.run("\(name)/\($0 + 1)", median: median * (1 + 0.002 * Double($0)), rate: 1000 + Double($0))
        }
    }

    /// One run a day.
    static func days(_ medians: [Double]) -> [ComparedRun] {
        medians.enumerated().map { place, median in
            let day = place < 9 ? "0\(place + 1)" : "\(place + 1)"
            return self.run("runs/\(place + 1)", median: median, startedAt: "2026-11-\(day)T10:00:00Z")
        }
    }
}

/// What holds for every page.
enum PageText {
    /// The things in a page that would load something, or run something that is not in it.
    static func requests(_ page: String) -> [String] {
        ["src=", "href=\"http", "@import", "url(http", "<iframe", "<link rel=\"stylesheet\""].filter(page.contains)
    }

    /// The text of the sentence at the top.
    static func lead(_ page: String) -> String {
        guard let begin = page.firstRange(of: "<p class=\"lead ") else { return "" }
        let rest = page[begin.upperBound...].drop { $0 != ">" }.dropFirst()
        return String(rest.prefix { $0 != "<" })
    }
}
