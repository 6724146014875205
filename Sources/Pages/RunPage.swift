package import Measurement
package import Report

/// `report.html` of one run.
package struct RunPage {
    let record: RunRecord
    /// The record without the metrics of single stages.
    let whole: RunRecord
    let course: RunCourse
    let latencies: LatencyMap?
    let segments: [Segment]
    private let outcome: ServerOutcome

    /// A segment of a merged run, as far as its own data is at hand.
    package struct Segment: Sendable {
        package var name: String
        package var record: RunRecord
        package var timeline: Timeline

        package init(name: String, record: RunRecord, timeline: Timeline) {
            self.name = name
            self.record = record
            self.timeline = timeline
        }
    }

    /// - Parameters:
    ///   - record: the whole of `run.json`.
    ///   - timeline: empty for a run without one.
    ///   - latencies: for the heat map: ``latencyMetrics`` without labels; none without a histogram log.
    ///   - segments: of a merged run.
    package init(_ record: RunRecord, timeline: Timeline, latencies: LatencyMap? = nil, segments: [Segment] = []) {
        self.record = record
        self.whole = record.withoutStages
        self.course = RunCourse(record, timeline)
        self.latencies = latencies
        self.segments = segments
        self.outcome = ServerOutcome(record)
    }

    /// The durations that heat maps are made of.
    package static let latencyMetrics = MetricDefinition.charted.map(\.name)

    package func text() throws -> String { try self.layout.text() }

    var layout: PageLayout {
        let summary = Summary(self.record)
        let title = self.heading(summary)
        var page = PageLayout(
            title: title == summary.commandName ? title : "\(title) · \(summary.commandName)",
            kind: title == summary.commandName ? "" : summary.commandName,
            heading: title
        )
        page.load = self.record.load
        page.facts = self.facts
        page.badges = self.badges
        page.lead = self.lead
        page.remarks = self.remarks
        page.tiles = self.tiles
        let strip = self.strip
        page.data = strip?.data
        page.sections = [strip?.section].compactMap(\.self) + self.sections
        page.footer = self.footer
        let badges = page.badges.map { "\($0.label): \($0.state)" }.joined(separator: " · ")
        page.markdown = RunMarkdown.head(title, [badges, page.load, page.lead?.text], page.tiles.flatMap(\.figures))
        return page
    }

    private var sections: [PageSection] {
        let sections = [
            self.keyFigures, self.objectives, self.errors, self.losses, self.latency, self.stages, self.groups,
            self.segmentTable, self.connects, self.clients, self.books, self.decoder, self.generator, self.server,
            self.slowest,
            self.notes, self.plan,
        ]
        return sections.compactMap(\.self)
    }

    private func heading(_ summary: Summary) -> String {
        if case .string(let name)? = self.record.plan["name"], !name.isEmpty { return name }
        return summary.commandName
    }

    /// Server, tags, date and length, without what the load says.
    private var facts: [String] {
        var facts = self.record.serverWords.filter { !self.record.loadServer.contains($0) }
        facts += RunTitle.words(self.record).filter { self.record.plan["name"] != .string($0) }
        facts.append("\(self.record.startedAt.prefix(19).replacing("T", with: " ")) UTC")
        let measured = self.record.stages.filter(\.measured).map(\.durationSeconds).reduce(0, +)
        // Of what was measured as planned the load tells the length.
        let isPlanned = self.record.plannedSeconds.map { abs($0 - measured) < $0 / 50 } ?? (measured <= 0)
        let own = isPlanned ? nil : "\(Words.duration(measured)) measured"
        let whole = self.record.durationSeconds.map { "\(Words.duration($0)) in all" }
        facts.append(contentsOf: [own, whole].compactMap(\.self))
        let segment = self.record.segment
        if segment.isPart {
            let processes = segment.merged.map { ", merged from \($0) processes" } ?? ""
            facts.append("segment \(segment.index) of \(segment.count)\(processes)")
        } else if let merged = segment.merged {
            let lost = segment.lost.map { " of \(merged + $0.count)" } ?? ""
            facts.append("merged from \(merged)\(lost) segments")
        }
        return facts
    }

    private var badges: [PageBadge] {
        let state = self.record.verdict?.state
        let tone: PageTone =
            switch state {
            case .valid: self.outcome.hasFigures ? .good : .plain
            case .generatorLimited, nil: .warn
            case .unreconciled, .aborted: .bad
            }
        let measured = PageBadge(label: "Measurement", state: state?.rawValue ?? "unfinished", tone: tone)
        let results = self.record.thresholds
        func count(_ state: ThresholdResult.State) -> Int { results.count { $0.state == state } }
        let failed = [(count(.broken), "broken"), (count(.undecided), "undecided")].filter { $0.0 > 0 }
        let words = ["\(failed.isEmpty ? "all " : "")\(count(.met))\(failed.isEmpty ? "" : " of \(results.count)") met"]
        let own = results.isEmpty ? ["none set"] : words + failed.map { "\($0.0) \($0.1)" }
        let ownTone: PageTone =
            results.isEmpty ? .plain : failed.isEmpty ? .good : failed[0].1 == "broken" ? .bad : .warn
        return [measured, PageBadge(label: "Objectives", state: own.joined(separator: ", "), tone: ownTone)]
    }

    private var lead: PageLead? {
        if self.record.findings == nil, self.record.verdict == nil {
            return PageLead(text: "The run did not end; the figures are those of its last checkpoint.", tone: .warn)
        }
        guard let text = self.outcome.text else { return nil }
        let isBroken = self.record.thresholds.contains { !$0.ok } || self.record.verdict?.state == .aborted
        // Without an objective the run has no measure of good.
        let tone: PageTone = !self.outcome.isFaultless ? .warn : self.record.thresholds.isEmpty ? .plain : .good
        let evidence = self.record.findings?.evidence.map { (href: "#event-\($0)", text: "event \($0)") }
        return PageLead(text: text, tone: isBroken ? .bad : tone, evidence: evidence)
    }

    /// The reasons that the sentence does not give.
    private var remarks: [PageRemark] {
        let sentence = self.record.findings?.sentence ?? ""
        return (self.record.verdict?.reasons ?? []).filter { !sentence.contains($0.text) }
            .map { PageRemark(text: $0.text, code: $0.code) }
    }

    private var footer: [String] {
        let tool = self.record.tool
        return [
            "Made by \(tool.name) \(tool.version) from the result files of the run: run.json, timeline.csv and"
                + " latency.hlog. Times are seconds from the start of the run; charts begin with the load. Durations of"
                + " answers and deliveries run from the moment at which a message was due."
        ]
    }
}
