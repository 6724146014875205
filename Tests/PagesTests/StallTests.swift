import Measurement
import Testing

@Suite("A stall of one second in an hour") struct StallTests {
    @Test("The page tells its second")
    func second() throws {
        let fixture = try #require(Fixture.all.first { $0.name == Fixture.stalledHour.name })
        let events = fixture.record.findings?.events.filter { $0.kind == .stall } ?? []
        #expect(events.map(\.second) == [Fixture.stallSecond])
        #expect(try fixture.html().contains("\(Fixture.stallSecond) s"))
    }
}
