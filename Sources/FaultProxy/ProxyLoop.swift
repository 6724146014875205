import FaultInjection
import LoopContext
import NIOCore
import Transport

/// State shared by all connections of a proxy; confined to its event loop.
final class ProxyLoop {
    private enum Clock: Int32 {
        case stall, cut, reset, notice
    }

    /// How long clients that are turned away are gathered for one line.
    private static let noticeAfter = TimeAmount.seconds(1)

    let configuration: ProxyConfiguration
    let context: LoopContext
    let connector: TCPConnector
    /// Nothing is done to what a client sends, nor to what is not held.
    let writesDirectly: Bool
    let heldLimit: Int
    var counters = ProxyCounters()
    private let isWanted: ServingFlag
    private var links: [ProxyLink?] = []
    private var freeNumbers: [Int] = []
    private var fragments: FragmentSizes?
    private var holds = HoldTimes()
    private var late = HoldTimes()
    private var linkOwner: TimerOwner?
    private var clockOwner: TimerOwner?
    private var clocks: [TimerID] = []
    private var clockDues: [Clock: NIODeadline] = [:]
    /// The last connection that was cut or reset.
    private var cursor = -1
    private var turnedAway = TurnedAway()
    private var later: [ProxyLink] = []

    init(_ configuration: ProxyConfiguration, eventLoop: any EventLoop, isWanted: ServingFlag) {
        self.configuration = configuration
        self.isWanted = isWanted
        let faults = configuration.faults
        self.writesDirectly = faults.fragment == nil && faults.rate == nil
        self.heldLimit = configuration.heldLimit
        self.fragments = faults.fragment.map(FragmentSizes.init)
        self.context = LoopContext(eventLoop: eventLoop, tick: .exact)
        self.connector = TCPConnector(context: self.context, targets: [configuration.target])
        self.linkOwner = self.context.timers.addOwner { [unowned self] _, number in
            self.links[Int(number)]?.timerFired(now: self.context.now)
        }
        let clockOwner = self.context.timers.addOwner { [unowned self] _, clock in
            if let clock = Clock(rawValue: clock) { self.fire(clock) }
        }
        self.clocks = (0...Clock.notice.rawValue).map { self.context.timers.register(clockOwner, tag: $0) }
        self.clockOwner = clockOwner
    }

    private var count: Int { self.links.count - self.freeNumbers.count }

    // MARK: Connections

    /// Takes an accepted client, whose channel is not active yet.
    func admit(_ channel: any Channel) throws {
        self.counters.connections &+= 1
        let pipeline = channel.pipeline.syncOperations
        guard self.count < self.configuration.maximumClients else {
            let limit = self.configuration.maximumClients
            let remedy = self.configuration.maximumClientsRemedy
            self.turnAway("limit", "there is room for \(limit) at a time\(remedy)")
            return try pipeline.addHandler(ProxyRefusal())
        }
        let now = self.context.refresh()
        let link = ProxyLink(number: self.freeNumbers.popLast() ?? self.links.count, loop: self, now: now)
        if link.number == self.links.count { self.links.append(link) } else { self.links[link.number] = link }
        self.counters.clientsMaximum = max(self.counters.clientsMaximum, UInt64(self.count))
        if self.counters.connections == 1 { self.startClocks(now: now) }
        guard let leg = link.client else { return }
        try channel.syncOptions?.setOption(.recvAllocator, value: self.context.receive.makeAllocator())
        try pipeline.addHandler(leg)
    }

    func removed(_ link: ProxyLink, end: ProxyEnd?) {
        guard self.links[link.number] === link else { return }
        self.links[link.number] = nil
        self.freeNumbers.append(link.number)
        if let end { self.counters.ends[end.rawValue, default: 0] += 1 }
    }

    func makeTimer(for link: ProxyLink) -> TimerID {
        guard let owner = self.linkOwner else { preconditionFailure("set in init") }
        return self.context.timers.register(owner, tag: Int32(link.number))
    }

    /// The server could not be reached for a client.
    func turnedAway(_ error: ConnectError) {
        guard self.isWanted.isSet else { return }
        self.turnAway(error.kind, "\(error)")
    }

