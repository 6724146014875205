import Pages
import Report
import Testing

@Suite struct CapacityPageTests {
    private typealias Step = CapacityRecord.Step

    static func record(_ answer: CapacityRecord.Answer?) -> CapacityRecord {
        var record = CapacityRecord(
            command: ["clamor", "capacity", "pub", "-h", "<host>"],
            varies: "rate",
            objectives: ["publish_ack_duration p99 < 50ms"],
            holdSeconds: 20
        )
        record.answer = answer
        record.answer?.limit = .init(.thread, "the server's thread one used 98 % of a core")
        let steps: [(Double, String, Double)] = [
            (1000, "held", 0.001), (2000, "held", 0.0012), (4000, "held", 0.002), (8000, "held", 0.02),
            (16_000, "broken", 0.3), (10_000, "broken", 0.09), (32_000, "generator-limited", 0.5),
        ]
        for (place, (load, verdict, p99)) in steps.enumerated() {
            var step = Step(
                number: place + 1,
                load: load,
                phase: "doubling",
                verdict: verdict,
                reason: verdict == "held" ? nil : "publish_ack_duration p99 is \(p99) s",
                directory: "steps/\(place + 1)"
            )
            step.throughput = min(load, 9000)
            step.p99Seconds = p99
            step.p50Seconds = p99 / 4
            step.meanSeconds = p99 / 3
            step.concurrency = min(load, 9000) * p99 / 3
            record.steps.append(step)
        }
        return record
    }

    static let answers: [(CapacityRecord.Answer?, String)] = [
        (.init(kind: "found", load: 8000, low: 8000, high: 10_000), "The server holds 8,000/s; 10,000/s broke: "),
        (
            .init(kind: "at-least", load: 5000, low: 5000),
            "The server holds at least 5,000/s; a larger load was not offered."
        ),
        (.init(kind: "nothing-holds", high: 10), "Nothing holds, not even 10/s"),
        (
            .init(kind: "generator-limited", load: 8000, high: 16_000, reason: "loop 0 was busy"),
            "The generator was the limit, not the server: at 16,000/s; 8,000/s held"
        ),
        (.init(kind: "interrupted", load: 1000), "The search was interrupted: 1,000/s held until then"),
        (nil, "The search is not finished."),
    ]

    @Test("The first sentence says how much the server holds, or why that is not known", arguments: answers)
    func lead(_ answer: CapacityRecord.Answer?, _ words: String) throws {
        #expect(PageText.lead(try CapacityPage(Self.record(answer)).text()).hasPrefix(words))
    }

    @Test("Every step is a point with the shape of its verdict, and a row of the table")
    func steps() throws {
        let page = try CapacityPage(Self.record(Self.answers[0].0)).text()
        for number in 1...7 { #expect(page.contains(">steps/\(number)</td>")) }
        #expect(page.contains("the server&#39;s thread one used 98 % of a core"), "the tile of the limit")
        #expect(page.contains("capacity 8,000/s … 10,000/s"))
        #expect(page.contains(">p99 &lt; 50.0 ms</text>"))
        for shape in ["circle", "cross", "triangle"] { #expect(page.contains("class=\"dot \(shape) s1\"")) }
    }

    @Test("Repeated steps at one load have a band, and others have none")
    func repeated() throws {
        var record = Self.record(Self.answers[0].0)
        #expect(try !CapacityPage(record).text().contains("class=\"area "))
        record.steps[1].load = 1000
        let page = try CapacityPage(record).text()
        #expect(page.contains("class=\"area "))
    }

    @Test("What is known of the capacity's own step comes from no load above it")
    func best() throws {
        let record = Self.record(.init(kind: "found", load: 4000, low: 4000, high: 8000))
        let page = try CapacityPage(record).text()
        #expect(page.contains("<p class=\"value\">2.00 ms</p>"))
    }

    @Test("A load that held more often than it broke is none that broke", arguments: [8000, 8000.3])
    func brokeOnce(_ load: Double) throws {
        var record = Self.record(.init(kind: "found", load: 8000, low: 4000, high: 10_000))
        let step = Step(number: 8, load: load, phase: "edge", verdict: "broken", reason: "late", directory: "steps/8")
        record.steps.append(step)
        let page = try CapacityPage(record).text()
        #expect(PageText.lead(page).hasPrefix("The server holds 8,000/s; 10,000/s broke: "))
        #expect(!page.contains("8,000/s broke"))
    }

    @Test("A load that held although the generator was late says so, and is not green")
    func late() throws {
        var record = Self.record(.init(kind: "found", load: 8000, low: 8000, high: 10_000))
        record.steps[3].reason = "the generator was the limit"
        let page = try CapacityPage(record).text()
        #expect(PageText.lead(page).contains("; 8,000/s held: the generator was the limit"))
    }

    @Test("The page names servers and host, and each of its links leads to a place of it")
    func links() throws {
        var record = Self.record(Self.answers[0].0)
        record.environment = ["server broker.example:1883", "mosquitto 2.0.11", "Example CPU"]
        #expect(try CapacityPage(record).text().contains("<li>mosquitto 2.0.11</li>"))
        for part in 0..<3 {
            for place in record.steps.indices {
                if part > 0 { record.steps[place].p99Seconds = nil }
                if part > 1 { record.steps[place].throughput = nil }
            }
            let page = try CapacityPage(record).text()
            let links = page.matches(of: #/href="#([^"]+)"/#).map { String($0.1) }
            #expect(!links.isEmpty)
            for link in links { #expect(page.contains("id=\"\(link)\"")) }
        }
    }

    @Test("A search without a step, or of clients, is a page", arguments: ["rate", "clients"])
    func small(varies: String) throws {
        let record = CapacityRecord(command: ["clamor"], varies: varies, objectives: [], holdSeconds: 1)
        let page = try CapacityPage(record).text()
        #expect(page.contains("unfinished"))
        #expect(PageText.requests(page).isEmpty)
    }
}
