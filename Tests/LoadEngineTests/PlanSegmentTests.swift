import LoadEngine
import NIOCore
import Testing

@Suite("The segments of a plan")
struct PlanSegmentTests {
    /// The event loops of each segment: hosts differ.
    static let splits: [[Int]] = [[1], [1, 1], [2, 2], [3, 1, 2], [1, 2, 1, 4]]

    private struct Part {
        let plan: LoadPlan
        let loop: Int
        let loops: Int

        var clients: ShardClients { ShardClients(self.plan, shard: self.loop, of: self.loops) }
        var numbers: [Int] { (0..<self.clients.count).map(self.clients.number(at:)) }
        func rig() -> ShardRig { ShardRig(self.plan, index: self.loop, of: self.loops) }
    }

    /// Every shard of every segment.
    private func parts(_ plan: LoadPlan, _ loops: [Int]) -> [Part] {
        let count = loops.count
        return loops.enumerated().flatMap { index, loops in
            var plan = plan
            plan.segment = PlanSegment(index: index, of: count)
            return (0..<loops).map { Part(plan: plan, loop: $0, loops: loops) }
        }
    }

    private var plans: [LoadPlan] {
        var rows = LoadPlan(operators: 40, pace: .idle, measure: nil)
        rows.row = 8
        return [
            LoadPlan(operators: 11, listeners: 11, pace: .idle, measure: nil),
            LoadPlan(operators: 0, listeners: 9, pace: .idle, measure: nil),
            LoadPlan(operators: 5, listeners: 7, pace: .idle, measure: nil), rows,
        ]
    }

    @Test(
        "so many segments that none has more clients than it may, and no fewer than it takes",
        arguments: [1, 2, 3, 4, 5, 7, 8, 40]
    )
    func enough(_ most: Int) throws {
        for plan in self.plans {
            func largest(_ count: Int) -> Int {
                (0..<count).map { index in
                    var plan = plan
                    plan.segment = PlanSegment(index: index, of: count)
                    return plan.ownClients
                }.max() ?? 0
            }
            let enough = plan.segments(of: most, upTo: 100) { _ in true }
            #expect(enough == (1...plan.clients).first { largest($0) <= most })
            guard let enough else { continue }
            #expect(plan.segments(of: most, upTo: enough - 1) { _ in true } == nil)
            #expect(plan.segments(of: most, upTo: 100) { $0 > enough } == (enough < plan.clients ? enough + 1 : nil))
        }
        // Publishers and subscribers are dealt out each by themselves: 10 clients in 4 segments are 4 in the first.
        let pairs = LoadPlan(operators: 5, listeners: 5, pace: .idle, measure: nil)
        #expect(pairs.segments(of: 3, upTo: 100) { _ in true } == 5)
        #expect(pairs.segments(of: 0, upTo: 100) { _ in true } == nil)
    }

    @Test("every client is in one segment, by its number alone, whatever event loops a segment has")
    func disjoint() {
        for loops in Self.splits {
            for plan in self.plans {
                let parts = self.parts(plan, loops)
                #expect(parts.flatMap(\.numbers).sorted() == Array(0..<plan.clients))
                for part in parts {
                    for number in part.numbers {
                        // Listeners are counted by themselves, and so are the operators of a row.
                        let own = number < plan.operators ? number % plan.width : number - plan.operators
                        #expect(part.plan.segment.contains(own))
                    }
                }
                let own = Dictionary(grouping: parts) { $0.plan.segment.index }
                for members in own.values {
                    #expect(members[0].plan.ownClients == members.reduce(0) { $0 + $1.clients.count })
                    #expect(members[0].plan.ownOperators == members.reduce(0) { $0 + $1.clients.operators })
                }
            }
        }
    }

    static let paces: [OperationSchedule.Pace] = [
        .rate(perSecond: 1_000), .rate(perSecond: 33.3), .interval(.milliseconds(70)),
        .shaped(ShapedLoad(RateCurve([.init(length: .seconds(1), from: 0, to: 900)]))),
        .shaped(ShapedLoad(RateCurve([.init(length: .seconds(1), from: 500, to: 500)]), .poisson(seed: 7))),
        .shaped(ShapedLoad(RateCurve([.init(length: .seconds(1), from: 500, to: 500)]), .bursts(of: 4))),
    ]

