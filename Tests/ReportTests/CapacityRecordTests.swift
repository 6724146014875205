import Report
import Testing

@Suite("Capacity record")
struct CapacityRecordTests {
    private typealias Answer = CapacityRecord.Answer

    private static let spent = "60 steps are the most of a search, and more were to be made"

    static let answers: [(answer: CapacityRecord.Answer, line: String)] = [
        (
            Answer(kind: "found", load: 20_000, low: 19_500, high: 20_500),
            "CAPACITY  20,000/s hold · interval 19,500/s … 20,500/s"
        ),
        (
            Answer(kind: "found", load: 20_000, low: 0, high: 40_000, reason: spent),
            "CAPACITY  20,000/s hold · interval 0/s … 40,000/s · \(spent)"
        ),
        (
            Answer(kind: "at-least", load: 5_000, low: 5_000),
            "CAPACITY  at least 5,000/s, which was the most that might be offered"
        ),
        (Answer(kind: "at-least", load: 5_000, low: 5_000, reason: spent), "CAPACITY  at least 5,000/s · \(spent)"),
        (Answer(kind: "nothing-holds", high: 10), "NOTHING HOLDS  not even 10/s"),
        (Answer(kind: "nothing-holds", high: 10, reason: spent), "NOTHING HOLDS  not even 10/s · \(spent)"),
        (
            Answer(kind: "generator-limited", load: 16_000, high: 32_000, reason: "loop 0 was busy"),
            "GENERATOR-LIMITED  at 32,000/s; 16,000/s held: loop 0 was busy"
        ),
        (Answer(kind: "interrupted", load: 1_000), "INTERRUPTED  1,000/s held until then"),
        (Answer(kind: "interrupted"), "INTERRUPTED  before anything held"),
        (
            Answer(kind: "interrupted", load: 1_000, reason: "step 3: connection refused"),
            "INTERRUPTED  1,000/s held until then · step 3: connection refused"
        ),
    ]

    @Test("the headline says what was found, and where the search was not at its end why", arguments: answers)
    func headline(_ row: (answer: CapacityRecord.Answer, line: String)) {
        var record = CapacityRecord(command: ["pub"], varies: "rate", objectives: [], holdSeconds: 20)
        record.answer = row.answer
        #expect(record.summary(files: nil) == "\n\(row.line)\n")
    }
}
