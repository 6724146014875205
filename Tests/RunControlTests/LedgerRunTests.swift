import EmbeddedBroker
import Measurement
import RunControl
import TestSupport
import Testing

@Suite("The ledger accuses no server wrongly")
struct LedgerRunTests {
    @Test("duplicates have no delivery duration, in no topology", arguments: ["pair", "fan-in", "shared"])
    func duplicates(_ topology: String) throws {
        let run = try VirtualClamor.of(
            "pubsub -h embedded --topology \(topology) -c 10 -q 1 --rate 200/s --duration 1s",
            "--broker",
            "--duplicate 2"
        )
        #expect(run.status == 0, "\(run.errors)")
        #expect(run.record.count("delivery_expected") == 200)
        #expect(run.record.count("delivery_duplicated") == 100)
        #expect(run.record.duration("delivery_duration")?.count == 200)
    }

    @Test("with Retain As Published and Retain Handling 2 every retained message is counted")
    func retained() throws {
        let run = try VirtualClamor.of(
            "pubsub -h embedded -c 5 -q 1 -r --retain-as-published --retain-handling 2 --rate 50/s --duration 2s"
        )
        #expect(run.status == 0, "\(run.errors)")
        #expect(run.record.count("delivery_expected") == 100)
        #expect(run.record.count("delivery_lost") == 0)
        #expect(run.record.count("received", ["retained": "true"]) == 100)
        #expect(run.record.duration("delivery_duration")?.count == 100)
    }
}
