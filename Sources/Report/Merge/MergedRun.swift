package import Ledger
package import Measurement

/// Segments of a run as one: its record, its time line and its clients.
package struct MergedRun: Sendable {
    package let record: RunRecord
    package let startedAt: Int64
    package let intervals: [TimelineInterval]
    package let clients: [ClientRow]
    /// The ledger of a segment of several processes, for the merge of all segments.
    package let ledger: SegmentLedger?

    /// The processes of one host become a segment, whose thresholds and ledger wait for the merge of all segments.
    ///
    /// - Parameters:
    ///   - set: the segments.
    ///   - command: the merging command line, with secrets replaced.
    ///   - thresholds: in addition to those of the segments.
    ///   - broken: the threshold that ended the run; it counts as failed even if it would pass now.
    ///   - watched: by server watches beside the segments.
    package init(
        _ set: SegmentSet,
        command: [String],
        thresholds: [String] = [],
        broken: String? = nil,
        watched: WatchedServers = WatchedServers()
    ) {
        let segments = set.segments
        let first = segments[0].record
        let startedAt = segments.map(\.startedAt).min() ?? 0
        self.startedAt = startedAt
        self.clients = Self.clients(segments)
        var record = RunRecord(
            command: command,
            tool: first.tool,
            host: Self.host(segments),
            plan: Self.plan(segments),
            startedAt: WallClock.rfc3339(startedAt),
            segment: Self.segment(set, from: startedAt),
            generator: Self.generator(segments),
            ledger: Self.ledger(segments.map(\.record.ledger))
        )
        let ended = segments.map(\.endedAt).max() ?? startedAt
        record.durationSeconds = Double(ended - startedAt) / 1e9
        record.stages = Self.stages(segments, from: startedAt)
        let ledgers = JoinedLedgers(set)
        self.ledger = ledgers.kept
        var metrics = Self.metrics(segments, without: ledgers.isSettled).withoutEmptyKinds
        let absent = ledgers.absent
        metrics.add(absent)
        var intervals = segments.joinedIntervals
        if let last = intervals.popLast() { intervals.append(last.adding(absent)) }
        self.intervals = watched.adding(to: intervals)
        record.metrics = ledgers.marking(metrics) + ledgers.metrics
        record.metrics = watched.adding(to: record.metrics, of: self.intervals)
        // Those of a segment are of its own messages and clients alone.
        record.metrics.removeAll { $0.isOf(RunRecord.serverUseMetrics) }
        record.metrics += record.serverUse
        record.servers = segments.lazy.compactMap(\.record.servers).first
        record.books = ledgers.completing(Self.books(segments))
        record.clients = Self.spreads(segments, self.clients)
        record.errors = Self.errors(segments)
        record.groups = Self.groups(segments)
        record.population = Self.population(segments)
        record.slowest = Self.slowest(segments, from: startedAt)
        record.tlsVersions = Self.tlsVersions(segments)
        ledgers.complete(&record)
        let notes = segments.flatMap { segment in
            (segment.record.notes ?? []).map { $0.of(set.name(of: segment)) }
        }
        record.notes = notes.isEmpty && ledgers.notes.isEmpty ? nil : notes + ledgers.notes
        if set.host == nil {
            let own = first.segment.thresholds ?? []
            let all = (own + thresholds + [broken].compactMap { $0 }).firstOfEach
            record.thresholds = all.compactMap { try? Threshold.parse($0) }.results(in: record, broken: broken)
                .map(ledgers.withoutUnknown)
        } else {
            record.segment.levels = segments.heldLevels(record.metrics, in: self.intervals)
        }
        var verdict = Self.verdict(set, record, broken: broken)
        verdict.add(.unreconciled, ledgers.problems)
        record.verdict = verdict
        self.record = record
    }

    private static func segment(_ set: SegmentSet, from start: Int64) -> SegmentRecord {
        let first = set.segments[0].record.segment
        var segment = SegmentRecord(index: set.host?.index ?? 1, count: set.host?.count ?? 1)
        segment.run = first.run
        segment.plan = first.plan
        segment.lost = set.lost.isEmpty ? nil : set.lost
        segment.merged = set.segments.count
        if set.host != nil {
            segment.thresholds = first.thresholds
            segment.processes = set.segments.flatMap { $0.processes(from: start) }
        }
        return segment
    }
}
