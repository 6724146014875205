import LoopContext
import NIOCore
import NIOPosix
import Testing

@Suite("Timers that were stopped", .timeLimit(.minutes(10)))
struct LoopTimersStopTests {
    private final class Count {
        var fired = 0
    }

    @Test("what is due in the same turn of the loop does not fire behind the stop")
    func sameTurn() async throws {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let fired = try await loop.flatSubmit {
            let count = Count()
            let timers = LoopTimers(eventLoop: loop)
            let timer = timers.register(timers.addOwner { _, _ in count.fired += 1 })
            let stop = loop.now + .milliseconds(1)
            loop.assumeIsolated().scheduleTask(deadline: stop) { timers.stop() }
            timers.schedule(timer, at: stop + .microseconds(1))
            let end = loop.assumeIsolated().scheduleTask(deadline: stop + .milliseconds(2)) { count.fired }
            // The loop finds both due at once, and takes both out of its queue.
            while NIODeadline.now() < stop + .milliseconds(1) {}
            return end.futureResult
        }.get()
        #expect(fired == 0)
    }
}
