import CPosix
package import LoadEngine
package import LoopContext
package import NIOCore
import NIOPosix
package import Transport

/// Where a run takes place: on the threads and sockets of this host, or where a test lets time pass by itself.
package struct RunWorld: Sendable {
    /// The event loops of a run, so many; the closure ends them.
    package var makeLoops: @Sendable (_ count: Int) -> (loops: [any EventLoop], end: @Sendable () async -> Void)
    /// The clock of the run's seconds and waits; the loops have the same.
    package var clock: any RunClock
    /// Makes what connects the clients of a loop, on the loop; `nil`: sockets.
    package var connector: (@Sendable (LoopContext) -> any ClientConnector)?
    /// Does work beside the run.
    package var makeTask: @Sendable (_ work: @escaping @Sendable () async -> Void) -> Task<Void, Never> = { work in
        Task { await work() }
    }
    /// CLOCK_REALTIME, in nanoseconds.
    package var realtime: @Sendable () -> Int64 = { clamor_realtime_nanoseconds() }
    /// Starts a segment of a run; `nil`: a child process.
    package var startSegment: (@Sendable (SegmentStart) throws -> any SegmentPeer)?
    /// Starts the broker of `-h embedded`; `nil`: a child process.
    package var startBroker: (@Sendable () throws(RunRefusal) -> any RunBroker)?

    /// The signals to end the run.
    package var signals: @Sendable () -> AsyncStream<Int32> = { Signals.stream() }
    /// Whether this process is `clamor`, which starts itself as a broker.
    package var isProgram = true

    package init(
        clock: any RunClock,
        connector: (@Sendable (LoopContext) -> any ClientConnector)?,
        makeLoops: @escaping @Sendable (_ count: Int) -> (loops: [any EventLoop], end: @Sendable () async -> Void)
    ) {
        self.clock = clock
        self.connector = connector
        self.makeLoops = makeLoops
    }

    /// Threads, sockets and the clock of this host.
    package static let host = RunWorld(clock: SystemRunClock(), connector: nil) { count in
        let threads = MultiThreadedEventLoopGroup(numberOfThreads: count)
        return (Array(threads.makeIterator()), { try? await threads.shutdownGracefully() })
    }

    /// Those of this host, in a program that is not `clamor`.
    static let library: RunWorld = {
        var world = Self.host
        world.isProgram = false
        return world
    }()

    /// Whether clients have sockets, and the limits of this host decide and explain what they can do.
    package var isHost: Bool { self.connector == nil }
}
