import FaultInjection
import NIOCore
import TestSupport
import Testing

@Suite("Bytes that wait for their time")
struct HeldBytesTests {
    private static let start = NIODeadline.uptimeNanoseconds(3_000_000_000)

    private static func append(_ text: String, to held: inout HeldBytes, at time: Int64, hold: Int64? = nil) {
        Array(text.utf8).withUnsafeBytes {
            held.append($0, now: self.start + .milliseconds(time), hold: hold.map { .milliseconds($0) })
        }
    }

    /// Takes the bytes that are due at a time.
    private static func taken(_ held: inout HeldBytes, at time: Int64, limit: Int = .max) -> String {
        held.advance(to: self.start + .milliseconds(time)) { _, _ in }
        return String(buffer: held.copy(limit))
    }

    @Test("what is held goes when it is due, not before")
    func due() {
        var held = HeldBytes()
        Self.append("abc", to: &held, at: 0, hold: 20)
        Self.append("de", to: &held, at: 5, hold: 20)
        #expect(held.nextDue == Self.start + .milliseconds(20))
        #expect(Self.taken(&held, at: 19) == "")
        #expect(Self.taken(&held, at: 20) == "abc")
        #expect(held.nextDue == Self.start + .milliseconds(25))
        #expect(Self.taken(&held, at: 24) == "")
        #expect(Self.taken(&held, at: 25) == "de")
        #expect(held.nextDue == nil)
        #expect(held.isEmpty)
    }

    @Test("what is held for less, or not at all, overtakes nothing")
    func order() {
        var held = HeldBytes()
        Self.append("now", to: &held, at: 0)
        #expect(held.free == 3)
        Self.append("late", to: &held, at: 0, hold: 30)
        Self.append("soon", to: &held, at: 1, hold: 2)
        Self.append("any", to: &held, at: 2)
        #expect(Self.taken(&held, at: 29) == "now")
        #expect(Self.taken(&held, at: 30) == "latesoonany")
    }

    @Test("the memory is that of the pieces too, which may have one byte each")
    func memory() {
        var held = HeldBytes()
        Self.append("abc", to: &held, at: 0)
        #expect(held.memory == 3)
        for time in 0..<1_000 as Range<Int64> { Self.append("x", to: &held, at: time, hold: 2_000) }
        #expect(held.count == 1_003)
        #expect(held.memory >= 1_003 + 1_000 * 24)
        #expect(Self.taken(&held, at: 3_000).utf8.count == 1_003)
        #expect(held.memory == 0)
    }

    @Test("part of what may go leaves the rest")
    func parts() {
        var held = HeldBytes()
        Self.append("0123456789", to: &held, at: 0)
        #expect(Self.taken(&held, at: 0, limit: 3) == "012")
        let taken = held.take(4) { bytes in
            #expect(Array(bytes) == Array("3456".utf8))
            return 2
        }
        #expect(taken == 2)
        #expect(held.count == 5)
        #expect(Self.taken(&held, at: 0) == "56789")
    }

    @Test("each held piece is reported once, with its delay and its lateness")
    func told() {
        var held = HeldBytes()
        Self.append("a", to: &held, at: 0, hold: 10)
        Self.append("b", to: &held, at: 4)
        Self.append("c", to: &held, at: 6, hold: 10)
        var told: [[Int64]] = []
        for time in [9, 12, 17] as [Int64] {
            held.advance(to: Self.start + .milliseconds(time)) {
                told.append([$0.nanoseconds / 1_000_000, $1.nanoseconds / 1_000_000])
            }
        }
        #expect(told == [[12, 2], [11, 1]])
    }

    @Test("all of them can be forgotten, and it goes on")
    func forgotten() {
        var held = HeldBytes()
        Self.append("abc", to: &held, at: 0, hold: 1_000)
        Self.append("d", to: &held, at: 0)
        #expect(held.removeAll() == 4)
        #expect(held.removeAll() == 0)
        #expect(held.nextDue == nil)
        Self.append("x", to: &held, at: 1)
        #expect(Self.taken(&held, at: 1) == "x")
    }

    @Test("a stream comes out as it went in, however it is cut and held", arguments: 1...5 as ClosedRange<UInt64>)
    func stream(_ seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let stream = (0..<60_000).map { _ in UInt8.random(in: 0...255, using: &generator) }
        var held = HeldBytes()
        var out: [UInt8] = []
        var now = Self.start
        for piece in stream.pieces(upTo: 3_000, using: &generator) {
            now = now + .microseconds(Int64.random(in: 0...2_000, using: &generator))
            let hold = Bool.random(using: &generator) ? Int64.random(in: 0...10_000, using: &generator) : nil
            piece.withUnsafeBytes { held.append($0, now: now, hold: hold.map { .microseconds($0) }) }
            held.advance(to: now) { _, _ in }
            out += held.copy(Int.random(in: 0...4_000, using: &generator)).readableBytesView
        }
        held.advance(to: now + .seconds(1)) { _, _ in }
        out += held.copy(.max).readableBytesView
        #expect(out == stream)
        #expect(held.isEmpty)
    }
}

@Suite("Bytes a write")
struct FragmentSizesTests {
    @Test("are within their bounds, all of them come, and every run has the same")
    func sizes() {
        var first = FragmentSizes(1...7)
        var second = FragmentSizes(1...7)
        let sizes = (0..<1_000).map { _ in first.next() }
        #expect(Set(sizes) == Set(1...7))
        #expect(sizes == (0..<1_000).map { _ in second.next() })
        var fixed = FragmentSizes(5...5)
        #expect(fixed.next() == 5)
    }
}

@Suite("When a rate lets the next go")
struct RateGateDueTests {
    /// At 100,000 a second 501 can be saved up, and all are there at first.
    @Test(
        "as many as are wanted, or as can be saved up, and not within half a millisecond",
        arguments: [(1, 500), (50, 500), (100, 1_000), (400, 4_000), (501, 5_010), (9_999, 5_010)]
    )
    func due(_ wanted: Int, _ microseconds: Int64) {
        let now = NIODeadline.uptimeNanoseconds(1_000_000_000)
        var gate = RateGate(rate: 100_000, now: now)
        gate.take(gate.available(now: now))
        #expect(gate.nextDue(for: wanted, now: now) == now + .microseconds(microseconds))
    }
}
