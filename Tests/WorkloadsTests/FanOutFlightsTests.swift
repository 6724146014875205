import Testing
import Workloads

@Suite("Messages that have not reached all receivers")
struct FanOutFlightsTests {
    /// A reference, so that its calls can be used in an expectation.
    private final class Flights {
        private var flights = FanOutFlights()
        var open: Int32 { self.flights.open }

        deinit { self.flights.close() }

        func begin(_ sequence: UInt64, receivers: Int32) -> Int64 {
            self.flights.begin(sequence, receivers: receivers)
        }

        func arrived(_ sequence: UInt64) -> String {
            let arrival = self.flights.arrived(sequence)
            return (arrival.isKnown ? "known" : "unknown") + (arrival.isFirst ? " first" : "")
                + (arrival.isLast ? " last" : "")
        }

        func drop(_ sequence: UInt64) -> (left: Int64, isUnheard: Bool) { self.flights.drop(sequence) }

        func miss(_ sequence: UInt64) -> String {
            let flight = self.flights.miss(sequence)
            return flight.isKnown ? flight.isDone ? "done" : "known" : "unknown"
        }

        func sequences(below next: UInt64) -> Set<UInt64> { Set(self.flights.sequences(below: next)) }
    }

    @Test("only the first and the last receiver are reported")
    func firstAndLast() {
        let flights = Flights()
        #expect(flights.begin(7, receivers: 3) == 0)
        #expect(flights.open == 1)
        #expect(
            (0..<4).map { _ in flights.arrived(7) } == ["known first", "known", "known last", "unknown"]
        )
        #expect(flights.open == 0)
        #expect(flights.arrived(8) == "unknown")
    }

    @Test("a single receiver is the first and the last; a message without receivers ends at once")
    func alone() {
        let flights = Flights()
        _ = flights.begin(0, receivers: 1)
        #expect(flights.arrived(0) == "known first last")
        #expect(flights.begin(1, receivers: 0) == 0)
        #expect(flights.open == 0)
    }

    @Test("the ring grows with what is under way, and keeps all of it")
    func grows() {
        let flights = Flights()
        for sequence: UInt64 in 0..<1_000 { #expect(flights.begin(sequence, receivers: 2) == 0) }
        #expect(flights.open == 1_000)
        for sequence: UInt64 in (0..<1_000).reversed() {
            #expect(flights.arrived(sequence) == "known first")
        }
        for sequence: UInt64 in 0..<1_000 { #expect(flights.arrived(sequence) == "known last") }
        #expect(flights.open == 0)
    }

    @Test("beyond its bound the oldest is given up, and its receivers are strangers")
    func bound() {
        let flights = Flights()
        let most = UInt64(FanOutFlights.mostOpen)
        for sequence in 0..<most { #expect(flights.begin(sequence, receivers: 3) == 0) }
        _ = flights.arrived(0)
        #expect(flights.begin(most, receivers: 1) == 2)
        #expect(flights.open == Int32(most))
        #expect(flights.arrived(0) == "unknown")
        #expect(flights.arrived(most) == "known first last")
    }

    @Test("a bounced message waits for no receiver")
    func refused() {
        let flights = Flights()
        _ = flights.begin(4, receivers: 5)
        #expect(flights.drop(4) == (5, true))
        _ = flights.begin(5, receivers: 5)
        _ = flights.arrived(5)
        #expect(flights.drop(5) == (4, false))
        #expect(flights.drop(5) == (0, false))
        #expect(flights.open == 0)
    }

    @Test("those under way are known by their whole sequence, whatever its height")
    func sequences() {
        let base: UInt64 = 0xFFFF_FFFE
        let flights = Flights()
        for index: UInt64 in 0..<4 { _ = flights.begin(base + index, receivers: 1) }
        _ = flights.arrived(base + 2)
        #expect(flights.sequences(below: base + 4) == [base, base + 1, base + 3])
    }

    @Test("who leaves is not waited for")
    func leaves() {
        let flights = Flights()
        for sequence: UInt64 in 0..<3 { _ = flights.begin(sequence, receivers: 2) }
        _ = flights.arrived(1)
        #expect(flights.miss(1) == "done")
        #expect(flights.miss(2) == "known")
        #expect(flights.miss(1) == "unknown")
        #expect(flights.open == 2)
        #expect(flights.arrived(2) == "known first last")
    }
}
