import Measurement
import Testing

@Suite("Fixtures of pages") struct FixtureTests {
    @Test("The books of a fixture balance", arguments: Fixture.all)
    func balance(fixture: Fixture) {
        #expect(fixture.record.books.flatMap(\.imbalances) == [])
    }

    @Test("The time line of a fixture adds up to its totals", arguments: Fixture.all)
    func addUp(fixture: Fixture) {
        for column in fixture.timeline.columns where column.kind != .gauge {
            #expect(column.values.count == fixture.timeline.seconds.count, "\(column.name)")
            let metric = fixture.record.metrics.first { $0.name == column.name && $0.labels == column.labels }
            let sum = column.values.filter { !$0.isNaN }.reduce(0, +)
            #expect(metric?.counter?.value ?? metric?.duration.map { Double($0.count) } ?? 0 == sum, "\(column.name)")
        }
    }

    @Test("The stall of the hour is one second long")
    func stall() {
        let timeline = Fixture.stalledHour.timeline
        let acked = timeline.columns.filter { $0.name == "publish_acked" }
        #expect(acked.count == 54)
        for column in acked {
            let silent = timeline.seconds.indices.filter { timeline.phases[$0] == "measure" && column.values[$0] == 0 }
            #expect(silent.map { timeline.seconds[$0] } == [Fixture.stallSecond])
        }
    }
}
