package import LoadEngine
import NIOCore
package import Report

/// A stretch of a scenario with metrics of its own.
package struct StageOption: Hashable, Sendable {
    package var name: String
    /// Nanoseconds.
    package var length: Int64
    /// The factor of the rates.
    package var load = 1.0
    package var isWarmup = false
    /// The share of all clients that lose their connection and come back, 0 to 1; evenly spread over the stage.
    package var reconnect = 0.0
    /// The share of subscribers with sessions of their own that are away all along, 0 to 1.
    package var offline = 0.0
    /// The clients that take part.
    ///
    /// In a group with subscribers and publishers, these are the publishers.
    package var clients = TurnoutOption.share(1)
    /// Overrides ``clients`` for single groups, in the order of their names.
    package var turnouts: [GroupTurnout] = []

    package struct GroupTurnout: Hashable, Sendable {
        package var group: String
        package var clients: TurnoutOption
    }

    /// The stage as one of the groups has it.
    package func of(group: String) -> StageOption {
        var stage = self
        if let turnout = self.turnouts.first(where: { $0.group == group }) { stage.clients = turnout.clients }
        stage.turnouts = []
        return stage
    }
}

/// How many of a group's clients take part in a stage.
package enum TurnoutOption: Hashable, Sendable {
    /// 0 to 1.
    case share(Double)
    case count(Int)

    /// Reads `50%` or `200`.
    package static func parse(_ text: String) throws(QuantityError) -> TurnoutOption {
        let share = try? PercentText.parse(text)
        let count = text.allSatisfy({ $0.isASCII && $0.isNumber }) ? Int(text) : nil
        guard share != 0, count != 0 else { throw QuantityError("'\(text)' selects no client; give at least one") }
        if let share { return .share(share) }
        if let count { return .count(count) }
        throw QuantityError("'\(text)' is not a number of clients; write it like 50% or 200")
    }

    /// At least one.
    package func present(of all: Int) -> Int {
        switch self {
        case .share(let share): max(1, Int((share * Double(all)).rounded()))
        case .count(let count): min(count, all)
        }
    }
}

/// How the rate of an open loop goes on from the beginning of the load.
package enum RateShape: Hashable, Sendable {
    case level
    /// Operations per second, and nanoseconds for the change; `nil`: the whole load.
    ///
    /// Afterwards the rate is constant.
    case ramp(from: Double, to: Double, over: Int64?)
    /// Each so many nanoseconds long; the last one stays.
    case steps([Double], every: Int64)
}

/// How the operations of an open loop lie between each other.
package enum ArrivalOption: Hashable, Sendable {
    case even
    /// Independent of each other; groups with different numbers have nothing in common.
    case poisson(number: UInt64)
    /// So many at once.
    case bursts(Int)
}

extension LoadOptions {
    /// How long operations become due; `nil` without an end.
    package var loadLength: Int64? { self.duration.map { $0 + self.warmup } }

    /// When the stages are, in nanoseconds since the load began.
    private var stageRanges: [(stage: StageOption, range: Range<Int64>)] {
        var start: Int64 = 0
        return self.stages.map { stage in
            defer { start += stage.length }
            return (stage, start..<start + stage.length)
        }
    }

    /// The storms of the stages, as plan entries.
    var stageStorms: [DeparturePlan.Storm] {
        self.stageRanges.flatMap { stage, range in
            let start = TimeAmount.nanoseconds(range.lowerBound)
            let end = TimeAmount.nanoseconds(range.upperBound)
            return [
                DeparturePlan.Storm(share: stage.reconnect, at: start, over: end - start),
                DeparturePlan.Storm(share: stage.offline, at: start, cuts: false, until: end),
            ].filter { $0.share > 0 }
        }
    }

    /// The clients that a stage's `clients` counts.
    package var members: Int { self.operators > 0 ? self.operators : self.listeners }

