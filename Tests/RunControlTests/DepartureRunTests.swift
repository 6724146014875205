import EmbeddedBroker
import Measurement
import RunControl
import TestSupport
import Testing

@Suite("Churn and storms")
struct DepartureRunTests {
    /// How many are due, and how many of them so late that the load's end may find them away.
    @Test(
        "conn --churn: clients leave at that rate, in turn, and all come back",
        arguments: [("40/s --duration 1s", 40, 10)]
    )
    func churn(_ churn: String, _ due: Int, _ away: Int) throws {
        let run = try VirtualClamor.of("conn -h embedded -c 10 --churn \(churn)")
        #expect(run.status == 0, "\(run.errors)")
        let left = run.record.count("disconnects", ["reason": "churn"])
        let missed = run.record.count("departures_missed", ["reason": "churn"])
        #expect(left + missed == due)
        #expect(left > 0)
        let back = run.record.count("reconnects")
        #expect((left - away...left).contains(back), "\(back) of \(left)")
        #expect(run.record.duration("reconnect_duration", ["phase": "total"])?.count ?? 0 == UInt64(back))
        #expect(run.record.duration("connect_duration", ["phase": "total"])?.count == 10)
        #expect(run.record.errors.isEmpty)
    }

    @Test("a storm that the load's end came before is counted, every client of it")
    func stormMissed() throws {
        let run = try VirtualClamor.of("pub -h embedded -c 4 -q 1 --rate 100/s -L 10 --storm 50%@60s")
        #expect(run.status == 0, "\(run.errors)")
        #expect(run.record.count("disconnects", ["reason": "storm"]) == 0)
        #expect(run.record.count("departures_missed", ["reason": "storm"]) == 2)
    }

    @Test("sessions that are resumed at the embedded broker: its counts agree", arguments: [50, 100])
    func resumed(_ share: Int) throws {
        let run = try VirtualClamor.of(
            """
            pubsub -h embedded -c 6 -q 1,2 -I 0 -F 50 --duration 1s -V 5 -C false -x 300 --storm \(share)%@300ms \
            --storm \(share)%@600ms --seed 7
            """
        )
        #expect(run.status == 0, "\(run.errors)")
        #expect(run.record.count("publish_resent") > 0)
        #expect(!run.record.reasonCodes.contains("broker-books"), "\(run.record.verdict?.reasons ?? [])")
    }

    @Test("a storm of all with clean sessions: what is lost is counted, and the books close")
    func clean() throws {
        let run = try VirtualClamor.of(
            "pubsub -h embedded -c 6 -q 0,1,2 --rate 300/s --duration 4s --storm 100%@500ms -R 100 --seed 3"
        )
        #expect(run.status == 0, "\(run.errors)")
        #expect(run.record.count("disconnects", ["reason": "storm"]) == 12)
        #expect(run.record.count("reconnects") == 12)
        #expect(run.record.books.allSatisfy { $0.balances })
        #expect(run.record.perQoS("publish_offered") == [400, 400, 400])
        #expect(run.record.isSound, "\(run.record.reasonCodes)")
    }

    @Test("messages of different sizes and an alias: nothing is lost, and each topic goes out once a connection")
    func aliases() throws {
        let run = try VirtualClamor.of(
            """
            pubsub -h embedded -c 2 -q 1 --rate 100/s -L 60 --topic-alias --response-topic r/%i/%s \
            --user-properties=a:b
            """
        )
        #expect(run.status == 0, "\(run.errors)")
        #expect(run.record.count("delivery_expected", qos: 1) == 60)
        #expect(run.record.count("delivery_lost", qos: 1) == 0)
    }

    @Test(
        "--raw: bytes instead of CONNECT, and the server's reaction",
        arguments: [
            ("-V 4", "100c00044d5154540402003c0000", 0, ""),
            ("-V 4", "100c00044d5154540902003c0000", 69, "connack 0x01"),
        ]
    )
    func raw(_ version: String, _ bytes: String, _ status: Int32, _ kind: String) throws {
        let run = try VirtualClamor.of("conn -h embedded \(version) --duration 100ms --raw \(bytes)")
        #expect(run.status == status, "\(run.errors)")
        #expect(run.record.errors.map(\.kind) == (kind.isEmpty ? [] : [kind]))
        #expect(!run.record.command.joined().contains(bytes))
    }
}
