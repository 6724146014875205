import Ledger

/// The contract's rules over a list of every message and every copy, without anything of the ledger but its names.
struct NaiveModel {
    typealias Target = ProofPlan.Target

    struct Pair: Hashable {
        var message: Int
        var target: Target
    }

    struct Figures: Hashable {
        var expected = 0
        var received = 0
        var lost: [LossCause: Int] = [:]
        var outstanding = 0
        var missing = 0
        var duplicated = 0
        var permitted = 0
        var overlapped = 0
        var reordered = 0
        var gaps = 0

        /// Expected and not received.
        var absent: Int { self.lost.values.reduce(0, +) + self.outstanding }
    }

    /// A row of the metrics: receivers, from stream, and its QoS.
    struct Row: Hashable {
        /// The receivers' group; share groups follow, each by itself.
        var receivers: Int
        var publishers: Int
        var stream: Int
        var qos: UInt8
    }

    /// What of one publisher reaches the same receivers: the messages in their order.
    private struct Line: Hashable {
        var client: Int
        var stream: Int
        var audience: [ProofPlan.Signature]
    }

    /// One arrival, by its place in the log.
    struct Landing {
        var at: Int
        var arrival: VirtualRun.Arrival
    }

    /// A moment when a target, or a member, was gone and its line was at a certain message.
    struct Leave {
        var at: Int
        var client: Int
        var visit: UInt64
    }

    let run: VirtualRun
    let plan: ProofPlan
    private(set) var rows: [Row: Figures] = [:]
    /// By finding of a row: its messages.
    private(set) var lost: [Row: [LossCause: [Pair]]] = [:]
    private(set) var outstanding: [Row: Set<Pair>] = [:]
    /// Excused, and absent because the run ended too early for the publish or the delivery.
    private(set) var excused: [Row: Int] = [:]
    /// Expected because of the plan and the protocol alone, and arrived.
    private(set) var promised: [Pair] = []
    private(set) var isPermitted: [Pair: Bool] = [:]
    private var landings: [Pair: [Landing]] = [:]
    /// Every publisher's last message was read, and the server quiet for long enough before the probes.
    private let isQuiet: Bool
    private(set) var notices: [Target: [(at: Int, loop: Int, notice: VirtualRun.Notice)]] = [:]
    private(set) var leaves: [Target: [Leave]] = [:]

    init(_ run: VirtualRun, log: [VirtualRun.Entry]? = nil) {
        self.run = run
        self.plan = run.plan
        let hasAnswers = !run.messages.contains { $0.isOutstanding }
        self.isQuiet = hasAnswers && run.ending.quiet.map { $0 >= max(1_000_000_000, run.ending.longest) } ?? false
        self.read(log ?? run.log)
        var lines: [Line: [Int]] = [:]
        for (message, facts) in run.messages.enumerated() {
            let line = Line(client: facts.client, stream: facts.stream, audience: self.plan.signatures[facts.topic])
            lines[line, default: []].append(message)
        }
        for (line, messages) in lines {
            let topic = run.messages[messages[0]].topic
            for reach in self.plan.reach[topic] where !self.plan.filters(of: reach, from: line.client).isEmpty {
                self.judge(line, messages, reach)
            }
        }
        for one in run.neverSent { self.judge(one) }
    }

    private mutating func read(_ log: [VirtualRun.Entry]) {
        for (at, entry) in log.enumerated() {
            switch entry {
            case .arrived(let arrival, let times):
                let pair = Pair(message: arrival.message, target: arrival.target)
                let landing = Landing(at: at, arrival: arrival)
                self.landings[pair, default: []] += Array(repeating: landing, count: times)
            case .noticed(let loop, let notice): self.notices[notice.target, default: []].append((at, loop, notice))
            case .left(let client, let visit):
                if let share = self.plan.group(of: client).share {
                    let visit = VirtualRun.memberVisit(client, visit)
                    self.leaves[.share(share), default: []].append(Leave(at: at, client: client, visit: visit))
                } else {
                    self.leaves[.client(client), default: []].append(
                        Leave(at: at, client: client, visit: UInt64(visit))
                    )
                }
            case .sent, .publisherLeft: break
            }
        }
    }

    // MARK: - One line at one target

