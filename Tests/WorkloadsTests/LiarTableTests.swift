import Ledger
import LoadEngine
import MQTTCodec
import Measurement
import NIOCore
import RunResult
import Testing
import VirtualServers
import Workloads
import XMPPCodec

/// The ways in which a server treats the answers and deliveries that are due.
private enum Conduct: String, CaseIterable, Sendable {
    // Innocent: all comes, some of it late.
    case prompt, far, delaying, throttled, stalled, bursty
    // Liars by silence.
    case neverAnswers, answersEverySecond, leavesOutEvery20thAnswer, stopsAnswering, answersOnlyTheFirst
    case neverDelivers, deliversEveryTenth, leavesOutEvery20thDelivery, stopsDelivering, deliversOnlyTheFirst
    case hangs, hangsFromTheStart, hangsInTheDrain
    // It says so.
    case refusesEveryThird

    var isInnocent: Bool { Self.innocents.contains(self) }
    private static let innocents: Set<Conduct> = [.prompt, .far, .delaying, .throttled, .stalled, .bursty]

    /// Whether the server says nothing at all in the end, not even to a probe.
    var hangs: Bool { [.hangs, .hangsFromTheStart, .hangsInTheDrain].contains(self) }

    /// Whether it says nothing, so many nanoseconds after the load began.
    func isSilent(at time: Int64) -> Bool {
        switch self {
        case .hangs: time >= 500_000_000
        case .hangsFromTheStart: time > 0
        case .hangsInTheDrain: time >= 990_000_000
        default: false
        }
    }

    /// Those that have a meaning without the faults of the embedded broker.
    static let ofXMPP = Self.allCases.filter { ![.throttled, .stalled, .bursty, .far].contains($0) }

    var faults: String {
        switch self {
        case .delaying: "delay 300ms"
        case .throttled: "max-rate 30/s"
        case .stalled: "stall 600ms@300ms"
        case .bursty: "delay 200ms delay-every 3"
        default: ""
        }
    }

    var latency: TimeAmount { self == .far ? .milliseconds(150) : .milliseconds(1) }

    /// Whether the server sends the answer of this number, from 1.
    func answers(_ number: Int, isLate: Bool) -> Bool {
        switch self {
        case .neverAnswers: false
        case .answersEverySecond: number.isMultiple(of: 2)
        case .leavesOutEvery20thAnswer: !number.isMultiple(of: 20)
        case .stopsAnswering: !isLate
        case .answersOnlyTheFirst: number == 1
        default: true
        }
    }

    func delivers(_ number: Int, isLate: Bool) -> Bool {
        switch self {
        case .neverDelivers: false
        case .deliversEveryTenth: number.isMultiple(of: 10)
        case .leavesOutEvery20thDelivery: !number.isMultiple(of: 20)
        case .stopsDelivering: !isLate
        case .deliversOnlyTheFirst: number == 1
        default: true
        }
    }
}

/// The server's own log of what it did.
private final class ConductLog {
    private let conduct: Conduct
    private let qos: QoS
    private var finals = 0
    private var deliveries = 0
    private(set) var answered: UInt64 = 0
    private(set) var refused: UInt64 = 0
    private(set) var delivered: UInt64 = 0

    init(_ conduct: Conduct, _ qos: QoS) {
        self.conduct = conduct
        self.qos = qos
    }

    /// The packets that arrive, of those that were sent so many nanoseconds after the load began.
    func pass(_ bytes: [UInt8], at time: Int64) -> [UInt8] {
        UnansweredTests.replacing(bytes) { self.packet($0, time >= 500_000_000) }
    }

    private func packet(_ packet: [UInt8], _ isLate: Bool) -> [UInt8] {
        switch packet[0] {
        case self.qos == .atLeastOnce ? 0x40 : 0x70:
            self.finals += 1
            guard self.conduct.answers(self.finals, isLate: isLate) else { return [] }
            guard self.conduct == .refusesEveryThird, self.finals.isMultiple(of: 3), packet[1] == 2 else {
                self.answered += 1
                return packet
            }
            self.refused += 1
            // Quota exceeded, or Packet Identifier not found.
            return [packet[0], 3] + packet[2...] + [self.qos == .atLeastOnce ? 0x97 : 0x92]
        case 0x30...0x3F:
            self.deliveries += 1
            guard self.conduct.delivers(self.deliveries, isLate: isLate) else { return [] }
            self.delivered += 1
        default: break
        }
        return packet
    }
}

