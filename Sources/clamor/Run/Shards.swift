import LoadEngine
import LoopContext
import NIOCore
import Transport
import Workloads

/// Creates the shards of a group, one on each event loop; they report as group number `group` of the run.
enum Shards {
    static func make<Load: Workload>(
        _ load: Load,
        on loops: [any EventLoop],
        plan: LoadPlan,
        readSize: Int,
        connectors: @escaping @Sendable (LoopContext) -> any ClientConnector,
        group: Int = 0,
        events: AsyncStream<RunEvent>.Continuation
    ) async -> [ShardHandle<Load.Work>] {
        var handles: [ShardHandle<Load.Work>] = []
        for (index, loop) in loops.enumerated() {
            let handle = try? await loop.submit {
                // Own timers and buffers: two groups on a loop share only its thread.
                let context = LoopContext(eventLoop: loop, readSize: readSize)
                let shard = Shard<Load.Work>(context: context, plan: plan, index: index, of: loops.count) {
                    events.yield(.shard($0, group: group))
                }
                shard.work = load.makeWork(on: shard, connector: connectors(context))
                let handle = ShardHandle(shard)
                return Doorbell.install(on: context).map { handle }
            }.flatMap { $0 }.get()
            if let handle { handles.append(handle) }
        }
        return handles
    }
}
