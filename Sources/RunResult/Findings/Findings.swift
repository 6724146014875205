package import Measurement

/// The result of a run in short: what broke first, when, in which stage and by how much, or that nothing broke.
///
/// The rules, in this order:
/// 1. An aborted run, figures that do not reconcile and a generator at its limit come before the server.
/// 2. A server that fell silent for good. Else the first break: a stall, 5 % of the clients lost, a failed objective.
/// 3. Without those: losses, unanswered messages, objectives of other metrics, messages twice or out of order, answers
///    that fell behind the load until its end, an objective that held but not in every second, an error.
/// 4. Levels that changed and planned departures are marks, and never break anything. A server that is not back after an
///    overload is a break.
/// 5. A watched server whose thread filled a core at that time is named as the limit.
///
/// A cause is named only if the run recorded it: words of an error, a reason of the verdict, a cause of the ledger.
package enum Findings {
    /// - Parameters:
    ///   - record: with its verdict.
    ///   - timeline: of the same run; an empty one leaves all that needs it absent.
    /// - Returns: the sentence, the events, and the figures that are known.
    package static func record(of record: RunRecord, _ timeline: Timeline) -> FindingsRecord {
        FindingsSearch(record, timeline).record
    }
}

/// A run, and what its time line shows by itself.
struct FindingsSearch {
    let run: RunRecord
    let intervals: FindingIntervals
    let lanes: [FindingLane]
    let stalls: [FindingStall]
    let objectives: [FindingObjective]
    let backlog: FindingBacklog?
    let recovery: FindingRecovery?

    init(_ record: RunRecord, _ timeline: Timeline) {
        self.run = record
        self.intervals = FindingIntervals(record, timeline)
        self.lanes = FindingLane.all(record, self.intervals)
        let disconnects = self.intervals.counts(self.intervals.columns(.disconnects))
        self.stalls = FindingStall.all(self.lanes, self.intervals, disconnects: disconnects)
        let intervals = self.intervals
        self.backlog = FindingBacklog(record, self.lanes, self.intervals)
        // A generator that is late, or a run that ended early, shows no recovery.
        let isValid = record.verdict.map { $0.state == .valid } ?? true
        self.recovery = isValid ? FindingRecovery.longest(self.lanes, self.intervals) : nil
        self.objectives = record.thresholds.compactMap { FindingObjective($0, intervals) }
    }

    var record: FindingsRecord {
        var found = self.found
        for place in found.indices { found[place].event.number = place + 1 }
        let silent = self.intervals.silentSecond(of: self.run)
        let statement = FindingSentence(search: self, found: found, silent: silent).statement
        var record = FindingsRecord(sentence: statement.text, evidence: statement.evidence, events: found.map(\.event))
        record.steadySecond = self.steadySecond
        record.silentSecond = silent
        record.clientsPlanned = self.run.clientsPlanned
        record.clientsUp = self.run.clientsUp
        record.allUpSeconds = self.allUpSeconds
        record.peakInFlight = self.peakInFlight
        record.backlogSlope = self.backlog?.slope
        record.backlogGrowth = self.backlog?.growth
        record.recoverySeconds = self.recovery?.seconds
        record.isMetastable = self.recovery?.isMetastable == true ? true : nil
        record.worstSecond = self.worstSecond
        record.longestSilence = self.longestSilence
        record.withinObjective = FindingObjective.within(self.objectives, self.intervals) { place in
            let interval = self.intervals.all[place]
            return self.stalls.contains { $0.start <= interval.start && interval.end <= $0.start + $0.seconds }
        }
        record.topError = self.run.topError
        record.headroom = self.run.headroom
        record.clockErrorSeconds = self.run.metrics.compactMap(\.duration?.clockError).max()
        return record
    }
}

extension RunRecord {
    /// The findings of a run of clients; `nil` for a benchmark of decoders, which has no server.
    package func findings(in timeline: Timeline) -> FindingsRecord? {
        self.isOfDecoders ? nil : Findings.record(of: self, timeline)
    }

    /// Takes over the findings; that the server fell silent is a reason beside any verdict.
    package mutating func take(_ findings: FindingsRecord?) {
        self.findings = findings
        guard let second = findings?.silentSecond else { return }
        self.verdict?.add(.valid, .silent(from: second))
    }

    var clientsPlanned: Int? {
        if let groups = self.groups { return groups.reduce(0) { $0 &+ $1.clients } }
        return self.population?.planned ?? self.plan["clients"]?.double.map { Int(bounded: $0) }
    }

    /// The clients that came up at first; records of earlier versions know them for groups alone.
    var clientsUp: Int? {
        guard let groups = self.groups else { return self.population?.up }
        let known = groups.compactMap(\.up)
        return known.count == groups.count ? known.reduce(0, &+) : nil
    }

    /// The words for a run whose clients were all refused after they had connected, or none of which had an answer, or
    /// else those that are given.
    func nothingCameUp(_ words: String) -> String {
        let connects = self.metrics.filter { $0.isOf(.connect) && $0.labels["phase"] == "total" }
        let hasConnected = connects.contains { $0.duration?.answered ?? 0 > 0 }
        if self.errors.isEmpty, connects.contains(where: { $0.duration?.unanswered?.outstanding ?? 0 > 0 }) {
            return "no connect was answered before the load ended"
        }
        return hasConnected ? "no client could take part in the load" : words
    }

    fileprivate var topError: String? {
        let counts = self.errors.reduce(into: [String: UInt64]()) { $0[$1.kind, default: 0] += $1.count }
        return counts.min { ($1.value, $0.key) < ($0.value, $1.key) }?.key
    }

    /// Bounded by the CPU that is left on the host too: without it a loop's own time says nothing.
    fileprivate var headroom: Double? {
        guard self.verdict?.state == .valid, let busiest = self.generator.loopCPUShares?.max(), busiest > 0,
            let used = self.generator.cpuSeconds, let seconds = self.durationSeconds, used > 0, seconds > 0,
            let cores = self.host.cores, self.metrics.contains(where: { $0.name.hasSuffix("_offered") }),
            let idle = self.metrics.first(where: { $0.isOf(.hostCPUIdle) && $0.labels.isEmpty })?.gauge?.mean
        else { return nil }
        // 0.9 of a core is the limit of the verdict.
        let headroom = Swift.min(0.9 / busiest, 1 + idle * Double(cores) / (used / seconds))
        return headroom >= 1.2 ? headroom : nil
    }
}
