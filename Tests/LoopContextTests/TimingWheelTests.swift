import LoopContext
import NIOCore
import Testing

@Suite("Timing wheel")
struct TimingWheelTests {
    /// A slot's width.
    static let slot: UInt64 = 1 << 18
    /// A revolution: 4,096 slots.
    static let revolution: UInt64 = 4_096 << 18

    private func at(_ nanoseconds: UInt64) -> NIODeadline { .uptimeNanoseconds(nanoseconds) }

    @Test(
        "fires at the due time, not a nanosecond before, and once",
        arguments: [
            1, slot - 1, slot, slot + 1, revolution - 1, revolution, 7 * revolution + 12_345, 3_600_000_000_000,
        ]
    )
    func onTime(_ due: UInt64) {
        let wheel = Wheel()
        let id = wheel.register()
        wheel.schedule(id, at: self.at(due))
        #expect(wheel.nextDue == self.at(due))
        #expect(wheel.popDue(self.at(due - 1)) == nil)
        #expect(wheel.popDue(self.at(due)) == id)
        #expect(wheel.popDue(self.at(due)) == nil)
        #expect(wheel.popDue(self.at(due + 10 * Self.revolution)) == nil)
        #expect(wheel.nextDue == nil)
    }

    @Test("a due time in the past fires next")
    func past() {
        let wheel = Wheel()
        let id = wheel.register()
        #expect(wheel.popDue(self.at(5 * Self.revolution)) == nil)
        wheel.schedule(id, at: self.at(3))
        #expect(wheel.popDue(self.at(5 * Self.revolution)) == id)
    }

    @Test("cancelled and moved timers fire as they were last told")
    func cancelAndMove() {
        let wheel = Wheel()
        let cancelled = wheel.register()
        let later = wheel.register()
        let earlier = wheel.register()
        for id in [cancelled, later, earlier] { wheel.schedule(id, at: self.at(1_000_000)) }
        wheel.cancel(cancelled)
        wheel.cancel(cancelled)
        wheel.schedule(later, at: self.at(9_000_000_000))
        wheel.schedule(earlier, at: self.at(500))
        #expect(wheel.count == 2)
        #expect(wheel.nextDue == self.at(500))
        #expect(wheel.popDue(self.at(1_000_000)) == earlier)
        #expect(wheel.popDue(self.at(1_000_000)) == nil)
        #expect(wheel.nextDue == self.at(9_000_000_000))
        #expect(wheel.popDue(self.at(9_000_000_000)) == later)
    }

    @Test("a number is recycled with a new owner and tag, and without the old due time")
    func recycling() {
        let wheel = Wheel()
        let first = wheel.register(owner: 1, tag: 7)
        #expect(wheel.owner(of: first) == 1)
        #expect(wheel.tag(of: first) == 7)
        wheel.schedule(first, at: self.at(10))
        wheel.unregister(first)
        #expect(wheel.count == 0)
        let second = wheel.register(owner: 2, tag: 8)
        #expect(second == first)
        #expect(wheel.owner(of: second) == 2)
        #expect(wheel.tag(of: second) == 8)
        #expect(!wheel.isScheduled(second))
        #expect(wheel.popDue(self.at(100)) == nil)
    }

    @Test("while a sweep is under way, what fires may cancel, move and add timers")
    func changesDuringSweep() {
        let wheel = Wheel()
        let now = self.at(50_000_000)
        let ids = (0..<4).map { _ in wheel.register() }
        for id in ids { wheel.schedule(id, at: self.at(10_000)) }
        guard let first = wheel.popDue(now) else {
            Issue.record("nothing was due")
            return
        }
        let others = ids.filter { $0 != first }
        wheel.cancel(others[0])
        wheel.schedule(others[1], at: self.at(60_000_000))
        wheel.schedule(first, at: self.at(20_000))

        var fired: Set<TimerID> = []
        while let id = wheel.popDue(now) { fired.insert(id) }
        #expect(fired == [first, others[2]])
        #expect(wheel.popDue(self.at(60_000_000)) == others[1])
        #expect(wheel.count == 0)
    }

    @Test("agrees with a sorted list over a long random run", arguments: [1, 2, 3] as [UInt64])
    func againstSortedList(_ seed: UInt64) {
        var random = SplitMix(state: seed)
        let wheel = Wheel()
        var expected: [TimerID: UInt64] = [:]
        let ids = (0..<300).map { _ in wheel.register() }
        var now: UInt64 = 0

        for _ in 0..<20_000 {
            let id = ids[Int(random.next() % 300)]
            switch random.next() % 10 {
            case 0:
                wheel.cancel(id)
                expected[id] = nil
            case 1...6:
                // Near, within the revolution, or many revolutions away.
                let reach = [Self.slot / 4, Self.revolution / 2, 20 * Self.revolution][Int(random.next() % 3)]
                let due = now + random.next() % reach
                wheel.schedule(id, at: self.at(due))
                expected[id] = due
            default:
                let reach = [Self.slot / 8, Self.slot * 40, 3 * Self.revolution][Int(random.next() % 3)]
                now += random.next() % reach
                var lastTick: UInt64 = 0
                while let fired = wheel.popDue(self.at(now)) {
                    guard let due = expected.removeValue(forKey: fired) else {
                        Issue.record("fired \(fired) unasked")
                        return
                    }
                    #expect(due <= now)
                    #expect(due >> 18 >= lastTick)
                    lastTick = due >> 18
                }
                #expect(!expected.values.contains { $0 <= now })
            }
            #expect(wheel.count == expected.count)
            #expect(wheel.nextDue == expected.values.min().map(self.at))
        }
    }

    @Test("a timer's entry has 24 bytes")
    func bytesPerTimer() {
        #expect(TimingWheel.bytesPerTimer == 24)
    }
}

/// The wheel in a box: `#expect` cannot take what is not copyable.
private final class Wheel {
    private var wheel = TimingWheel()

    var count: Int { self.wheel.count }
    var nextDue: NIODeadline? { self.wheel.nextDue }

    func register(owner: Int32 = 0, tag: Int32 = 0) -> TimerID { self.wheel.register(owner: owner, tag: tag) }
    func unregister(_ id: TimerID) { self.wheel.unregister(id) }
    func schedule(_ id: TimerID, at due: NIODeadline) { self.wheel.schedule(id, at: due) }
    func cancel(_ id: TimerID) { self.wheel.cancel(id) }
    func popDue(_ now: NIODeadline) -> TimerID? { self.wheel.popDue(now) }
    func isScheduled(_ id: TimerID) -> Bool { self.wheel.isScheduled(id) }
    func owner(of id: TimerID) -> Int32 { self.wheel.owner(of: id) }
    func tag(of id: TimerID) -> Int32 { self.wheel.tag(of: id) }
}

/// A small generator, the same everywhere.
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        self.state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = self.state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
