import LoadEngine
import NIOCore
import TestSupport
import Testing

@Suite("The plan's arithmetic")
struct LoadPlanTests {
    @Test("the clients' parts of a limit are what dealing the operations out one by one gives")
    func limit() {
        for operators in 1...9 {
            for limit in 0...30 as ClosedRange<UInt64> {
                let plan = LoadPlan(operators: operators, pace: .closed, limit: limit, measure: nil)
                var dealt = Array(repeating: 0 as UInt64, count: operators)
                for index in 0..<Int(limit) { dealt[index % operators] += 1 }
                #expect((0..<operators).map { plan.limit(ofOperator: $0) } == dealt)
            }
        }
        #expect(LoadPlan(operators: 2, pace: .closed, measure: nil).limit(ofOperator: 1) == nil)
    }

    @Test("every client has one place in one shard, operators before listeners", arguments: [1, 2, 3, 8])
    func numbering(_ shards: Int) {
        for operators in [0, 1, 2, 7, 64] {
            for listeners in [0, 1, 5, 8] {
                let plan = LoadPlan(operators: operators, listeners: listeners, pace: .idle, measure: nil)
                var seen: Set<Int> = []
                for index in 0..<shards {
                    let clients = ShardClients(plan, shard: index, of: shards)
                    #expect(clients.count == clients.operators + clients.listeners)
                    for place in 0..<clients.count {
                        let number = clients.number(at: place)
                        #expect(seen.insert(number).inserted)
                        #expect(clients.isOperator(place) == (number < operators))
                    }
                }
                #expect(seen == Set(0..<(operators + listeners)))
            }
        }
    }

    @Test("an operator's shard is the one that the schedule gives its operations to")
    func sameShard() {
        let plan = LoadPlan(operators: 11, listeners: 4, pace: .open(.rate(perSecond: 1)), measure: nil)
        let schedule = OperationSchedule(pace: .rate(perSecond: 1), clients: 11)
        for index in 0..<3 {
            let clients = ShardClients(plan, shard: index, of: 3)
            #expect(ShardSchedule(schedule, shard: index, of: 3).clients == clients.operators)
        }
    }
}
