import Charts
package import Measurement
package import Report

/// `report.html` of one run.
package struct RunPage {
    let record: RunRecord
    /// Without the metrics of single stages.
    let whole: RunRecord
    let course: RunCourse
    let latencies: LatencyMap?
    let segments: [Segment]

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
    package init(
        _ record: RunRecord,
        timeline: Timeline,
        latencies: LatencyMap? = nil,
        segments: [Segment] = []
    ) {
        self.record = record
        self.whole = record.withoutStages
        self.course = RunCourse(record, timeline)
        self.latencies = latencies
        self.segments = segments
    }

    /// The durations that heat maps are made of.
    package static let latencyMetrics = RunLatency.all.map(\.name)

    /// - Throws: when a template is not valid.
    package func text() throws -> String { try self.layout.text() }

    var layout: PageLayout {
        let summary = Summary(self.record)
        let title = self.heading(summary)
        var page = PageLayout(
            title: title == summary.commandName ? title : "\(title) · \(summary.commandName)",
            kind: title == summary.commandName ? "" : summary.commandName,
            heading: title
        )
        page.facts = self.facts
        page.badges = self.badges
        page.lead = self.lead
        page.remarks = self.remarks
        page.tiles = self.tiles
        let strip = self.strip
        page.data = strip?.data
        page.sections = [strip?.section].compactMap(\.self) + self.sections
        page.footer = self.footer
        return page
    }

    /// In the order of the page.
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

    /// Server, tags, date and length.
    private var facts: [String] {
        var facts = self.record.serverWords
        if case .array(let tags)? = self.record.plan["tags"] {
            facts += tags.compactMap { if case .string(let tag) = $0 { tag } else { nil } }
        }
        facts.append("\(self.record.startedAt.prefix(19).replacing("T", with: " ")) UTC")
        let measured = self.record.stages.filter(\.measured).map(\.durationSeconds).reduce(0, +)
        switch (measured > 0, self.record.durationSeconds) {
        case (true, let length?): facts.append("\(Human.duration(measured)) measured of \(Human.duration(length))")
        case (true, nil): facts.append("\(Human.duration(measured)) measured")
        case (false, let length?): facts.append(Human.duration(length))
        case (false, nil): break
        }
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
            case .valid: .good
            case .generatorLimited, nil: .warn
            case .unreconciled, .aborted: .bad
            }
        var badges = [PageBadge("Measurement", state?.rawValue ?? "unfinished", tone: tone)]
        let results = self.record.thresholds
        let met = results.count(where: \.ok)
        if results.isEmpty {
            badges.append(PageBadge("Objectives", "none set", tone: .plain))
        } else {
            let words = met == results.count ? "all \(met) met" : "\(met) of \(results.count) met"
            badges.append(PageBadge("Objectives", words, tone: met == results.count ? .good : .bad))
        }
        return badges
    }

    private var lead: PageLead? {
        guard let findings = self.record.findings else {
            guard self.record.verdict == nil else { return nil }
            return PageLead("The run did not end; the figures are those of its last checkpoint.", tone: .warn)
        }
        let isBroken = self.record.thresholds.contains { !$0.ok } || self.record.verdict?.state == .aborted
        let tone: PageTone =
            isBroken ? .bad : findings.isCalm && self.record.verdict?.state == .valid ? .good : .warn
        let evidence = findings.evidence.map { (href: "#event-\($0)", text: "event \($0)") }
        return PageLead(Self.sentence(findings.sentence), tone: tone, evidence: evidence)
    }

    /// With a capital, unless the name of a metric comes first.
    private static func sentence(_ text: String) -> String {
        guard let first = text.first, text.prefix(while: { $0 != " " }).allSatisfy({ $0.isLetter }) else { return text }
        return first.uppercased() + text.dropFirst()
    }

    /// The reasons that the sentence does not give.
    private var remarks: [PageRemark] {
        let sentence = self.record.findings?.sentence ?? ""
        return (self.record.verdict?.reasons ?? []).filter { !sentence.contains($0.text) }
            .map { PageRemark($0.text, code: $0.code) }
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

extension FindingsRecord {
    /// Whether nothing broke.
    fileprivate var isCalm: Bool { self.evidence == nil && self.sentence.lowercased().hasPrefix("nothing broke") }
}
