import LoadEngine
import Measurement
import NIOCore
import RunResult

/// The testing library has a type of the same name.
typealias ExitStatus = RunResult.ExitStatus

/// Events of a run of 10 s, and options that it may have.
enum Event: Hashable, Sendable {
    // Asked for.
    case strict
    case judged([String])
    case named([String])
    case segment
    case stages(warmup: Int, measured: Int)
    case closedLoop
    case ledgerOff

    // Connections.
    case noClientCameUp
    /// The server took the connections, and then refused the clients.
    case connected
    case allConnectionsLost
    case groupNeverUp(String)
    case groupLost(String)
    case errors(String, UInt64)

    // The end.
    case signal
    case thresholdEndsRun(String)
    case drainTimedOut
    case filesNotWritten

    // Messages.
    case lost(UInt64)
    case duplicated(UInt64)
    case inFlight(UInt64)
    case booksOff
    case unreconciled(String)
    case pending
    case brokerCountsDiffer

    // The generator.
    case scheduleLag(milliseconds: Int64, ackMilliseconds: Int64 = 0, seconds: Int)
    case unsent(share: Double)
    case busyLoop(seconds: Int, waiting: Double = 1)
    case stolen(share: Double)
    case connects(begun: UInt64, returnShare: Double = 1)

    static func thresholds(_ sentences: String...) -> Event { .judged(sentences) }
    static func groups(_ names: String...) -> Event { .named(names) }
}

/// A run in which these things happened.
struct SampleRun {
    private var samples = RunSamples()
    private var outcome: RunOutcome
    private var names: [String?] = [nil]
    private var accounts: [LoadAccount] = []
    private var mismatches: [Verdict.Reason] = []
    private var terms = RunTerms(thresholds: [])
    private var record = RunRecord.begun
    private var isStrict = false
    private var isWritten = true
    private var isOpenLoop = true
    private var isSegment = false
    private var hasConnected = false
    private var seconds = [GeneratorAudit.LoopSecond](
        repeating: .init(scheduleLagP99: 1_000_000, offered: 1000, cpuShare: 0.5),
        count: 10
    )
    private var steal = 0.0
    private var pace: ConnectPace?

    init(_ events: [Event]) {
        let start = NIODeadline.uptimeNanoseconds(1_000_000_000)
        self.outcome = RunOutcome(began: start, ended: start + .seconds(12), stop: .planned, groups: [])
        self.outcome.loadBegan = start + .seconds(1)
        self.outcome.measured = (start + .seconds(1))..<(start + .seconds(11))
        self.record.ledger = LedgerRecord(on: true)
        // Groups are there before anything happens to them.
        for case .named(let names) in events { self.names = names }
        self.outcome.groups = self.names.map { _ in GroupOutcome(up: 10) }
        self.accounts = self.names.map { _ in .balanced }
        for event in events { self.add(event) }
    }

    private mutating func add(_ event: Event) {
        switch event {
        case .named: break
        case .strict: self.isStrict = true
        case .judged(let sentences): self.terms.thresholds += sentences.map { Threshold($0) }
        case .segment: self.isSegment = true
        case .stages(let warmup, let measured): self.addStages(warmup, measured)
        case .closedLoop: self.isOpenLoop = false
        case .ledgerOff: self.record.ledger = LedgerRecord(on: false, reason: "-m")
        case .connected: self.hasConnected = true
        case .noClientCameUp: self.lose(.everyConnectFailed)
        case .allConnectionsLost: self.lose(.everyConnectionLost)
        case .groupNeverUp(let name): self.outcome.groups[self.index(name)].loss = .everyConnectFailed
        case .groupLost(let name): self.outcome.groups[self.index(name)].loss = .everyConnectionLost
        case .errors(let kind, let count):
            self.samples.errors.append(
                ErrorRecord(kind: kind, count: count, firstAt: "", example: "\(kind)!", group: self.names[0])
            )
        case .signal: self.outcome.stop = .interrupted
        case .thresholdEndsRun(let sentence):
            self.terms.thresholds.append(Threshold(sentence))
            self.samples.brokenThreshold = self.terms.thresholds.last?.expression
            self.outcome.stop = .thresholdBroken
        case .drainTimedOut: self.outcome.wasAborted = true
        case .filesNotWritten: self.isWritten = false
        case .lost(let count):
            self.accounts[0].books[0].received = 1000 - count
            self.accounts[0].books[0].lost = count
        case .duplicated(let count): self.accounts[0].books[0].duplicated = count
        case .inFlight(let count):
            self.accounts[0].books[0].acked = 1000 - count
            self.accounts[0].books[0].inFlight = count
        case .booksOff: self.accounts[0].books[0].acked = 999
        case .unreconciled(let code): self.accounts[0].unreconciled.append(.init(code: code, text: "\(code)!"))
        case .pending: self.accounts[0].ledger.pending = true
        case .brokerCountsDiffer:
            self.mismatches = self.accounts[0].books.compactMap {
                $0.mismatch(received: { _ in 998 }, receivedDUP: { _ in 0 })
            }
        case .scheduleLag(let lag, let ack, let count):
            for index in 0..<count {
                self.seconds[index].scheduleLagP99 = lag * 1_000_000
                self.seconds[index].ackP99 = ack * 1_000_000
            }
        case .unsent(let share): for index in 0..<10 { self.seconds[index].unsent = UInt64(1000 * share) }
        case .busyLoop(let count, let waiting):
            for index in 0..<count {
                self.seconds[index].cpuShare = 0.95
                self.seconds[index].waitingShare = waiting
            }
        case .stolen(let share): self.steal = share
        case .connects(let begun, let returnShare):
            // -R 100, for a second.
            var pace = ConnectPace(rate: 100, begun: begun, lastBegun: self.outcome.began + .seconds(1))
            pace.returnShare = returnShare
            self.pace = pace
        }
    }