    /// Where another number of clients takes part.
    package var turnouts: [DeparturePlan.Attendance] {
        // An account is created once.
        guard !self.makesAccounts else { return [] }
        var last = self.members
        return self.stageRanges.compactMap { stage, range in
            let present = stage.clients.present(of: self.members)
            defer { last = present }
            return present == last
                ? nil : DeparturePlan.Attendance(at: .nanoseconds(range.lowerBound), present: present)
        }
    }

    var planStages: [LoadPlan.Stage] {
        self.stageRanges.map { stage, range in
            LoadPlan.Stage(
                start: .nanoseconds(range.lowerBound),
                end: .nanoseconds(range.upperBound),
                isMeasured: !stage.isWarmup
            )
        }
    }

    /// The pace of all clients together, if it is not a plain rate.
    func shaped(_ perSecond: Double, seed: UInt64) -> OperationSchedule.Pace? {
        guard !self.stages.isEmpty || self.shape != .level || self.arrivals != .even else { return nil }
        let curve = RateCurve(self.pieces(perSecond))
        switch self.arrivals {
        case .even: return .shaped(ShapedLoad(curve))
        case .bursts(let size): return .shaped(ShapedLoad(curve, .bursts(of: size)))
        case .poisson(let number):
            let own = seed &+ number &* 0x9E37_79B9_7F4A_7C15
            return .shaped(ShapedLoad(curve, .poisson(seed: own)))
        }
    }

    /// The planned rate of the whole load, for the board.
    package func stretches(_ perSecond: Double) -> [LiveCourse.Stretch] {
        self.pieces(perSecond).map { piece in
            LiveCourse.Stretch(seconds: Double(piece.length.nanoseconds) / 1e9, from: piece.from, to: piece.to)
        }
    }

    /// The shape, cut where stages begin, and scaled as they say.
    private func pieces(_ perSecond: Double) -> [RateCurve.Piece] {
        // Without an end: as long as a duration may be.
        let length = self.loadLength ?? 365 * 86_400 * 1_000_000_000
        let corners = self.corners(perSecond, length)
        var cuts = Set(corners.map(\.at) + [0, length])
        cuts.formUnion(self.stageRanges.flatMap { [$0.range.lowerBound, $0.range.upperBound] })
        let times = cuts.filter { $0 >= 0 && $0 <= length }.sorted()
        return zip(times, times.dropFirst()).map { start, end in
            let load = self.stageRanges.last { $0.range.lowerBound <= start }?.stage.load ?? 1
            return RateCurve.Piece(
                length: .nanoseconds(end - start),
                from: load * Self.rate(corners, at: start, isEnd: false),
                to: load * Self.rate(corners, at: end, isEnd: true)
            )
        }
    }

    private struct Corner {
        var at: Int64
        /// Where a piece ends here, and where the next one begins.
        var before: Double
        var behind: Double
    }

    private func corners(_ perSecond: Double, _ length: Int64) -> [Corner] {
        switch self.shape {
        case .level: return [Corner(at: 0, before: perSecond, behind: perSecond)]
        case .ramp(let from, let to, let over):
            return [Corner(at: 0, before: from, behind: from), Corner(at: over ?? length, before: to, behind: to)]
        case .steps(let rates, let every):
            return rates.enumerated().map { index, rate in
                Corner(at: Int64(index) * every, before: index > 0 ? rates[index - 1] : rate, behind: rate)
            }
        }
    }

    /// On the straight line between two corners; level behind the last.
    private static func rate(_ corners: [Corner], at time: Int64, isEnd: Bool) -> Double {
        if let corner = corners.first(where: { $0.at == time }) { return isEnd ? corner.before : corner.behind }
        guard let next = corners.firstIndex(where: { $0.at > time }), next > 0 else {
            return corners.last?.behind ?? 0
        }
        let (from, to) = (corners[next - 1], corners[next])
        return from.behind + (to.before - from.behind) * Double(time - from.at) / Double(to.at - from.at)
    }
}