    private mutating func judge(_ line: Line, _ messages: [Int], _ reach: ProofPlan.Reach) {
        let target = reach.target
        let first = self.run.messages[messages[0]]
        let filters = self.plan.filters(of: reach, from: line.client)
        let qos = min(first.qos, filters.map(\.qos).max() ?? 0, self.plan.grant(of: target))
        let isShared = if case .share = target { true } else { false }
        let expires = self.plan.group(of: line.client).streams[line.stream].expires
        let history = History(self, line.client, target)
        let row = self.row(line.client, line.stream, target, first.qos)
        var figures = self.rows[row] ?? Figures()
        // At each leave: messages of the line up to here had arrived, at that client.
        let heads = history.leaves.map { leave in
            messages.lastIndex { message in
                self.landings[Pair(message: message, target: target)]?.contains {
                    $0.at < leave.at && $0.arrival.client == leave.client
                } ?? false
            } ?? -1
        }
        let verdicts = messages.enumerated().map { ordinal, message in
            history.verdict(sent: self.run.messages[message].sent, ordinal: ordinal, heads: heads)
        }
        // Copies for overlapping filters may come at different QoS, which have an order each.
        let passed = filters.count == 1 ? self.passedOver(line, messages, target, history, verdicts) : []
        for (ordinal, message) in messages.enumerated() {
            let facts = self.run.messages[message]
            let pair = Pair(message: message, target: target)
            let arrived = self.landings[pair] ?? []
            let isExcused =
                expires || verdicts[ordinal] == .excused || qos == 0 && history.isOverBrokenConnection(facts.sent)
            let isPromised = facts.isKnown && !facts.isUnsent && !isExcused
            let isUnanswered = facts.isOutstanding || facts.isUnsent
            let isOwed = isUnanswered && !isExcused
            if isExcused, arrived.isEmpty, isUnanswered || !self.hasAnswered(target) {
                self.excused[row, default: 0] += 1
            }
            if isPromised || isOwed || !arrived.isEmpty { figures.expected += 1 }
            if isPromised, !arrived.isEmpty { self.promised.append(pair) }
            if arrived.isEmpty, !facts.isUnsent { figures.missing += 1 }
            if isPromised || isOwed, arrived.isEmpty {
                let isPassed = passed.contains(message)
                let cause = isPromised ? self.cause(verdicts[ordinal], pair, isPassed: isPassed, qos: qos) : nil
                if let cause {
                    figures.lost[cause, default: 0] += 1
                    self.lost[row, default: [:]][cause, default: []].append(pair)
                } else {
                    figures.outstanding += 1
                    self.outstanding[row, default: []].insert(pair)
                }
            }
            self.count(arrived, facts, copies: isShared ? 1 : filters.count, isShared: isShared, qos, into: &figures)
            let mayRepeat =
                isShared ? qos == 1 : arrived.contains { $0.arrival.qos == 1 && $0.arrival.isResumed }
            self.isPermitted[pair] = mayRepeat || facts.isResent && facts.qos == 1
        }
        if !isShared, self.hasOneTopic(line) { self.order(messages, target, into: &figures) }
        self.gaps(messages, target, into: &figures)
        self.rows[row] = figures
    }

    /// A message that was due and got no number is outstanding at each target that ever had a subscription.
    private mutating func judge(_ one: VirtualRun.NeverSent) {
        let stream = self.plan.group(of: one.client).streams[one.stream]
        for reach in self.plan.reach[one.topic] where !self.plan.filters(of: reach, from: one.client).isEmpty {
            let row = self.row(one.client, one.stream, reach.target, stream.qos)
            let isDue = !stream.expires && History(self, one.client, reach.target).hasBegun
            var figures = self.rows[row] ?? Figures()
            figures.expected += isDue ? 1 : 0
            figures.outstanding += isDue ? 1 : 0
            self.rows[row] = figures
        }
    }

    /// The proof that a message will not come; `nil` if it still may.
    private func cause(_ verdict: History.Verdict, _ pair: Pair, isPassed: Bool, qos: UInt8) -> LossCause? {
        if verdict == .sessionLost { return .sessionLost }
        if self.run.messages[pair.message].isAdmitted { return .serverAdmitted }
        guard isPassed || self.isQuiet && self.hasAnswered(pair.target) else { return nil }
        if verdict == .fresh { return .freshSubscription }
        if qos == 0 { return .dropped }
        return isPassed ? .violated : .withheld
    }