    private func index(_ name: String) -> Int { self.names.firstIndex(of: name) ?? 0 }

    private mutating func lose(_ reason: StopReason) {
        self.outcome.stop = reason
        if reason == .everyConnectFailed {
            self.outcome.measured = nil
            self.outcome.loadBegan = nil
        }
        for index in self.outcome.groups.indices { self.outcome.groups[index].loss = reason }
    }

    private mutating func addStages(_ warmup: Int, _ measured: Int) {
        let all = (0..<warmup).map { ("warm \($0)", true) } + (0..<measured).map { ("peak \($0)", false) }
        self.terms.stages = all.map { RunTerms.Stage(name: $0.0, isWarmup: $0.1) }
        guard let load = self.outcome.loadBegan else { return }
        self.outcome.stages = all.indices.map { (load + .seconds(Int64($0)))..<(load + .seconds(Int64($0) + 1)) }
    }

    /// The seconds that the rates of the run are over.
    var measuredSeconds: Double? { self.terms.measuredSeconds(self.outcome) }

    /// The finished record, and how the program ends.
    var finished: (record: RunRecord, status: ExitStatus) {
        var samples = self.samples
        samples.audit = GeneratorAudit(isOpenLoop: self.isOpenLoop)
        for second in self.seconds { samples.audit.second([second], stealShare: self.steal) }
        samples.metrics = ["publish_offered", "publish_acked"].map { name in
            let reading = CounterReading(value: 1000, rate: 100)
            return Metric(name: name, labels: ["qos": "1"], reading: .counter(reading))
        }
        samples.metrics += samples.errors.map { error in
            let reading = CounterReading(value: Double(error.count), rate: nil)
            return Metric(name: "errors", labels: ["kind": error.kind], reading: .counter(reading))
        }
        if self.hasConnected {
            var histogram = Histogram()
            histogram.record(1_000_000, count: 10)
            samples.metrics +=
                DurationReading(histogram).map {
                    [Metric(duration: "connect_duration", labels: ["phase": "total"], reading: $0)]
                } ?? []
        }
        samples.groups = self.names.map { _ in
            var group = GroupSamples()
            group.connects = self.pace
            return group
        }
        var begun = self.record
        let named = self.names.compactMap { name in
            name.map { GroupRecord(name: $0, protocolName: "mqtt", clients: 10, ledger: self.record.ledger) }
        }
        if !named.isEmpty { begun.groups = named }
        let groups = self.names.indices.map { index in
            GroupResult(
                self.names[index],
                self.accounts[index],
                mismatches: index == 0 ? self.mismatches : [],
                clientID: { "client-\($0)" }
            )
        }
        var terms = self.terms
        if self.isSegment { terms.thresholds = [] }
        let record = begun.finished(samples, self.outcome, groups, by: terms)
        return (record, ExitStatus(of: record, isStrict: self.isStrict, isWritten: self.isWritten))
    }
}

extension RunRecord {
    static let begun = RunRecord(
        command: ["clamor", "pub"],
        tool: ToolRecord(name: "clamor", version: "0.1.0"),
        host: HostFacts(),
        plan: [:],
        startedAt: "2026-11-21T01:37:09.123Z"
    )
}

extension LoadAccount {
    /// 1,000 messages of QoS 1, all acknowledged and received.
    static var balanced: LoadAccount {
        var account = LoadAccount()
        var books = Books(qos: 1)
        (books.offered, books.sent, books.notSent) = (1000, 1000, 0)
        (books.acked, books.inFlight, books.timedOut, books.failed) = (1000, 0, 0, 0)
        (books.expected, books.received, books.lost, books.duplicated) = (1000, 1000, 0, 0)
        account.books = [books]
        account.ledger = LedgerRecord(on: true)
        return account
    }
}

extension Threshold {
    /// A sentence that does not parse is a fault of the table itself: without a threshold its row would check nothing.
    init(_ sentence: String) {
        do {
            self = try Threshold.parse(sentence)
        } catch {
            fatalError("\(sentence): \(error)")
        }
    }
}
