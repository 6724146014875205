package import HostFit
import Measurement
import Report
import RunResult
package import Scenario
import Workloads

/// The runs that measure what work costs a server, over connections like those of a fleet's first group.
///
/// Each run has one kind of work. The server's CPU and the work are those that were seen, whatever was asked for.
package struct CostRuns: Sendable {
    private enum Design: Hashable {
        /// Clients that connect and are idle, and clients that ping: of MQTT to stay alive, of XMPP as a load.
        case sessions, pings, requests
        /// A message in each of the clients' topics stays on the server; they are taken away again.
        case retained, cleared
        /// Pairs at a rate that is safe, to know others; then at a quarter of the rate of all other runs, and as fast as
        /// they can, with one message under way each.
        case first, slow, full
        case publish(qos: UInt8)
        case pairs(qos: UInt8)
        /// Each message comes to ten clients.
        case fan(qos: UInt8)
        case large

        /// `pairs-1`.
        var name: String { "\(self)".replacing("(qos: ", with: "-").replacing(")", with: "") }
    }

    /// Bytes of a message, and of a large one.
    private static let (size, largeSize) = (64, 16_384)
    /// Messages per second that most servers take.
    private static let firstRate = 200.0
    /// The share of the server that messages at such a rate would use, and the most messages per second.
    ///
    /// A server that wakes up less often uses about half of it.
    private static let (share, mostRate) = (0.6, 20_000.0)
    /// Clients that some of the runs have.
    private static let fewest = 12
    private static let hold: Int64 = 3_000_000_000
    /// Clients of runs with messages, and of those with pings.
    private static let (pairs, pinging) = (200, 1_000)
    /// A thread with this part of the busiest one's CPU shares its work.
    private static let busy = 0.3

    private let group: ScenarioGroup.Work
    private let fleet: ScenarioOptions
    private let processes: [String]
    private let sessions: Int
    private let directory: String
    private let hasRetained: Bool

    /// - Parameters:
    ///   - fleet: its first group has the connection.
    ///   - processes: of the server.
    ///   - sessions: clients at a time, at most.
    ///   - hasRetained: whether retained messages are measured too.
    ///   - directory: where the runs leave their results.
    package init(of fleet: ScenarioOptions, processes: [String], sessions: Int, hasRetained: Bool, in directory: String)
    {
        (self.fleet, self.group, self.processes) = (fleet, fleet.groups[0].work, processes)
        (self.directory, self.hasRetained) = (directory, hasRetained)
        var most = sessions
        // Users are those of the group, and no others.
        if case .xmpp(let options) = fleet.groups[0].work { most = min(most, options.operators) }
        if case .mqtt(let options) = fleet.groups[0].work {
            let texts = [options.username, options.password].compactMap(\.self)
            let hasUsers = options.rows != nil || texts.contains { options.template($0).variesPerClient }
            if hasUsers { most = min(most, options.clients) }
        }
        self.sessions = most
    }

    private var isXMPP: Bool { if case .xmpp = self.group { true } else { false } }

    /// Measures; about three minutes.
    ///
    /// Most runs are made twice, the second time in the other order: what a host does otherwise meanwhile shows as noise.
    ///
    /// `say` gets a line about each run.
    package func measure(_ say: @Sendable (String) -> Void) async throws(RunRefusal) -> ServerCosts {
        guard self.sessions >= Self.fewest else {
            throw RunRefusal(
                "the first group has \(Words.count(self.sessions, "user")), and the runs need \(Self.fewest); give it more clients"
            )
        }
        var live = LiveOptions()
        live.processes = self.processes
        let monitor = try await ServerMonitor(live, [], isAlone: false, ProgressScreen(quiet: true, json: false))
        _ = await monitor.look()
        // The sample of a server without clients is as long as this; it waits for nothing.
        try? await Task.sleep(for: .seconds(3))
        let idle = await monitor.look()
        let cores = await monitor.cores
        _ = await monitor.end()
        // A tick of 10 ms is the least that some kernels tell.
        let cpu = idle.filter { $0.isOf(.serverCPU) }.compactMap(\.gauge?.value).reduce(0, +)
        var samples = [CostSample(ServerDemand(), cores: [max(cpu, 0.001)])]
        let first = try await self.run(.sessions, rate: 0)
        samples += first.samples
        let memory = try first.sessionBytes()
        say(first.words)
        var retained: Estimate?
        if self.hasRetained {
            let kept = try await self.run(.retained, rate: Double(self.sessions))
            retained = kept.growthInMeasure.map { growth in
                Estimate(max(0, growth / Double(self.sessions) - Double(Self.size)), within: 0.1)
            }
            say(kept.words)
            _ = try await self.run(.cleared, rate: Double(self.sessions))
        }
        let slow = try await self.run(.first, rate: Self.firstRate).samples.last
        let each = (slow?.mean ?? 0) / max(1, slow?.demand.messagesIn ?? 1)
        let rate = min(Self.mostRate, max(Self.firstRate, each > 0 ? Self.share * cores / each : Self.mostRate))
        let parts: [Design: Double] = [.slow: 0.25, .large: 0.125]
        var width = 1.0
        for (turn, design) in (self.designs + self.designs.reversed()).enumerated() {
            var part = parts[design, default: 1]
            if case .fan = design { part = 0.2 }
            let suffix = turn < self.designs.count ? "" : "-2"
            let found = try await self.run(design, rate: rate * part, suffix)
            samples += found.samples
            if design == .full { width = max(width, found.busyThreads(Self.busy)) }
            say(found.words)
        }
        var costs = ServerCosts(
            samples,
            isXMPP: self.isXMPP,
            hasTLS: self.group.hasTLS,
            measuredAt: first.run.record.startedAt,
            width: min(width, cores),
            cores: cores,
            baseBytes: memory.before,
            sessionBytes: memory.session
        )
        costs.retainedBytes = retained
        costs.server = first.run.record.servers?.first.map {
            [$0.product, $0.version].compactMap(\.self).joined(separator: " ")
        }
        return costs
    }

    private var designs: [Design] {
        let plain: [Design] =
            self.isXMPP ? [.pairs(qos: 0)] : (0...2).flatMap { [.publish(qos: $0), .pairs(qos: $0), .fan(qos: $0)] }
        return [self.isXMPP ? .requests : .pings, .slow] + plain + [.full, .large]
    }

    // MARK: - One run

    private func run(_ design: Design, rate: Double, _ suffix: String = "") async throws(RunRefusal) -> CostRun {
        var scenario = self.fleet
        let name = design.name + suffix
        var work = self.group
        switch self.group {
        case .mqtt(let options): work = .mqtt(self.changed(options, to: design))
        case .xmpp(let options): work = .xmpp(self.changed(options, to: design))
        }
        var common = work.options
        self.reset(&common, design, rate)
        common.results.outputDirectory = "\(self.directory)/\(name)"
        work.options = common
        scenario.common = common
        scenario.groups = [ScenarioGroup(name: name, work: work)]
        scenario.isFile = false
        let run = try await Run(RunPlan(scenario)).finished()
        guard !Task.isCancelled else {
            let left = self.hasRetained ? "; retained messages may be left in clamor/plan/#" : ""
            throw RunRefusal("the measurement was interrupted\(left)", .interrupted)
        }
        let timeline = try RunRefusal.unless("run \(name): ", .dataError) {
            try Timeline(reading: run.directory ?? "")
        }
        let size = Double(design == .large ? Self.largeSize : Self.size)
        let asks = design == .requests
        let found = CostRun(name: name, run: run, timeline: timeline, size: size, isXMPP: self.isXMPP, asks: asks)
        guard found.isUseful else {
            let error = run.record.errors.max { $0.count < $1.count }
            let words = error.map { "\($0.kind): \($0.example)" } ?? "nothing was measured"
            throw RunRefusal("run \(name): \(words); the runs are in \(self.directory)", .unavailable)
        }
        return found
    }

    private func reset(_ options: inout LoadOptions, _ design: Design, _ rate: Double) {
        let own = options
        options = LoadOptions(name: own.name, port: 0, operates: ![.sessions, .pings].contains(design))
        options.target = own.target
        options.sourceAddresses = own.sourceAddresses
        options.transport = own.transport
        options.startNumber = own.startNumber
        options.connectTimeout = own.connectTimeout
        options.threads = self.fleet.common.threads
        (options.operators, options.listeners) = (own.operators, own.listeners)
        options.payload = .generated(size: design == .large ? Self.largeSize : design == .cleared ? 0 : Self.size)
        if options.operates {
            options.pacing = design == .full ? .closedLoop : .rate(rate)
            if design == .full { options.inflight = 1 }
            options.warmup = 1_000_000_000
        }
        if [.retained, .cleared].contains(design) {
            options.limit = UInt64(own.operators)
            options.warmup = 0
        }
        options.duration = [.retained, .cleared].contains(design) ? nil : Self.hold
        options.live.processes = self.processes
        options.files.writesPage = false
    }

    private func changed(_ options: MQTTOptions, to design: Design) -> MQTTOptions {
        var own = MQTTOptions(kind: .conn)
        own.common = options.common
        own.protocolLevel = options.protocolLevel
        (own.username, own.password, own.auth, own.rows) = (
            options.username, options.password, options.auth, options.rows
        )
        (own.connect, own.publisherID) = (options.connect, "clamor-plan-a-%i")
        own.subscriberID = "clamor-plan-b-%i"
        own.topic = "clamor/plan/%i"
        let pairs = min(Self.pairs, self.sessions) / 2
        (own.publishers, own.subscribers) = (2 * pairs, 0)
        switch design {
        case .sessions: own.publishers = self.sessions
        case .pings: (own.publishers, own.keepAlive) = (min(Self.pinging, self.sessions), 1)
        case .retained, .cleared:
            (own.kind, own.publishers, own.retain, own.qualities) = (.pub, self.sessions, true, [1])
        case .publish(let qos): (own.kind, own.qualities) = (.pub, [qos])
        case .first, .slow, .full:
            (own.kind, own.publishers, own.subscribers, own.qualities) = (.pubsub, pairs, pairs, [1])
        case .pairs(let qos):
            (own.kind, own.publishers, own.subscribers, own.qualities) = (.pubsub, pairs, pairs, [qos])
        case .fan(let qos):
            (own.kind, own.topology, own.qualities) = (.pubsub, .fanOut, [qos])
            (own.publishers, own.subscribers) = (1, 10)
        case .large: (own.kind, own.publishers, own.subscribers) = (.pubsub, pairs, pairs)
        case .requests: break
        }
        return own
    }

    private func changed(_ options: XMPPOptions, to design: Design) -> XMPPOptions {
        var own = options
        own.registers = false
        own.operators = min(Self.pairs, self.sessions) / 2 * 2
        switch design {
        case .sessions: (own.kind, own.operators) = (.login, self.sessions)
        case .requests: own.kind = .ping
        default: own.kind = .message
        }
        return own
    }
}

