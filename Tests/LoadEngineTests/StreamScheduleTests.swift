import LoadEngine
import NIOCore
import TestSupport
import Testing

@Suite("When the operations of several streams are due")
struct StreamScheduleTests {
    /// Streams with many operations at the same times, and with none.
    static let mixes: [[OperationSchedule.Pace]] = [
        [.interval(.milliseconds(10))],
        [.interval(.milliseconds(60)), .interval(.milliseconds(10))],
        [.rate(perSecond: 500), .rate(perSecond: 500), .rate(perSecond: 33.3)],
        [.rate(perSecond: 1_000), .interval(.milliseconds(7)), .interval(.milliseconds(14))],
        [
            .interval(.milliseconds(20)),
            .shaped(ShapedLoad(RateCurve([.init(length: .milliseconds(150), from: 0, to: 900)]))),
            .shaped(
                ShapedLoad(RateCurve([.init(length: .milliseconds(150), from: 400, to: 400)]), .poisson(seed: 7))
            ),
            .shaped(ShapedLoad(RateCurve([.init(length: .milliseconds(90), from: 900, to: 900)]), .bursts(of: 4))),
        ],
    ]

    private static let end = TimeAmount.milliseconds(200)

    private func schedules(_ mix: Int, clients: Int, limit: UInt64? = nil) -> [OperationSchedule] {
        OperationSchedule.streams(Self.mixes[mix], clients: clients, limit: limit)
    }

    @Test("a limit counts over all streams, in the order in which operations become due", arguments: mixes.indices)
    func limit(_ mix: Int) {
        for clients in [1, 3, 8] {
            let all = StreamList(Self.mixes[mix], clients: clients, before: Self.end).operations.count
            for limit in [0, 1, 2, 5, 17, all / 2, all - 1] {
                let list = StreamList(Self.mixes[mix], clients: clients, limit: UInt64(limit), before: Self.end)
                let counts = list.operations.byStream
                for (stream, schedule) in self.schedules(mix, clients: clients, limit: UInt64(limit)).enumerated() {
                    #expect(schedule.limit == counts[stream, default: 0])
                }
            }
        }
    }

    @Test("a limit that the streams never reach does not end them", arguments: [1 << 40, UInt64.max])
    func limitOutOfReach(_ limit: UInt64) {
        let curve = ShapedLoad(RateCurve([.init(length: .seconds(1), from: 10, to: 10)]))
        let ending = OperationSchedule.streams([.shaped(curve), .shaped(curve)], clients: 2, limit: limit)
        #expect(ending.map(\.limit) == [nil, nil])
    }

    @Test("a limit far out in time is dealt out exactly")
    func limitFarOut() {
        // Stream 0 has three operations a second, stream 1 has one; at whole seconds both have one.
        let streams = OperationSchedule.streams(
            [.rate(perSecond: 3), .rate(perSecond: 1)],
            clients: 5,
            limit: 4_000_000_001
        )
        #expect(streams.map(\.limit) == [3_000_000_001, 1_000_000_000])
    }

    @Test("the shards' parts are the streams, each in order", arguments: mixes.indices, [1, 2, 3, 8])
    func shards(_ mix: Int, shards: Int) {
        for (clients, row) in [(1, nil), (7, nil), (12, 3), (12, 1), (9, 9)] as [(Int, Int?)] {
            for limit in [nil, 40] as [UInt64?] {
                var plan = LoadPlan(
                    operators: clients,
                    pace: .streams(Self.mixes[mix]),
                    limit: limit,
                    measure: Self.end
                )
                plan.row = row
                let list = StreamList(plan)
                var found = 0
                for shard in 0..<shards {
                    let places = ShardClients(plan, shard: shard, of: shards)
                    var part = StreamSchedule(plan.schedules, shard: shard, of: shards, row: row)
                    var own = Array(repeating: [Int: UInt64](), count: places.count)
                    var operations: [StreamList.Operation] = []
                    while let next = part.next, next.due < Self.end {
                        part.advance()
                        let number = own[next.position][next.stream, default: 0]
                        own[next.position][next.stream] = number + 1
                        operations.append(
                            .init(
                                client: places.number(at: next.position),
                                due: next.due,
                                stream: next.stream,
                                number: number
                            )
                        )
                        #expect(part.passed(at: next.position, stream: next.stream) == number + 1)
                    }
                    #expect(part.passed == UInt64(operations.count))
                    #expect(operations == list.operations.filter { places.place(of: $0.client) != nil })
                    found += operations.count
                }
                #expect(found == list.operations.count)
            }
        }
    }

    @Test("a shard that is far behind continues where one that went step by step would", arguments: 0..<100)
    func catchUp(_ seed: Int) {
        var generator = SeededGenerator(seed: UInt64(seed))
        let row = Int.random(in: 1...20, using: &generator)
        let clients = row * Int.random(in: 1...3, using: &generator)
        let shards = Int.random(in: 1...5, using: &generator)
        let shard = Int.random(in: 0..<shards, using: &generator)
        let limit = Bool.random(using: &generator) ? UInt64.random(in: 0...100, using: &generator) : nil
        let schedules = self.schedules(seed % Self.mixes.count, clients: clients, limit: limit)
        var stepping = StreamSchedule(schedules, shard: shard, of: shards, row: row)
        var jumping = stepping
        let own = ShardSchedule(schedules[0], shard: shard, of: shards, row: row).clients
        var counts = Array(repeating: Array(repeating: 0 as UInt64, count: schedules.count), count: own)
        var time = TimeAmount.zero
        for _ in 0..<20 {
            time = time + .microseconds(Int64.random(in: 0...10_000, using: &generator))
            while let next = stepping.next, next.due < time {
                counts[next.position][next.stream] += 1
                stepping.advance()
            }
            jumping.advance(before: time)
            #expect(jumping.next?.due == stepping.next?.due)
            #expect(jumping.next?.position == stepping.next?.position)
            #expect(jumping.next?.stream == stepping.next?.stream)
            #expect(jumping.passed == stepping.passed)
            for part in [stepping, jumping] {
                let passed = (0..<own).map { place in
                    schedules.indices.map { part.passed(at: place, stream: $0) }
                }
                #expect(passed == counts)
            }
        }
    }

    @Test("one stream is an open loop", arguments: OperationScheduleTests.paces)
    func single(_ pace: OperationSchedule.Pace) {
        for limit in [nil, 0, 7] as [UInt64?] {
            let open = LoadPlan(operators: 3, pace: .open(pace), limit: limit, measure: nil)
            let streams = LoadPlan(operators: 3, pace: .streams([pace]), limit: limit, measure: nil)
            for index in 0..<10 as Range<UInt64> {
                #expect(streams.schedules.map { $0.due(index) } == open.schedules.map { $0.due(index) })
            }
        }
    }
}
