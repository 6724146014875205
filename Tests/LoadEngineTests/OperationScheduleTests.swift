import LoadEngine
import NIOCore
import TestSupport
import Testing

@Suite("When operations are due")
struct OperationScheduleTests {
    static let paces: [OperationSchedule.Pace] = [
        .rate(perSecond: 1), .rate(perSecond: 3), .rate(perSecond: 7_919), .rate(perSecond: 20_000_000),
        .rate(perSecond: 3_000_000_000), .rate(perSecond: 0.5), .rate(perSecond: 1_000.25), .rate(perSecond: 1e-6),
        .interval(.nanoseconds(1)), .interval(.milliseconds(10)), .interval(.hours(1)),
    ]

    @Test(
        "a whole rate has no drift: operation k is due at ⌊k·10⁹/rate⌋ ns",
        arguments: [1, 3, 7, 1_000, 7_919, 999_999_937, 3_000_000_000] as [UInt64]
    )
    func wholeRate(rate: UInt64) {
        let schedule = OperationSchedule(pace: .rate(perSecond: Double(rate)), clients: 5)
        var generator = SeededGenerator(seed: rate)
        // Up to a day of them.
        for _ in 0..<2_000 {
            let index = UInt64.random(in: 0...(rate * 86_400), using: &generator)
            let exact = UInt128(index) * 1_000_000_000 / UInt128(rate)
            #expect(schedule.due(index) == .nanoseconds(Int64(exact)))
        }
        #expect(schedule.due(rate * 3_600) == .hours(1))
    }

    @Test("a fractional rate stays within a microsecond of the plan over a day")
    func fractionalRate() {
        let schedule = OperationSchedule(pace: .rate(perSecond: 2.5), clients: 3)
        #expect(schedule.due(0) == .zero)
        #expect(schedule.due(1) == .milliseconds(400))
        #expect(schedule.due(5) == .seconds(2))
        let thirds = OperationSchedule(pace: .rate(perSecond: 1_000.0 / 3), clients: 3)
        // Every thousandth is due on a whole number of seconds.
        for index in stride(from: 0 as UInt64, through: 28_800_000, by: 100_000) {
            let exact = Int64(index / 1_000 * 3) * 1_000_000_000
            let due = thirds.due(index)?.nanoseconds ?? -1
            #expect(abs(due - exact) <= 1_000)
        }
    }