/// A run of one kind of work as equations.
private struct CostRun {
    let name: String
    let run: FinishedRun
    let timeline: Timeline
    let size: Double
    let isXMPP: Bool
    /// Whether its stanzas are requests, which the server answers.
    let asks: Bool

    private func intervals(_ phase: String) -> [Int] {
        self.timeline.phases.indices.filter { self.timeline.phases[$0] == phase && self.timeline.lengths[$0] > 0.3 }
    }

    /// The sum of all series in each interval.
    private func values(_ metric: MetricDefinition, qos: Int? = nil, in intervals: [Int]) -> [Double] {
        let columns = self.timeline.columns.filter { column in
            column.isOf(metric) && (qos == nil || column.labels["qos"] == qos.map(String.init))
        }
        return intervals.map { place in columns.lazy.map { $0.values[place] }.filter(\.isFinite).reduce(0, +) }
    }

    private func rate(_ metric: MetricDefinition, qos: Int? = nil, in intervals: [Int]) -> Double {
        let seconds = intervals.reduce(0) { $0 + self.timeline.lengths[$1] }
        return self.values(metric, qos: qos, in: intervals).reduce(0, +) / max(1e-9, seconds)
    }

    private func cores(in intervals: [Int]) -> [Double] {
        zip(self.values(.serverCPUTime, in: intervals), intervals).map { $0 / self.timeline.lengths[$1] }
    }

