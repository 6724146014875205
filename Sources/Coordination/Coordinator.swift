import LoadEngine
import Measurement
package import NIOCore

/// The coordinator of one run over many machines: who has joined, when all begin, and which segments are left.
///
/// Sans-IO: it takes reports and the time, and returns actions.
package struct Coordinator: Sendable {
    /// Time without any message after which a segment is stalled.
    package static let patience = TimeAmount.seconds(10)
    /// A silence that is named when it is over: segments send something each second.
    private static let notable = TimeAmount.seconds(3)
    /// Time from a decision to the moment that all segments act on it.
    private static let lead: Int64 = 1_000_000_000

    struct Member: Sendable {
        var address: Address
        var host: String
        var heard: NIODeadline
        var isStalled = false
        var isLost = false
        var isReady = false
        var ending: SegmentEnding?
        /// Its files are here, or there are none.
        var isCollected = false

        var name: String {
            "\(self.address.isWatch ? "the server watch" : "segment \(self.address.index + 1)") (\(self.host))"
        }
        var isDone: Bool { self.isCollected || self.isLost }
    }

    let terms: Terms
    var conductor: Conductor
    var members: [Int: Member] = [:]
    var began: NIODeadline?
    /// The moment of the begin, in nanoseconds of the coordinator's clock.
    private var start: Int64 = 0
    var isLeaving: Bool { self.leaving != nil }
    /// Since when the watches have the order to look once more, and to leave: all segments are done.
    private var leaving: NIODeadline?
    /// The time of the last report or tick.
    private var seen = NIODeadline.uptimeNanoseconds(0)
    private var loadBegan: NIODeadline?
    var stop: SegmentStop?
    private var isOver = false
    /// A signal has come: segments that are stalled are not awaited.
    private var isOrdered = false
    /// Warnings and refusals of segments already shown: many report the same ones.
    var told: Set<String> = []
    /// Clients that are up, by segment.
    private var up: [Int: Int] = [:]
    /// The status of a run that ended before its begin.
    package internal(set) var failure: SegmentEnding?
    /// Segments without results, and what became of them.
    package internal(set) var lost: [Int: String] = [:]

    package init(_ terms: Terms) {
        self.terms = terms
        self.conductor = Conductor(segments: terms.segments, watches: terms.watches)
    }

    package var hasBegun: Bool { self.began != nil }

    /// The broken threshold that ended the run.
    package var broken: String? {
        if case .threshold(let expression)? = self.stop { expression } else { nil }
    }

    // MARK: - Reports

    package mutating func receive(_ report: SegmentReport, from address: Address, at now: Now) -> [Action] {
        guard !self.isOver else { return [] }
        self.seen = now.uptime
        if case .hello(let hello) = report { return self.join(hello, address, now) }
        guard var member = self.members[address.index], member.address == address else {
            // The will of a process that was replaced or refused.
            return []
        }
        if report == .lost { return self.lose(address.index, "its connection was lost", now) }
        var actions: [Action] = []
        let silence = now.uptime - member.heard
        if member.isStalled || member.isLost || silence >= Self.notable {
            actions.append(.warn("\(member.name) is back after \(Self.seconds(silence)) s"))
            let wasLost = member.isLost
            (member.isStalled, member.isLost) = (false, false)
            self.lost[address.index] = nil
            self.members[address.index] = member
            // It says so only once.
            if address.isWatch, wasLost, member.isReady, self.hasBegun || self.isLeaving {
                actions.append(.tell(self.isLeaving ? .stop(.over) : .start(at: self.start), address))
            } else if wasLost, member.isReady, self.failure == nil {
                actions += self.act(self.conductor.ready(address.index), now)
            }
        }
        member.heard = now.uptime
        self.members[address.index] = member
        return actions + self.take(report, member, now)
    }

    private mutating func take(_ report: SegmentReport, _ member: Member, _ now: Now) -> [Action] {
        let index = member.address.index
        switch report {
        case .hello, .lost: return []
        // A watch has no part of the load.
        case .settled where member.address.isWatch, .balance where member.address.isWatch: return []
        case .interval(let interval) where member.address.isWatch: return [.show(interval, of: index)]
        case .ready:
            self.members[index]?.isReady = true
            if self.hasBegun, member.address.isWatch { return [.tell(.start(at: self.start), member.address)] }
            return self.failure == nil ? self.act(self.conductor.ready(index), now) : []
        case .settled: return self.act(self.conductor.settled(index), now)
        case .balance(let balance, let group):
            return self.act(self.conductor.balance(balance, of: group, in: index), now)
        case .interval(let interval):
            return [.show(interval, of: index)] + self.count(interval, of: index, now)
        case .echo(let sent):
            return [.tell(.echo(sent: sent, received: now.realtime, answered: now.realtime), member.address)]
        case .line(let words):
            return self.shows(words) ? [.warn("\(member.name): \(words)")] : []
        case .ended(let ending): return self.ended(ending, member, now)
        }
    }

    /// Begins the load once enough clients are up, although some are not.
    private mutating func count(_ interval: TimelineInterval, of index: Int, _ now: Now) -> [Action] {
        guard let least = self.terms.leastClients, !self.conductor.hasLoad else { return [] }
        let levels = interval.metrics.filter { $0.isOf(.clients) && $0.labels["state"] == "connected" }
        self.up[index] = levels.reduce(0) { $0 &+ Int(bounded: $1.gauge?.value ?? 0) }
        guard self.up.values.reduce(0, &+) >= least else { return [] }
        return self.act(self.conductor.enough(), now)
    }

    private mutating func ended(_ ending: SegmentEnding, _ member: Member, _ now: Now) -> [Action] {
        let index = member.address.index
        guard member.ending == nil else { return [] }
        self.members[index]?.ending = ending
        guard !member.address.isWatch else {
            self.members[index]?.isCollected = true
            if !self.hasBegun { self.conductor.notReady(index) }
            let early: [Action] = self.isLeaving ? [] : [.warn("\(member.name) has left; nothing watches its servers")]
            return early + [.tell(.done, member.address)] + self.checkOver()
        }
        var actions: [Action] = [.left(index)] + self.act(self.conductor.ended(index), now)
        guard ending.files.isEmpty else { return actions + [.collect(ending, member.address)] }
        self.members[index]?.isCollected = true
        actions.append(.tell(.done, member.address))
        let words = ending.words ?? "it ended with status \(ending.status), without results"
        self.lost[index] = "\(member.host): \(words)"
        guard self.hasBegun else {
            if self.failure == nil {
                actions.append(.warn("\(member.name): \(words)"))
                actions += self.giveUp(ending)
            }
            return actions + self.checkOver()
        }
        actions.append(.warn("\(member.name): \(words)"))
        return actions + self.goOn(without: index) + self.checkOver()
    }

    /// The files of a segment are here; with `words` they are not, for that reason.
    package mutating func collected(_ index: Int, words: String?, at now: Now) -> [Action] {
        guard let member = self.members[index], !member.isCollected else { return [] }
        self.members[index]?.isCollected = true
        self.members[index]?.heard = now.uptime
        guard let words else {
            // The connection may have been lost meanwhile.
            self.members[index]?.isLost = false
            self.lost[index] = nil
            return [.tell(.done, member.address)] + self.checkOver()
        }
        self.lost[index] = "\(member.host): \(words)"
        return [.warn("\(member.name): \(words)"), .tell(.refused(words), member.address)] + self.checkOver()
    }

    // MARK: - Time and signals

    /// Once a second.
    package mutating func tick(_ now: Now) -> [Action] {
        guard !self.isOver else { return [] }
        self.seen = now.uptime
        var actions: [Action] = []
        for (index, member) in self.members.sorted(by: { $0.key < $1.key })
        where !member.isDone && !member.isStalled && now.uptime - member.heard >= Self.patience {
            self.members[index]?.isStalled = true
            actions.append(.warn("\(member.name) has been silent for \(Self.seconds(Self.patience)) s"))
        }
        if let began = self.loadBegan, let longest = self.terms.longest, now.uptime - began >= longest {
            // Pings alone keep the connection of a segment that does nothing more.
            for (index, member) in self.members.sorted(by: { $0.key < $1.key })
            where !member.isDone && member.ending == nil && now.uptime - member.heard >= Self.patience {
                actions += self.lose(index, "it did not end", now)
            }
        }
        // A watch may live and not leave.
        if let leaving = self.leaving, now.uptime - leaving >= Self.patience { actions += self.abandon() }
        if self.isOrdered, self.isStill { actions += self.abandon() }
        guard self.began == nil, self.failure == nil, now.uptime >= self.terms.joinBy else { return actions }
        let missing = (0..<self.terms.segments).filter { self.members[$0] == nil }
        let late = (0..<self.terms.segments).filter { self.members[$0] != nil && !self.conductor.isReady($0) }
        var words: [String] = []
        if !missing.isEmpty {
            words.append("segment\(missing.count == 1 ? "" : "s") \(Self.list(missing)) did not join")
        }
        if !late.isEmpty {
            words.append("segment\(late.count == 1 ? "" : "s") \(Self.list(late)) joined, and did not get ready")
        }
        if !words.isEmpty { words[0] = "of \(self.terms.segments) " + words[0] }
        let watches = self.members.count { $0.value.address.isWatch && self.conductor.isReady($0.key) }
        if watches < self.terms.watches { words.append("of \(self.terms.watches) server watches \(watches) joined") }
        let line = "\(words.joined(separator: "; ")) within \(self.terms.names.joinTimeout)"
        return actions + [.warn(line)] + self.giveUp(SegmentEnding(status: 69, words: line)) + self.checkOver()
    }

    /// Ends the run before its time; before the begin all segments give up.
    package mutating func end(_ stop: SegmentStop) -> [Action] {
        guard !self.isOver else { return [] }
        self.isOrdered = self.isOrdered || stop == .ordered
        var actions: [Action] = []
        if !self.hasBegun {
            actions = self.giveUp(SegmentEnding(status: 105, words: "the run was given up before it began"))
        } else if self.stop == nil || stop == .ordered {
            // A second signal is passed on, and ends the drain.
            actions = self.tellAll(.stop(stop), stop)
        }
        return actions + (self.isOrdered && self.isStill ? self.abandon() : self.checkOver())
    }

    private mutating func tellAll(_ order: SegmentOrder, _ stop: SegmentStop) -> [Action] {
        if self.stop == nil { self.stop = stop }
        return self.present.map { .tell(order, $0.address) }
    }

    /// Ends all segments before the begin.
    private mutating func giveUp(_ ending: SegmentEnding) -> [Action] {
        guard self.failure == nil else { return [] }
        self.failure = ending
        return self.present.map { .tell(.stop(.ordered), $0.address) }
    }

    private mutating func lose(_ index: Int, _ words: String, _ now: Now) -> [Action] {
        guard let member = self.members[index], !member.isDone else { return [] }
        self.members[index]?.isLost = true
        guard !member.address.isWatch else {
            if !self.hasBegun { self.conductor.notReady(index) }
            return [.warn("\(member.name): \(words); nothing watches its servers")] + self.checkOver()
        }
        let after = self.began.map { " \(Self.seconds(now.uptime - $0)) s after the begin" } ?? ""
        self.lost[index] = "\(member.host): \(words)\(after)"
        var actions: [Action] = [.warn("\(member.name): \(words)\(after)")]
        // Before the begin another process may take its place.
        guard self.hasBegun else {
            self.conductor.notReady(index)
            return actions + self.checkOver()
        }
        actions.append(.left(index))
        actions += self.act(self.conductor.ended(index), now) + self.goOn(without: index)
        return actions + self.checkOver()
    }

    private mutating func goOn(without index: Int) -> [Action] {
        guard !self.terms.continuesWithoutLost, self.stop == nil else { return [] }
        let others = self.tellAll(.stop(.lost), .lost)
        return others.isEmpty
            ? []
            : [.warn("the run ends, because segment \(index + 1) is lost (\(self.terms.names.abort))")] + others
    }

    private mutating func act(_ decision: Conductor.Decision?, _ now: Now) -> [Action] {
        switch decision {
        case nil: return []
        case .start:
            self.began = now.uptime
            self.start = now.realtime + Self.lead
            return [.say("all \(self.terms.segments) segments are ready")]
                + (self.present + self.watching).map { .tell(.start(at: self.start), $0.address) }
        case .load:
            self.loadBegan = now.uptime
            return self.present.map { .tell(.load(at: now.realtime + Self.lead), $0.address) }
        case .complete(let group): return self.present.map { .tell(.complete(group: group), $0.address) }
        }
    }

    /// Ends when no segment is left that could report.
    private mutating func checkOver() -> [Action] {
        let isEnded = self.hasBegun || self.failure != nil
        guard isEnded, self.members.values.allSatisfy({ $0.isDone || $0.address.isWatch }) else { return [] }
        guard self.watching.isEmpty else {
            guard self.leaving == nil else { return [] }
            self.leaving = self.seen
            return self.watching.map { .tell(.stop(.over), $0.address) }
        }
        self.isOver = true
        return [.over]
    }

    /// Whether all segments that have not ended have been silent for so long that they are stalled.
    package var isStill: Bool {
        self.members.values.allSatisfy { $0.isDone || $0.isStalled || $0.address.isWatch && !self.isLeaving }
    }

    /// Gives up waiting for segments that do not end.
    package mutating func abandon() -> [Action] {
        for (index, member) in self.members where !member.isDone && (self.isLeaving || !member.address.isWatch) {
            self.members[index]?.isLost = true
            if !member.address.isWatch { self.lost[index] = "\(member.host): it did not end in time" }
        }
        return self.checkOver()
    }

    /// Orders to a lost segment wait at the broker: it may come back.
    private var present: [Member] {
        self.members.values.filter { !$0.isCollected && $0.ending == nil && !$0.address.isWatch }.sorted {
            $0.address.index < $1.address.index
        }
    }

    private var watching: [Member] { self.members.values.filter { $0.address.isWatch && !$0.isDone } }

    /// `1, 3, 7-9`.
    static func list(_ indices: [Int]) -> String {
        var runs: [ClosedRange<Int>] = []
        for number in indices.map({ $0 + 1 }) {
            if let last = runs.last, last.upperBound + 1 == number {
                runs[runs.count - 1] = last.lowerBound...number
            } else {
                runs.append(number...number)
            }
        }
        return runs.map { $0.count == 1 ? "\($0.lowerBound)" : "\($0.lowerBound)-\($0.upperBound)" }
            .joined(separator: ", ")
    }

    private static func seconds(_ time: TimeAmount) -> Int64 { time.nanoseconds / 1_000_000_000 }
}
