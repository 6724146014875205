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
        var missing = 0
        var duplicated = 0
        var permitted = 0
        var overlapped = 0
        var reordered = 0
        var gaps = 0
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
    private struct Landing {
        var at: Int
        var arrival: VirtualRun.Arrival
    }

    /// A moment when a target, or a member, was gone and its line was at a certain message.
    private struct Leave {
        var at: Int
        var client: Int
        var visit: UInt64
    }

    let run: VirtualRun
    private let plan: ProofPlan
    private(set) var rows: [Row: Figures] = [:]
    /// By finding of a row: its messages.
    private(set) var lost: [Row: [LossCause: [Pair]]] = [:]
    /// Expected because of the plan and the protocol alone, and arrived.
    private(set) var promised: [Pair] = []
    private(set) var isPermitted: [Pair: Bool] = [:]
    private var landings: [Pair: [Landing]] = [:]
    private var notices: [Target: [(at: Int, loop: Int, notice: VirtualRun.Notice)]] = [:]
    private var leaves: [Target: [Leave]] = [:]

    init(_ run: VirtualRun, log: [VirtualRun.Entry]? = nil) {
        self.run = run
        self.plan = run.plan
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
        let history = History(self, line.client, target, isWeak: qos == 0 || expires)
        let row = self.row(line, target, first.qos)
        var figures = self.rows[row] ?? Figures()
        // At each leave: messages of the line up to here had arrived, at that client.
        let heads = history.leaves.map { leave in
            messages.lastIndex { message in
                self.landings[Pair(message: message, target: target)]?.contains {
                    $0.at < leave.at && $0.arrival.client == leave.client
                } ?? false
            } ?? -1
        }
        for (ordinal, message) in messages.enumerated() {
            let facts = self.run.messages[message]
            let pair = Pair(message: message, target: target)
            let arrived = self.landings[pair] ?? []
            let verdict = history.verdict(sent: facts.sent, ordinal: ordinal, heads: heads)
            let isPromised = facts.isKnown && !facts.isUnsent && verdict != .excused
            if isPromised || !arrived.isEmpty { figures.expected += 1 }
            if isPromised, !arrived.isEmpty { self.promised.append(pair) }
            if arrived.isEmpty, !facts.isUnsent { figures.missing += 1 }
            if isPromised, arrived.isEmpty {
                let cause = self.cause(verdict, facts, qos: qos)
                figures.lost[cause, default: 0] += 1
                self.lost[row, default: [:]][cause, default: []].append(pair)
            }
            self.count(arrived, facts, copies: isShared ? 1 : filters.count, isShared: isShared, qos, into: &figures)
            let mayRepeat =
                isShared ? qos == 1 : arrived.contains { $0.arrival.qos == 1 && $0.arrival.isResumed }
            self.isPermitted[pair] = mayRepeat || facts.isResent && facts.qos == 1
        }
        self.order(messages, target, isShared: isShared, into: &figures)
        self.rows[row] = figures
    }

    private func cause(_ verdict: History.Verdict, _ facts: VirtualRun.Message, qos: UInt8) -> LossCause {
        if verdict == .sessionLost { return .sessionLost }
        if facts.isAdmitted { return .serverAdmitted }
        if verdict == .fresh { return .freshSubscription }
        return qos == 0 ? .dropped : .violated
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

    /// First arrivals behind a later message, per topic; and the numbers between the lowest and the highest arrival.
    private func order(_ messages: [Int], _ target: Target, isShared: Bool, into figures: inout Figures) {
        var firsts: [(at: Int, ordinal: Int, message: Int, isRedelivery: Bool)] = []
        for (ordinal, message) in messages.enumerated() {
            guard let first = self.landings[Pair(message: message, target: target)]?.first else { continue }
            firsts.append((first.at, ordinal, message, first.arrival.isRedelivery))
        }
        if let low = firsts.first, let high = firsts.last {
            figures.gaps += high.ordinal - low.ordinal + 1 - firsts.count
        }
        // Streams of several topics are kept in one line, whose order the server need not keep.
        let facts = self.run.messages[messages[0]]
        let topics = Set(self.plan.group(of: facts.client).streams[facts.stream].topics)
        let audience = self.plan.signatures[facts.topic]
        guard !isShared, topics.filter({ self.plan.signatures[$0] == audience }).count == 1 else { return }
        var highest = -1
        for first in firsts.sorted(by: { $0.at < $1.at }) {
            let isExempt = first.isRedelivery || self.run.messages[first.message].isResent
            if first.ordinal < highest, !isExempt { figures.reordered += 1 }
            highest = max(highest, first.ordinal)
        }
    }

    private func row(_ line: Line, _ target: Target, _ qos: UInt8) -> Row {
        let receivers =
            switch target {
            case .client(let client): self.plan.groupOf[client]
            case .share(let share): self.plan.groups.count + share
            }
        return Row(receivers: receivers, publishers: self.plan.groupOf[line.client], stream: line.stream, qos: qos)
    }

    // MARK: - The presence of a target

    /// When a target was there, as one publisher's loop knows it.
    private struct History {
        enum Verdict {
            case due, excused, sessionLost, fresh
        }

        let leaves: [Leave]
        private let notices: [VirtualRun.Notice: Int]
        private let target: Target
        private let isWeak: Bool
        /// The target was away at the end, or one of its members.
        private let absent: [UInt64]

        init(_ model: NaiveModel, _ client: Int, _ target: Target, isWeak: Bool) {
            self.target = target
            self.isWeak = isWeak
            self.leaves = model.leaves[target] ?? []
            let loop = client % model.plan.loops
            var notices: [VirtualRun.Notice: Int] = [:]
            for (at, of, notice) in model.notices[target] ?? [] where of == loop { notices[notice] = at }
            self.notices = notices
            self.absent = model.run.absent.compactMap { client, visit in
                switch target {
                case .client(let own) where own == client: return UInt64(visit)
                case .share(let share) where model.plan.group(of: client).share == share:
                    return model.plan.group(of: client).keepsSessions ? VirtualRun.memberVisit(client, visit) : nil
                default: return nil
                }
            }
        }

        private func at(_ visit: UInt64, _ event: PresenceMark.Event) -> Int? {
            self.notices[VirtualRun.Notice(target: self.target, visit: visit, event: event)]
        }

        /// Judges one message; `heads` has, by leave, the last message of the line that had arrived by then.
        func verdict(sent: Int, ordinal: Int, heads: [Int]) -> Verdict {
            // Rules 2 and 4: nothing before the first SUBACK.
            guard let began = self.at(0, .began), sent > began else { return .excused }
            if self.isWeak, self.isOverBrokenConnection(sent) { return .excused }
            var isSessionLost = false
            for (place, leave) in self.leaves.enumerated() where ordinal > heads[place] {
                // Not overtaken when the client left: it may have been in a session that ended.
                let ends = [self.at(leave.visit + 1, .began), self.at(leave.visit, .closed)]
                if ends.contains(where: { $0.map { sent < $0 } ?? false }) { return .excused }
                if self.absent.contains(leave.visit) { return .excused }
                if let found = self.at(leave.visit + 1, .beganWithoutSession), sent < found { isSessionLost = true }
            }
            if self.isWithoutMembers(sent) { return .excused }
            if isSessionLost { return .sessionLost }
            return self.isFresh(sent) ? .fresh : .due
        }

        /// Rules 1 and 6: on a connection that broke, or before the next one.
        private func isOverBrokenConnection(_ sent: Int) -> Bool {
            !self.absent.isEmpty
                || self.notices.contains { notice, at in
                    switch notice.event {
                    case .began where notice.visit == 0: false
                    case .began, .resumed, .beganWithoutSession, .closed: sent < at
                    case .left: self.at(notice.visit + 1, .began) == nil
                    case .settled: false
                    }
                }
        }

        /// A share group may have had no member.
        private func isWithoutMembers(_ sent: Int) -> Bool {
            self.notices.contains { notice, at in
                notice.event == .left && sent > at && sent < self.at(notice.visit + 1, .began) ?? .max
            }
        }

        private func isFresh(_ sent: Int) -> Bool {
            self.notices.contains { notice, at in
                guard notice.event == .settled, sent < at else { return false }
                return sent > self.at(notice.visit, .began) ?? self.at(notice.visit, .beganWithoutSession) ?? .max
            }
        }
    }
}

