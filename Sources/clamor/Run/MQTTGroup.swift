import EmbeddedBroker
import LoadEngine
import LoopContext
import Measurement
import RunResult
import Transport
import Workloads

/// A run of MQTT clients: `conn`, `pub`, `sub`, `pubsub`.
final class MQTTGroup: RunGroup {
    private let run: MQTTOptions
    let name: String?
    var prepared: PreparedGroup<MQTTWorkload>?
    private var certificate: EmbeddedCertificate?
    private var layers: RunLayers?
    private var store: RunStore?
    private var broker: EmbeddedProcess?
    private(set) var clock: ClockRecord?
    private var echoes: ClockEchoes?

    /// `name`: the group's name, in a run of several groups.
    init(_ run: MQTTOptions, name: String? = nil) {
        self.run = run
        self.name = name
    }

    var options: LoadOptions { self.run.common }
    var deliveries: Double { self.run.deliveries }
    var descriptors: Int { self.run.store == nil ? 0 : Descriptors.store }

    var isDivisible: @Sendable (SegmentOptions) -> Bool {
        { [run = self.run] segments in
            var run = run
            run.segment = segments
            return run.storeProblem == nil && run.segmentProblems.isEmpty
        }
    }

    func planRecord(seed: UInt64) -> [String: JSONValue] { self.run.planRecord(seed: seed) }

    func makeLoad(seed: UInt64, loops: Int) throws(RunRefusal) -> MQTTWorkload {
        do {
            self.certificate = try EmbeddedCertificate(for: self.run)
            self.layers = try RunLayers(self.run.common, trusting: self.certificate?.certificateFile)
        } catch {
            throw RunRefusal("\(error)")
        }
        let spans = self.run.spansSegments
        let run = self.run.segment.headerRun(seed: seed, group: self.name)
        var load = self.run.load(run: run, seed: seed)
        if spans {
            self.clock = HostClock.host(ahead: self.run.segment.clockAhead)
                .map { ClockRecord(host: $0, realtimeOffset: load.realtimeOffset) }
        }
        if spans, load.hasLedger {
            load.joint = MQTTLoad.JointLoad(beginsTogether: RunSegment.beginsTogether(self.options))
        }
        if self.run.validates, let problem = load.problem() {
            throw RunRefusal("\(problem); correct it, or send it as it is with --validate off")
        }
        return MQTTWorkload(load, metrics: MQTTMetrics(for: load, loops: loops))
    }

    func open(_ load: MQTTWorkload) async throws(RunRefusal) -> MQTTWorkload {
        do throws(RunStore.Problem) {
            self.store = try await RunStore(self.run, load.load)
        } catch {
            throw RunRefusal("--store: \(error)")
        }
        return MQTTWorkload(load.load, metrics: load.metrics, store: self.store?.flows)
    }

    func start() throws(RunRefusal) -> [String] {
        if case .embedded(let arguments) = self.run.target {
            do {
                self.broker = try EmbeddedProcess(
                    arguments: arguments,
                    transport: self.run.brokerTransport,
                    flags: self.run.brokerFlags(self.certificate),
                    environment: self.run.brokerEnvironment
                )
            } catch {
                throw RunRefusal("\(error)", .unavailable)
            }
        }
        return (self.store?.remark.map { ["--store: \($0)"] } ?? []) + self.literalNames
    }

    /// A warning about a placeholder of emqtt_bench that `-m` sends unchanged.
    private var literalNames: [String] {
        guard case .message(let bytes) = self.run.payload,
            let name = Template.names.first(where: { bytes.contains(Array($0.utf8)) })
        else { return [] }
        return ["-m: \(name) is sent as it is; it is a placeholder in template://FILE only"]
    }

    func complete(_ plan: inout LoadPlan) {
        plan.operatorsListen = self.run.topology == .request
        plan.turns = self.run.subscriptionChurn?.perSecond
    }

    var targets: [Target] { self.options.targets(brokerPort: self.broker?.port ?? 0) }

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

    /// Adjusts the clock of a separately started segment to that of segment 1.
    func begin(_ load: MQTTWorkload, beside setting: RunSetting) async -> MQTTWorkload {
        guard let part = self.options.segment.part, !self.options.segment.isChild, load.load.joint != nil,
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
        return MQTTWorkload(corrected, metrics: load.metrics, store: self.store?.flows)
    }

    func clientsEnded(_ results: [MQTTResult]) async -> [String] {
        if let estimate = await self.echoes?.end() {
            self.clock?.correctionSeconds = Double(estimate.offset) / 1e9
            self.clock?.errorSeconds = Double(estimate.error) / 1e9
            self.clock?.exchanges = estimate.exchanges
        }
        // All clients have ended, and their last commits too, unless a commit did not return.
        guard let line = await self.store?.close(within: .seconds(30)) else { return [] }
        return ["--store: \(line)"]
    }

    func mismatches(_ books: [Books]) -> [Verdict.Reason] {
        guard let counters = self.broker?.counters() else { return [] }
        return books.compactMap {
            $0.mismatch(received: { counters.received[$0] }, receivedDUP: { counters.receivedDUP[$0] })
        }
    }

    /// Warnings for standard error that are not among the figures.
    func remarks(_ record: RunRecord) -> [String] {
        let isApart = record.notes?.contains { $0.code == "targets-apart" } ?? false
        let apart =
            isApart ? ["the targets look like separate servers; add --separate, or 'separate: true' in a file"] : []
        return apart + self.storeRemarks(record)
    }

    /// Reports messages of an earlier run that the store dropped.
    private func storeRemarks(_ record: RunRecord) -> [String] {
        let dropped = record.metrics.filter { $0.name == "store_dropped" }.reduce(0) { $0 + ($1.counter?.value ?? 0) }
        guard dropped > 0 else { return [] }
        let words = dropped == 1 ? "1 message of an earlier run was" : "\(Int(dropped)) messages of an earlier run were"
        return ["--store: \(words) dropped, for the server has no session for them ([MQTT-3.2.2-5])"]
    }

    func close() {
        self.broker?.stop()
        self.certificate?.remove()
    }
}