    private func turnAway(_ kind: String, _ reason: String) {
        self.counters.turnedAway[kind, default: 0] += 1
        guard self.turnedAway.note(kind, reason) else { return }
        self.set(.notice, at: self.context.refresh() + Self.noticeAfter)
    }

    // MARK: Writing

    func released(held: TimeAmount, late: TimeAmount) {
        self.holds.record(held.nanoseconds)
        self.late.record(late.nanoseconds)
    }

    /// Bytes of the next write; `nil` when they are not counted.
    func nextFragmentSize() -> Int? { self.fragments?.next() }

    /// Fragments that are to be written when the others have had their turn.
    func continueLater(_ link: ProxyLink) {
        self.later.append(link)
        guard self.later.count == 1 else { return }
        self.context.eventLoop.assumeIsolated().execute {
            let links = self.later
            self.later.removeAll(keepingCapacity: true)
            let now = self.context.refresh()
            for link in links {
                link.pump(.client, now: now)
                link.pump(.server, now: now)
            }
        }
    }

    // MARK: Time

    private func startClocks(now: NIODeadline) {
        let faults = self.configuration.faults
        if let stall = faults.stall { self.set(.stall, at: now + stall.after) }
        if let period = faults.cutEvery { self.set(.cut, at: now + period) }
        if let period = faults.resetEvery { self.set(.reset, at: now + period) }
    }

    private func set(_ clock: Clock, at due: NIODeadline) {
        self.clockDues[clock] = due
        self.context.timers.schedule(self.clocks[Int(clock.rawValue)], at: due)
    }

    private func fire(_ clock: Clock) {
        let now = self.context.now
        let due = self.clockDues[clock] ?? now
        switch clock {
        case .stall: if let stall = self.configuration.faults.stall { self.stall(until: due + stall.length) }
        case .cut:
            if let period = self.configuration.faults.cutEvery { self.set(.cut, at: max(due + period, now)) }
            self.nextLink()?.cut()
        case .reset:
            if let period = self.configuration.faults.resetEvery { self.set(.reset, at: max(due + period, now)) }
            self.nextLink()?.reset()
        case .notice: self.tell()
        }
    }

    private func stall(until end: NIODeadline) {
        let begin = StallClock.now()
        // The loop's own thread sleeps, so nothing at all is accepted, read or written.
        StallClock.sleep(until: end) { self.isWanted.isSet }
        self.counters.stalls.append(ProxyCounters.Stall(begin: begin, end: StallClock.now()))
        self.context.refresh()
    }

    /// The next open connection, round robin.
    private func nextLink() -> ProxyLink? {
        for offset in 1...max(1, self.links.count) {
            let number = (self.cursor + offset) % max(1, self.links.count)
            guard let link = self.links.indices.contains(number) ? self.links[number] : nil, link.isOpen,
                !link.isEnding
            else { continue }
            self.cursor = number
            return link
        }
        return nil
    }

    private func tell() {
        for line in self.turnedAway.lines() { self.configuration.notice(line) }
    }

    // MARK: Outside

    var allCounters: ProxyCounters {
        var counters = self.counters
        counters.clientsNow = UInt64(self.count)
        counters.delayHolds = self.holds.summary
        counters.delayLate = self.late.summary
        return counters
    }

    func shutDown() {
        self.tell()
        self.connector.retire()
        for case let link? in self.links { link.shutDown() }
        self.context.timers.stop()
    }
}

/// Clients that were turned away: one line for each reason, with how many there were by then.
struct TurnedAway {
    private struct Reason {
        var text: String
        var count = 1
        var isTold = false
    }

    private var reasons: [String: Reason] = [:]

    /// - Returns: whether it is the first of its kind.
    mutating func note(_ kind: String, _ text: String) -> Bool {
        guard self.reasons[kind] == nil else {
            self.reasons[kind]?.count += 1
            return false
        }
        self.reasons[kind] = Reason(text: text)
        return true
    }

    /// The events not printed yet.
    mutating func lines() -> [String] {
        let untold = self.reasons.filter { !$0.value.isTold }.sorted { $0.key < $1.key }
        for (kind, _) in untold { self.reasons[kind]?.isTold = true }
        return untold.map { _, reason in
            "\(reason.count) \(reason.count == 1 ? "client was" : "clients were") turned away: \(reason.text)"
        }
    }
}
