import Measurement
import Report
import RunControl
import TestSupport
import Testing

@Suite("A run, from its command line to its results")
struct RunSessionTests {
    @Test("pairs at a rate: what was sent came, and the record says so", arguments: [0, 1, 2])
    func pairs(_ qos: Int) throws {
        let run = try VirtualClamor.of("pubsub -h embedded -c 4 -q \(qos) -s 64 --rate 100/s --duration 5s --seed 1")
        #expect(run.status == 0, "\(run.errors)")
        #expect(run.record.state == .valid, "\(run.record.reasonCodes)")
        #expect(run.record.count("publish_sent", qos: qos) == 500)
        #expect(run.record.count("received", qos: qos) == 500)
        #expect(run.record.count("delivery_lost") == 0)
        #expect(run.folder.entries("out").contains("timeline.csv"))
    }
}
