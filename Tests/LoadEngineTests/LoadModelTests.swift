import LoadEngine
import NIOCore
import Testing

@Suite("Sent operations match the load model, second by second")
struct LoadModelTests {
    struct Model: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let load: ShapedLoad
        /// Operations of each second of the ten.
        let asked: [Double]

        init(_ name: String, _ pieces: [RateCurve.Piece], asked: [Double], _ arrivals: ShapedLoad.Arrivals = .even) {
            self.testDescription = name
            self.load = ShapedLoad(RateCurve(pieces), arrivals)
            self.asked = asked
        }
    }

    private static func piece(_ seconds: Int64, _ from: Double, _ to: Double) -> RateCurve.Piece {
        RateCurve.Piece(length: .seconds(seconds), from: from, to: to)
    }

    static let models = [
        Model("constant", [Self.piece(10, 500, 500)], asked: Array(repeating: 500, count: 10)),
        // From 100 to 600 in 10 s: 125 in the first second, 50 more in each that follows.
        Model("a ramp up", [Self.piece(10, 100, 600)], asked: (0..<10).map { 125 + 50 * Double($0) }),
        Model("a ramp down to nothing", [Self.piece(10, 400, 0)], asked: (0..<10).map { 380 - 40 * Double($0) }),
        Model("a ramp from nothing", [Self.piece(10, 0, 400)], asked: (0..<10).map { 20 + 40 * Double($0) }),
        Model(
            "steps, with a pause",
            [Self.piece(3, 100, 100), Self.piece(3, 400, 400), Self.piece(2, 0, 0), Self.piece(2, 200, 200)],
            asked: [100, 100, 100, 400, 400, 400, 0, 0, 200, 200]
        ),
        Model("bursts of 50", [Self.piece(10, 500, 500)], asked: Array(repeating: 500, count: 10), .bursts(of: 50)),
    ]

    /// Operations sent by a shard in each second, by the clock of its loop.
    private static func sent(_ load: ShapedLoad, clients: Int = 7, shards: Int = 1) -> [[NIODeadline]] {
        var seconds = [[NIODeadline]](repeating: [], count: 10)
        for index in 0..<shards {
            let plan = LoadPlan(
                operators: clients,
                connect: .pending(1_000),
                pace: .open(.shaped(load)),
                measure: .seconds(10)
            )
            let rig = ShardRig(plan, index: index, of: shards, window: 1 << 20)
            rig.begin()
            let start = rig.now
            rig.advance(.seconds(11))
            for sent in rig.work.sent {
                let second = Int((sent.at - start).nanoseconds / 1_000_000_000)
                for due in sent.dues {
                    #expect(due == sent.at, "nothing was late")
                    seconds[second].append(NIODeadline.uptimeNanoseconds(0) + (due - start))
                }
            }
        }
        return seconds
    }

    @Test("each second has the operations that its model gives it", arguments: models)
    func countPerSecond(_ model: Model) {
        let sent = Self.sent(model.load)
        for (second, asked) in model.asked.enumerated() {
            #expect(Double(sent[second].count) == asked, "second \(second)")
        }
        #expect(Double(sent.joined().count) == model.asked.reduce(0, +))
    }

    @Test(
        "an operation that is due at the edge of a stage belongs to the following stage",
        arguments: [20, 25, 50, 100, 150]
    )
    func edges(_ percent: Int) {
        for rate in 1..<1_000 {
            for length in [1, 5, 7, 20, 30, 60, 120] where rate * percent * length % 100 == 0 {
                let (first, whole) = (rate * percent * length / 100, rate * percent * length / 100 + rate * 10)
                let load = Double(rate) * Double(percent) / 100
                let curve = RateCurve([
                    Self.piece(Int64(length), load, load), Self.piece(10, Double(rate), Double(rate)),
                ])
                let schedule = OperationSchedule(pace: .shaped(ShapedLoad(curve)), clients: 3)
                let counts = [Int64(length), Int64(length) + 10].map { schedule.count(dueBefore: .seconds($0)) }
                #expect(counts == [UInt64(first), UInt64(whole)], "\(rate)/s for \(length) s")
            }
        }
    }

    @Test("all shards together send what one would have sent", arguments: models)
    func shards(_ model: Model) {
        let one = Self.sent(model.load).joined().sorted()
        #expect(Self.sent(model.load, shards: 3).joined().sorted() == one)
        #expect(Self.sent(model.load, clients: 2, shards: 3).joined().sorted() == one)
    }

    @Test("a burst leaves at one time, the next when the rate has asked for as many again")
    func bursts() {
        let load = ShapedLoad(RateCurve([Self.piece(10, 500, 500)]), .bursts(of: 50))
        let times = Self.sent(load).joined().map(\.uptimeNanoseconds)
        #expect(Set(times) == Set((0..<100).map { $0 * 100_000_000 }))
        #expect(Dictionary(grouping: times, by: \.self).values.allSatisfy { $0.count == 50 })
    }

    @Test("due times never fall, and past the end of the curve nothing is due", arguments: models)
    func neverFalls(_ model: Model) {
        let schedule = OperationSchedule(pace: .shaped(model.load), clients: 3)
        let total = UInt64(model.load.curve.total.rounded())
        var last = TimeAmount.zero
        for index in 0..<total {
            let due = schedule.due(index) ?? .nanoseconds(-1)
            #expect(due >= last)
            last = due
        }
        #expect(last < .seconds(10))
        #expect(schedule.due(total + 1) == .nanoseconds(.max))
        #expect(schedule.count(dueBefore: .seconds(10)) == total)
    }

    @Test("a load that is over has not spent a limit: it goes on until its time is up")
    func isNotSpent() {
        let load = ShapedLoad(RateCurve([Self.piece(1, 100, 100)]))
        let plan = LoadPlan(operators: 1, connect: .pending(1), pace: .open(.shaped(load)), measure: .seconds(10))
        let rig = ShardRig(plan, window: 1_000)
        rig.begin()
        rig.advance(.seconds(5))
        #expect(rig.shard.offered == 100)
        #expect(rig.count(.spent(shard: 0)) == 0)
    }
}
