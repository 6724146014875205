import Measurement
import Pages
import Report
import Testing

@Suite struct TrendPageTests {
    static let steps = [0.001, 0.001_01, 0.001, 0.000_99, 0.0013, 0.001_31, 0.0013, 0.001_29]

    @Test("The first sentence names the figure, the run and the size of the last change for the worse")
    func change() throws {
        let page = try TrendPage(ComparedSamples.days(Self.steps)).text()
        let lead = PageText.lead(page)
        #expect(lead.contains(" rose by 3"))
        #expect(lead.contains("with run 5 (2026-11-05 10:00 UTC, runs/5)"))
        #expect(page.contains("id=\"changes\""))
    }

    @Test("Noise is no change")
    func noise() throws {
        let medians = [0.001, 0.0012, 0.0009, 0.0011, 0.001, 0.0013, 0.0009, 0.0011]
        let page = try TrendPage(ComparedSamples.days(medians)).text()
        #expect(PageText.lead(page).hasPrefix("No figure changed its level over 8 runs"))
        #expect(!page.contains("id=\"changes\""))
    }

    @Test("Few runs show no trend, whatever their figures are", arguments: 2...5)
    func few(count: Int) throws {
        let medians = (0..<count).map { $0 < count / 2 ? 0.001 : 0.1 }
        let lead = PageText.lead(try TrendPage(ComparedSamples.days(medians)).text())
        #expect(lead == "\(count) valid runs show no trend: a change point needs 3 before it and after it.")
    }

    @Test("A run that measured the generator is a ring, and makes no level")
    func limited() throws {
        var runs = ComparedSamples.days(Self.steps)
        runs[4] = ComparedSamples.run(
            "runs/limited",
            median: 0.0013,
            startedAt: "2026-11-05T10:00:00Z",
            state: .generatorLimited
        )
        let page = try TrendPage(runs).text()
        #expect(page.contains("class=\"dot ring"))
        #expect(page.contains("7 of 8 valid"))
        #expect(PageText.lead(page).contains("with run 6 ("))
    }

    @Test("A row for each figure, in the order of the runs' starts")
    func rows() throws {
        let page = try TrendPage(ComparedSamples.days(Self.steps).reversed()).text()
        for name in ["p50", "p99"] { #expect(page.contains(">publish_ack_duration QoS 1 \(name), ms</text>")) }
        #expect(page.contains(">publish_acked QoS 1 rate, 1/s</text>"))
        #expect(page.contains("0 in every run: errors count."))
        let first = try #require(page.firstRange(of: "run 1, runs/1, ")).lowerBound
        #expect(first < (try #require(page.firstRange(of: "run 8, runs/8, "))).lowerBound)
        #expect(PageText.requests(page).isEmpty)
    }

    @Test("Runs with names of their own are named by them")
    func names() throws {
        let runs = ["3f2a", "9bc1", "77de"].enumerated().map { place, name in
            ComparedSamples.run(name, median: 0.001, startedAt: "2026-11-0\(place + 1)T10:00:00Z", name: name)
        }
        #expect(try TrendPage(runs).text().contains(">9bc1</text>"))
    }
}
