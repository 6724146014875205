import Measurement
import Testing

@Suite("Clocks of several hosts")
struct ClockTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// Nanoseconds there and back.
        let ways: (Int64, Int64)
        let ahead: Int64

        var exchange: ClockExchange {
            let sent: Int64 = 1_700_000_000_000_000_000
            let received = sent + self.ways.0 + self.ahead
            let answered = received + 7_000
            return ClockExchange(
                sent: sent,
                received: received,
                answered: answered,
                arrived: answered - self.ahead + self.ways.1
            )
        }
    }

    static let cases = [
        Case(testDescription: "the same clock", ways: (200_000, 200_000), ahead: 0),
        Case(testDescription: "ahead", ways: (200_000, 200_000), ahead: 50_000_000),
        Case(testDescription: "behind", ways: (200_000, 200_000), ahead: -3_600_000_000_000),
        Case(testDescription: "slower there", ways: (900_000, 100_000), ahead: 1_000),
        Case(testDescription: "slower back", ways: (0, 1_000_001), ahead: 77),
    ]

    @Test("an echo tells the offset up to half of its round trip", arguments: cases)
    func exchange(_ sample: Case) throws {
        #expect(sample.exchange.roundTrip == sample.ways.0 + sample.ways.1)
        let estimate = try #require(ClockEstimate([sample.exchange]))
        #expect(abs(estimate.offset - sample.ahead) <= estimate.error)
        #expect(estimate.error == (sample.ways.0 + sample.ways.1 + 1) / 2)
        if sample.ways.0 == sample.ways.1 { #expect(estimate.offset == sample.ahead) }
    }

    @Test("of several echoes the fastest counts, and one from before its time does not")
    func fastest() throws {
        let echoes = [(500_000, 90_000), (40_000, 60_000), (70_000, 70_000)] as [(Int64, Int64)]
        var all = echoes.map { Case(testDescription: "", ways: $0, ahead: 1_000_000).exchange }
        all.append(ClockExchange(sent: 100, received: 50, answered: 60, arrived: 90))
        let estimate = try #require(ClockEstimate(all))
        #expect(estimate.error == 50_000 && estimate.exchanges == 3)
        #expect(estimate.offset == 990_000)
        #expect(ClockEstimate([]) == nil)
        #expect(ClockEstimate([all[3]]) == nil)
    }

    @Test("clocks that went apart are known as badly as that")
    func drift() throws {
        func estimate(_ ahead: Int64, _ way: Int64) throws -> ClockEstimate {
            try #require(ClockEstimate([Case(testDescription: "", ways: (way, way), ahead: ahead).exchange]))
        }
        let first = try estimate(1_000_000, 100_000)
        #expect(first.error(with: nil) == 100_000)
        // Within what both may be wrong by nothing is known to have changed.
        #expect(first.error(with: try estimate(1_150_000, 60_000)) == 100_000)
        #expect(first.error(with: try estimate(3_000_000, 60_000)) == 2_060_000)
        #expect(first.error(with: try estimate(-3_000_000, 60_000)) == 4_060_000)
    }

    @Test("times of a peer that no two clocks have are ignored", arguments: [Int64.min, -1 << 62, 1 << 62, .max])
    func foreignTimes(_ time: Int64) throws {
        for exchange in [
            ClockExchange(sent: 0, received: time, answered: time, arrived: 1),
            ClockExchange(sent: 0, received: time, answered: 0, arrived: 1),
            ClockExchange(sent: 0, received: 0, answered: time, arrived: 1),
            ClockExchange(sent: time, received: 0, answered: 0, arrived: 1),
            ClockExchange(sent: .min, received: time, answered: .max, arrived: .max),
        ] {
            let estimate = ClockEstimate([exchange])
            #expect(estimate.map { $0.offset.magnitude < 1 << 61 && $0.error >= 0 } ?? true)
            #expect(estimate?.error(with: estimate) == estimate?.error)
        }
    }

    private func clock(
        _ host: String,
        _ offset: Int64 = 0,
        error: Double? = nil,
        correction: Double? = nil,
        to reference: String? = nil
    ) -> ClockRecord {
        var clock = ClockRecord(host: host, realtimeOffset: offset)
        (clock.errorSeconds, clock.correctionSeconds, clock.reference) = (error, correction, reference)
        return clock
    }

    @Test("segments of one host have one clock, of others the errors of the two that are worst")
    func agreement() {
        #expect(ClockAgreement([clock("a"), clock("a", 90)]) == .within(seconds: 0))
        #expect(ClockAgreement([clock("a"), clock("b", error: 0.003)]) == .within(seconds: 0.003))
        let three = [clock("a"), clock("b", error: 0.25), clock("c", error: 0.5), clock("a", 5)]
        #expect(ClockAgreement(three) == .within(seconds: 0.75))
        // It was set between the two.
        #expect(ClockAgreement([clock("a"), clock("a", 2_000_000_000)]) == .within(seconds: 2))
        // A damaged file may have any offset.
        #expect(ClockAgreement([clock("a", .min), clock("a", .max)]) == .within(seconds: 18_446_744_073.709_553))
        #expect(ClockAgreement([clock("a"), clock("b")]) == .unknown(clock: 2))
        #expect(ClockAgreement([clock("a"), clock("b", error: 1), nil]) == .unknown(clock: 3))
        #expect(ClockAgreement([clock("a")]) == .within(seconds: 0))
        #expect(ClockAgreement([nil, clock("a")]) == .unknown(clock: 1))
    }

    @Test("if the reference is the coordinator, the error of the first segment counts as any other")
    func coordinator() {
        let clocks = [
            clock("a", error: 0.5, correction: 1, to: "c"), clock("b", error: 0.25, correction: 2, to: "c"),
            clock("d", error: 0.125, correction: 3, to: "c"),
        ]
        #expect(ClockAgreement(clocks) == .within(seconds: 0.75))
        // A segment on the coordinator's host needs no correction, in whatever place it is.
        #expect(ClockAgreement([clocks[0], clock("c")]) == .within(seconds: 0.5))
        #expect(ClockAgreement([clock("c"), clocks[0]]) == .within(seconds: 0.5))
        #expect(ClockAgreement([clock("c"), clock("c")]) == .within(seconds: 0))
        // Any other one does.
        #expect(ClockAgreement([clock("a"), clocks[1]]) == .unknown(clock: 1))
        #expect(ClockAgreement([clocks[0], clocks[1], clock("d")]) == .unknown(clock: 3))
        #expect(ClockAgreement([clocks[0], clock("a")]) == .unknown(clock: 2))
    }

    @Test("clocks that were corrected by different references do not agree")
    func references() {
        let first = clock("a", error: 0.5, correction: 1, to: "c")
        #expect(ClockAgreement([first, clock("b", error: 0.5, correction: 1, to: "e")]) == .unknown(clock: 2))
        #expect(ClockAgreement([first, clock("b", error: 0.5, correction: 1)]) == .unknown(clock: 2))
        #expect(ClockAgreement([clock("a"), clock("b", error: 0.5, correction: 1, to: "c")]) == .unknown(clock: 1))
        #expect(ClockAgreement([clock("a"), clock("b", error: 0.5, correction: 1)]) == .within(seconds: 0.5))
    }

    @Test("processes of a host that was corrected once share a clock, others of that host do not")
    func shared() {
        let one = clock("a", error: 0.5, correction: 1, to: "c")
        #expect(ClockAgreement([one, one]) == .within(seconds: 0))
        #expect(ClockAgreement([one, clock("a", error: 0.25, correction: 1.5, to: "c")]) == .within(seconds: 0.75))
        let other = clock("b", error: 0.25, correction: 2, to: "c")
        #expect(ClockAgreement([one, one, other, other]) == .within(seconds: 0.75))
        // It was set between the two.
        let later = clock("a", 2_000_000_000, error: 0.5, correction: 1, to: "c")
        #expect(ClockAgreement([one, later]) == .within(seconds: 2))
        #expect(ClockAgreement([one, later, other]) == .within(seconds: 2.75))
    }

    @Test("this host has a clock, which is looked at twice alike")
    func host() throws {
        let host = try #require(HostClock.host())
        #expect(host.count == 16 && HostClock.host() == host && HostClock.host(ahead: 1) != host)
        #expect(HostClock.realtimeOffset() > 0)
    }

    @Test("what is below the error of the clocks is named")
    func below() throws {
        var histogram = Histogram()
        for value: Int64 in 1...1_000 { histogram.record(value * 10_000) }
        var reading = try #require(DurationReading(histogram))
        #expect(reading.belowClockError == [])
        reading.clockError = 0.0055
        #expect(reading.belowClockError == ["min", "mean", "p50"])
    }
}