@Suite("Servers that answer, are slow, leave out, refuse, or hang")
struct LiarTableTests {
    struct Row: CustomTestStringConvertible, Sendable {
        fileprivate let conduct: Conduct
        let qos: QoS
        let topology: MQTTLoad.Topology

        var testDescription: String { "\(self.conduct.rawValue), QoS \(self.qos.rawValue), \(self.topology)" }
        var publishers: Int { self.topology == .fanOut ? 1 : 2 }
        var subscribers: Int { self.topology == .fanOut ? 3 : 2 }
        /// Deliveries of each publish.
        var copies: UInt64 { self.topology == .fanOut ? 3 : 1 }
    }

    static let rows = Conduct.allCases.flatMap { conduct in
        QoS.allCases.flatMap { qos in
            [MQTTLoad.Topology.pair, .fanOut, .shared].map { Row(conduct: conduct, qos: qos, topology: $0) }
        }
    }

    /// 180 rows; each publish and each delivery has one of four ends, by the server's own log.
    @Test("ends, losses and objectives are what the server did", arguments: rows)
    func ends(_ row: Row) throws {
        let log = ConductLog(row.conduct, row.qos)
        let run = try MQTTVirtualRun(
            .init(
                faults: row.conduct.faults,
                publishers: row.publishers,
                subscribers: row.subscribers,
                topology: row.topology,
                qualities: [row.qos],
                rate: 40,
                duration: .seconds(1),
                drain: .seconds(4),
                latency: row.conduct.latency
            )
        )
        run.network.rewrite = { [unowned run] bytes in log.pass(bytes, at: run.time) }
        run.network.hangs = { [unowned run] _ in row.conduct.isSilent(at: run.time) }
        run.perform()

        let books = try #require(run.record.books.first)
        #expect(books.imbalances == [])
        #expect(run.reconciliation.problems.isEmpty)
        #expect(books.offered == 40)
        if row.qos != .atMostOnce {
            #expect(books.acked == log.answered)
            #expect(books.failed == log.refused)
            #expect(books.outstanding == 40 - log.answered - log.refused)
            // As many samples as operations: what was not answered has its age.
            let leg = row.qos == .atLeastOnce ? "puback" : "pubcomp"
            let response = run.values("publish_ack_duration", ["qos": "\(row.qos.rawValue)", "leg": leg])
            #expect(response.count == 40 && response.unanswered.outstanding == books.outstanding)
        } else {
            // A PINGRESP is the answer, and only a server that hangs owes it.
            #expect((books.outstanding == 0) == !row.conduct.hangs)
        }

        let deliveries = run.row(row.qos)
        let owed = run.outstanding(row.qos)
        #expect(UInt64(deliveries.received) == log.delivered)
        #expect(UInt64(deliveries.received + deliveries.lost) + owed == 40 * row.copies)
        // Of messages that are delayed apart, some overtake others.
        #expect(deliveries.duplicated == 0 && (deliveries.reordered == 0 || row.conduct == .bursty))
        // Every publish was taken, and the server goes on answering: what did not come is lost. A server that hangs
        // has lost nothing.
        if books.outstanding == 0, !row.conduct.hangs { #expect(owed == 0) }
        if row.conduct.hangs || log.delivered == 40 * row.copies { #expect(deliveries.lost == 0) }

        let rate = try run.judge("error_rate == 0")
        let errors = rate.state
        #expect(errors == (books.outstanding == 0 && log.refused == 0 ? .met : .broken))
        // Each client connects, and each subscriber subscribes.
        let operations = 40 + row.publishers + 2 * row.subscribers
        #expect(rate.value == Double(log.refused + (books.outstanding ?? 0)) / Double(operations))
        let losses = try run.judge("delivery_lost == 0").state
        let isWhole = log.delivered == 40 * row.copies
        #expect(losses == (isWhole ? .met : deliveries.lost > 0 ? .broken : .undecided))
        if row.conduct.isInnocent { #expect(errors == .met && losses == .met) }
        // As many deliveries as were due: one that did not come is older than any that came in time.
        let durations = run.record.metrics.filter { $0.name == "delivery_duration" }.compactMap(\.duration)
        #expect(durations.reduce(0) { $0 + $1.count } == 40 * row.copies)
        #expect(durations.reduce(0) { $0 + $1.answered } == log.delivered)
        #expect(durations.reduce(0) { $0 + ($1.unanswered?.failed ?? 0) } == UInt64(deliveries.lost))
        #expect(durations.reduce(0) { $0 + ($1.unanswered?.outstanding ?? 0) } == owed)
        let latency = try run.judge("delivery_duration p99 < 2s").state
        #expect((latency == .met) == isWhole)
        try self.expectHonest(
            run.record,
            isWhole: errors == .met && losses == .met,
            hasErrors: errors != .met,
            nothing: deliveries.reordered > 0 ? "\(deliveries.reordered) message" : "nothing broke"
        )
    }

    /// Nothing that did not come lets the program end with 0, and the headline begins with the largest fault.
    private func expectHonest(
        _ record: RunRecord,
        isWhole: Bool,
        hasErrors: Bool,
        nothing: String = "nothing broke"
    ) throws {
        let ending = try record.ending()
        #expect(ending.status == (isWhole ? .success : .thresholdFailed))
        let fault = try record.fault(hasErrors: hasErrors) ?? nothing
        #expect(ending.headline.hasPrefix(fault), "\(ending.headline)")
    }

    /// Messages and pings of an XMPP server: 32 rows.
    @Test("XMPP stanzas have the same ends", arguments: Conduct.ofXMPP, [XMPPLoad.Work.message, .ping])
    fileprivate func stanzas(_ conduct: Conduct, _ work: XMPPLoad.Work) throws {
        let run = XMPPVirtualRun(
            .init(work: work, rate: 40, window: 16, duration: .seconds(1), latency: conduct.latency)
        )
        var (answers, deliveries) = (0, 0)
        var (answered, refused, delivered): (UInt64, UInt64, UInt64) = (0, 0, 0)
        func isSilent() -> Bool { conduct.isSilent(at: run.time) }
        run.network.hangs = { _ in isSilent() }
        run.server.script = { _, element in
            guard !isSilent() else { return .silent }
            let isRefused = conduct == .refusesEveryThird && element.name == "message"
            guard element.child("ping") != nil || isRefused else { return .usual }
            answers += 1
            guard conduct.answers(answers, isLate: run.time >= 500_000_000) else { return .silent }
            guard conduct == .refusesEveryThird, answers.isMultiple(of: 3) else {
                answered += 1
                return conduct == .delaying ? .late(.milliseconds(300)) : .usual
            }
            refused += 1
            return .says(VirtualXMPPServer.error(to: element, "cancel", "service-unavailable"))
        }
        run.server.delivery = { _, element in
            guard element.name == "message" else { return .usual }
            deliveries += 1
            guard !isSilent(), conduct.delivers(deliveries, isLate: run.time >= 500_000_000) else { return .silent }
            delivered += 1
            return conduct == .delaying ? .late(.milliseconds(300)) : .usual
        }
        run.perform()

        let books = run.books
        #expect(books.imbalances == [] && run.account.unreconciled == [])
        let offered = try #require(books.offered)
        #expect(offered == 40)
        let errors = try run.judge("error_rate == 0").state
        guard work == .message else {
            #expect(books.acked == answered && books.failed == refused)
            #expect(books.outstanding == offered - answered - refused)
            let response = run.values("iq_duration", ["request": "ping"])
            #expect(response.count == offered && response.unanswered.outstanding == books.outstanding)
            #expect(errors == (answered == offered ? .met : .broken))
            try self.expectHonest(run.record, isWhole: errors == .met, hasErrors: errors != .met)
            return
        }
        // The end of the stream is the answer to every message before it that did not come back.
        #expect((books.outstanding == 0) == !conduct.hangs && books.failed == refused)
        #expect(errors == (conduct.hangs || refused > 0 ? .broken : .met))
        let (lost, owed) = (books.lost ?? 0, books.deliveryOutstanding ?? 0)
        let due = offered - refused
        #expect(books.received == delivered && delivered + lost + owed == due)
        if conduct.hangs { #expect(lost == 0) } else { #expect(owed == 0) }
        let isWhole = delivered == due
        #expect(try run.judge("delivery_lost == 0").state == (isWhole ? .met : lost > 0 ? .broken : .undecided))
        let duration = run.record.metrics.first { $0.name == "delivery_duration" }?.duration
        #expect(duration?.count == due && duration?.answered == delivered)
        #expect((try run.judge("delivery_duration p99 < 2s").state == .met) == isWhole)
        try self.expectHonest(run.record, isWhole: isWhole && errors == .met, hasErrors: errors != .met)
    }

    @Test("requests that are acknowledged and never answered are errors")
    func unansweredRequests() throws {
        let run = try MQTTVirtualRun(
            .init(
                publishers: 2,
                subscribers: 2,
                topology: .request,
                rate: 40,
                duration: .seconds(1),
                latency: .milliseconds(1)
            )
        )
        // Answers alone are at QoS 0.
        run.network.rewrite = { bytes in UnansweredTests.replacing(bytes) { $0[0] == 0x30 ? [] : $0 } }
        run.perform()
        let books = try #require(run.record.books.first)
        #expect(books.acked == 40 && books.outstanding == 0)
        #expect(UInt64(run.row(.atLeastOnce).lost) + run.outstanding(.atLeastOnce) == 40)
        #expect(try run.judge("error_rate == 0").state == .broken)
        #expect(try run.judge("requests_lost == 0").state != .met)
        #expect(try run.judge("request_duration p99 < 1s").state != .met)
    }

    /// A client that asks hears answers as well, so it is probed before it leaves.
    @Test("a server that hangs owes requests and their answers", arguments: [QoS.atLeastOnce, .exactlyOnce])
    func requests(_ qos: QoS) throws {
        let run = try MQTTVirtualRun(
            .init(
                publishers: 2,
                subscribers: 2,
                topology: .request,
                qualities: [qos],
                rate: 40,
                duration: .seconds(1),
                latency: .milliseconds(1)
            )
        )
        run.network.hangs = { [unowned run] _ in run.time >= 500_000_000 }
        run.perform()
        let books = try #require(run.record.books.first)
        #expect(books.imbalances == [] && run.reconciliation.problems.isEmpty)
        #expect(books.offered == 40 && books.failed == 0)
        let outstanding = try #require(books.outstanding)
        #expect(outstanding >= 19)
        #expect(run.row(qos).lost == 0 && run.outstanding(qos) >= outstanding)
        #expect(try run.judge("error_rate == 0").state == .broken)
        #expect(try run.judge("requests_lost == 0").state == .undecided)
        #expect(try run.judge("request_duration p99 < 1s").state == .broken)
    }
}

extension RunRecord {
    /// How a program ends that judges this run by what is unanswered and lost, and its headline.
    func ending() throws -> (status: RunResult.ExitStatus, headline: String) {
        var record = self
        record.verdict = Verdict()
        record.thresholds = try ["error_rate == 0", "delivery_lost == 0"].map {
            try Threshold.parse($0).evaluate(in: record)
        }
        record.take(record.findings(in: Timeline()))
        return (RunResult.ExitStatus(of: record, isStrict: false), try #require(record.findings).sentence)
    }

    /// The size of the largest fault, as a headline begins; `nil` if there is none.
    func fault(hasErrors: Bool) throws -> String? {
        let books = try #require(self.books.first)
        let (lost, owed) = (books.lost ?? 0, books.deliveryOutstanding ?? 0)
        if lost > 0 { return "\(lost) of \(books.expected ?? 0) messages" }
        if let open = books.outstanding, open > 0 { return "\(open) of \(books.offered ?? 0) messages" }
        if owed > 0 { return "\(owed) of \(books.expected ?? 0) deliveries" }
        return hasErrors ? "the objective error_rate == 0 failed" : nil
    }
}

extension VirtualRun {
    /// Nanoseconds of the load; -1 before it begins.
    fileprivate var time: Int64 { self.origin == .distantPast ? -1 : (self.now - self.origin).nanoseconds }
}
