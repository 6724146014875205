package import Measurement

/// Looks for a server that holds every client at a rate of bytes (a shaper, a rate limit): what is measured then is its
/// configuration, not its speed.
///
/// All it sees is what clients see, so it wants everything at once: clients that would do more, and wait much longer than
/// the way there and back takes; a rate of bytes for each that is one of those that servers come with; a host with CPU to
/// spare, since on a full one any rate may come about; and clients and seconds that are alike, but for what goes through at
/// once, and strictly alike where so much gets through that the server may be busy.
package struct ThrottleWatch: RunWatch {
    /// What a server's configuration says of itself unless somebody changes it.
    package struct Known: Hashable, Sendable {
        /// Of one connection.
        package let bytesPerSecond: Double
        /// Whether more than that goes through at first.
        package let hasBurst: Bool
        package let words: String
    }

    package static let known = [
        Known(
            bytesPerSecond: 1_000,
            hasBurst: true,
            words: "ejabberd's c2s_shaper has 1,000 B/s in older configurations"
        ),
        Known(bytesPerSecond: 3_000, hasBurst: true, words: "ejabberd's c2s_shaper has 3,000 B/s"),
        Known(bytesPerSecond: 10_000, hasBurst: false, words: "prosody's limits have 10kb/s for c2s"),
        Known(bytesPerSecond: 10_240, hasBurst: false, words: "prosody's limits have 10 KiB/s for c2s"),
    ]

    private struct Second {
        var seconds: Double
        var clients: Double
        var offered: Double
        var progress: Double
        /// Who had work on this host had a CPU for it.
        var isCalm: Bool
    }

    private enum Limit {
        /// Behind the first third of them: limits let a burst through.
        static let seconds = 4.0
        /// The least share of the host's CPU that nobody uses, and the largest share of the time in which somebody waits for
        /// a CPU: a server that gets a thirtieth of its rate through for want of one waits nearly all the time.
        static let idleCPU = 0.2
        static let pressure = 0.25
        /// Stanzas a second of all clients together that no server is busy with.
        static let idle = 300.0
        /// How much longer than a connect the answers take.
        static let waits = 5.0
        static let shortest = 0.005
        /// Above the known rate, and what comes to it since a window's bytes go at once; a small window does not use all
        /// of it, since it waits for its answers as well.
        static let above = 0.05
        static let atMost = 0.12
        static let below = 0.12
        /// The same where the server may be busy.
        static let strictAbove = 0.02
        static let strictBelow = 0.08
        /// Of what is offered, at least so much is held back.
        static let heldBack = 0.1
        /// What goes through at first, in the seconds' mean: at least, where the limit lets a burst through, and at most,
        /// where it does not.
        static let burst = 1.5
        static let noBurst = 1.2
        /// Between clients, and between seconds.
        static let spread = 0.05
    }

    private let isOpenLoop: Bool
    private let window: Int
    private var seconds: [Second] = []
    /// Of all seconds, the warm-up's as well.
    private var mostInOneSecond = 0.0
    private var sent = 0.0
    private var bytes = 0.0

    /// - Parameters:
    ///   - isOpenLoop: whether clients would send more, whatever comes back.
    ///   - window: operations under way per client otherwise.
    package init(isOpenLoop: Bool, window: Int) {
        self.isOpenLoop = isOpenLoop
        self.window = window
    }

    package mutating func second(_ interval: TimelineInterval) {
        func sum(_ name: String, _ labels: Labels = [:]) -> Double {
            interval.metrics.filter { $0.name == name && $0.labels.contains(labels) }
                .reduce(0) { $0 + ($1.counter?.value ?? 0) }
        }
        let isAnswered = interval.metrics.contains { $0.name == "stanza_answered" }
        let progress =
            isAnswered ? sum("stanza_answered") : sum("received", ["stanza": "message", "delayed": "false"])
        if interval.seconds > 0.5 { self.mostInOneSecond = max(self.mostInOneSecond, progress / interval.seconds) }
        guard interval.phase == "measure" else { return }
        self.sent += sum("stanza_sent")
        self.bytes += sum("bytes_sent")
        self.seconds.append(
            Second(
                seconds: interval.seconds,
                clients: interval.metrics.first { $0.name == "clients" }?.gauge?.value ?? 0,
                offered: sum("stanza_offered"),
                progress: progress,
                isCalm: Self.isCalm(interval)
            )
        )
    }

    package func notes(_ record: RunRecord, _ clients: [ClientAccount]) -> [Verdict.Reason] {
        // Where the host was full somebody waited for it, and not for the server's limit.
        let steady = self.seconds.dropFirst(max(1, self.seconds.count / 3)).filter(\.isCalm)
        let time = steady.reduce(0) { $0 + $1.seconds }
        let progress = steady.reduce(0) { $0 + $1.progress }
        let members = steady.reduce(0) { $0 + $1.clients } / Double(max(1, steady.count))
        guard time >= Limit.seconds, progress > 0, members >= 1, self.sent > 0,
            self.isHeldBack(steady, progress, members: members, time: time, record)
        else { return [] }
        let size = self.bytes / self.sent
        let rate = progress * size / members / time
        let isIdle = progress / time < Limit.idle
        // What comes to a second or the next: a window's answers, since a limit lets whole reads through. A server that
        // slows down as it fills its tables passes each rate once; a limit stays where it is.
        let lump = members * Double(self.isOpenLoop ? 1 : max(1, self.window))
        guard Self.areEven(clients), Self.isEven(steady, lump: isIdle ? lump : 0) else { return [] }
        // What goes through at once may lie on either side of the time's ends.
        let burst = self.isOpenLoop ? 0 : Double(self.window) * size / (rate * time)
        let above = isIdle ? min(Limit.atMost, Limit.above + burst) : Limit.strictAbove
        let below = isIdle ? Limit.below : Limit.strictBelow
        let near = Self.known.min { ($0.bytesPerSecond - rate).magnitude < ($1.bytesPerSecond - rate).magnitude }
        guard let near, (1 - below...1 + above).contains(rate / near.bytesPerSecond) else { return [] }
        let mean = progress / time
        let isBurstRight =
            near.hasBurst
            ? self.mostInOneSecond >= Limit.burst * mean : self.mostInOneSecond <= Limit.noBurst * mean + lump
        guard isBurstRight else { return [] }
        return [
            Verdict.Reason(
                code: "server-shaper",
                text: "each client got \(Int(rate.rounded())) bytes/s through, and would have sent more: this looks "
                    + "like a limit in the server's configuration (\(near.words)), and not like its speed; raise it there",
                measured: rate,
                limit: near.bytesPerSecond
            )
        ]
    }

    /// Whether the host had CPU to spare, by two accounts of the kernel's: what nobody used, and how long somebody waited.
    ///
    /// What it does not tell (the second is not kept everywhere) is no objection.
    private static func isCalm(_ interval: TimelineInterval) -> Bool {
        func gauge(_ name: String) -> Double? { interval.metrics.first { $0.name == name }?.gauge?.value }
        return gauge("host_cpu_idle") ?? 1 >= Limit.idleCPU && gauge("host_cpu_pressure") ?? 0 <= Limit.pressure
    }

    /// Whether the clients would have done more, and it is not the way that keeps them from it.
    private func isHeldBack(
        _ steady: [Second],
        _ progress: Double,
        members: Double,
        time: Double,
        _ record: RunRecord
    ) -> Bool {
        if self.isOpenLoop {
            let offered = steady.reduce(0) { $0 + $1.offered }
            return progress < offered * (1 - Limit.heldBack)
        }
        // Little's law: so many are under way, and so many come back in a second.
        let response = members * Double(self.window) / (progress / time)
        let way = record.metrics.first { $0.name == "connect_duration" && $0.labels["phase"] == "tcp" }?.duration?.p50
        return response >= max(Limit.shortest, Limit.waits * (way ?? 0))
    }

    /// Whether all clients got the same, but for what goes through at once.
    private static func areEven(_ clients: [ClientAccount]) -> Bool {
        let counts = clients.map { Double($0.receives ? $0.tally.received : $0.tally.acked) }.sorted()
        guard let last = counts.last, last > 0 else { return false }
        let low = counts[counts.count / 20]
        let high = counts[counts.count - 1 - counts.count / 20]
        return low >= high * (1 - Limit.spread)
    }

    /// Whether the seconds are alike; half a lump is within what they may differ by.
    private static func isEven(_ steady: [Second], lump: Double) -> Bool {
        let rates = steady.filter { $0.seconds > 0 }.map { $0.progress / $0.seconds }
        let mean = rates.reduce(0, +) / Double(max(1, rates.count))
        let variance = rates.reduce(0) { $0 + ($1 - mean) * ($1 - mean) } / Double(max(1, rates.count))
        return variance.squareRoot() <= mean * Limit.spread + lump / 2
    }
}
