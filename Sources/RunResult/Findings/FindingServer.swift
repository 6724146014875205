import Measurement

/// A thread of a watched server that filled a core while no event loop of the generator did.
///
/// It was the limit only where the run asked for more than the server did: a closed loop, messages that piled up, or
/// answers that became slow. Otherwise the planned rate was the limit, and the full core is a mark.
struct FindingServer {
    private enum Limit {
        /// The share of a core at which a thread has none left; that of the generator's own verdict.
        static let fullCore = 0.9
        /// Intervals in a row: shorter peaks limit nothing.
        static let intervals = 3
        /// The share of what was offered that was not done in the span.
        static let backlog = 0.02
        /// A median this many times its level before has left it.
        static let change = 5.0
    }

    /// A thread, and when it was full.
    private struct Full {
        var process: String
        var thread: String
        var span: Range<Int>
        /// The mean share of a core.
        var share: Double
    }

    /// The first words of a limit; a mark has others.
    static let limitWords = "the server's CPU was the limit"

    let search: FindingsSearch
    private var intervals: FindingIntervals { self.search.intervals }

    /// One mark: the longest span of the thread that was full longest.
    var events: [FoundEvent] {
        guard let full = self.longest else { return [] }
        let place = full.span.lowerBound
        let second = self.intervals.all[place].second
        let isToEnd = self.intervals.all[full.span.upperBound...].allSatisfy { !$0.isLoad }
        let seconds = self.intervals.length(full.span)
        let time = isToEnd ? "from \(second) s on" : "from \(second) s for \(FindingWords.duration(seconds))"
        let whose = full.thread == full.process ? full.thread : "\(full.thread) of \(full.process)"
        let what = self.isLimit(full.span) ? Self.limitWords : "the server had a core full"
        var text = "\(what) \(time): thread \(whose) used \(Words.percent(full.share, digits: 2)) of a core"
        if let own = self.busiestLoop(full.span) {
            text += ", and the generator's busiest event loop \(Words.percent(own, digits: 2))"
        }
        return [self.intervals.event(.server, place, seconds: seconds, isBreak: false, text: text)]
    }

    private var longest: Full? {
        let loops = self.intervals.columns(.generatorCPU)
        return self.intervals.columns(.serverThreadCPU).flatMap { column -> [Full] in
            let spans = self.intervals.spans { place in
                self.intervals.all[place].isLoad && column.values[place] >= Limit.fullCore
                    && loops.allSatisfy { !($0.values[place] >= Limit.fullCore) }
            }
            return spans.filter { $0.count >= Limit.intervals }.map { span in
                Full(
                    process: column.labels["process"] ?? "server",
                    thread: column.labels["thread"] ?? column.labels["process"] ?? "server",
                    span: span,
                    share: span.reduce(0) { $0 + column.values[$1] } / Double(span.count)
                )
            }
        }.max { self.intervals.length($0.span) < self.intervals.length($1.span) }
    }

    private func isLimit(_ span: Range<Int>) -> Bool {
        if self.search.run.plans.contains(where: { $0["pacing"] == .string("closed") }) { return true }
        return self.search.lanes.contains { lane in
            let offered = span.reduce(0) { $0 + lane.offered[$1] }
            let done = span.reduce(0) { $0 + lane.done[$1] }
            if lane.kind == .answers, offered > 0, offered - done > offered * Limit.backlog { return true }
            let before = lane.p50[..<span.lowerBound].compactMap(\.self)
            let within = lane.p50[span].compactMap(\.self)
            guard let level = before.median, let median = within.median else { return false }
            return median > level * Limit.change
        }
    }

    private func busiestLoop(_ span: Range<Int>) -> Double? {
        let means = self.intervals.columns(.generatorCPU).compactMap { column -> Double? in
            let known = span.map { column.values[$0] }.filter(\.isFinite)
            return known.isEmpty ? nil : known.reduce(0, +) / Double(known.count)
        }
        return means.max()
    }
}
