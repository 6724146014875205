import FaultInjection
import NIOCore
import Testing

@Suite("Bytes that a delay holds")
struct DelayScheduleTests {
    @Test(
        "every read, or every nth",
        arguments: [(1, [5, 5, 5, 5]), (3, [nil, nil, 5, nil]), (0, [5, 5, 5, 5])] as [(UInt64, [Int64?])]
    )
    func held(_ every: UInt64, _ held: [Int64?]) {
        var schedule = DelaySchedule(.milliseconds(5), every: every)
        #expect(held.map { _ in schedule.hold() } == held.map { $0.map { .milliseconds($0) } })
    }
}
