import Measurement
import Pages
import Report
import Testing

@Suite struct ComparePageTests {
    private func page(base: Double, new: Double, count: Int = 4) throws -> String {
        let base = ComparedSamples.side("base", median: base, count: count)
        return try ComparePage(Comparison(base: base, new: ComparedSamples.side("new", median: new, count: count)))
            .text()
    }

    @Test("The first sentence says which build is worse, and by what")
    func worse() throws {
        let page = try self.page(base: 0.001, new: 0.0013)
        let lead = PageText.lead(page)
        #expect(lead.hasPrefix("New is worse: ack QoS 1 p"))
        #expect(lead.contains("+30") || lead.contains("+29"))
        #expect(lead.contains("beyond the limit of +"))
        #expect(page.contains("</span>worse</span></p>"))
    }

    @Test(
        "The title names what differs between both sides: their titles, else their directories",
        arguments: [
            (["results/old"], ["results/new"], "gate", "gate", "gate: old and new"),
            (["results/old"], ["results/new"], nil, nil, "old and new"),
            (["a/1", "a/2"], ["b/1", "b/2"], "gate", "gate", "gate: a and b"),
            (["runs"], ["runs/1"], nil, nil, "base and 1"),
            (["results/1"], ["results/2"], "3f2a", "9bc1", "3f2a and 9bc1"),
        ] as [([String], [String], String?, String?, String)]
    )
    func title(_ base: [String], _ new: [String], _ baseName: String?, _ newName: String?, _ title: String) throws {
        func side(_ paths: [String], _ name: String?, _ median: Double) -> [ComparedRun] {
            paths.enumerated().map { place, path in
                ComparedSamples.run(path, median: median + Double(place) * 1e-6, name: name)
            }
        }
        let comparison = Comparison(base: side(base, baseName, 0.001), new: side(new, newName, 0.0013))
        #expect(try ComparePage(comparison).text().contains("<h1>\(title)</h1>"))
    }

    @Test("A faster build is called better")
    func better() throws {
        let lead = PageText.lead(try self.page(base: 0.001, new: 0.0007))
        #expect(lead.hasPrefix("New is better: ack QoS 1 p"))
        #expect(lead.contains("nothing judged is worse"))
    }

    @Test("Without a difference the page says how large one may be that was not found")
    func same() throws {
        let lead = PageText.lead(try self.page(base: 0.001, new: 0.001_001))
        #expect(lead.hasPrefix("No difference between base and new was found; the noise could hide up to "))
    }

    @Test("Two single runs accuse nobody")
    func single() throws {
        let page = try self.page(base: 0.001, new: 0.003, count: 1)
        #expect(PageText.lead(page).hasPrefix("New looks worse, though single runs cannot show it: "))
        #expect(PageText.lead(page).contains(" 3.00 × ("))
        #expect(page.contains("indicative"))
    }

    @Test("Every run of both sides is a dot, and in the table of runs")
    func dots() throws {
        let page = try self.page(base: 0.001, new: 0.0013)
        for path in (1...4).flatMap({ ["base/\($0)", "new/\($0)"] }) {
            #expect(page.contains("<title>\(path): "))
            #expect(page.contains(">\(path)</td>"))
        }
    }

    @Test("Errors of the new build are a regression, although base had none to compare with")
    func errors() throws {
        let base = ComparedSamples.side("base", median: 0.001)
        let new = (0..<4).map { ComparedSamples.run("new/\($0)", median: 0.001, errors: 100 + UInt64($0)) }
        let page = try ComparePage(Comparison(base: base, new: new)).text()
        #expect(PageText.lead(page).contains("errors count 0 → 10"))
    }

    @Test("Runs without a judged figure are not called equal")
    func nothing() throws {
        let empty = ["a", "b"].map { path in
            var record = ComparedSamples.run(path, median: 0.001).record
            record.metrics = []
            record.startedAt = "2026-11-25T1\(path == "a" ? 0 : 1):00:00Z"
            return ComparedRun(path: path, record: record)
        }
        let page = try ComparePage(Comparison(base: [empty[0]], new: [empty[1]])).text()
        #expect(PageText.lead(page).hasPrefix("Nothing was judged"))
    }

    @Test("The page asks for nothing, and markup in a path is text")
    func safe() throws {
        let side = (0..<3).map { ComparedSamples.run("<b>\"&'\($0)", median: 0.001 + Double($0) * 1e-6) }
        let page = try ComparePage(Comparison(base: side, new: ComparedSamples.side("new", median: 0.002))).text()
        #expect(PageText.requests(page).isEmpty)
        #expect(!page.contains("<b>\""))
        #expect(page.contains("&lt;b&gt;"))
    }
}
