import Charts
import Measurement
package import Report

/// Two sides of runs held against each other.
package struct ComparePage {
    let comparison: Comparison

    package init(_ comparison: Comparison) { self.comparison = comparison }

    package func text() throws -> String {
        var page = PageLayout(title: self.title, kind: "clamor compare", heading: self.title)
        page.facts = self.facts
        page.badges = self.badges
        page.lead = self.lead
        page.remarks = self.remarks
        page.tiles = self.tiles
        page.sections = [self.judgedFigures, self.percentiles, self.others, self.runTable].compactMap(\.self)
        page.footer = [
            "Made by clamor from the result directories of both sides. A change goes from the mean over the runs of base to"
                + " that of new; from 50 % on it is a factor. Its interval covers \(Words.percent(self.comparison.confidence))."
                + " A figure is a regression when its whole interval lies beyond the limit, and chance alone would rarely"
                + " do that."
        ]
        return try page.text()
    }

    /// More remarks than these push the answer off the screen.
    private static let mostRemarks = 5

    private var remarks: [PageRemark] {
        let notes = self.comparison.notes
        guard notes.count > Self.mostRemarks + 1 else { return notes.map { PageRemark(text: $0) } }
        let rest = "\(notes.count - Self.mostRemarks) further notes; the table of runs has each run's verdict"
        return notes.prefix(Self.mostRemarks).map { PageRemark(text: $0) } + [PageRemark(text: rest)]
    }

    /// The judged figures: regressions first, then by the size of the change.
    var ordered: [ComparedFigure] {
        func rank(_ figure: ComparedFigure) -> (Int, Double) {
            let isBroken = figure.gate?.isBroken == true
            // A figure without a relative change is the strongest of its kind: base had none of it.
            return (isBroken ? 0 : figure.finding == .same ? 2 : 1, -abs(figure.change ?? .infinity))
        }
        return self.comparison.judged.sorted { rank($0) < rank($1) }
    }

    private var title: String {
        let titles = [self.comparison.base, self.comparison.new].map(RunTitle.words)
        let places = [self.comparison.base, self.comparison.new].map { side in
            side.dropFirst().reduce(side[0].path.split(separator: "/")) {
                Self.shared($0, $1.path.split(separator: "/"))
            }
        }
        let parents = Self.shared(places[0], places[1]).count
        let own = (0...1).map { side in
            let words = titles[side].filter { !titles[1 - side].contains($0) }.joined(separator: " ")
            let place = places[side].dropFirst(parents).joined(separator: "/")
            let role = side == 0 ? "base" : "new"
            return !words.isEmpty ? words : !place.isEmpty ? place : role
        }
        let common = titles[0].filter(titles[1].contains).joined(separator: " ")
        return "\(common.isEmpty ? "" : "\(common): ")\(own[0]) and \(own[1])"
    }

    /// The folders in which both paths are.
    private static func shared(_ path: [Substring], _ other: [Substring]) -> [Substring] {
        Array(zip(path, other).prefix { $0 == $1 }.map(\.0))
    }

    private var facts: [String] {
        func side(_ runs: [ComparedRun], _ word: String) -> String {
            let days = runs.map(\.record.startedAt).sorted().map { String($0.prefix(10)) }
            let span = days.first == days.last ? days.first ?? "" : "\(days.first ?? "") to \(days.last ?? "")"
            return "\(word): \(runs.count == 1 ? "1 run" : "\(runs.count) runs"), \(span)"
        }
        return [side(self.comparison.base, "base"), side(self.comparison.new, "new")]
    }

    private var badges: [PageBadge] {
        let isFailed = self.comparison.hasFailed
        let isOpen = self.comparison.judged.isEmpty || self.comparison.isIndicative || self.comparison.isUndecided
        let tone: PageTone = isFailed ? .bad : isOpen ? .warn : .good
        let judged = self.comparison.judged.count
        let broken = self.comparison.regressions.count
        return [
            PageBadge(label: "Comparison", state: self.comparison.state.lowercased(), tone: tone),
            PageBadge(
                label: "Limits",
                state: judged == 0
                    ? "none judged" : broken == 0 ? "all \(judged) held" : "\(judged - broken) of \(judged) held",
                tone: judged == 0 ? .plain : broken == 0 ? .good : isFailed ? .bad : .warn
            ),
        ]
    }

    /// Six at most: each with its change, both values and the interval.
    private var tiles: [PageTile] {
        self.ordered.prefix(6).map { figure in
            let change = figure.change == nil ? figure.newText : figure.changeText
            var tile = PageTile(SeriesName.short(figure.name, figure.labels, figure.field), value: change)
            tile.notes = [
                .init("\(figure.baseText) → \(figure.newText)"),
                .init(figure.findingText(hasFailed: self.comparison.hasFailed).lowercased(), tone: self.tone(figure)),
            ]
            let interval = self.comparison.intervalTitle.replacing(" interval", with: "")
            if figure.interval != nil {
                tile.worst = "\(interval): \(figure.intervalText.replacing(" ×", with: "\u{A0}×"))"
            }
            tile.tone = figure.gate?.isBroken == true ? .bad : figure.finding == .worse ? .warn : .plain
            return tile
        }
    }

    func tone(_ figure: ComparedFigure) -> PageTone {
        if figure.gate?.isBroken == true { return self.comparison.hasFailed ? .bad : .warn }
        return switch figure.finding {
        case .worse: .warn
        case .better: .good
        case .changed, .same, .missing: .plain
        }
    }

    /// Which side is the better one, by what, and how sure that is.
    private var lead: PageLead {
        let judged = self.ordered
        let broken = judged.filter { $0.gate?.isBroken == true }
        let worse = judged.filter { $0.finding == .worse && $0.gate?.isBroken != true }
        let better = judged.filter { $0.finding == .better }
        func lead(_ words: String, _ tone: PageTone) -> PageLead {
            PageLead(text: words, tone: tone, evidence: (href: "#judged", text: "all judged figures"))
        }
        guard !judged.isEmpty else {
            return PageLead(text: "Nothing was judged: \(self.comparison.headline).", tone: .warn)
        }
        if let first = broken.first {
            let limit = first.limitText.map { " beyond the limit of \($0)" } ?? ""
            let more = broken.count > 1 ? "; \(Self.further(broken.count - 1)) regressed too" : ""
            let good = better.first.map { "; better: \(Self.change($0))" } ?? ""
            let isSure = self.comparison.hasFailed
            let words = isSure ? "New is worse" : "New looks worse, though single runs cannot show it"
            return lead("\(words): \(Self.change(first))\(limit)\(more)\(good).", isSure ? .bad : .warn)
        }
        switch (better.first, worse.first) {
        case (let good?, let bad?):
            return lead(
                "Mixed: new is better in \(Self.change(good)), and worse within the limits in \(Self.change(bad)).",
                .warn
            )
        case (let good?, nil):
            let more = better.count > 1 ? "; \(Self.further(better.count - 1)) improved too" : ""
            return lead("New is better: \(Self.change(good))\(more), and nothing judged is worse.", .good)
        case (nil, let bad?): return lead("New is worse within the limits: \(Self.change(bad)).", .warn)
        case (nil, nil):
            let isOpen = self.comparison.isUndecided
            let words =
                isOpen ? "Undecided: the runs show no difference" : "No difference between base and new was found"
            return lead("\(words)\(self.resolution).", isOpen ? .plain : .good)
        }
    }

    private static func further(_ count: Int) -> String {
        count == 1 ? "one further judged figure" : "\(count) further judged figures"
    }

    private static func change(_ figure: ComparedFigure) -> String {
        let words = SeriesName.short(figure.name, figure.labels, figure.field)
        guard figure.finding != .missing else { return "\(words) is missing in new" }
        let values = "\(figure.baseText) → \(figure.newText)"
        return figure.change == nil ? "\(words) \(values)" : "\(words) \(figure.changeText) (\(values))"
    }

    /// How large a difference may be that was not found.
    private var resolution: String {
        let widest = self.comparison.judged.compactMap { figure in
            figure.interval.map { (figure, max(abs($0.lowerBound), abs($0.upperBound))) }
        }.max { $0.1 < $1.1 }
        guard let (figure, width) = widest, width > 0 else { return "" }
        return
            "; the noise could hide up to \(Words.percent(width)) of \(SeriesName.short(figure.name, figure.labels, figure.field))"
    }

    /// Every run a dot, and the interval of the difference.
    private var judgedFigures: PageSection? {
        let judged = self.ordered
        guard !judged.isEmpty else { return nil }
        let rows = judged.compactMap(self.row)
        var html = ""
        if !rows.isEmpty {
            let left = judged.count - rows.count
            let note =
                left == 0 ? "" : " \(left) without a relative change \(left == 1 ? "is" : "are") in the table alone."
            html += PageFigure.html(
                caption: "Each dot is a run, as its difference to the mean of base. The bar below is the"
                    + " \(self.comparison.intervalTitle) of the change of new.\(note)"
            ) { width in
                var chart = DotRows(
                    "difference to base",
                    unit: .share,
                    scaling: .linear,
                    kinds: [.init("base", style: ChartStyle(0)), .init("new", style: ChartStyle(1), shape: .square)],
                    rows: rows,
                    objective: ChartObjective(0, label: "no difference")
                )
                chart.hasLanes = true
                return chart.svg(width: width)
            }
        }
        html += self.table("Judged figures, the largest change first", judged, hasLimit: true)
        return PageSection("judged", "Judged figures", html: html)
    }

    private func row(_ figure: ComparedFigure) -> DotRows.Row? {
        guard let base = figure.base, base > 0, let change = figure.change, change.isFinite else { return nil }
        let values = self.comparison.values(figure)
        let runs = self.comparison.base + self.comparison.new
        let dots = zip(runs.indices, values.base + values.new).compactMap { run, value in
            value.map { value in
                let text = "\(runs[run].path): \(self.comparison.text(figure, run: run))"
                return DotRows.Dot(value / base - 1, kind: run < values.base.count ? 0 : 1, text: text)
            }
        }
        let verdict: String? =
            figure.gate?.isBroken == true || figure.finding == .worse
            ? "worse" : figure.finding == .better ? "better" : nil
        let bar = figure.interval.map { interval in
            DotRows.Bar(
                low: interval.lowerBound,
                high: interval.upperBound,
                middle: change,
                verdict: verdict,
                text: "\(figure.words): \(figure.changeText), \(self.comparison.intervalTitle) \(figure.intervalText)"
            )
        }
        return DotRows.Row(
            figure.words,
            dots: dots,
            bar: bar,
            note: "\(figure.changeText) \(figure.findingText(hasFailed: self.comparison.hasFailed))"
        )
    }
}

extension SeriesFigure {
    /// `publish_ack_duration QoS 1 p99`.
    var words: String { SeriesName.words(self.name, self.labels, self.field) }
}