    @Test("what is due for a client, and when, is what it is in one process alone", arguments: paces.indices)
    func schedule(_ pace: Int) {
        for limit in [nil, 50] as [UInt64?] {
            let plan = LoadPlan(operators: 11, pace: .open(Self.paces[pace]), limit: limit, measure: nil)
            let schedule = OperationSchedule(pace: Self.paces[pace], clients: 11, limit: limit)
            let end = TimeAmount.seconds(1)
            var expected: [Int: [TimeAmount]] = [:]
            for index in 0..<schedule.count(dueBefore: end) {
                if let due = schedule.due(index) { expected[Int(index % 11), default: []].append(due) }
            }
            for loops in Self.splits {
                var dues: [Int: [TimeAmount]] = [:]
                for part in self.parts(plan, loops) {
                    let clients = part.clients
                    var own = ShardSchedule(schedule, shard: clients.index, of: clients.shards)
                    while let next = own.next, next.due < end {
                        dues[clients.number(at: next.position), default: []].append(next.due)
                        own.advance()
                    }
                }
                #expect(dues == expected)
            }
        }
    }

    @Test("the parts of a limit that is dealt out in closed loop add up to it")
    func limit() {
        for loops in Self.splits {
            let plan = LoadPlan(operators: 7, pace: .closed, limit: 23, measure: nil)
            let dealt = self.parts(plan, loops).flatMap { part in
                part.numbers.map { part.plan.limit(ofOperator: $0) ?? 0 }
            }
            #expect(dealt.reduce(0, +) == 23)
        }
    }

    @Test("connects at a rate have the times that they have in one process alone, listeners first")
    func connects() {
        for loops in Self.splits {
            let plan = LoadPlan(
                operators: 5,
                listeners: 4,
                connect: .rate(perSecond: 1_000),
                pace: .idle,
                measure: .seconds(1)
            )
            var begun: [(at: NIODeadline, number: Int)] = []
            var start = NIODeadline.distantPast
            for part in self.parts(plan, loops) {
                let rig = part.rig()
                start = rig.now
                rig.shard.startConnecting(at: start)
                rig.advance(.seconds(1))
                begun += rig.work.connects.map { ($0.at, rig.shard.clients.number(at: $0.place)) }
            }
            begun.sort { $0.at < $1.at }
            #expect(begun.map(\.at) == (0..<9).map { start + .milliseconds($0) })
            #expect(begun.map(\.number) == [5, 6, 7, 8, 0, 1, 2, 3, 4])
        }
    }

    @Test("connects without a rate share what may be under way at once")
    func pending() {
        for loops in Self.splits {
            let plan = LoadPlan(operators: 100, connect: .pending(24), pace: .idle, measure: .seconds(1))
            var pending = 0
            for part in self.parts(plan, loops) {
                let rig = part.rig()
                rig.shard.startConnecting(at: rig.now)
                rig.advance(.zero)
                pending += rig.work.connects.count
            }
            // Segments do not know of each other's event loops, so where these differ it may be less, or more.
            if Set(loops).count == 1 { #expect(pending == 24) }
            #expect(pending > 0 && pending <= 36)
        }
    }

    @Test("a storm takes whom it takes in one process alone, and churn goes round all")
    func departures() {
        for loops in Self.splits {
            var plan = LoadPlan(operators: 6, listeners: 6, pace: .idle, measure: .seconds(1))
            plan.departures = DeparturePlan(
                churn: .init(perSecond: 100),
                storms: [.init(share: 0.5, at: .milliseconds(505))],
                seed: 3
            )
            let victims = plan.departures.victims(ofStorm: 0, clients: 12, listeners: 6)
            var churned: [Int] = []
            var stormed: [Int] = []
            for part in self.parts(plan, loops) {
                let rig = part.rig()
                rig.work.onReturn = { [unowned work = rig.work] in work.comesUp($0) }
                rig.begin()
                rig.advance(.milliseconds(999))
                for departure in rig.work.departed {
                    let number = rig.shard.clients.number(at: departure.place)
                    if departure.cause == .churn { churned.append(number) } else { stormed.append(number) }
                }
                #expect(rig.work.missed.isEmpty)
            }
            #expect(stormed.sorted() == (0..<12).filter(victims.contains))
            // 50 a second of each kind, from 0 on, dealt out in turn.
            for number in 0..<12 {
                let turn = number % 6
                #expect(churned.count { $0 == number } == (49 - turn) / 6 + 1)
            }
        }
    }

    @Test("a run is spent when the shards that have operators here are")
    func spent() {
        var plan = LoadPlan(operators: 3, pace: .open(.rate(perSecond: 1_000)), limit: 6, measure: nil)
        plan.segment = PlanSegment(index: 1, of: 2)
        // Operator 1 is the only one of this segment, on the first of its two loops.
        let rigs = (0..<2).map { ShardRig(plan, index: $0, of: 2) }
        #expect(rigs.map(\.shard.clients.operators) == [1, 0])
        for rig in rigs {
            rig.begin()
            rig.advance(.seconds(1))
        }
        #expect(rigs[0].work.clients[0].offered == 2)
        #expect(rigs.map { $0.count(.spent(shard: 0)) + $0.count(.spent(shard: 1)) } == [1, 0])
    }
}
