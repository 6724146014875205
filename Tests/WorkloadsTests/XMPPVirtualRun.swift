import LoadEngine
import Measurement
import NIOCore
import RunResult
import Testing
import VirtualServers
import Workloads

/// A virtual run of XMPP clients against ``VirtualXMPPServer``.
final class XMPPVirtualRun: VirtualRun<XMPPWorkload, VirtualXMPPServer> {
    struct Setup {
        var work = XMPPLoad.Work.message
        var clients = 2
        /// Of a room, or of a circle of contacts.
        var groupSize = 2
        var pairing = XMPPLoad.Pairing.neighbour
        var payload = LoadPayload.generated(size: 64)
        /// Over all clients.
        var rate = 10.0
        /// Overrides the rate.
        var pace: LoadPlan.Pace?
        var limit: UInt64?
        var window = 4
        var duration = TimeAmount.seconds(2)
        var drain = TimeAmount.seconds(5)
        var connect = LoadPlan.ConnectPace.pending(64)
        var connectTimeout = TimeAmount.seconds(10)
        var connectRetries = 0
        var reconnects = 0
        var reconnectPeriod = TimeAmount.milliseconds(300)
        /// Of several waits.
        var longestPeriod: TimeAmount?
        var jitter = 0.0
        var failsOver = false
        var ackTimeout = TimeAmount.seconds(30)
        var departures = DeparturePlan()
        var segment = PlanSegment.whole
        var streamManagement = false
        var mechanism: String?
        var unregistered: [String: AccountRefusal] = [:]
        /// Bytes take so long, each way.
        var latency = TimeAmount.milliseconds(1)
    }

    let setup: Setup
    let load: XMPPLoad

    init(_ setup: Setup) {
        self.setup = setup
        var load = XMPPLoad(
            setup.work,
            clients: setup.clients,
            local: Template(parsing: "user%i"),
            domain: VirtualXMPPServer.domain,
            resource: Template(parsing: "r"),
            password: Template(parsing: "secret"),
            pairing: setup.pairing,
            segment: setup.segment,
            run: 7,
            seed: 1,
            realtimeOffset: 1_700_000_000_000_000_000
        )
        let isIdle = setup.work == .login || setup.work.isOfAccounts
        let pace = setup.pace ?? (isIdle ? .idle : .open(.rate(perSecond: setup.rate)))
        load.tls = .off
        load.allowsPlainWithoutTLS = true
        load.mechanism = setup.mechanism
        load.streamManagement = setup.streamManagement
        load.unregistered = setup.unregistered
        load.payload = setup.payload
        load.groupSize = setup.groupSize
        load.service = VirtualXMPPServer.service
        load.window = setup.window
        load.isOpenLoop = pace != .closed
        load.ackTimeout = setup.ackTimeout
        load.connectTimeout = setup.connectTimeout
        load.connectRetries = setup.connectRetries
        load.reconnects = setup.reconnects
        load.backoff.from = setup.reconnectPeriod.nanoseconds
        load.backoff.to = setup.longestPeriod?.nanoseconds
        load.backoff.jitter = setup.jitter
        load.failsOver = setup.failsOver
        if setup.departures.churn != nil { load.departures.insert(.churn) }
        if !setup.departures.storms.isEmpty { load.departures.insert(.storm) }
        self.load = load
        let loop = Self.makeLoop()
        let network = VirtualNetwork(
            VirtualXMPPServer(loop: loop) { load.user($0).local },
            loop: loop,
            latency: setup.latency
        )
        var plan = LoadPlan(
            operators: setup.clients,
            connect: setup.connect,
            pace: pace,
            limit: setup.limit,
            measure: setup.work.isOfAccounts ? nil : setup.duration,
            drain: setup.drain
        )
        plan.segment = setup.segment
        plan.departures = setup.departures
        plan.operatorsListen = setup.work == .message || load.hasGroups
        if load.hasGroups { plan.row = setup.clients / setup.groupSize }
        plan.endsWithConnects = setup.work.isOfAccounts
        plan.waitsForConnects = !setup.work.isOfAccounts
        let workload = XMPPWorkload(load, metrics: XMPPMetrics(for: load, loops: 1))
        super.init(workload, plan: plan, network: network)
    }

    var server: VirtualXMPPServer { self.network.server }

    // MARK: What came of it

    var account: LoadAccount { self.workload.account([self.result], delivery: nil, record: self.measured) }

    /// The record that the run has in the end, as far as objectives need it.
    var record: RunRecord {
        var record = self.measured
        let account = self.account
        record.metrics += account.metrics
        record.metrics.add(account.absent)
        record.books = account.books
        record.ledger = account.ledger
        return record
    }

    private var measured: RunRecord {
        var record = RunRecord(
            command: [],
            tool: ToolRecord(name: "clamor", version: ""),
            host: HostFacts(),
            plan: [:],
            startedAt: ""
        )
        record.metrics = self.all
        return record
    }

    func judge(_ expression: String) throws -> ThresholdResult {
        try Threshold.parse(expression).evaluate(in: self.record)
    }

    /// Of the one kind of stanza that the load sends.
    var books: Books { self.account.books.first ?? Books(stanza: "none") }

    /// When each connect was begun, since the first.
    func connects(_ client: Int) -> [TimeAmount] {
        self.network.connects.filter { $0.client == client }.map { $0.at - self.began }
    }

    /// When the server heard the last closing tag, since the first connect.
    var lastGoodbye: TimeAmount { (self.server.heard("/stream").last?.at ?? self.began) - self.began }

    /// When a client began to come back, since the load began.
    func returns(_ client: Int) -> [TimeAmount] {
        self.network.connects.filter { $0.client == client && $0.at >= self.origin }.map { $0.at - self.origin }
    }

    /// Expects a duration to have been measured so often, and to have been the same every time.
    func expect(
        _ name: String,
        _ labels: Labels,
        _ count: Int,
        times time: TimeAmount,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let planned = Histogram(of: repeatElement(time.nanoseconds, count: count))
        expectSame(self.histogram(name, labels), planned, sourceLocation: sourceLocation)
    }

    /// The duration of a metric without labels.
    func expect(
        _ name: String,
        _ count: Int,
        times time: TimeAmount,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        self.expect(name, [:], count, times: time, sourceLocation: sourceLocation)
    }
}
