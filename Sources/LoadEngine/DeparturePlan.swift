import Measurement
package import NIOCore

/// Clients that disconnect during the load on purpose, and return.
///
/// The departures follow from the seed by arithmetic, like the rest of the plan. A client is skipped, and counted, if
/// it is not connected at its turn, or if the load ends before its turn or storm. ``LoadPlan/connect`` limits how fast
/// clients return.
package struct DeparturePlan: Hashable, Sendable {
    package enum Cause: String, CaseIterable, Hashable, Sendable {
        case churn
        case storm
        case offline
        /// The plan has fewer clients present from then on.
        case inactive
        /// The client sleeps.
        case cycle

        /// Whether the departed client stays away for a set time.
        var isAbsence: Bool { [.offline, .inactive, .cycle].contains(self) }
    }

    package struct Churn: Hashable, Sendable {
        /// Over all clients together, evenly spaced; the clients take turns.
        package var perSecond: Double
        /// The clients close without a word to the server.
        package var cuts: Bool

        package init(perSecond: Double, cuts: Bool = false) {
            precondition(perSecond > 0, "a rate of 0 is refused by the command line")
            self.perSecond = perSecond
            self.cuts = cuts
        }
    }

    package struct Storm: Hashable, Sendable {
        /// The share of all clients, 0 to 1.
        package var share: Double
        /// The time since the load began.
        package var at: TimeAmount
        /// Within which they leave, evenly spaced; 0: all at once.
        ///
        /// No storm begins before the one in front of it is over.
        package var over: TimeAmount
        package var cuts: Bool
        /// The clients stay absent until then, since the load began, or until its end.
        ///
        /// The listeners are absent, if there are any. `nil`: all clients leave, and return as soon as the plan allows.
        package var until: TimeAmount?

        package init(
            share: Double,
            at: TimeAmount,
            over: TimeAmount = .zero,
            cuts: Bool = true,
            until: TimeAmount? = nil
        ) {
            self.share = share
            self.at = at
            self.over = over
            self.cuts = cuts
            self.until = until
        }

        var cause: Cause { self.until == nil ? .storm : .offline }
    }

    /// The number of clients present from then on: of the operators, or of the listeners if there are no operators.
    ///
    /// The others are absent, and their operations are not offered. The clients of the smaller of two attendances are
    /// also in the larger. An attendance at the beginning of the load applies to the first connects too: an absent
    /// client connects when it becomes present.
    package struct Attendance: Hashable, Sendable {
        /// The time since the load began.
        package var at: TimeAmount
        package var present: Int

        package init(at: TimeAmount, present: Int) {
            self.at = at
            self.present = present
        }
    }

    package var churn: Churn?
    /// The storms are in the order of their times.
    package var storms: [Storm]
    /// The attendances are in the order of their times; before the first, all clients are present.
    package var attendances: [Attendance]
    /// Of all operators, or of the listeners if there are no operators; not together with attendances.
    package var cycle: Cycle?
    /// Selects the victims of storms, and the clients present in attendances.
    package var seed: UInt64

    package init(
        churn: Churn? = nil,
        storms: [Storm] = [],
        attendances: [Attendance] = [],
        cycle: Cycle? = nil,
        seed: UInt64 = 0
    ) {
        self.churn = churn
        self.storms = storms.sorted { $0.at < $1.at }
        self.attendances = attendances.sorted { $0.at < $1.at }
        self.cycle = cycle
        self.seed = seed
    }

    package var isEmpty: Bool { self.churn == nil && self.storms.isEmpty && !self.hasPresence }

    /// Whether clients take part at times only.
    var hasPresence: Bool { !self.attendances.isEmpty || self.cycle != nil }

    /// The clients present in an attendance of that size.
    package func present(_ count: Int, operators: Int, listeners: Int) -> StormVictims {
        // A seed that no storm has.
        StormVictims(count: count, of: 0..<(operators > 0 ? operators : listeners), seed: ~self.seed)
    }

    /// The clients that the storm at `index` disconnects; the last clients are listeners.
    package func victims(ofStorm index: Int, clients: Int, listeners: Int = 0) -> StormVictims {
        let storm = self.storms[index]
        let first = storm.until == nil || listeners == 0 ? 0 : clients - listeners
        return StormVictims(share: storm.share, of: first..<clients, seed: self.seed &+ UInt64(index))
    }
}

/// A subset of the clients of an exact size, drawn by a seed; every shard computes its own part.
///
/// A client's rank is its place in a permutation number × a + b mod n; the first ranks are taken.
package struct StormVictims: Hashable, Sendable {
    package let count: Int
    private let first: Int
    private let clients: UInt64
    private let factor: UInt64
    /// The inverse undoes ``factor``.
    private let inverse: UInt64
    private let offset: UInt64

    package init(share: Double, of numbers: Range<Int>, seed: UInt64) {
        self.init(count: Int((share * Double(numbers.count)).rounded()), of: numbers, seed: seed)
    }

    package init(count: Int, of numbers: Range<Int>, seed: UInt64) {
        let all = UInt64(max(1, numbers.count))
        self.first = numbers.lowerBound
        self.clients = all
        self.count = min(count, numbers.count)
        let mixed = SplitMix64.mix(seed)
        self.offset = (mixed >> 32) % all
        var factor = mixed % all
        while Self.divisor(factor, all) != 1 { factor = (factor + 1) % all }
        self.factor = factor
        self.inverse = Self.inverse(of: factor, all)
    }

    /// The client of that rank, from 0.
    package func client(rank: Int) -> Int {
        let shifted = (UInt64(rank) + self.clients - self.offset) % self.clients
        let (high, low) = shifted.multipliedFullWidth(by: self.inverse)
        return self.first + Int(self.clients.dividingFullWidth((high, low)).remainder)
    }

    package func contains(_ client: Int) -> Bool {
        guard client >= self.first else { return false }
        let (high, low) = UInt64(client - self.first).multipliedFullWidth(by: self.factor)
        let (_, rank) = self.clients.dividingFullWidth((high, low))
        return Int((rank + self.offset) % self.clients) < self.count
    }

    /// The modular inverse of `factor`, by Euclid; the two numbers are coprime.
    private static func inverse(of factor: UInt64, _ all: UInt64) -> UInt64 {
        var (old, rest) = (Int64(factor % all), Int64(all))
        var (oldPart, part): (Int64, Int64) = (1, 0)
        while rest != 0 {
            let quotient = old / rest
            (old, rest) = (rest, old - quotient * rest)
            (oldPart, part) = (part, oldPart - quotient * part)
        }
        let inverse = oldPart % Int64(all)
        return UInt64(inverse < 0 ? inverse + Int64(all) : inverse)
    }

    /// The greatest common one.
    private static func divisor(_ one: UInt64, _ other: UInt64) -> UInt64 {
        var (one, other) = (one, other)
        while other != 0 { (one, other) = (other, one % other) }
        return one
    }
}
