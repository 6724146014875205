import Measurement

extension CapacityRecord {
    /// The cause that kept a load from being larger, as far as the runs show it.
    package struct Limit: Codable, Hashable, Sendable {
        package enum Kind: String, Codable, Sendable, CaseIterable {
            case generator, host
            /// The CPU quota of the server's control group; one of its threads; its memory.
            case quota, thread, memory
            /// The server refused connects, or did not take them from its queue.
            case connections, backlog
            /// Each client waited for its window, and the server answered as fast as it does at a small load.
            case window
            /// The server had CPU to spare: a rate, a disk or a lock of its own.
            case server
            /// No process of the server was watched.
            case unknown
        }

        package var kind: Kind
        package var words: String

        package init(_ kind: Kind, _ words: String) {
            self.kind = kind
            self.words = words
        }
    }

    /// The resources that a step used; absent where they are not known.
    package struct Use: Codable, Hashable, Sendable {
        /// Cores of all watched processes, and the share of a core of their busiest thread.
        package var serverCPU: Double?
        package var serverThread: Double?
        package var serverMemoryBytes: Double?
        package var serverDescriptors: Double?
        /// The share of a core of the generator's busiest event loop.
        package var generatorLoop: Double?
        package var hostIdle: Double?

        private enum CodingKeys: String, CodingKey {
            case serverCPU = "server_cpu"
            case serverThread = "server_thread_cpu"
            case serverMemoryBytes = "server_memory_bytes"
            case serverDescriptors = "server_descriptors"
            case generatorLoop = "generator_cpu"
            case hostIdle = "host_cpu_idle"
        }

        /// The figures by their keys, in their order.
        package static let columns: [(key: String, field: any KeyPath<Self, Double?> & Sendable)] = [
            (CodingKeys.serverCPU.rawValue, \.serverCPU), (CodingKeys.serverThread.rawValue, \.serverThread),
            (CodingKeys.serverMemoryBytes.rawValue, \.serverMemoryBytes),
            (CodingKeys.serverDescriptors.rawValue, \.serverDescriptors),
            (CodingKeys.generatorLoop.rawValue, \.generatorLoop), (CodingKeys.hostIdle.rawValue, \.hostIdle),
        ]

        init(of facts: StepFacts) {
            self.serverCPU = facts.mean(.serverCPU)
            self.serverThread = facts.busiestThread?.share
            self.serverMemoryBytes = facts.most(.serverMemory)
            self.serverDescriptors = facts.most(.serverDescriptors)
            self.generatorLoop = facts.run.generator.loopCPUShares?.max()
            self.hostIdle = facts.mean(.hostCPUIdle)
        }
    }

    private enum Bound {
        /// The share of a core, and of the memory, of which nothing is left; the verdict on the generator has the same.
        static let full = 0.9
        static let hostIdle = 0.05
        /// The share of the time for which a quota stops a server that it limits.
        static let stopped = 0.02
        /// A SYN that finds the queue full is sent again after a second.
        static let again = 0.9
        /// At most so many times the service time of the smallest load: the server did not slow down.
        static let unslowed = 2.0
        /// So many times the service time: messages waited for their client.
        static let waited = 2.0
        /// Loads up to so many times the lowest one that broke are near the answer.
        static let near = 1.25
    }

    /// The limit of the answer: that of most of the steps that broke nearest above it, or the generator's.
    package mutating func nameLimit() {
        guard let answer = self.answer else { return }
        let held = answer.load ?? 0
        let failed = self.steps.filter { $0.load > held && $0.limit != nil }.sorted { $0.load < $1.load }
        let near = failed.prefix { $0.load <= failed[0].load * Bound.near }.compactMap(\.limit)
        func count(_ kind: Limit.Kind) -> Int { near.count { $0.kind == kind } }
        let most = near.map { count($0.kind) }.max()
        self.answer?.limit = near.first { count($0.kind) == most }
        if answer.kind == "generator-limited", ![.generator, .host].contains(self.answer?.limit?.kind) {
            self.answer?.limit = Limit(.generator, answer.reason ?? "")
        }
    }

    /// The limit of a step that did not hold; the service time of the smallest load is known from earlier steps.
    func limit(of step: Step, _ facts: StepFacts) -> Limit? {
        // The figures of a disturbed step are not the server's.
        guard !["held", "disturbed"].contains(step.verdict), let use = step.use else { return nil }
        if step.verdict == "generator-limited" {
            let full = facts.run.verdict?.reasons.first { $0.code == "host-full" }
            return full.map { Limit(.host, $0.text) } ?? Limit(.generator, step.reason ?? "")
        }
        let isFull = use.hostIdle.map { $0 < Bound.hostIdle } ?? false
        let host = isFull ? Limit(.host, "this host had \(Words.percent(use.hostIdle ?? 0)) of its CPU idle") : nil
        return Self.processorLimit(facts) ?? host ?? (self.varies == "clients" ? Self.connectLimit(facts.run) : nil)
            ?? self.windowLimit(step) ?? facts.memoryLimit(Bound.full) ?? Self.spare(use)
    }

