import LoopContext
import NIOCore
import NIOEmbedded
import Testing

@Suite("Timers of a loop, in virtual time")
struct LoopTimersTests {
    private func at(_ nanoseconds: UInt64) -> NIODeadline { .uptimeNanoseconds(nanoseconds) }

    @Test("each owner's handler gets its own timers, with their tags, at the due time")
    func owners() {
        let loop = EmbeddedEventLoop()
        let timers = LoopTimers(eventLoop: loop)
        var log: [String] = []
        let first = timers.addOwner { _, tag in log.append("a\(tag)@\(timers.now.uptimeNanoseconds)") }
        let second = timers.addOwner { _, tag in log.append("b\(tag)@\(timers.now.uptimeNanoseconds)") }
        timers.schedule(timers.register(second, tag: 2), at: self.at(900_000))
        timers.schedule(timers.register(first, tag: 1), at: self.at(300_001))
        timers.schedule(timers.register(first, tag: 3), at: self.at(3_600_000_000_000))
        loop.advanceTime(to: self.at(300_000))
        #expect(log == [])
        loop.advanceTime(to: self.at(3_600_000_000_000))
        #expect(log == ["a1@300001", "b2@900000", "a3@3600000000000"])
    }

    @Test("a handler moves its own timer: an absolute grid without drift")
    func periodic() {
        let loop = EmbeddedEventLoop()
        let timers = LoopTimers(eventLoop: loop)
        var fired: [UInt64] = []
        let owner = timers.addOwner { id, _ in
            fired.append(timers.now.uptimeNanoseconds)
            timers.schedule(id, at: self.at(UInt64(fired.count + 1) * 10_000_000))
        }
        timers.schedule(timers.register(owner), at: self.at(10_000_000))
        loop.advanceTime(by: .milliseconds(55))
        #expect(fired == [10_000_000, 20_000_000, 30_000_000, 40_000_000, 50_000_000])
    }

    @Test("one that sets itself to a time that has passed, again and again, keeps no other waiting")
    func restless() {
        let loop = EmbeddedEventLoop()
        let timers = LoopTimers(eventLoop: loop)
        var fired: [Int32] = []
        let owner = timers.addOwner { id, tag in
            fired.append(tag)
            if tag == 1, fired.count < 50 { timers.schedule(id, at: self.at(0)) }
        }
        // Of one slot the last comes first.
        timers.schedule(timers.register(owner, tag: 2), at: self.at(1_000_000))
        timers.schedule(timers.register(owner, tag: 1), at: self.at(1_000_000))
        loop.advanceTime(by: .seconds(1))
        #expect(fired.prefix(3) == [1, 2, 1])
        #expect(fired.count == 50)
    }

    @Test("pacing and timers share the one callback, each at its time")
    func pacing() {
        let loop = EmbeddedEventLoop()
        let timers = LoopTimers(eventLoop: loop)
        var log: [String] = []
        let owner = timers.addOwner { _, _ in log.append("timer \(timers.now.uptimeNanoseconds)") }
        timers.setPacing { now in
            log.append("pace \(now.uptimeNanoseconds)")
            return log.count < 5 ? now + .milliseconds(2) : nil
        }
        timers.schedule(timers.register(owner), at: self.at(3_000_000))
        timers.setDue(self.at(1_000_000))
        loop.advanceTime(by: .seconds(1))
        #expect(log == ["pace 1000000", "timer 3000000", "pace 3000000", "pace 5000000", "pace 7000000"])
        #expect(log.count == 5)

        timers.setDue(loop.now + .milliseconds(1))
        loop.advanceTime(by: .milliseconds(1))
        #expect(log.last == "pace 1001000000")
    }

    @Test("an earlier due time wakes earlier, a cancelled one not at all")
    func rearming() {
        let loop = EmbeddedEventLoop()
        let timers = LoopTimers(eventLoop: loop)
        var fired: [Int32] = []
        let owner = timers.addOwner { _, tag in fired.append(tag) }
        let late = timers.register(owner, tag: 1)
        let early = timers.register(owner, tag: 2)
        timers.schedule(late, at: self.at(50_000_000))
        timers.schedule(early, at: self.at(1_000_000))
        timers.cancel(late)
        loop.advanceTime(by: .milliseconds(1))
        #expect(fired == [2])
        loop.advanceTime(by: .seconds(1))
        #expect(fired == [2])
    }

