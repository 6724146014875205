package import Measurement
package import RunResult

/// Detects a server that limits every client to a rate in bytes (a shaper, a rate limit).
///
/// The figures then show the server's configuration and not its speed.
///
/// Only the clients' view is available, so all of these conditions must hold:
///
/// - Clients would send more, and they wait much longer than the network round trip.
/// - Each client's rate is a default limit of a known server.
/// - The host has idle CPU, since a full host may produce any rate.
/// - Clients and seconds are alike, except for bursts. They are strictly alike if the rate is high enough to keep the
///   server busy.
package struct ThrottleWatch: RunWatch {
    /// A default rate limit of a known server.
    package struct Known: Hashable, Sendable {
        /// Per connection.
        package let bytesPerSecond: Double
        /// Whether an initial burst may exceed the limit.
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
        /// Work on this host did not wait for a CPU.
        var isCalm: Bool
    }

    private enum Limit {
        /// Minimum observation time, without its first third: limits let a burst through.
        static let seconds = 4.0
        /// The least idle share of the host's CPU, and the largest share of the time in which a task waits for a CPU.
        ///
        /// A server slowed to a thirtieth of its rate by lack of CPU waits nearly all the time.
        static let idleCPU = 0.2
        static let pressure = 0.25
        /// Stanzas per second of all clients together that keep no server busy.
        static let idle = 300.0
        /// How much longer than a connect the answers take.
        static let waits = 5.0
        static let shortest = 0.005
        /// Upper tolerance above the known rate, besides the burst of one window.
        ///
        /// A small window uses less of it, since it also waits for answers.
        static let above = 0.05
        static let atMost = 0.12
        static let below = 0.12
        /// The upper tolerance if the server may be busy.
        static let strictAbove = 0.02
        static let strictBelow = 0.08
        /// The least share of the offered messages that is held back.
        static let heldBack = 0.1
        /// The initial burst relative to the mean second: the minimum for a limit with a burst, the maximum for one
        /// without.
        static let burst = 1.5
        static let noBurst = 1.2
        /// The tolerated spread between clients, and between seconds.
        static let spread = 0.05
    }

    private let isOpenLoop: Bool
    private let window: Int
    private var seconds: [Second] = []
    /// Over all seconds, including the warm-up.
    private var mostInOneSecond = 0.0
    private var sent = 0.0
    private var bytes = 0.0

    /// - Parameters:
    ///   - isOpenLoop: whether clients send regardless of answers.
    ///   - window: operations in flight per client in closed loop.
    package init(isOpenLoop: Bool, window: Int) {
        self.isOpenLoop = isOpenLoop
        self.window = window
    }

    package mutating func second(_ interval: TimelineInterval) {
        func sum(_ kind: MetricDefinition, _ labels: Labels = [:]) -> Double {
            interval.metrics.filter { $0.isOf(kind) && $0.labels.contains(labels) }
                .reduce(0) { $0 + ($1.counter?.value ?? 0) }
        }
        let isAnswered = interval.metrics.contains { $0.isOf(.stanzaAnswered) }
        let progress =
            isAnswered ? sum(.stanzaAnswered) : sum(.received, ["stanza": "message", "delayed": "false"])
        if interval.seconds > 0.5 { self.mostInOneSecond = max(self.mostInOneSecond, progress / interval.seconds) }
        guard interval.phase == "measure" else { return }
        self.sent += sum(.stanzaSent)
        self.bytes += sum(.bytesSent)
        self.seconds.append(
            Second(
                seconds: interval.seconds,
                clients: interval.metrics.first { $0.isOf(.clients) }?.gauge?.value ?? 0,
                offered: sum(.stanzaOffered),
                progress: progress,
                isCalm: Self.isCalm(interval)
            )
        )
    }

    package func notes(_ record: RunRecord, _ clients: [ClientAccount]) -> [Verdict.Reason] {
        // On a full host, clients may wait for a CPU and not for the server's limit.
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
        // A window's answers may fall into one second or the next, since a limit lets whole reads through. A server
        // that slows down as its tables grow passes each rate once; a limit stays constant.
        let lump = members * Double(self.isOpenLoop ? 1 : max(1, self.window))
        guard Self.areEven(clients), Self.isEven(steady, lump: isIdle ? lump : 0) else { return [] }
        // A burst may fall on either side of the interval's ends.
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

    /// Whether the host had idle CPU, by two kernel figures: the idle share, and the time that tasks waited for a CPU.
    ///
    /// A missing figure passes; not every kernel has the second.
    private static func isCalm(_ interval: TimelineInterval) -> Bool {
        func gauge(_ kind: MetricDefinition) -> Double? { interval.metrics.first { $0.isOf(kind) }?.gauge?.value }
        return gauge(.hostCPUIdle) ?? 1 >= Limit.idleCPU && gauge(.hostCPUPressure) ?? 0 <= Limit.pressure
    }

    /// Whether the clients would have done more and the network is not what limits them.
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
        // Little's law: the window is in flight, and this many operations complete per second.
        let response = members * Double(self.window) / (progress / time)
        let way = record.metrics.first { $0.isOf(.connect) && $0.labels["phase"] == "tcp" }?.duration?.p50
        return response >= max(Limit.shortest, Limit.waits * (way ?? 0))
    }

    /// Whether all clients got the same rate, except for bursts.
    private static func areEven(_ clients: [ClientAccount]) -> Bool {
        let counts = clients.map { Double($0.receives ? $0.tally.received : $0.tally.acked) }.sorted()
        guard let last = counts.last, last > 0 else { return false }
        let low = counts[counts.count / 20]
        let high = counts[counts.count - 1 - counts.count / 20]
        return low >= high * (1 - Limit.spread)
    }

    /// Whether the seconds are alike; they may differ by half a lump.
    private static func isEven(_ steady: [Second], lump: Double) -> Bool {
        let rates = steady.filter { $0.seconds > 0 }.map { $0.progress / $0.seconds }
        let mean = rates.reduce(0, +) / Double(max(1, rates.count))
        let variance = rates.reduce(0) { $0 + ($1 - mean) * ($1 - mean) } / Double(max(1, rates.count))
        return variance.squareRoot() <= mean * Limit.spread + lump / 2
    }
}
