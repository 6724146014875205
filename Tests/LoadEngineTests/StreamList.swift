import LoadEngine
import NIOCore

/// The operations of a plan with streams, listed one by one.
struct StreamList {
    struct Operation: Hashable {
        let client: Int
        let due: TimeAmount
        let stream: Int
        /// Among those of its client and stream.
        let number: UInt64
    }

    /// By due time, ties by stream, then by client.
    let operations: [Operation]

    init(_ paces: [OperationSchedule.Pace], clients: Int, limit: UInt64? = nil, before end: TimeAmount) {
        var all: [(order: UInt64, operation: Operation)] = []
        for (stream, pace) in paces.enumerated() {
            let schedule = OperationSchedule(pace: pace, clients: clients)
            var index: UInt64 = 0
            while let due = schedule.due(index), due < end {
                let (number, client) = index.quotientAndRemainder(dividingBy: UInt64(clients))
                all.append((index, Operation(client: Int(client), due: due, stream: stream, number: number)))
                index += 1
            }
        }
        all.sort { one, other in
            (one.operation.due, one.operation.stream, one.order)
                < (other.operation.due, other.operation.stream, other.order)
        }
        self.operations = all.prefix(limit.map { Int($0) } ?? all.count).map(\.operation)
    }

    /// Of a plan, until its measured phase ends; the plan has no warm-up.
    init(_ plan: LoadPlan) {
        guard case .streams(let paces) = plan.pace else { preconditionFailure("a plan with streams") }
        self.init(paces, clients: plan.operators, limit: plan.limit, before: plan.measure ?? .zero)
    }

    var byClient: [Int: [Operation]] { Dictionary(grouping: self.operations, by: \.client) }
}

extension [StreamList.Operation] {
    var byStream: [Int: UInt64] { self.reduce(into: [:]) { $0[$1.stream, default: 0] += 1 } }
}

/// The shards of a plan in virtual time, in every segment.
struct StreamRigs {
    let rigs: [ShardRig]

    /// `loops`: the number of event loops of each segment.
    init(_ plan: LoadPlan, loops: [Int], window: Int) {
        self.rigs = loops.enumerated().flatMap { index, count in
            var plan = plan
            plan.segment = PlanSegment(index: index, of: loops.count)
            return (0..<count).map { ShardRig(plan, index: $0, of: count, window: window) }
        }
    }

    /// The operations that each client sent, in their order, by its number in the run.
    var sent: [Int: [StreamList.Operation]] {
        var sent: [Int: [StreamList.Operation]] = [:]
        for rig in self.rigs {
            for batch in rig.work.sent {
                let client = rig.shard.clients.number(at: batch.place)
                sent[client, default: []] += batch.operations.map {
                    .init(client: client, due: $0.due - rig.shard.loadBegan, stream: $0.stream, number: $0.number)
                }
            }
        }
        return sent
    }

    /// The counts by stream of each client that has any, by its number in the run.
    func counts(_ counts: KeyPath<FakeWork.Client, [Int: UInt64]>) -> [Int: [Int: UInt64]] {
        var all: [Int: [Int: UInt64]] = [:]
        for rig in self.rigs {
            for (place, client) in rig.work.clients.enumerated() where !client[keyPath: counts].isEmpty {
                all[rig.shard.clients.number(at: place)] = client[keyPath: counts]
            }
        }
        return all
    }
}
