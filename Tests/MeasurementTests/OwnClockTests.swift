import Measurement
import Testing

@Suite("The clock of a segment and its correction")
struct OwnClockTests {
    private static let second: Int64 = 1_000_000_000

    /// An exchange with a clock that is `ahead`, whose way there and back takes these times.
    private static func exchange(ahead: Int64, there: Int64, back: Int64, at sent: Int64 = 1_000) -> ClockExchange {
        let received = sent + there + ahead
        return ClockExchange(sent: sent, received: received, answered: received + 5, arrived: sent + there + 5 + back)
    }

    @Test("an estimate is the fastest exchange, and its error half of the round trip")
    func first() {
        var track = ClockTrack()
        #expect(track.offset == nil)
        track.estimate()
        #expect(track.offset == nil && track.exchanges == 0)
        track.add(Self.exchange(ahead: 50_000, there: 900, back: 100))
        track.add(Self.exchange(ahead: 50_000, there: 100, back: 100))
        #expect(track.pending == 2)
        track.estimate()
        #expect(track.offset == 50_000 && track.error == 100 && track.exchanges == 2 && track.pending == 0)
    }

    @Test("the error of a correction grows by what the clocks drift while it is in effect, and is never forgotten")
    func drift() {
        var track = ClockTrack()
        for (ahead, error) in [(1_000, 10), (1_700, 710), (1_700, 710), (1_690, 710)] as [(Int64, Int64)] {
            track.add(Self.exchange(ahead: ahead, there: 10, back: 10))
            track.estimate()
            #expect(track.offset == ahead && track.error == error)
        }
        // Without an exchange the correction stays.
        track.estimate()
        #expect(track.offset == 1_690 && track.exchanges == 4)
    }

    @Test("a clock that gains does so in steps of a second, and has an identity of its own")
    func gains() {
        let host = OwnClock(offset: 7)
        #expect(host.offset(at: 0) == 7 && host.offset(at: .max) == 7)
        let ahead = OwnClock(offset: 7, ahead: 100)
        #expect(ahead.offset(at: 0) == 107 && ahead.identity != host.identity)
        let other = OwnClock(offset: 7, gain: 1_000)
        #expect(other.identity != host.identity)
        let now = other.now - other.offsetNow
        let steps = (0..<5).map { other.offset(at: now + Int64($0) * Self.second) }
        #expect(zip(steps, steps.dropFirst()).allSatisfy { $1 - $0 == 1_000 })
    }
}
