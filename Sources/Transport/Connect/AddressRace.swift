package import NIOCore

/// The times of the attempts to a name's addresses: each address has a start, until one of them has a connection.
///
/// Pure: the time goes in, and addresses to connect to come out.
///
/// Spec: RFC 8305 §3 (late answers), §5 (attempts).
package struct AddressRace {
    private let delay: TimeAmount
    private var waiting: CircularBuffer<SocketAddress>
    private var known: Set<SocketAddress>
    private var running = 0
    /// The time of the next start, or of the question for late answers.
    private var due: NIODeadline
    private var lookup: Lookup

    /// RFC 8305 §3: recommended Resolution Delay.
    package static let resolutionDelay = TimeAmount.milliseconds(50)

    private enum Lookup: Equatable {
        /// The resolver's first answer may lack the slower family's.
        case first
        /// The race is not lost before this time, even if no attempt is left.
        case asked(until: NIODeadline)
        case complete
    }

    /// - Parameters:
    ///   - addresses: in the order to try them.
    ///   - delay: from one start to the next.
    ///   - now: the time of the first start.
    ///   - isComplete: whether the resolver has no further addresses.
    package init(_ addresses: [SocketAddress], delay: TimeAmount, now: NIODeadline, isComplete: Bool = false) {
        self.delay = delay
        self.waiting = CircularBuffer(addresses)
        self.known = Set(addresses)
        self.due = now
        self.lookup = isComplete ? .complete : .first
    }

    /// The next address to connect to, once its time has come.
    package mutating func next(now: NIODeadline) -> SocketAddress? {
        guard now >= self.due, let address = self.waiting.popFirst() else { return nil }
        self.running += 1
        self.due = now + self.delay
        return address
    }

    /// Whether the resolver has to be asked again, because all addresses of its first answer are in use or have failed.
    ///
    /// `true` once.
    package mutating func asksAgain(now: NIODeadline) -> Bool {
        guard self.lookup == .first, self.waiting.isEmpty, now >= self.due else { return false }
        self.lookup = .asked(until: now + Self.resolutionDelay)
        return true
    }

    /// The answer to the second question; addresses known already are ignored.
    package mutating func add(_ addresses: [SocketAddress]) {
        self.lookup = .complete
        for address in addresses where self.known.insert(address).inserted { self.waiting.append(address) }
    }

    /// An attempt has failed: the next one starts at once.
    package mutating func failed(now: NIODeadline) {
        self.running -= 1
        self.due = min(self.due, now)
    }

    /// No further attempt may start.
    package mutating func stop() {
        self.waiting.removeAll()
        self.lookup = .complete
    }

    /// The time for the next step; `nil` if only attempts and answers are waited for.
    package var deadline: NIODeadline? {
        if !self.waiting.isEmpty || self.lookup == .first { return self.due }
        if self.running == 0, case .asked(let until) = self.lookup { return until }
        return nil
    }

    /// Whether every attempt has failed, and none is left.
    ///
    /// A second answer is waited for ``resolutionDelay``; while an attempt runs it may come later.
    package func isLost(now: NIODeadline) -> Bool {
        guard self.running == 0, self.waiting.isEmpty else { return false }
        return switch self.lookup {
        case .first: false
        case .asked(let until): now >= until
        case .complete: true
        }
    }
}

/// The sockets of a race in progress.
final class RacingSockets {
    /// One attempt.
    final class Lane {
        var channel: (any Channel)?
        var isBinding = false
        var isOver = false
    }

    var race: AddressRace
    private(set) var lanes: [Lane] = []
    /// The error of the last attempt that failed.
    var reason = ConnectError.Reason.sourceAddress

    init(_ race: AddressRace) { self.race = race }

    func open() -> Lane {
        let lane = Lane()
        self.lanes.append(lane)
        return lane
    }

    /// Closes the sockets of all attempts, except the winner's.
    func close(except winner: Lane? = nil) {
        let lanes = self.lanes
        self.lanes = []
        for lane in lanes where lane !== winner && !lane.isOver {
            lane.isOver = true
            lane.channel?.close(promise: nil)
        }
    }
}
