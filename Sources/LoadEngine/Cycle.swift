import LoopContext
import Measurement
package import NIOCore

/// Clients that sleep: each is online and offline by turns, by arithmetic on its number.
///
/// At the beginning of the load the clients are spread evenly over the cycle.
package struct Cycle: Hashable, Sendable {
    /// The fate of operations that become due while their client is offline.
    package enum Due: String, CaseIterable, Hashable, Sendable {
        /// The client sends them when it is back; their times count from due.
        case queue
        /// They are skipped.
        case skip
        /// The client sends the latest one of each stream when it is back; the others are replaced by it.
        case latest
    }

    package var online: TimeAmount
    package var offline: TimeAmount
    /// The share by which each time online or offline is longer or shorter at most, 0 to 1.
    package var jitter: Double
    /// The clients close without a word to the server, and do not await what is in flight.
    package var cuts: Bool
    package var due: Due

    package init(online: TimeAmount, offline: TimeAmount, jitter: Double = 0, cuts: Bool = false, due: Due = .queue) {
        (self.online, self.offline, self.jitter) = (online, offline, jitter)
        (self.cuts, self.due) = (cuts, due)
    }

    /// The turn of a client at the beginning of the load, and how long it lasts; odd turns are offline.
    package func first(of client: Int) -> (turn: UInt32, length: TimeAmount) {
        // Multiples of the golden section are spread evenly, however many there are.
        let part = (Double(client) * 0.618_033_988_749_894_9).truncatingRemainder(dividingBy: 1)
        let place = TimeAmount.nanoseconds(Int64(part * Double((self.online + self.offline).nanoseconds)))
        return place < self.online ? (0, self.online - place) : (1, self.online + self.offline - place)
    }

    package func length(of turn: UInt32, of client: Int, seed: UInt64) -> TimeAmount {
        let length = turn % 2 == 1 ? self.offline : self.online
        let drawn = seed &+ UInt64(client) &* 0xD134_2543_DE82_EF95 &+ UInt64(turn)
        let nanoseconds = SplitMix64.jitter(Double(length.nanoseconds), share: self.jitter, seed: drawn)
        return .nanoseconds(max(1, Int64(bounded: nanoseconds)))
    }
}

/// The next change of each client of a shard, in 16 bytes a client.
struct ShardCycles: Sendable {
    struct Change: TimedEntry, Sendable {
        /// Since the load began.
        var at: TimeAmount
        var place: Int32
        /// The turn that begins.
        var turn: UInt32

        func isBefore(_ other: Change) -> Bool { (self.at, self.place) < (other.at, other.place) }
    }

    let cycle: Cycle
    private let seed: UInt64
    private var changes: TimeHeap<Change>

    init(_ cycle: Cycle, seed: UInt64, members: [(place: Int, number: Int)]) {
        self.cycle = cycle
        self.seed = seed
        let changes = members.map { place, number in
            let (turn, length) = cycle.first(of: number)
            return Change(at: length, place: Int32(place), turn: turn + 1)
        }
        self.changes = TimeHeap(changes)
    }

    var next: TimeAmount? { self.changes.first?.at }

    /// Takes the earliest change, and enters the one after it.
    mutating func take(_ clients: ShardClients) -> (place: Int, isOffline: Bool)? {
        guard let change = self.changes.first else { return nil }
        var next = change
        let number = clients.number(at: Int(change.place))
        next.at = change.at + self.cycle.length(of: change.turn, of: number, seed: self.seed)
        next.turn &+= 1
        self.changes.replaceFirst(next)
        return (Int(change.place), change.turn % 2 == 1)
    }
}

// Clients that fall asleep and wake up.
extension Shard {
    /// Carries out the changes before `end`, each behind the operations that are due before it.
    func applyCycles(before end: NIODeadline) {
        while let next = self.cycles?.next, self.origin + next < end {
            let time = self.origin + next
            self.offerWhatIsDue(before: time, now: end)
            guard let change = self.cycles?.take(self.clients) else { return }
            change.isOffline ? self.fallAsleep(change.place) : self.wakeUp(change.place, at: time)
        }
    }

    /// Operations that are due by now still leave, and a client that says goodbye awaits its answers.
    private func fallAsleep(_ place: Int) {
        let sends = self.plan.pace != .closed && self.clients.isOperator(place)
        if sends, self.paces[place].isUp, self.cycles?.cycle.cuts == false { self.sendWhatIsDue(place) }
        // Operations that it cannot send are given up, unless it keeps them.
        if self.cycles?.cycle.due != .queue { self.giveUp(place) }
        self.presence[place].isAbsent = true
        self.presence[place].isFallingAsleep = true
        if self.cycles?.cycle.cuts == true || !self.paces[place].isUp { self.presence[place].isFallingAsleep = false }
        self.presence[place].isFallingAsleep ? self.sleepIfQuiet(place) : self.leaves(place)
    }

    /// A client that falls asleep has had its answers.
    package func sleepIfQuiet(_ place: Int) {
        guard !self.presence.isEmpty, self.presence[place].isFallingAsleep, self.work?.isIdle(place) ?? true else {
            return
        }
        self.presence[place].isFallingAsleep = false
        self.leaves(place)
    }

    private func wakeUp(_ place: Int, at time: NIODeadline) {
        self.presence[place].isAbsent = false
        guard self.presence[place].isFallingAsleep else { return self.returns(place, at: time) }
        // Its answers did not come, so it has not slept.
        self.presence[place].isFallingAsleep = false
        self.work?.departureMissed(place, .cycle)
        self.sendWhatWaited(place, since: time)
    }

    /// The client may send again what became due while it was to sleep.
    func sendWhatWaited(_ place: Int, since time: NIODeadline) {
        guard self.clients.isOperator(place), self.paces[place].isUp, self.owed(place) > 0 else { return }
        self.paces[place].ableSince = max(self.paces[place].ableSince, time)
        self.markReady(place)
    }

    /// Operations of a client that is away by its cycle become due.
    ///
    /// - Returns: how many of them are offered.
    func dueWhileAway(_ place: Int, stream: Int, count: UInt64) -> UInt64 {
        let due = self.cycles?.cycle.due ?? .skip
        if due == .queue { return count }
        let owed = self.streams?.owed(place, stream) ?? self.owed(place)
        let before = owed - count
        // Of those of one stream the last one is kept; it counts as offered once, however often it is replaced.
        let kept: UInt64 = due == .latest ? 1 : 0
        let skipped = owed - min(kept, owed)
        self.paces[place].sent += skipped
        self.streams?.skip(place, stream, count: skipped)
        if self.cycles != nil { self.work?.skipped(place, stream: stream, count: skipped) }
        return before == 0 ? kept : 0
    }
}
