import EmbeddedBroker
import LoadEngine
import LoopContext
import MQTT
import Measurement
import NIOPosix
import RunResult
import Scenario
import ServerWatch
import Transport
import Workloads

/// A run of MQTT clients: `conn`, `pub`, `sub`, `pubsub`.
final class MQTTGroup: RunGroup {
    private let run: MQTTOptions
    let name: String?
    let names: OptionNames
    var prepared: PreparedGroup<MQTTWorkload>?
    /// The state shared with the other MQTT groups of the run, and the place of this group among them.
    private(set) var neighbourhood: Neighbourhood?
    private var place = 0
    /// The first group with the embedded broker, if this one uses it too; and the books of all that do.
    private var host: MQTTGroup?
    private var guests = 1
    private var guestBooks: [Books] = []
    private var certificate: EmbeddedCertificate?
    private var layers: RunLayers?
    private var broker: (any RunBroker)?
    private(set) var clock: ClockRecord?
    private var echoes: ClockEchoes?
    private var leader: (any RunLeader)?

    /// `name`: the group's name, in a run of several groups.
    init(_ run: MQTTOptions, name: String?, names: OptionNames) {
        self.run = run
        self.name = name
        self.names = names
    }

    /// Makes it a member of the neighbourhood; before it is prepared.
    func join(_ neighbourhood: Neighbourhood, at place: Int) {
        self.neighbourhood = neighbourhood
        self.place = place
    }

    /// Another group with the embedded broker starts it for both.
    func share(brokerOf host: MQTTGroup) {
        self.host = host
        host.guests += 1
    }

    var options: LoadOptions { self.run.common }
    var messageRate: Double? { self.run.messageRate }
    var deliveries: Double { self.run.deliveries }

    var isDivisible: @Sendable (SegmentOptions) -> Bool {
        { [run = self.run] segments in
            var run = run
            run.segment = segments
            return run.segmentProblems().isEmpty
        }
    }

    func makeLoad(seed: UInt64, loops: Int) throws(RunRefusal) -> MQTTWorkload {
        if self.host == nil { self.certificate = try EmbeddedCertificate(for: self.run) }
        let trusted = (self.host ?? self).certificate?.certificateFile
        self.layers = try RunLayers(self.run.common, trusting: trusted, names: self.names)
        guard let neighbourhood else {
            preconditionFailure("the groups of a run are joined before they are prepared")
        }
        let plan = neighbourhood.plan
        let load = plan.groups[self.place].load
        if load.bond == .ledger {
            self.clock = self.run.segment.clock.identity
                .map { ClockRecord(host: $0, realtimeOffset: load.realtimeOffset) }
        }
        if self.run.validates, let problem = load.problem() {
            throw RunRefusal(self.named("\(problem); correct it, or send it as it is with \(\.validates, "off")"))
        }
        let metrics = MQTTMetrics(for: load, in: plan, group: self.place, loops: loops)
        return MQTTWorkload(load, metrics: metrics, plan: plan, group: self.place, hub: neighbourhood.hub)
    }

    func start(in world: RunWorld) throws(RunRefusal) -> [String] {
        if case .embedded(let arguments) = self.run.target, self.host == nil {
            self.broker = try world.startBroker?()
            if self.broker == nil {
                self.broker = try EmbeddedProcess(
                    arguments: arguments,
                    transport: self.run.brokerTransport,
                    flags: self.run.brokerFlags(self.certificate) + self.messageFlags,
                    environment: self.run.brokerEnvironment
                )
            }
        }
        return self.literalNames
    }

    /// The embedded broker takes the messages that the run sends, those to one client among them.
    private var messageFlags: [String] {
        guard let neighbourhood else { return [] }
        let roots = Set(neighbourhood.plan.groups.flatMap { $0.load.streams.compactMap { $0.p2p?.root } })
        return ["--maximum-packet-size", "\(neighbourhood.packetLimit)"]
            + roots.map { String(decoding: $0, as: UTF8.self) }.sorted().flatMap { ["--p2p", $0] }
    }

    /// A warning about a placeholder of emqtt_bench that `-m` sends unchanged.
    private var literalNames: [String] {
        guard case .message(let bytes) = self.run.payload,
            let name = Template.names.first(where: { bytes.contains(Array($0.utf8)) })
        else { return [] }
        return [self.named("\(\.message): \(name) is sent as it is; it is a placeholder in template://FILE only")]
    }

    func complete(_ plan: inout LoadPlan) {
        plan.operatorsListen = self.receivesAsPublisher
        if !self.run.streams.isEmpty { plan.pace = self.streamPace }
        plan.turns = self.run.subscriptionChurn?.perSecond
    }

    /// Whether clients that publish receive messages too.
    private var receivesAsPublisher: Bool {
        if self.run.topology == .request || self.run.kind == .pub && !self.run.subscriptions.isEmpty { return true }
        return self.neighbourhood?.plan.hasP2P ?? false && self.run.publishers > 0
    }

