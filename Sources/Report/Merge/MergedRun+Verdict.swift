import Measurement

extension MergedRun {
    /// Under this share of its length a measured phase is not one that the segments have in common.
    private static let commonShare = 0.9

    /// The worst verdict of all segments, with reasons that apply to the whole.
    static func verdict(_ set: SegmentSet, _ record: RunRecord, broken: String?) -> Verdict {
        var verdict = Verdict()
        if broken != nil { verdict.add(.aborted, .threshold(broken)) }
        // A broken threshold of the whole ended the segments too; whether the server fell silent is judged anew.
        let ended = broken == nil ? [] : [Verdict.Reason.thresholdCode, Verdict.Reason.signalCode]
        let followed = ended + [Verdict.Reason.silentCode]
        for segment in set.segments {
            guard let own = segment.record.verdict else { continue }
            let reasons = own.reasons.filter { !followed.contains($0.code) }
            verdict.add(own.state, reasons.map { $0.of(set.name(of: segment)) })
            // A state without a word for it counts all the same.
            if own.state != .valid, own.reasons.isEmpty {
                let reason = Verdict.Reason(code: own.state.rawValue, text: "it is \(own.state.rawValue)")
                verdict.add(own.state, reason.of(set.name(of: segment)))
            }
        }
        if let reason = self.lost(set) { verdict.add(.unreconciled, reason) }
        // A reason that all segments share is judged once, for the whole.
        guard set.host == nil else { return verdict }
        for imbalance in record.books.flatMap(\.imbalances) {
            verdict.add(.unreconciled, Verdict.Reason(code: "books", text: imbalance))
        }
        if let reason = self.apart(set.segments) { verdict.add(.generatorLimited, reason) }
        return verdict
    }

    private static func lost(_ set: SegmentSet) -> Verdict.Reason? {
        guard !set.lost.isEmpty, let count = set.segments.first?.count else { return nil }
        let named = set.lost.prefix(10).map { "\($0.index) (\($0.words))" }.joined(separator: ", ")
        let names = named + (set.lost.count > 10 ? ", ..." : "")
        return Verdict.Reason(
            code: "segment-lost",
            text: "the figures are of \(set.segments.count) of \(count) segments, without "
                + "\(set.lost.count == 1 ? "segment" : "segments") \(names)",
            measured: Double(set.lost.count),
            limit: 0
        )
    }

    /// Rates that were not at one time are no rate of the whole.
    private static func apart(_ segments: [SegmentResult]) -> Verdict.Reason? {
        let phases = segments.flatMap { $0.processes(from: segments[0].startedAt) }.compactMap(\.measured)
        guard let start = phases.map(\.start).max(), let end = phases.map(\.end).min(),
            let length = phases.map({ $0.end - $0.start }).max(), length > 0
        else { return nil }
        let common = max(0, end - start)
        guard common < length * self.commonShare else { return nil }
        return Verdict.Reason(
            code: "segments-apart",
            text: "the measured phases of the segments had \(PlainNumber.fixed(common, digits: 1)) s in common of "
                + "\(PlainNumber.fixed(length, digits: 1)) s, under 90 %, so their rates were not at one time",
            measured: common / length,
            limit: self.commonShare
        )
    }
}

extension Verdict.Reason {
    /// The reason with the name of a segment or of a process as prefix.
    func of(_ name: String) -> Verdict.Reason {
        var reason = self
        reason.text = "\(name): \(self.text)"
        return reason
    }
}

extension SegmentResult {
    /// Its processes, with times from this moment.
    func processes(from start: Int64) -> [ProcessRecord] {
        let offset = Double(self.startedAt - start) / 1e9
        return (self.record.segment.processes ?? [self.process]).map { process in
            var process = process
            process.measured = process.measured.map {
                ProcessRecord.Span(start: offset + $0.start, end: offset + $0.end)
            }
            return process
        }
    }

    /// A segment of one process.
    private var process: ProcessRecord {
        let measured = self.record.stages.filter(\.measured)
        let start = measured.map(\.start).min()
        let end = measured.map { $0.start + $0.durationSeconds }.max()
        return ProcessRecord(
            clock: self.record.segment.clock,
            measured: start.flatMap { start in end.map { ProcessRecord.Span(start: start, end: $0) } }
        )
    }
}