    private var clients: Double { Double(self.run.record.population?.up ?? 0) }

    /// All clients were up, and the server did something.
    var isUseful: Bool {
        let count = self.run.record.population
        return self.clients > 0 && count?.up == count?.planned && self.samples.contains { $0.mean > 0 }
    }

    /// The connects, if there are many; and the measured phase.
    var samples: [CostSample] {
        var samples: [CostSample] = []
        let connects = self.timeline.phases.indices.filter { self.timeline.phases[$0] == "connect" }
        let seconds = connects.reduce(0) { $0 + self.timeline.lengths[$1] }
        if self.name == "sessions", seconds > 0 {
            var demand = ServerDemand()
            demand[.connect] = self.clients / seconds
            // They come one after the other.
            demand[.session] = self.clients / 2
            demand.sessions = self.clients
            let cpu = self.values(.serverCPUTime, in: connects).reduce(0, +)
            samples.append(CostSample(demand, cores: [cpu / seconds]))
        }
        let measured = self.intervals("measure")
        var demand = ServerDemand()
        demand.sessions = self.clients
        demand[.session] = self.clients
        demand[.ping] = self.rate(.ping, in: measured)
        if self.isXMPP {
            demand[self.asks ? .iq : .in0] = self.rate(.stanzaSent, in: measured)
            demand[.byte] = (demand[.in0] + self.rate(.received, in: measured)) * self.size
        } else {
            for (qos, items) in [(ServerItem.in0, ServerItem.out0), (.in1, .out1), (.in2, .out2)].enumerated() {
                demand[items.0] = self.rate(.publishSent, qos: qos, in: measured)
                demand[items.1] = self.rate(.received, qos: qos, in: measured)
            }
            if self.rate(.received, in: measured) > 0 { demand[.passed] = demand.messagesIn }
            demand[.byte] = demand.messages * self.size
        }
        if !measured.isEmpty { samples.append(CostSample(demand, cores: self.cores(in: measured))) }
        return samples
    }

