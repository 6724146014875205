/// Decides whether the generator, and not the server, limited a run.
///
/// It gets plain numbers once a second, off the loops, and reports the broken rules at any time. The letters are those
/// of the design: (a) plan kept, (b) CPU, (c) connects, (d) host.
package struct GeneratorAudit: Sendable {
    /// One event loop in one second.
    package struct LoopSecond: Hashable, Sendable {
        /// The group of the clients, in a run with several groups: each group has a plan of its own.
        package var group: String?
        /// p99 of `schedule_lag`, nanoseconds; `nil` if nothing was sent.
        package var scheduleLagP99: Int64?
        /// p99 of the acknowledgements that came in this second, nanoseconds; `nil` at QoS 0.
        package var ackP99: Int64?
        /// Operations that became due.
        package var offered: UInt64
        /// Operations still unsent 1 s after their client could send them.
        package var unsent: UInt64
        /// CPU time of the loop's thread as a share of one core, 0...1.
        package var cpuShare: Double
        /// Share of the second in which work waited, 0...1; 1 or 0 if only a flag is known.
        ///
        /// Open loop: operations past their due time. Closed loop: clients with a writable socket and room in the
        /// window.
        package var waitingShare: Double

        package init(
            scheduleLagP99: Int64? = nil,
            ackP99: Int64? = nil,
            offered: UInt64 = 0,
            unsent: UInt64 = 0,
            cpuShare: Double = 0,
            waitingShare: Double = 0
        ) {
            self.scheduleLagP99 = scheduleLagP99
            self.ackP99 = ackP99
            self.offered = offered
            self.unsent = unsent
            self.cpuShare = cpuShare
            self.waitingShare = waitingShare
        }
    }

    /// The limits of the rules.
    package enum Limit {
        static let unsentShare = 0.001
        /// The limit in nanoseconds; or a tenth of the second's acknowledgement p99 if that is more.
        static let scheduleLag: Int64 = 5_000_000
        static let lateSecondsShare = 0.1
        static let lateSeconds = 3
        /// Idle share of the host's CPU below which every thread on it waits for CPU.
        static let hostIdle = 0.05
        package static let cpuShare = 0.9
        /// Share of one second; below it work waited by chance.
        static let waitingShare = 0.5
        static let busySecondsShare = 0.5
        /// One second alone, which may include the start of the run, proves nothing.
        static let busySeconds = 2
        static let connectShare = 0.95
        /// Nanoseconds by which the last connect may be late at any rate.
        ///
        /// A ready thread may wait that long for its core, and a plan of a few milliseconds has to tolerate it.
        static let connectSlack: Int64 = 20_000_000
        static let stealShare = 0.1
        /// A share of the measured time; a group that its quota stops for a moment sends late by as much.
        static let throttledShare = 0.01
        /// In nanoseconds.
        ///
        /// A shorter last second or run is not judged by its shares: the kernel counts CPU in ticks of 10 ms, and steal
        /// arrives in bursts.
        static let shortestSecond: Int64 = 500_000_000
    }

    private let isOpenLoop: Bool
    /// The plans by group, in order of appearance.
    private var plans: [(group: String?, offered: UInt64, unsent: UInt64)] = []
    private var seconds = 0
    private var lateSeconds = 0
    private var worstLag: (lag: Int64, limit: Int64)?
    private var busySeconds = 0
    private var busiest = 0.0
    private var fullSeconds = 0
    private var stolen = 0.0
    private var stealTime = 0.0
    private var throttled = 0.0
    private var throttleTime = 0.0
    /// The reasons, at most one per group.
    private var connectReasons: [(group: String?, reason: Verdict.Reason)] = []
    private var portsExhausted: UInt64 = 0
    private var descriptorsExhausted: UInt64 = 0

    /// - Parameter isOpenLoop: whether operations have due times of their own.
    package init(isOpenLoop: Bool) { self.isOpenLoop = isOpenLoop }

    /// Adds one second of the warm-up or the measured phase.
    ///
    /// - Parameters:
    ///   - loops: all event loops.
    ///   - stealShare: share of the host's CPU, 0...1; `nil` if unknown.
    ///   - host: the idle share of the host's CPU, and the busiest thread of a watched server as a share of a core;
    ///     `nil` if unknown.
    ///   - length: nanoseconds; the last second may be shorter.
    package mutating func second(
        _ loops: [LoopSecond],
        stealShare: Double?,
        host: (idle: Double, serverThread: Double)? = nil,
        length: Int64 = 1_000_000_000
    ) {
        for loop in loops {
            let known = self.plans.firstIndex { $0.group == loop.group }
            if known == nil { self.plans.append((loop.group, 0, 0)) }
            let place = known ?? self.plans.count - 1
            self.plans[place].offered += loop.offered
            self.plans[place].unsent += loop.unsent
        }
        if let stealShare {
            self.stolen += stealShare * Double(length)
            self.stealTime += Double(length)
        }
        guard length >= Limit.shortestSecond else { return }
        self.seconds += 1
        if self.isOpenLoop { self.judgeLag(loops) }
        let busy = loops.filter { $0.cpuShare > Limit.cpuShare && $0.waitingShare >= Limit.waitingShare }
        if !busy.isEmpty { self.busySeconds += 1 }
        self.busiest = busy.reduce(self.busiest) { max($0, $1.cpuShare) }
        if let host, host.idle < Limit.hostIdle,
            max(host.serverThread, loops.map(\.cpuShare).max() ?? 0) <= Limit.cpuShare
        {
            self.fullSeconds += 1
        }
    }

    private mutating func judgeLag(_ loops: [LoopSecond]) {
        var isLate = false
        for loop in loops {
            guard let lag = loop.scheduleLagP99 else { continue }
            let limit = max(Limit.scheduleLag, (loop.ackP99 ?? 0) / 10)
            guard lag > limit else { continue }
            isLate = true
            if lag > self.worstLag?.lag ?? 0 { self.worstLag = (lag, limit) }
        }
        if isLate { self.lateSeconds += 1 }
    }

    /// Adds the outcome of the connects that `-R` paces.
    ///
    /// - Parameters:
    ///   - rate: connects per second.
    ///   - begun: connects begun while the rate applied.
    ///   - elapsed: nanoseconds from the first due time to the last begin, or to now if some have not begun.
    ///   - group: the clients' group, in a run with several groups.
    package mutating func connects(rate: Double, begun: UInt64, elapsed: Int64, of group: String? = nil) {
        self.connectReasons.removeAll { $0.group == group }
        // The first one is due at once: n connects span n − 1 intervals.
        let intervals = Double(max(1, begun) - 1)
        let asked = rate * Double(max(0, elapsed - Limit.connectSlack)) / 1e9
        // Less than a tenth of a second has no rate, and one connect has none by itself.
        guard elapsed >= (begun == 1 ? 1_000_000_000 : 100_000_000), intervals < asked * Limit.connectShare else {
            return
        }
        let measured = intervals / (Double(elapsed) / 1e9)
        let words = "connects were begun at \(Words.decimal(measured, digits: 0)) per second"
        self.connectReasons.append((group, Self.reason(words, rate, measured: measured, group)))
    }

    /// Adds how far reconnects kept to the connect rate, if that was less than ``connects(rate:begun:elapsed:)``
    /// reported.
    ///
    /// - Parameters:
    ///   - rate: connects per second.
    ///   - share: the lowest share of the rate over a tenth of a second or longer.
    ///   - group: the clients' group, in a run with several groups.
    package mutating func returns(rate: Double, share: Double, of group: String? = nil) {
        guard share < Limit.connectShare, !self.connectReasons.contains(where: { $0.group == group }) else { return }
        let words = "reconnects were begun at \(Words.decimal(rate * share, digits: 0)) per second"
        self.connectReasons.append((group, Self.reason(words, rate, measured: rate * share, group)))
    }

    private static func reason(_ words: String, _ rate: Double, measured: Double, _ group: String?) -> Verdict.Reason {
        Verdict.Reason(
            code: "connect-rate",
            text: (group.map { "\($0): " } ?? "")
                + "\(words), under 95 % of the planned \(Words.decimal(rate, digits: 0))",
            measured: measured,
            limit: rate * Limit.connectShare
        )
    }

    /// Adds how long the CPU quota of a control group stopped this process, of `length` nanoseconds that were measured.
    package mutating func throttled(_ nanoseconds: Int64, of length: Int64) {
        self.throttled += Double(nanoseconds)
        self.throttleTime += Double(length)
    }

    /// Counts connects that failed because this host had no free local port or descriptor.
    package mutating func exhausted(ports: UInt64 = 0, descriptors: UInt64 = 0) {
        self.portsExhausted += ports
        self.descriptorsExhausted += descriptors
    }

    /// The rules broken so far; empty if the generator kept up.
    package var reasons: [Verdict.Reason] {
        [self.unsentReason, self.lagReason, self.cpuReason, self.hostReason].compactMap { $0 }
            + self.connectReasons.map(\.reason)
            + [
                self.exhausted("local-ports", in: self.portsExhausted, "local port"),
                self.exhausted("descriptors", in: self.descriptorsExhausted, "file descriptor"),
                self.stealReason, self.quotaReason,
            ].compactMap { $0 }
    }

    private var unsentReason: Verdict.Reason? {
        guard self.isOpenLoop else { return nil }
        let shares = self.plans.filter { $0.offered > 0 }.map {
            (plan: $0, share: Double($0.unsent) / Double($0.offered))
        }
        guard let (worst, share) = shares.max(by: { $0.share < $1.share }), share > Limit.unsentShare else {
            return nil
        }
        return Verdict.Reason(
            code: "unsent",
            text: (worst.group.map { "\($0): " } ?? "")
                + "\(Words.percent(share, digits: 2)) of what was offered (\(Words.count(worst.unsent)) of "
                + "\(Words.count(worst.offered))) was still unsent 1 s after its client could send it, over 0.1 %",
            measured: share,
            limit: Limit.unsentShare
        )
    }

    private var lagReason: Verdict.Reason? {
        guard let worst = self.worstLag else { return nil }
        // One second alone, which may include the start of the run, proves only what is far beyond the limit.
        let isFar = self.seconds == 1 && worst.lag > 10 * worst.limit
        guard self.lateSeconds >= (isFar ? 1 : min(Limit.lateSeconds, max(2, self.seconds))) else { return nil }
        let share = Double(self.lateSeconds) / Double(self.seconds)
        guard share > Limit.lateSecondsShare else { return nil }
        return Verdict.Reason(
            code: "schedule-lag",
            text: "in \(self.lateSeconds) of \(self.seconds) seconds sends began too late: schedule_lag p99 "
                + "reached \(Words.milliseconds(worst.lag)), over \(Words.milliseconds(worst.limit)); "
                + "a valid run has at most 10 % of such seconds, and figures below "
                + "\(Words.milliseconds(worst.lag * 10)) are not the server's",
            measured: share,
            limit: Limit.lateSecondsShare
        )
    }

    private var cpuReason: Verdict.Reason? {
        self.reason(
            "generator-cpu",
            in: self.busySeconds,
            "an event loop used over 90 % of a core (up to \(Words.percent(self.busiest, digits: 0))) while work waited"
        )
    }

    /// The CPU was used up, and no thread had a core to itself: generator and server waited for each other.
    private var hostReason: Verdict.Reason? {
        let words = "this host had less than 5 % of its CPU idle, and no thread of the generator or of a watched server"
        return self.reason("host-full", in: self.fullSeconds, "\(words) used over 90 % of a core")
    }

    /// A condition that held in over half of the seconds.
    private func reason(_ code: String, in seconds: Int, _ words: String) -> Verdict.Reason? {
        let share = Double(seconds) / Double(max(1, self.seconds))
        guard seconds >= Limit.busySeconds, share > Limit.busySecondsShare else { return nil }
        let text = "in \(seconds) of \(self.seconds) seconds \(words); a valid run has at most half of such seconds"
        return Verdict.Reason(code: code, text: text, measured: share, limit: Limit.busySecondsShare)
    }

    private func exhausted(_ code: String, in connects: UInt64, _ what: String) -> Verdict.Reason? {
        guard connects > 0 else { return nil }
        let text = "\(Words.count(connects, "connect")) found no free \(what)"
        return Verdict.Reason(code: code, text: text, measured: Double(connects), limit: 0)
    }

    /// The share of the host's CPU that the hypervisor gave to others, 0...1, over all seconds of load; `nil` if
    /// unknown.
    package var stealShare: Double? { self.stealTime > 0 ? self.stolen / self.stealTime : nil }

    private var stealReason: Verdict.Reason? {
        guard self.stealTime >= Double(Limit.shortestSecond), let share = self.stealShare, share > Limit.stealShare
        else { return nil }
        return Verdict.Reason(
            code: "cpu-steal",
            text: "the host took \(Words.percent(share, digits: 1)) of this machine's CPU for others, over 10 %",
            measured: share,
            limit: Limit.stealShare
        )
    }

    private var quotaReason: Verdict.Reason? {
        guard self.throttleTime >= Double(Limit.shortestSecond) else { return nil }
        let share = self.throttled / self.throttleTime
        guard share > Limit.throttledShare else { return nil }
        return Verdict.Reason(
            code: "cpu-quota",
            text: "the CPU quota of the control group (cpu.max) stopped it for \(Words.percent(share, digits: 1)) of "
                + "the measured time, over 1 %",
            measured: share,
            limit: Limit.throttledShare
        )
    }
}