    private static func processorLimit(_ facts: StepFacts) -> Limit? {
        if facts.mean(.serverCPUThrottled, joined: { $0.max() }) ?? 0 > Bound.stopped {
            let cores = facts.mean(.serverCPU).map { " at \(Words.significant($0)) cores" } ?? ""
            return Limit(.quota, "the CPU quota of the server's control group stopped it\(cores)")
        }
        guard let busiest = facts.busiestThread, busiest.share >= Bound.full else { return nil }
        return Limit(.thread, "the server's thread \(busiest.name) used \(Words.percent(busiest.share)) of a core")
    }

    private static func connectLimit(_ run: RunRecord) -> Limit? {
        func connects(_ phase: String) -> [DurationReading] {
            run.whole(.connect).filter { $0.labels["phase"] == phase }.compactMap(\.duration)
        }
        if connects("tcp").contains(where: { $0.p99 >= Bound.again }) {
            return Limit(.backlog, "connects waited for the server to accept them (its listen backlog)")
        }
        let lost = connects("total").reduce(0) { $0 &+ ($1.unanswered?.count ?? 0) }
        guard lost > 0 else { return nil }
        let example = run.errors.max { $0.count < $1.count }?.example ?? "no answer"
        return Limit(.connections, "the server did not take \(Words.count(lost, "connect")): \(example)")
    }

    /// Messages waited for their clients' windows, and the service time has not grown.
    private func windowLimit(_ step: Step) -> Limit? {
        let held = self.steps.filter { $0.verdict == "held" }.min { $0.load < $1.load }
        guard self.varies == "rate", let service = step.serviceSeconds, let mean = step.meanSeconds,
            let throughput = step.throughput, let least = held?.serviceSeconds,
            service <= least * Bound.unslowed, mean > service * Bound.waited
        else { return nil }
        let words = "\(Words.significant(service * throughput)) in flight, answered within \(Words.duration(service))"
        return Limit(.window, "the clients had \(words): give more with --inflight")
    }

    private static func spare(_ use: Use) -> Limit {
        guard let cpu = use.serverCPU else {
            return Limit(.unknown, "not known: watch the server with --watch-pid in the load's command")
        }
        let thread = use.serverThread.map { ", its busiest thread \(Words.percent($0)) of one" } ?? ""
        let words = "the server used \(Words.significant(cpu)) cores\(thread), so it waited: a rate, a disk or a lock"
        return Limit(.server, words)
    }
}

/// A step's run, and its measured phase second by second: means of the whole run have its connects too.
struct StepFacts {
    let run: RunRecord
    private let timeline: Timeline
    private let measured: [Int]

    init(_ run: RunRecord, _ timeline: Timeline) {
        self.run = run
        self.timeline = timeline
        self.measured = timeline.phases.indices.filter { timeline.phases[$0] == "measure" }
    }

    private func means(_ kind: MetricDefinition) -> [(labels: Labels, mean: Double)] {
        self.timeline.columns.filter { $0.isOf(kind) }.compactMap { column in
            let values = self.measured.map { column.values[$0] }.filter(\.isFinite)
            return values.isEmpty ? nil : (column.labels, values.reduce(0, +) / Double(values.count))
        }
    }

    /// Of all processes together; `nil` where nothing was watched.
    func mean(_ kind: MetricDefinition, joined: ([Double]) -> Double? = { $0.reduce(0, +) }) -> Double? {
        let means = self.means(kind).map(\.mean)
        return means.isEmpty ? nil : joined(means)
    }

    func most(_ kind: MetricDefinition) -> Double? {
        let values = self.run.whole(kind).compactMap { $0.gauge?.max }
        return values.isEmpty ? nil : values.reduce(0, +)
    }

    /// The threads beyond a number are one series, which is none of a thread.
    var busiestThread: (name: String, share: Double)? {
        self.means(.serverThreadCPU).filter { $0.labels["thread"] != "other" }.max { $0.mean < $1.mean }
            .map { ($0.labels["thread"] ?? $0.labels["process"] ?? "", $0.mean) }
    }

    /// A process that uses this share of what its control group allows, or more.
    func memoryLimit(_ share: Double) -> CapacityRecord.Limit? {
        for limit in self.run.whole(.serverMemoryLimit) {
            let used = self.run.whole(.serverMemory).first { $0.labels == limit.labels }?.gauge?.max
            guard let used, let most = limit.gauge?.value, used >= most * share else { continue }
            let words = "the server used \(Words.bytes(used)) of the \(Words.bytes(most)) it may have"
            return CapacityRecord.Limit(.memory, words)
        }
        return nil
    }
}