    /// A line about it.
    var words: String {
        let last = self.samples.last
        let rate = last.map(\.demand.messagesIn) ?? 0
        let work = rate > 0 ? "\(Words.significant(rate)) messages/s in" : Words.count(Int(self.clients), "client")
        return "\(self.name): \(work), \(Words.significant(last?.mean ?? 0)) cores"
    }

    private func memory(_ phase: String) -> Double? {
        self.timeline.phases.lastIndex(of: phase).flatMap { place in
            self.values(.serverMemory, in: [place]).first { $0 > 0 }
        }
    }

    /// Bytes that the server's memory grew by in the measured phase.
    var growthInMeasure: Double? {
        self.memory("connect").flatMap { before in
            (self.memory("drain") ?? self.memory("measure")).map { $0 - before }
        }
    }

    /// Bytes of a session, and of the server without one.
    func sessionBytes() throws(RunRefusal) -> (session: Estimate, before: Double) {
        let idle = self.run.record.whole(.serverMemoryIdle).compactMap { $0.gauge?.value }.reduce(0, +)
        let growth = ((self.memory("measure") ?? 0) - idle) / max(1, self.clients)
        guard idle > 0, growth >= 256 else {
            throw RunRefusal(
                "the server's memory did not grow with \(Words.count(Int(self.clients), "client")): it still has that of "
                    + "earlier ones; start the server again, and measure it first",
                .dataError
            )
        }
        return (Estimate(growth, within: 0.05), idle)
    }

    func busyThreads(_ share: Double) -> Double {
        let measured = self.intervals("measure")
        let means = self.timeline.columns.filter { $0.isOf(.serverThreadCPU) && $0.labels["thread"] != "other" }
            .map { column in measured.reduce(0) { $0 + (column.values[$1].isFinite ? column.values[$1] : 0) } }
        let most = means.max() ?? 0
        return Double(means.count { $0 >= share * most && most > 0 })
    }
}
