import LoadEngine
import LoopContext
import Measurement
import NIOCore
import NIOPosix
import RunResult
import Scenario
import ServerWatch
import Transport
import Workloads
import XMPP

final class XMPPGroup: RunGroup {
    let run: XMPPOptions
    let name: String?
    let names: OptionNames
    var prepared: PreparedGroup<XMPPWorkload>?
    private var layers: RunLayers?
    /// The accounts that were created for the run.
    var accounts: RunAccounts
    /// The load of these accounts, and the settings for their removal.
    var accountLoad: (load: XMPPLoad, setting: RunSetting)?
    var cpuBeside: Int64 = 0

    /// `name`: the group's name, in a run of several groups.
    init(_ run: XMPPOptions, name: String?, names: OptionNames) {
        self.run = run
        self.name = name
        self.names = names
        self.accounts = RunAccounts(keeps: run.keepsAccounts)
    }

    var options: LoadOptions { self.run.common }
    var deliveries: Double { Double(self.run.deliveries) }
    var clientBytes: UInt64 {
        guard self.run.hasGroups, self.run.hasLedger else { return 0 }
        let comesLate =
            self.run.reconnects > 0 || self.run.churn != nil || !self.run.storms.isEmpty || !self.run.turnouts.isEmpty
            || !self.run.waitsForAll
        // A stream of 32 bytes for each member, the data for the final count, and missed messages.
        return UInt64(self.run.groupSize) * (comesLate ? 240 : 180) + 256
    }
    var nothingCameUp: String { self.run.kind == .register ? "no account was created" : GroupResult.unconnected }
    var deferredTLS: TLSContext? { self.run.tls == .direct ? nil : self.layers?.tls }

    var isDivisible: @Sendable (SegmentOptions) -> Bool {
        { [run = self.run] segments in
            var run = run
            run.segment = segments
            return run.segmentProblems.isEmpty
        }
    }

    func makeLoad(seed: UInt64, loops: Int) throws(RunRefusal) -> XMPPWorkload {
        self.layers = try RunLayers(self.run.common, xmpp: self.run.tls, names: self.names)
        let load = self.run.load(run: UInt32.random(in: 1...UInt32.max), seed: seed)
        let users: OptionWords = self.run.users.isEmpty ? "\(\.jid)" : "\(\.users)"
        if let problem = load.problem() { throw RunRefusal(self.named("\(users): \(problem)")) }
        if let problem = load.groupProblem() {
            let room: OptionWords = problem.part == .name ? "\(\.room)" : "\(\.nick)"
            throw RunRefusal(self.named("\(self.run.kind == .muc ? room : users): \(problem.words)"))
        }
        return XMPPWorkload(load, metrics: XMPPMetrics(for: load, loops: loops), tls: self.deferredTLS)
    }

    /// Asked by one more login.
    var server: ServerRecord? {
        get async {
            let target: Target?
            if case .service = self.options.target { target = nil } else { target = self.targets.first }
            guard let load = self.prepared?.load.load,
                let configuration = XMPPClientConfiguration(beside: load, self.run, to: target)
            else { return nil }
            return await ServerProbe.xmpp(
                configuration,
                patience: .seconds(2),
                on: MultiThreadedEventLoopGroup.singleton
            )
        }
    }

    func complete(_ plan: inout LoadPlan) {
        plan.operatorsListen = self.run.kind == .message || self.run.hasGroups
        if self.run.hasGroups { plan.row = self.run.operators / self.run.groupSize }
        guard self.run.kind == .register else { return }
        // The connects are the load: they are measured from the first one on.
        plan.endsWithConnects = true
        plan.waitsForConnects = false
    }

    func connectors(from sources: SourceAddresses) -> @Sendable (LoopContext) -> any ClientConnector {
        let (targets, layers) = (self.targets, self.layers)
        guard case .service(let domain, let resolver) = self.options.target else {
            return { context in
                TCPConnector(
                    context: context,
                    targets: targets,
                    sources: sources,
                    layers: layers?.make(on: context) ?? []
                )
            }
        }
        let isDirect = self.run.tls == .direct
        let given = resolver.flatMap { NameServers.parse($0) }
        let servers = given.map { [$0] } ?? NameServers.system()
        return { context in
            let dns = DNSClient(eventLoop: context.eventLoop, servers: servers)
            return ServiceConnector(
                context: context,
                domain: domain,
                kinds: isDirect ? .direct : .standard,
                dns: dns,
                sources: sources,
                layers: ServiceConnector.Layers(direct: layers?.make(on: context) ?? []),
                resolver: given == nil ? nil : dns
            )
        }
    }
}
