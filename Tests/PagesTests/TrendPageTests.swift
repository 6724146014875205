import Measurement
import Pages
import Report
import Testing

@Suite struct TrendPageTests {
    /// A week at one level, and one at another.
    static let steps = (0..<14).map { (day: Int) -> Double in
        let level = day < 7 ? 0.001 : 0.0049
        return level * (1 + 0.005 * Double(day % 3))
    }

    static func page(_ runs: [ComparedRun]) throws -> String { try TrendPage(RunTrend(runs)).text() }

    @Test("The first sentence names the figure, the factor and the run of the last change for the worse")
    func change() throws {
        let page = try Self.page(ComparedSamples.days(Self.steps))
        let lead = PageText.lead(page)
        #expect(lead.contains(": 4.9"), "\(lead)")
        #expect(lead.contains("slower since 2026-11-08 10:00 UTC"), "\(lead)")
        #expect(page.contains("id=\"changes\"") && page.contains("slower</text>"))
    }

    @Test("Noise is no change")
    func noise() throws {
        let medians = [0.001, 0.0012, 0.0009, 0.0011, 0.001, 0.0013, 0.0009, 0.0011, 0.001, 0.0012, 0.001, 0.0011]
        let page = try Self.page(ComparedSamples.days(medians))
        #expect(PageText.lead(page) == "4 figures over 12 runs, no change of level.")
        #expect(!page.contains("id=\"changes\""))
    }

    @Test("Few runs show no change, whatever their figures are", arguments: 2...8)
    func few(count: Int) throws {
        let medians = (0..<count).map { $0 < count / 2 ? 0.001 : 0.1 }
        let lead = PageText.lead(try Self.page(ComparedSamples.days(medians)))
        #expect(lead.hasPrefix("\(count) valid points: a change of one of 4 figures shows from "))
    }

    @Test("A run that measured the generator is a ring, and makes no level")
    func limited() throws {
        var runs = ComparedSamples.days(Self.steps)
        runs[7] = ComparedSamples.run(
            "runs/limited",
            median: 0.0049,
            startedAt: "2026-11-08T10:00:00Z",
            state: .generatorLimited
        )
        let page = try Self.page(runs)
        #expect(page.contains("class=\"dot ring"))
        #expect(page.contains("13 of 14 valid"))
        #expect(PageText.lead(page).contains("since 2026-11-09 "))
    }

    @Test("A row for each figure, in the order of the runs' starts")
    func rows() throws {
        let page = try Self.page(ComparedSamples.days(Self.steps).reversed())
        for name in ["p50", "p99"] { #expect(page.contains(">\(name) of publish_ack_duration QoS 1, ms</text>")) }
        #expect(page.contains(">rate of publish_acked QoS 1, 1/s</text>"))
        #expect(page.contains("0 in every run: errors count."))
        let first = try #require(page.firstRange(of: "11-01, runs/1, ")).lowerBound
        #expect(first < (try #require(page.firstRange(of: "11-14, runs/14, "))).lowerBound)
        #expect(PageText.requests(page).isEmpty)
    }

    @Test("The title of each chart begins with the field, which a narrow screen does not cut")
    func titles() throws {
        let page = try Self.page(ComparedSamples.days(Self.steps))
        let titles = page.matches(of: #/<text class="title"[^>]*>([^<]+)</#).map { String($0.1) }
        let fields = titles.filter { $0.contains(" of ") }.map { title in title.prefix { $0 != " " } }
        #expect(Set(fields) == ["p50", "p99", "rate"] && fields.count == titles.count)
    }

    @Test(
        "A run is named by a title of its own, else by its date, with the time where days repeat",
        arguments: [
            (["3f2a", "9bc1", "77de"], [1, 2, 3], ["3f2a", "9bc1", "77de"]),
            (["gate", "gate", "gate"], [1, 2, 3], ["11-01", "11-02", "11-03"]),
            (["gate", "gate", "gate"], [1, 1, 3], ["11-01 10:00", "11-01 11:00", "11-03 12:00"]),
            (["3f2a", "3f2a", nil], [1, 2, 3], ["3f2a", "11-03"]),
        ] as [([String?], [Int], [String])]
    )
    func names(_ names: [String?], _ days: [Int], _ labels: [String]) throws {
        let runs = zip(names, days).enumerated().map { place, run in
            let start = "2026-11-0\(run.1)T1\(place):00:00Z"
            return ComparedSamples.run("runs/\(place)", median: 0.001, startedAt: start, name: run.0)
        }
        let page = try Self.page(runs)
        for label in labels { #expect(page.contains(">\(label)</text>"), "\(label)") }
        #expect(!page.contains(">run 1</text>"))
    }
}
