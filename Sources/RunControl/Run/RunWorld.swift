import CPosix
package import LoadEngine
package import LoopContext
package import Measurement
package import NIOCore
import NIOPosix
package import Transport

/// Where a run takes place: on the threads and sockets of this host, or where a test lets time pass by itself.
package struct RunWorld: Sendable {
    package typealias Loops = (loops: [any EventLoop], sockets: SocketKind, end: @Sendable () async -> Void)

    /// The event loops of a run, so many, for sockets of this kind if the system has them; the closure ends them.
    package var makeLoops: @Sendable (_ count: Int, _ sockets: SocketKind) -> Loops
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
        makeLoops: @escaping @Sendable (_ count: Int, _ sockets: SocketKind) -> Loops
    ) {
        self.clock = clock
        self.connector = connector
        self.makeLoops = makeLoops
    }

    /// Threads, sockets and the clock of this host.
    package static let host = RunWorld(clock: SystemRunClock(), connector: nil) { count, sockets in
        if sockets == .socket, let loops = Self.socketLoops(count) { return loops }
        let threads = MultiThreadedEventLoopGroup(numberOfThreads: count)
        return (Array(threads.makeIterator()), .nio, { try? await threads.shutdownGracefully() })
    }

    private static func socketLoops(_ count: Int) -> Loops? {
        let loops = (1...count).compactMap { _ in SocketLoop() }
        guard loops.count == count else {
            for loop in loops { loop.shutdownGracefully { _ in } }
            return nil
        }
        return (loops, .socket, { for loop in loops { try? await loop.shutdownGracefully() } })
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
