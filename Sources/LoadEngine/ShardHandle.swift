import LoopContext
package import NIOCore

package enum ShardOrder: Hashable, Sendable {
    case startConnecting(at: NIODeadline)
    case startLoad(at: NIODeadline)
    case endLoad(at: NIODeadline)
    /// Operators that receive as well may go: everything has come that was to come.
    case releaseOperators
    case finishListeners
    /// The drain time is over: the rest is given up, and all clients disconnect cleanly.
    case endDrain
    case abort
}

/// A shard as the run sees it, independent of the protocol.
package protocol ShardControl<Sample>: Sendable {
    associatedtype Sample: Sendable

    func tell(_ order: ShardOrder)

    /// The shard's state now.
    func facts() async -> ShardFacts?

    /// The measurements since the last call.
    func sample() async -> (Sample, ShardFacts)?
}

/// A shard as the run holds it: its event loop, and a way to it.
package struct ShardHandle<Work: ShardWork>: Sendable {
    private let eventLoop: any EventLoop
    private let shard: NIOLoopBound<Shard<Work>>

    /// Makes the handle on the shard's event loop.
    package init(_ shard: Shard<Work>) {
        self.eventLoop = shard.context.eventLoop
        self.shard = NIOLoopBound(shard, eventLoop: shard.context.eventLoop)
    }

    /// Gives the shard an order, at a fresh time: the loop's clock may be as old as the last socket event.
    package func tell(_ body: @escaping @Sendable (Shard<Work>) -> Void) {
        self.eventLoop.execute {
            let shard = self.shard.value
            shard.context.refresh()
            body(shard)
        }
    }

    package func ask<Answer: Sendable>(_ body: @escaping @Sendable (Shard<Work>) -> Answer) async -> Answer? {
        try? await self.eventLoop.submit { body(self.shard.value) }.get()
    }
}

extension ShardHandle: ShardControl {
    package typealias Sample = Work.Sample

    package func tell(_ order: ShardOrder) {
        self.tell { shard in
            switch order {
            case .startConnecting(let time): shard.startConnecting(at: time)
            case .startLoad(let origin): shard.startLoad(at: origin)
            case .endLoad(let end): shard.endLoad(at: end)
            case .releaseOperators: shard.releaseOperators()
            case .finishListeners: shard.finishListeners()
            case .endDrain:
                shard.endDrain()
                shard.finishListeners()
            case .abort: shard.abort()
            }
        }
    }

    package func facts() async -> ShardFacts? { await self.ask { $0.facts } }

    package func sample() async -> (Work.Sample, ShardFacts)? {
        await self.ask { shard in shard.work.map { ($0.takeSample(), shard.takeFacts()) } } ?? nil
    }
}