    /// Whether the connections of a target, or of its members, answered their probes.
    private func hasAnswered(_ target: Target) -> Bool {
        switch target {
        case .client(let client): !self.run.ending.unproved.contains(client)
        case .share(let share): self.run.ending.unproved.allSatisfy { self.plan.group(of: $0).share != share }
        }
    }

    /// The messages that the server can no longer deliver without breaking the order that it has to keep.
    private func passedOver(
        _ line: Line,
        _ messages: [Int],
        _ target: Target,
        _ history: History,
        _ verdicts: [History.Verdict]
    ) -> Set<Int> {
        guard case .client = target, self.hasOneTopic(line) else { return [] }
        // Another node of a cluster keeps an order of its own.
        let isMoved =
            self.plan.clusterDelay > 0
            && zip(messages, verdicts).contains { message, verdict in
                verdict != .excused && history.isBeforeReturn(self.run.messages[message].sent)
            }
        guard !isMoved else { return [] }
        guard let last = messages.lastIndex(where: { self.hasArrived($0, target) }) else { return [] }
        return Set(messages[..<last].filter { !self.run.messages[$0].isResent })
    }

    private func hasArrived(_ message: Int, _ target: Target) -> Bool {
        !(self.landings[Pair(message: message, target: target)] ?? []).isEmpty
    }

    /// Whether all topics of the line's stream but one have other receivers: the server keeps no order across topics.
    private func hasOneTopic(_ line: Line) -> Bool {
        let topics = Set(self.plan.group(of: line.client).streams[line.stream].topics)
        return topics.filter { self.plan.signatures[$0] == line.audience }.count == 1
    }

    /// Rules 7 and 8: the first copy, copies for further filters, and the rest.
    private func count(
        _ arrived: [Landing],
        _ facts: VirtualRun.Message,
        copies: Int,
        isShared: Bool,
        _ qos: UInt8,
        into figures: inout Figures
    ) {
        guard !arrived.isEmpty else { return }
        figures.received += 1
        let repeats = arrived.dropFirst()
        let permitted = repeats.filter { landing in
            let isRedelivery = isShared ? qos == 1 : landing.arrival.qos == 1 && landing.arrival.isResumed
            return isRedelivery || facts.isResent && facts.qos == 1
        }
        let duplicated = max(0, repeats.count - (copies - 1))
        figures.overlapped += repeats.count - duplicated
        figures.duplicated += duplicated
        figures.permitted += min(duplicated, permitted.count)
    }

    /// The numbers between the lowest and the highest arrival.
    private func gaps(_ messages: [Int], _ target: Target, into figures: inout Figures) {
        let arrived = messages.indices.filter { self.hasArrived(messages[$0], target) }
        guard let low = arrived.first, let high = arrived.last else { return }
        figures.gaps += high - low + 1 - arrived.count
    }

    /// First arrivals behind a later message.
    private func order(_ messages: [Int], _ target: Target, into figures: inout Figures) {
        var firsts: [(at: Int, ordinal: Int, message: Int, isRedelivery: Bool)] = []
        for (ordinal, message) in messages.enumerated() {
            guard let first = self.landings[Pair(message: message, target: target)]?.first else { continue }
            firsts.append((first.at, ordinal, message, first.arrival.isRedelivery))
        }
        var highest = -1
        for first in firsts.sorted(by: { $0.at < $1.at }) {
            let isExempt = first.isRedelivery || self.run.messages[first.message].isResent
            if first.ordinal < highest, !isExempt { figures.reordered += 1 }
            highest = max(highest, first.ordinal)
        }
    }

    private func row(_ client: Int, _ stream: Int, _ target: Target, _ qos: UInt8) -> Row {
        let receivers =
            switch target {
            case .client(let receiver): self.plan.groupOf[receiver]
            case .share(let share): self.plan.groups.count + share
            }
        return Row(receivers: receivers, publishers: self.plan.groupOf[client], stream: stream, qos: qos)
    }
}
