package import Measurement
package import Report

/// The page of a running run: header, tiles, charts and tables of its report, from what it has measured so far.
package struct LivePage {
    private let run: LiveRun
    private let findings: FindingsRecord?

    /// - Parameters:
    ///   - run: not finished; the page of a finished run is ``RunPage``.
    ///   - findings: what its figures show so far.
    package init(_ run: LiveRun, findings: FindingsRecord?) {
        self.run = run
        self.findings = findings
    }

    /// The whole page, which follows the run by events.
    package func text() throws -> String { try self.layout.text() }

    /// Header and content, for the event `state`.
    package func body() throws -> String { try self.layout.body() }

    private var layout: PageLayout {
        var page = RunPage(self.run.record, timeline: self.run.timeline).layout
        page.isLive = true
        page.badges = self.badges
        page.lead = PageLead(text: self.words, tone: self.isCalm ? .plain : .warn)
        page.remarks = self.run.standing.verdict.reasons.map { PageRemark(text: $0.text, code: $0.code) }
        page.data = nil
        page.footer = [
            "The run is in progress. The page follows it second by second, and becomes its report when it has ended."
                + " Losses are counted only when the last messages had their time to arrive."
        ]
        return page
    }

    private var badges: [PageBadge] {
        let state = self.run.standing.verdict.state
        var badges = [PageBadge(label: "Run", state: self.phase, tone: .plain)]
        let measured = state == .valid ? PageTone.good : .warn
        badges.append(PageBadge(label: "Measurement so far", state: state.rawValue, tone: measured))
        let results = self.run.standing.thresholds
        if !results.isEmpty {
            let met = results.count(where: \.ok)
            let tone = met == results.count ? PageTone.good : .warn
            badges.append(PageBadge(label: "Objectives so far", state: "\(met) of \(results.count) met", tone: tone))
        }
        return badges
    }

    private var phase: String {
        guard self.run.latest != nil else { return "about to begin" }
        return self.run.place.map { $0.stage.name } ?? self.run.latest?.phase ?? ""
    }

    private var isCalm: Bool { self.run.standing.verdict.state == .valid && self.findings?.evidence == nil }

    /// `In stage peak, 12 s until the load ends; nothing broke so far`.
    private var words: String {
        guard let latest = self.run.latest else { return "The run is about to begin." }
        let time = RunCourse.words(self.run.elapsed)
        var words =
            switch latest.phase {
            case "connect": "Clients connect, for \(time)"
            case "drain": "The load has ended; the last answers and messages are awaited"
            default: "Running for \(time)"
            }
        if let left = self.run.place?.left { words += ", \(RunCourse.words(left)) until the load ends" }
        if let sentence = self.findings?.sentence { words += "; so far: \(sentence)" }
        return words
    }
}