extension VirtualRun {
    mutating func noteFeatures() {
        for case .arrived(let arrival, _) in self.log {
            let facts = self.messages[arrival.message]
            let receiver = self.plan.group(of: arrival.client)
            guard let reach = self.plan.reach[facts.topic].first(where: { $0.target == arrival.target }) else {
                continue
            }
            let filters = self.plan.filters(of: reach, from: facts.client)
            if filters.count > 1 { self.features.insert(receiver.copiesPerFilter ? .copyPerFilter : .oneCopy) }
            if filters.count < reach.filters.count { self.features.insert(.noLocal) }
            if self.plan.grant(of: arrival.target) < min(facts.qos, filters.map(\.qos).max() ?? 0) {
                self.features.insert(.downgraded)
            }
            let stream = self.plan.group(of: facts.client).streams[facts.stream]
            if stream.isRetained, receiver.retainsAsPublished { self.features.insert(.retainAsPublished) }
            if Set(stream.topics).count > 1 { self.features.insert(.severalTopics) }
        }
        for facts in self.messages {
            for reach in self.plan.reach[facts.topic] where self.plan.filters(of: reach, from: facts.client).isEmpty {
                self.features.insert(.noLocal)
            }
        }
        if Set(self.messages.map(\.qos)).count == 3 { self.features.insert(.mixedQoS) }
        if self.plan.clusterDelay > 0 { self.features.insert(.clusterDelay) }
    }
}
