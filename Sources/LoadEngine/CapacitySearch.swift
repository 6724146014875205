/// Finds the largest load that meets an objective: it proposes the next load and receives the verdict.
///
/// The load doubles until it breaks the objective, or halves if the first load does. Then the gap between both edges is
/// halved until it is narrow. Then each edge is repeated until it has three verdicts, of which two decide. A load that
/// loses its majority moves the gap, and the search continues from there. If the verdicts of an edge differ,
/// neighbouring loads narrow the uncertain range. If the generator was the limit twice at one load, or the host
/// disturbed it repeatedly, the answer is only a load that the server held.
///
/// It reads no clock and opens no socket.
package struct CapacitySearch: Sendable {
    package struct Settings: Hashable, Sendable {
        /// The first load: operations per second, or clients.
        package var first: Double
        /// Nothing above is offered.
        package var most: Double
        /// Nothing below is offered.
        package var least: Double
        /// How wide the gap may be at the end, as a share of what holds.
        package var precision: Double
        /// Verdicts of each edge; odd.
        package var votes: Int
        /// The maximum number of steps; the search then ends with its results so far.
        package var steps: Int
        /// Clients are whole numbers.
        package var isWhole: Bool

        package init(first: Double, most: Double = .infinity, isWhole: Bool = false) {
            self.most = isWhole ? most.rounded(.down) : most
            self.first = Swift.min(isWhole ? first.rounded(.up) : first, self.most)
            self.least = isWhole ? 1 : first / 1_024
            self.precision = 0.05
            self.votes = 3
            self.steps = 60
            self.isWhole = isWhole
        }
    }

    package enum Verdict: Hashable, Sendable {
        case held
        /// The words say which objective was broken.
        case broken(String)
        /// The step measured the generator, for this reason.
        case generatorLimited(String)
        /// Something else on the host may have been in the way of a generator with time to spare.
        case disturbed(String)
    }

    package enum Phase: String, Hashable, Sendable {
        case doubling, bisection, edge
    }

    package struct Step: Hashable, Sendable {
        package var load: Double
        package var phase: Phase
        package var verdict: Verdict
    }

    package enum Action: Hashable, Sendable {
        case offer(Double, Phase)
        case end(CapacityAnswer)
    }

    private let settings: Settings
    /// The steps so far, in their order.
    package private(set) var steps: [Step] = []

    package init(_ settings: Settings) { self.settings = settings }

    /// The next load, or the answer; it changes only when a step is added.
    package var next: Action {
        let next = self.wanted
        guard case .offer = next, self.steps.count >= self.settings.steps else { return next }
        let (held, broken) = self.gap
        return .end(self.answer(held, broken))
    }

    /// Whether the search ended by itself, and not because its steps were spent.
    package var isSettled: Bool { if case .end = self.wanted { true } else { false } }

    /// The next load, regardless of the number of steps.
    private var wanted: Action {
        if let limited = self.generatorLimit { return .end(limited) }
        let (held, broken) = self.gap
        switch (held, broken) {
        case (nil, nil): return self.offer(self.settings.first, .doubling)
        case (let held?, nil):
            guard held < self.settings.most else { return self.confirmed(held) ?? .end(.atLeast(held)) }
            return self.offer(Swift.min(held * 2, self.settings.most), .doubling)
        case (nil, let broken?):
            guard broken > self.settings.least else { return self.confirmed(broken) ?? .end(.nothingHolds(broken)) }
            return self.offer(Swift.max(self.whole(broken / 2), self.settings.least), .doubling)
        case (let held?, let broken?):
            if let middle = self.middle(held, broken) { return self.offer(middle, .bisection) }
            return self.confirmed(held) ?? self.confirmed(broken) ?? self.narrowed(held, broken)
                ?? .end(self.answer(held, broken))
        }
    }

    /// Adds how the load that ``next`` named came out.
    package mutating func add(_ verdict: Verdict) {
        guard case .offer(let load, let phase) = self.next else { return }
        self.steps.append(Step(load: load, phase: phase, verdict: verdict))
    }

    // MARK: - Results of the steps

    /// The largest load that holds, and the smallest that does not.
    private var gap: (held: Double?, broken: Double?) {
        let loads = Set(self.steps.map(\.load)).sorted()
        let broken = loads.first { self.majority($0) == false }
        let held = loads.last { load in
            self.majority(load) == true && broken.map { load < $0 } ?? true
        }
        return (held, broken)
    }

    private func votes(_ load: Double) -> (held: Int, broken: Int) {
        self.steps.reduce(into: (0, 0)) { votes, step in
            guard step.load == load else { return }
            switch step.verdict {
            case .held: votes.0 += 1
            case .broken: votes.1 += 1
            case .generatorLimited, .disturbed: break
            }
        }
    }

    /// Whether it holds; the first verdict decides while there are as many of each.
    private func majority(_ load: Double) -> Bool? {
        let votes = self.votes(load)
        guard votes.held == votes.broken else { return votes.held > votes.broken }
        return self.steps.first { $0.load == load && $0.verdict.isServers }.map { $0.verdict == .held }
    }

    /// The generator was the limit at one load twice: once may be a hiccup of the host.
    ///
    /// Disturbances by the host are temporary, so more of them are accepted.
    private var generatorLimit: CapacityAnswer? {
        guard let last = self.steps.last else { return nil }
        // A verdict of the load in between shows that it can be offered.
        let tail = self.steps.reversed().filter { $0.load == last.load }.prefix { !$0.verdict.isServers }.map(\.verdict)
        let limits = tail.compactMap { verdict -> String? in
            if case .generatorLimited(let reason) = verdict { reason } else { nil }
        }
        guard limits.count >= Self.limitsAtOnce || tail.count >= Self.disturbancesAtOnce else { return nil }
        let reason = limits.first ?? tail.first?.reason ?? ""
        return .generatorLimited(at: last.load, held: self.gap.held, reason: reason)
    }

    private static let limitsAtOnce = 2
    private static let disturbancesAtOnce = 5

    // MARK: - What comes next

    private func offer(_ load: Double, _ phase: Phase) -> Action { .offer(self.whole(load), phase) }
    private func whole(_ load: Double) -> Double { self.settings.isWhole ? Swift.max(load.rounded(), 1) : load }

    /// A load within the gap; nothing where the gap is narrow enough, or no whole number lies in it.
    private func middle(_ held: Double, _ broken: Double) -> Double? {
        guard broken - held > held * self.settings.precision else { return nil }
        let middle = self.whole((held + broken) / 2)
        return middle > held && middle < broken ? middle : nil
    }

    /// Another offer of an edge that has too few verdicts.
    private func confirmed(_ load: Double) -> Action? {
        let votes = self.votes(load)
        // A load that can no longer lose its majority needs no more votes.
        let needed = self.settings.votes / 2 + 1
        return Swift.max(votes.held, votes.broken) < needed ? self.offer(load, .edge) : nil
    }

    /// A load that narrows what is not sure: between what held each time and the lowest that ever broke, or between the
    /// highest that ever held and what broke each time.
    private func narrowed(_ held: Double, _ broken: Double) -> Action? {
        let sure = self.sure(held, broken)
        let wide = held * self.settings.precision
        for (low, high) in [(sure.low, sure.lowestBroken), (sure.highestHeld, sure.high)] where high - low > wide {
            let middle = self.whole((low + high) / 2)
            if middle > low, middle < high { return .offer(middle, .edge) }
        }
        return nil
    }

    private struct Sure {
        var low: Double
        var lowestBroken: Double
        var highestHeld: Double
        var high: Double
    }

    /// Below the lowest load that ever broke, and above the highest that ever held, every verdict agrees.
    private func sure(_ held: Double, _ broken: Double) -> Sure {
        let loadsHeld = self.steps.filter { $0.verdict == .held }.map(\.load)
        let loadsBroken = self.steps.filter { $0.verdict.isBroken }.map(\.load)
        let lowest = loadsBroken.min() ?? broken
        let highest = loadsHeld.max() ?? held
        return Sure(
            low: loadsHeld.filter { $0 < lowest }.max() ?? 0,
            lowestBroken: lowest,
            highestHeld: highest,
            // Above an edge that held once nothing may have been offered yet.
            high: loadsBroken.filter { $0 > highest }.min() ?? Swift.min(highest * 2, self.settings.most)
        )
    }

    private func answer(_ held: Double?, _ broken: Double?) -> CapacityAnswer {
        guard let held else { return .nothingHolds(broken ?? self.settings.first) }
        guard let broken else { return .atLeast(held) }
        let sure = self.sure(held, broken)
        return .found(
            CapacityAnswer.Estimate(load: held, low: Swift.min(sure.low, held), high: Swift.max(sure.high, broken))
        )
    }
}

extension CapacitySearch.Verdict {
    var isBroken: Bool { if case .broken = self { true } else { false } }
    /// Whether the verdict is about the server.
    var isServers: Bool {
        switch self {
        case .held, .broken: true
        case .generatorLimited, .disturbed: false
        }
    }

    /// Why the load did not hold.
    package var reason: String? {
        switch self {
        case .held: nil
        case .broken(let words), .generatorLimited(let words), .disturbed(let words): words
        }
    }
}

/// The result of a search.
package enum CapacityAnswer: Hashable, Sendable {
    package struct Estimate: Hashable, Sendable {
        /// The largest load that held.
        package var load: Double
        /// All that was offered up to here held, each time; 0 where nothing did.
        package var low: Double
        /// All that was offered from here on was broken, each time.
        package var high: Double

        /// The interval's width as a share of the load.
        package var width: Double { (self.high - self.low) / self.load }
    }

    case found(Estimate)
    /// The largest load that was offered held; where the search is settled, that is the most that may be.
    case atLeast(Double)
    /// Not even the smallest one that was offered held.
    case nothingHolds(Double)
    /// The generator was the limit: loads above ``held`` are unknown.
    case generatorLimited(at: Double, held: Double?, reason: String)
}
