import EmbeddedBroker
import Measurement
import RunControl
import TestSupport
import Testing

@Suite("Counts agree with the broker's own")
struct BrokerBooksTests {
    @Test(
        "payload_bytes_sent counts each message, whatever the sizes of a write's",
        arguments: [
            // 300 messages of each client, from number 0 on.
            ("-m x%s", 4 * (10 * 2 + 90 * 3 + 200 * 4)...4 * (10 * 2 + 90 * 3 + 200 * 4)),
            ("-s 40..400", 1_200 * 180...1_200 * 260), ("-s 40..41", 1_200 * 40 + 400...1_200 * 41 - 400),
        ],
        ["-q 0 -F 7", "-q 1,2 -F 16"]
    )
    func payload(_ payload: (flags: String, bytes: ClosedRange<Int>), _ flags: String) throws {
        let run = try VirtualClamor.of("pubsub -h embedded -c 4 -L 1200 --seed 3 \(flags) \(payload.flags)")
        #expect(run.status == 0)
        let sent = run.record.count("payload_bytes_sent")
        #expect(payload.bytes.contains(Int(sent)), "\(sent)")
        #expect(run.record.count("payload_bytes_received") == sent)
    }

    @Test("messages above 1 MiB need no option of the run", arguments: [4, 5])
    func large(_ version: Int) throws {
        let run = try VirtualClamor.of("pubsub -h embedded -V \(version) -c 2 -q 1 -s 2MiB -L 6")
        #expect(run.status == 0, "\(run.errors)")
        #expect(run.record.count("payload_bytes_received") == 6 * 2_097_152)
        #expect(run.record.errors.isEmpty)
    }

    /// Of each message, so many copies are delivered.
    static let topologies: [(flags: String, copies: Int)] = [
        ("pair -q 0,1,2", 1), ("fan-in -q 0,1,2", 1), ("shared -q 0,1,2", 1), ("fan-out -q 0", 4),
        ("fan-out -q 1", 4), ("fan-out -q 2", 4),
    ]

    @Test(
        "pubsub receives all that is expected, in every topology and protocol version",
        arguments: topologies,
        [3, 4, 5]
    )
    func topology(_ topology: (flags: String, copies: Int), _ version: Int) throws {
        let run = try VirtualClamor.of(
            """
            pubsub -h embedded -V \(version) --topology \(topology.flags) -c 4 -s 64 \
            --rate 600/s -L 180
            """
        )
        #expect(run.status == 0)
        #expect(run.record.isSound, "\(run.record.reasonCodes)")
        let expected = run.record.perQoS("delivery_expected")
        #expect(expected.reduce(0, +) == 180 * topology.copies)
        #expect(run.broker.received.total == 180)
        #expect(expected == run.broker.delivered.all)
        #expect(run.record.books.map(\.received) == expected.map { UInt64($0) }.filter { $0 > 0 })
        #expect(run.record.perQoS("delivery_lost") == [0, 0, 0])
        #expect(run.record.perQoS("delivery_duplicated") == [0, 0, 0])
        #expect(run.record.count("received") == run.broker.delivered.total)
        #expect(run.record.ledger.on)
    }
}
