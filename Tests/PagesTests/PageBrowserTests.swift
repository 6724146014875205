import Pages
import Report
import Testing

private let reason: Comment = "needs Chromium, and a Python with PyPI axe-playwright-python: set CLAMOR_PYTHON to it"

@Suite("Pages in a browser", .enabled(if: Browser.isThere, reason))
struct PageBrowserTests {
    /// Of all pages of this suite, since a browser takes seconds to start.
    private static let findings = Task {
        let real = Fixture.all.compactMap { try? Self.page($0) }
        let pages = try real + Self.ofSeveralRuns() + BadPage.all.map(\.page) + [BadPage.good, ChartGallery.page]
        return try await Browser.findings(on: pages)
    }

    private static func page(_ fixture: Fixture) throws -> Browser.Page {
        Browser.Page(name: fixture.name, html: try fixture.html(), figures: fixture.figures)
    }

    private static func ofSeveralRuns() throws -> [Browser.Page] {
        let comparison = Comparison(
            base: ComparedSamples.side("base", median: 0.001),
            new: ComparedSamples.side("new", median: 0.0013)
        )
        let search = CapacityPageTests.record(CapacityPageTests.answers[0].0)
        return [
            Browser.Page(name: "comparison", html: try ComparePage(comparison).text()),
            Browser.Page(name: "capacity", html: try CapacityPage(search).text()),
            Browser.Page(name: "trend", html: try TrendPageTests.page(ComparedSamples.days(TrendPageTests.steps))),
        ]
    }

    @Test("Pages of several runs are whole and readable as well", arguments: ["comparison", "capacity", "trend"])
    func ofSeveralRuns(name: String) async throws {
        let findings = try #require(try await Self.findings.value[name])
        let lines = findings.prefix(20).map(\.description).joined(separator: "\n")
        #expect(findings.isEmpty, "\(findings.count) findings:\n\(lines)")
    }

    @Test("A page is whole and readable at every width, without scripts, in light and dark", arguments: Fixture.all)
    func isWhole(fixture: Fixture) async throws {
        _ = try Self.page(fixture)
        let findings = try #require(try await Self.findings.value[fixture.name])
        let lines = findings.prefix(20).map(\.description).joined(separator: "\n")
        #expect(findings.isEmpty, "\(findings.count) findings:\n\(lines)")
    }

    @Test("Charts of data that are hard to draw are whole and readable")
    func charts() async throws {
        let findings = try #require(try await Self.findings.value[ChartGallery.page.name])
        let lines = findings.prefix(20).map(\.description).joined(separator: "\n")
        #expect(findings.isEmpty, "\(findings.count) findings:\n\(lines)")
    }

    @Test("A page with a fault is found faulty, and for nothing else", arguments: BadPage.all)
    func isFound(page: BadPage) async throws {
        let findings = try await Self.findings.value[page.name]
        #expect(Set(findings?.map(\.check) ?? []) == page.checks, "\(findings ?? [])")
    }

    @Test("A page without a fault is found faultless")
    func isClean() async throws {
        let findings = try await Self.findings.value[BadPage.good.name]
        #expect(findings == [])
    }
}