    /// The pace of each stream, as if it were the only one.
    private var streamPace: LoadPlan.Pace {
        let paces = self.run.streams.compactMap { stream -> OperationSchedule.Pace? in
            let own = self.run.with(stream).common.plan(targets: 1, seed: self.run.seed ?? 0).pace
            guard case .open(let pace) = own else { return nil }
            return pace
        }
        return paces.count == 1 ? .open(paces[0]) : .streams(paces)
    }

    var exchange: Int? { self.neighbourhood.map { $0.plan.groups[self.place].domain } }
    var targets: [Target] { self.options.targets(brokerPort: (self.host ?? self).broker?.port ?? 0) }

    func connectors(from sources: SourceAddresses) -> @Sendable (LoopContext) -> any ClientConnector {
        let (targets, layers) = (self.targets, self.layers)
        let route = self.route
        return { context in
            TCPConnector(
                context: context,
                targets: targets,
                sources: sources,
                layers: layers?.make(on: context) ?? [],
                route: route
            )
        }
    }

    private var route: @Sendable (_ client: Int) -> Int {
        guard self.run.isSeparate else { return { $0 } }
        // Neither the seed nor the number of the run affects the routes of clients.
        let load = self.run.load(run: 0, seed: 0)
        return { load.route(of: $0) }
    }

    /// Adjusts the clock of a segment to that of its leader; of a separately started one to that of segment 1.
    func begin(_ load: MQTTWorkload, beside setting: RunSetting) async -> MQTTWorkload {
        if let leader = setting.leader {
            self.leader = leader
            var led = load.load
            led.realtimeOffset = leader.clockOffset
            return load.with(led)
        }
        guard let part = self.options.segment.part, load.load.bond == .ledger,
            let host = self.clock?.host
        else { return load }
        self.echoes = ClockEchoes(load.load, self.options, host: host, layers: self.layers, signals: setting.signals)
        guard part.index > 0 else {
            await self.echoes?.answer()
            return load
        }
        guard let offset = await self.echoes?.measure() else { return load }
        var corrected = load.load
        corrected.realtimeOffset += offset
        return load.with(corrected)
    }

    var clockCorrections: [@Sendable (Int64) -> Void] {
        (self.prepared?.handles ?? []).map { handle in
            { offset in handle.tell { $0.work?.correct(clock: offset) } }
        }
    }

    func clientsEnded(_ results: [MQTTResult]) async -> [String] {
        if let estimate = await self.echoes?.end() {
            self.clock?.correctionSeconds = Double(estimate.offset) / 1e9
            self.clock?.errorSeconds = Double(estimate.error) / 1e9
            self.clock?.exchanges = estimate.exchanges
        }
        if self.clock != nil, let clock = self.leader?.clock { self.clock = clock }
        return []
    }

    /// The embedded broker is known; another one is asked by a client beside the load.
    var server: ServerRecord? {
        get async {
            if self.run.isEmbedded {
                return ServerRecord(product: Version.tool.name, version: Version.tool.version, source: "embedded")
            }
            guard let configuration = self.watcher else { return nil }
            return await ServerProbe.mqtt(
                configuration,
                patience: .seconds(1),
                on: MultiThreadedEventLoopGroup.singleton
            )
        }
    }

    /// A client beside the load.
    var watcher: MQTTClientConfiguration? {
        guard let load = self.prepared?.load.load else { return nil }
        return MQTTClientConfiguration(
            beside: load,
            self.options,
            client: 0,
            to: self.targets.first,
            layers: self.layers
        )
    }

    /// The broker's counters know no groups, so the last group compares the sums.
    func mismatches(_ books: [Books], _ record: RunRecord) -> [Verdict.Reason] {
        let host = self.host ?? self
        host.guestBooks += books.filter { $0.sent != nil } + (self.answers(record).map { [$0] } ?? [])
        host.guests -= 1
        guard host.guests <= 0, let counters = host.broker?.counters() else { return [] }
        return Books.sums(host.guestBooks).compactMap {
            $0.mismatch(received: { counters.received[$0] }, receivedDUP: { counters.receivedDUP[$0] })
        }
    }

    /// The answers to requests, and replies, which the broker counts and no stream of the plan sends; a connection that ended may
    /// have taken some with it.
    private func answers(_ record: RunRecord) -> Books? {
        func sum(_ kind: MetricDefinition) -> UInt64? {
            let counts = record.metrics.filter { $0.isOf(kind) }.compactMap { $0.counter?.value }
            return counts.isEmpty ? nil : UInt64(counts.reduce(0, +))
        }
        let answers = [sum(.requestsAnswered), sum(.repliesSent)].compactMap(\.self)
        guard !answers.isEmpty else { return nil }
        var books = Books(qos: 0)
        (books.sent, books.unconfirmed) = (answers.reduce(0, +), sum(.disconnects))
        return books
    }

    /// Warnings for standard error that are not among the figures.
    func remarks(_ record: RunRecord) -> [String] {
        let isApart = record.notes?.contains { $0.code == "targets-apart" } ?? false
        return isApart ? ["the targets look like separate servers; add --separate, or 'separate: true' in a file"] : []
    }

    func close() {
        self.broker?.stop()
        self.certificate?.remove()
    }
}