    @Test("1,000 a second fire at their times, 10,000 a second on a grid of 250 µs, and 1,000 again exactly")
    func adaptive() {
        let loop = EmbeddedEventLoop()
        let timers = LoopTimers(eventLoop: loop)
        var period: UInt64 = 1_000_003
        var due: UInt64 = 1
        var lateness: [UInt64] = []
        var wakes: Set<UInt64> = []
        timers.setPacing { now in
            wakes.insert(now.uptimeNanoseconds)
            while self.at(due) <= now {
                lateness.append(now.uptimeNanoseconds - due)
                due += period
            }
            return self.at(due)
        }
        timers.setDue(self.at(due))
        loop.advanceTime(by: .seconds(1))
        #expect(!timers.isCoarse)
        #expect(lateness.count == 1_000)
        #expect(lateness.allSatisfy { $0 == 0 })

        period = 100_003
        loop.advanceTime(by: .milliseconds(100))
        #expect(timers.isCoarse)
        wakes = []
        lateness = []
        loop.advanceTime(by: .seconds(1))
        #expect(wakes.count <= 4_001)
        #expect(wakes.allSatisfy { $0 % 250_000 == 0 })
        #expect(lateness.allSatisfy { $0 < 250_000 })

        period = 1_000_003
        loop.advanceTime(by: .milliseconds(200))
        #expect(!timers.isCoarse)
        lateness = []
        loop.advanceTime(by: .seconds(1))
        #expect(lateness.allSatisfy { $0 == 0 })
    }

    @Test("a loop that asks for its wake-ups sleeps to a grid of 100 µs when there are many, and is not late if awake")
    func polled() {
        let loop = EmbeddedEventLoop()
        let timers = LoopTimers(eventLoop: loop)
        timers.isPolled = true
        var fired: [UInt64] = []
        let owner = timers.addOwner { _, _ in fired.append(timers.now.uptimeNanoseconds) }
        let timer = timers.register(owner)
        /// Sleeps until the wheel asks to be woken, and says when that was.
        func sleep() -> UInt64? {
            guard let wake = timers.wakeTime else { return nil }
            loop.advanceTime(to: wake)
            timers.wakeIfDue(now: wake, hasSlept: true)
            return wake.uptimeNanoseconds
        }
        // Few: at the due time.
        timers.schedule(timer, at: self.at(1_000_001))
        #expect(sleep() == 1_000_001)
        #expect(timers.wakeTime == nil)
        // More than 2,000 a second.
        for number in 1...200 as ClosedRange<UInt64> {
            timers.schedule(timer, at: self.at(1_000_001 + number * 50_000))
            _ = sleep()
        }
        #expect(timers.isCoarse && fired.count == 201)
        fired = []
        timers.schedule(timer, at: self.at(20_000_050))
        #expect(timers.wakeTime == self.at(20_100_000))
        // A socket has woken the loop before the timer's time, and another one after it.
        loop.advanceTime(to: self.at(20_000_049))
        timers.wakeIfDue(now: self.at(20_000_049), hasSlept: false)
        #expect(fired.isEmpty)
        loop.advanceTime(to: self.at(20_000_060))
        timers.wakeIfDue(now: self.at(20_000_060), hasSlept: false)
        #expect(fired == [20_000_060])
        #expect(timers.wakeTime == nil)
    }

    @Test("after stop nothing fires, and the handlers are gone")
    func stop() {
        let loop = EmbeddedEventLoop()
        let timers = LoopTimers(eventLoop: loop)
        weak var weakWitness: Witness?
        do {
            let witness = Witness()
            weakWitness = witness
            let owner = timers.addOwner { _, _ in witness.count += 1 }
            timers.schedule(timers.register(owner), at: self.at(1))
        }
        let id = timers.register(timers.addOwner { _, _ in })
        timers.schedule(id, at: self.at(2))
        timers.stop()
        loop.advanceTime(by: .seconds(1))
        timers.schedule(id, at: self.at(3))
        timers.setDue(self.at(3))
        loop.advanceTime(by: .seconds(1))
        timers.unregister(id)
        #expect(weakWitness == nil)
    }

    @Test("a pacing source may stop everything from within")
    func stopFromPacing() {
        let loop = EmbeddedEventLoop()
        let timers = LoopTimers(eventLoop: loop)
        var calls = 0
        timers.setPacing { now in
            calls += 1
            timers.stop()
            return now
        }
        timers.setDue(self.at(10))
        loop.advanceTime(by: .seconds(1))
        #expect(calls == 1)
    }

    @Test("the clock stands still between two refreshes")
    func cachedClock() {
        let loop = EmbeddedEventLoop()
        let context = LoopContext(eventLoop: loop)
        let start = context.now
        loop.advanceTime(by: .seconds(1))
        #expect(context.now == start)
        #expect(context.refresh() == start + .seconds(1))
        #expect(context.now == start + .seconds(1))
    }

    private final class Witness {
        var count = 0
    }
}
