import LoadEngine
package import NIOCore
package import NIOEmbedded
import Synchronization

/// A clock that moves when a test says so, and everything that waits for it: an event loop, and the tasks of a run.
///
/// All of it runs on the thread of the test, in the same order every time.
package final class VirtualTime: RunClock {
    private struct Wake {
        let time: NIODeadline
        let body: @Sendable () -> Void
    }

    /// Keeps the jobs of tasks that prefer it until ``drain()``.
    private final class Executor: TaskExecutor {
        private let jobs = Mutex<[UnownedJob]>([])

        func enqueue(_ job: consuming ExecutorJob) {
            let job = UnownedJob(job)
            self.jobs.withLock { $0.append(job) }
        }

        /// Runs all jobs, and those that they lead to; whether there was any.
        func drain() -> Bool {
            var hasRun = false
            while case let jobs = self.jobs.withLock({ jobs in
                defer { jobs.removeAll(keepingCapacity: true) }
                return jobs
            }), !jobs.isEmpty {
                hasRun = true
                for job in jobs { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
            }
            return hasRun
        }
    }

    private let embedded = EmbeddedEventLoop()
    private let executor = Executor()
    private let wakes = Mutex<[Wake]>([])

    /// The loop whose timers and tasks this clock fires.
    package var loop: EmbeddedEventLoop { self.embedded }

    package init() {
        // A time in front of the test, so that "one second ago" exists.
        self.embedded.advanceTime(to: .uptimeNanoseconds(1_000_000_000_000))
    }

    package var now: NIODeadline { self.embedded.now }

    package func wake(at time: NIODeadline, _ body: @escaping @Sendable () -> Void) {
        self.wakes.withLock { $0.append(Wake(time: time, body: body)) }
    }

    /// Does work that takes part in ``run(step:limit:_:)``.
    package func task(_ work: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
        Task(executorPreference: self.executor) { await work() }
    }

    /// Lets time pass until all `bodies` have returned.
    ///
    /// - Parameters:
    ///   - step: how far the loop's clock goes at once; its own timers fire at their exact times all the same.
    ///   - limit: how long it may take at most.
    ///   - bodies: what to wait for; they run side by side.
    /// - Returns: what they returned, in their order.
    /// - Throws: ``Stuck`` if the time is over before.
    package func run<Result: Sendable>(
        step: TimeAmount = .milliseconds(1),
        limit: TimeAmount = .hours(2),
        _ bodies: [@Sendable () async -> Result]
    ) throws -> [Result] {
        let results = Results<Result>(bodies.count)
        for (index, body) in bodies.enumerated() {
            Task(executorPreference: self.executor) {
                let result = await body()
                results.all.withLock { $0[index] = result }
            }
        }
        let end = self.now + limit
        while true {
            self.settle()
            let done = results.all.withLock { $0.compactMap(\.self) }
            if done.count == bodies.count { return done }
            guard self.now < end else { throw Stuck() }
            self.pass(step)
        }
    }

    private final class Results<Result: Sendable>: Sendable {
        let all: Mutex<[Result?]>

        init(_ count: Int) { self.all = Mutex(Array(repeating: nil, count: count)) }
    }

    package struct Stuck: Error, CustomStringConvertible {
        package let description = "the virtual time is over, and the run is not"
    }

    /// Runs what needs no time.
    private func settle() {
        repeat { self.embedded.run() } while self.executor.drain()
    }

    private func pass(_ step: TimeAmount) {
        let next = self.wakes.withLock { $0.map(\.time).min() } ?? .distantFuture
        self.embedded.advanceTime(to: max(self.now, min(next, self.now + step)))
        let due = self.wakes.withLock { wakes in
            let due = wakes.filter { $0.time <= self.now }.sorted { $0.time < $1.time }
            wakes.removeAll { $0.time <= self.now }
            return due
        }
        for wake in due { wake.body() }
    }
}