    @Test("an interval is one operation a client and period, and the starts are spread over the first period")
    func interval() {
        let schedule = OperationSchedule(pace: .interval(.milliseconds(10)), clients: 4)
        let dues = (0..<9).compactMap { schedule.due($0)?.nanoseconds }
        #expect(
            dues == [
                0, 2_500_000, 5_000_000, 7_500_000, 10_000_000, 12_500_000, 15_000_000, 17_500_000, 20_000_000,
            ]
        )
        for own in 0..<5 as Range<UInt64> {
            #expect(schedule.due(client: 3, own: own) == .microseconds(7_500 + Int64(own) * 10_000))
        }
    }

    @Test("due times taken step by step are those of the formula, wherever they begin and however far they step")
    func stepByStep() throws {
        var generator = SeededGenerator(seed: 20)
        for _ in 0..<2_000 {
            let pace: OperationSchedule.Pace =
                switch UInt8.random(in: 0..<4, using: &generator) {
                case 0: .rate(perSecond: Double(UInt64.random(in: 1...3_000_000, using: &generator)))
                case 1: .rate(perSecond: Double(UInt64.random(in: 1...999_999_999_999_999, using: &generator)))
                case 2: .rate(perSecond: Double.random(in: 0.001...5_000, using: &generator))
                default: .interval(.nanoseconds(Int64.random(in: 1...(1 << 40), using: &generator)))
                }
            let clients = Int.random(in: 1...20_000, using: &generator)
            let first = UInt64.random(in: 0...(1 << UInt64.random(in: 0...40, using: &generator)), using: &generator)
            let stride = UInt64.random(in: 1...UInt64(clients), using: &generator)
            let limit = Bool.random(using: &generator) ? first + 20 * stride : nil
            let schedule = OperationSchedule(pace: pace, clients: clients, limit: limit)
            var times = DueTimes(schedule, from: first, stride: stride)
            for step in 0..<40 as Range<UInt64> {
                try #require(times.index == first + step * stride)
                try #require(times.due == schedule.due(times.index), "\(schedule) from \(first) by \(stride)")
                times.advance()
            }
        }
    }

    @Test("step by step, what lies past the end of time stays there")
    func stepsPastTheEnd() {
        let schedule = OperationSchedule(pace: .interval(.nanoseconds(.max)), clients: 2)
        var times = DueTimes(schedule, from: 0, stride: 1)
        for index in 0..<100 as Range<UInt64> {
            #expect(times.due == schedule.due(index))
            times.advance()
        }
    }

    @Test("due times never fall, at the start, far out and past the end of time", arguments: paces)
    func neverFalls(_ pace: OperationSchedule.Pace) {
        for clients in [1, 3, 1_000] {
            let schedule = OperationSchedule(pace: pace, clients: clients)
            for start in [0, 1 << 20, 1 << 53, 1 << 62, UInt64.max - 200] as [UInt64] {
                var last = TimeAmount.nanoseconds(.min)
                for index in start..<(start + 200) {
                    let due = schedule.due(index) ?? .nanoseconds(-1)
                    #expect(due >= last && due >= .zero)
                    last = due
                }
            }
        }
    }

    @Test("time runs out instead of wrapping")
    func endOfTime() {
        let slow = OperationSchedule(pace: .rate(perSecond: 1), clients: 1)
        #expect(slow.due(9_223_372_036) == .seconds(9_223_372_036))
        #expect(slow.due(9_223_372_037) == .nanoseconds(.max))
        #expect(slow.due(.max) == .nanoseconds(.max))
        let periods = OperationSchedule(pace: .interval(.nanoseconds(.max)), clients: 2)
        #expect(periods.due(1) == .nanoseconds(.max / 2))
        #expect(periods.due(3) == .nanoseconds(.max))
    }

    @Test("operation k belongs to client k mod n", arguments: paces)
    func owner(_ pace: OperationSchedule.Pace) {
        let schedule = OperationSchedule(pace: pace, clients: 7, limit: 1_000)
        for index in 0..<1_010 as Range<UInt64> {
            #expect(schedule.due(client: Int(index % 7), own: index / 7) == schedule.due(index))
        }
    }

    @Test("the limit ends it", arguments: [0, 1, 6, 7, 8, 100] as [UInt64])
    func limit(_ limit: UInt64) {
        let schedule = OperationSchedule(pace: .rate(perSecond: 10), clients: 7, limit: limit)
        #expect((0..<200).count { schedule.due($0) != nil } == Int(limit))
        #expect(schedule.due(limit) == nil)
    }

    @Test(
        "the shards' parts are the schedule, each in order, whatever the numbers",
        arguments: [1, 2, 3, 8],
        [1, 2, 3, 7, 8, 100]
    )
    func shards(_ shards: Int, clients: Int) {
        for pace in [OperationSchedule.Pace.rate(perSecond: 1_234.5), .interval(.milliseconds(3))] {
            for limit in [0, 1, 5, 999] as [UInt64] {
                let schedule = OperationSchedule(pace: pace, clients: clients, limit: limit)
                var found: [UInt64: TimeAmount] = [:]
                for shard in 0..<shards {
                    var part = ShardSchedule(schedule, shard: shard, of: shards)
                    var last = TimeAmount.zero
                    var own = Array(repeating: 0 as UInt64, count: part.clients)
                    while let next = part.next {
                        part.advance()
                        let client = next.position * shards + shard
                        let index = own[next.position] * UInt64(clients) + UInt64(client)
                        own[next.position] += 1
                        #expect(next.due >= last)
                        #expect(client < clients && found[index] == nil)
                        last = next.due
                        found[index] = next.due
                    }
                }
                #expect(found.count == Int(limit))
                for (index, due) in found { #expect(schedule.due(index) == due) }
            }
        }
    }

    @Test(
        "with rows, the shards' parts are the schedule too, and each client's operations are its shard's",
        arguments: [1, 2, 3, 8]
    )
    func rows(_ shards: Int) {
        for (clients, row) in [(12, 3), (12, 1), (12, 12), (100, 25), (9, 3)] {
            let schedule = OperationSchedule(pace: .rate(perSecond: 1_234.5), clients: clients, limit: 999)
            var plan = LoadPlan(operators: clients, pace: .closed, measure: nil)
            plan.row = row
            var found: [UInt64: TimeAmount] = [:]
            for shard in 0..<shards {
                var part = ShardSchedule(schedule, shard: shard, of: shards, row: row)
                let places = ShardClients(plan, shard: shard, of: shards)
                #expect(part.clients == places.count)
                var last = TimeAmount.zero
                var own = Array(repeating: 0 as UInt64, count: part.clients)
                while let next = part.next {
                    part.advance()
                    let index = own[next.position] * UInt64(clients) + UInt64(places.number(at: next.position))
                    own[next.position] += 1
                    #expect(next.due >= last)
                    last = next.due
                    #expect(found.updateValue(next.due, forKey: index) == nil)
                }
            }
            #expect(found.count == 999)
            for (index, due) in found { #expect(schedule.due(index) == due) }
        }
    }

    @Test("the number due before a moment is what counting one by one gives", arguments: paces)
    func countDue(_ pace: OperationSchedule.Pace) {
        for limit in [nil, 0, 1, 500] as [UInt64?] {
            let schedule = OperationSchedule(pace: pace, clients: 3, limit: limit)
            for index in [0, 1, 2, 5, 100, 499, 500, 501, 2_000] as [UInt64] {
                let due = OperationSchedule(pace: pace, clients: 3).due(index) ?? .zero
                for time in [due, due + .nanoseconds(1)] {
                    var count: UInt64 = 0
                    while let next = schedule.due(count), next < time, count < 50_000 { count += 1 }
                    guard count < 50_000 else { continue }
                    #expect(schedule.count(dueBefore: time) == count)
                    #expect(schedule.count(dueBefore: time, atLeast: count / 2) == count)
                    #expect(schedule.count(dueBefore: time, atLeast: count) == count)
                }
            }
        }
    }

    @Test("a shard that is far behind goes on where one that went step by step would", arguments: 0..<100)
    func catchUp(_ seed: Int) {
        var generator = SeededGenerator(seed: UInt64(seed))
        let row = Int.random(in: 1...20, using: &generator)
        let clients = row * Int.random(in: 1...3, using: &generator)
        let shards = Int.random(in: 1...5, using: &generator)
        let shard = Int.random(in: 0..<shards, using: &generator)
        let limit = Bool.random(using: &generator) ? UInt64.random(in: 0...2_000, using: &generator) : nil
        let schedule = OperationSchedule(
            pace: Bool.random(using: &generator) ? .rate(perSecond: 12_345.5) : .interval(.microseconds(1_500)),
            clients: clients,
            limit: limit
        )
        var stepping = ShardSchedule(schedule, shard: shard, of: shards, row: row)
        var jumping = stepping
        guard stepping.clients > 0 else { return }
        var counts = Array(repeating: 0 as UInt64, count: stepping.clients)
        var time = TimeAmount.zero
        for _ in 0..<20 {
            time = time + .microseconds(Int64.random(in: 0...10_000, using: &generator))
            while let next = stepping.next, next.due < time {
                counts[next.position] += 1
                stepping.advance()
            }
            let total = jumping.advance(before: time)
            #expect((0..<stepping.clients).map(total) == counts)
            #expect(jumping.next?.due == stepping.next?.due)
            #expect(jumping.next?.position == stepping.next?.position)
        }
    }
}
