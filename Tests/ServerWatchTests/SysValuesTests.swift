import Measurement
import ServerWatch
import Testing

@Suite("Numbers below $SYS")
struct SysValuesTests {
    private static let second: Int64 = 1_000_000_000
    private static let received = "broker/publish/messages/received"
    private static let sent = "broker/publish/messages/sent"

    /// A round as mosquitto sends it: its time first.
    private static func round(_ values: inout SysValues, at time: Int64, _ numbers: (String, Int)...) {
        values.take(topic: "$SYS/broker/uptime", payload: Array("1 seconds".utf8), retained: false, at: time)
        for (topic, number) in numbers {
            values.take(topic: "$SYS/\(topic)", payload: Array("\(number)".utf8), retained: false, at: time + 1)
        }
    }

    private static func retained(_ values: inout SysValues, _ numbers: (String, Int)...) {
        for (topic, number) in numbers {
            values.take(topic: "$SYS/\(topic)", payload: Array("\(number)".utf8), retained: true, at: 0)
        }
    }

    @Test("gauges have their last value, counters what the broker reported in the interval")
    func intervals() throws {
        var values = SysValues()
        Self.retained(&values, ("broker/clients/connected", 5), (Self.received, 100), ("broker/bytes/sent", 7))
        let first = values.look(at: Self.second)
        #expect(first.value("server_sys", ["topic": "broker/clients/connected"]) == 5)
        // A retained value is of an earlier time.
        #expect(first.count == 1)
        Self.round(&values, at: 10 * Self.second, (Self.received, 600))
        let second = values.look(at: 11 * Self.second)
        let counter = try #require(second.first { $0.labels["topic"] == Self.received }?.counter)
        // An update is of the broker's whole interval, so it has no rate in the second in which it came.
        #expect(counter == CounterReading(value: 500, rate: nil))
        // A number that a round leaves out has not changed.
        let bytes = try #require(second.first { $0.labels["topic"] == "broker/bytes/sent" })
        #expect(bytes.unit == "bytes")
        #expect(bytes.counter?.value == 0)
        // Between two rounds nothing is known.
        #expect(values.look(at: 12 * Self.second).map(\.name) == ["server_sys"])
    }

    @Test("a round that is cut by an interval belongs to the next one")
    func cut() throws {
        var values = SysValues()
        Self.retained(&values, (Self.received, 100))
        Self.round(&values, at: 10 * Self.second)
        #expect(values.look(at: 10 * Self.second + 1).isEmpty)
        values.take(
            topic: "$SYS/\(Self.received)",
            payload: Array("130".utf8),
            retained: false,
            at: 10 * Self.second + 2
        )
        #expect(values.look(at: 11 * Self.second).value("server_sys") == 30)
    }

    @Test("a counter that fell is a broker that started again")
    func restart() {
        var values = SysValues()
        Self.retained(&values, (Self.received, 100))
        Self.round(&values, at: Self.second, (Self.received, 8))
        #expect(values.look(at: 2 * Self.second).value("server_sys") == 8)
    }

    @Test("other topics, and payloads that are no numbers, are left out")
    func others() {
        var values = SysValues()
        for payload in ["", "-1", "1.5", "9007199254740992", "x", "123456789012345678901", "+", "0x1"] {
            values.take(topic: "$SYS/\(Self.received)", payload: Array(payload.utf8), retained: false, at: 1)
        }
        for topic in [
            "$SYS/broker/load/x", "broker/publish/messages/received", "$SYS/", "$SYS/brokers/a/b", "$SYS/brokers",
        ] {
            values.take(topic: topic, payload: Array("1".utf8), retained: false, at: 1)
        }
        #expect(values.isEmpty)
        #expect(values.look(at: 2).isEmpty)
        #expect(values.count == SysValues.Count())
    }

    @Test("the count of packets sent is without those to the client that watches")
    func own() {
        var values = SysValues()
        Self.retained(&values, (Self.sent, 1_000), (Self.received, 50))
        // Whether a broker of unknown name counts its own messages is not known.
        #expect(values.count == SysValues.Count(received: 50, sent: nil))
        let version = "$SYS/broker/version"
        values.take(topic: version, payload: Array("mosquitto version 2.0.11".utf8), retained: true, at: 0)
        #expect(values.count == SysValues.Count(received: 50, sent: 1_000))
        // Three retained messages and the time came before it.
        Self.round(&values, at: Self.second, (Self.sent, 1_004))
        #expect(values.count.sent == 1_000)
        Self.round(&values, at: 2 * Self.second, (Self.sent, 1_016))
        #expect(values.count.sent == 1_010)
        #expect(values.rounds.count == 1)
        values.closeRound(at: 2 * Self.second + 100_000_000)
        #expect(values.rounds.count == 1)
        values.closeRound(at: 2 * Self.second + 200_000_000)
        #expect(values.rounds.last == SysValues.Count(received: 50, sent: 1_010))
    }

    @Test("EMQX: the sum of its nodes, and its own $SYS is not in it")
    func nodes() {
        var values = SysValues()
        for node in ["emqx@10.0.0.1", "emqx@10.0.0.2"] {
            values.take(topic: "$SYS/brokers/\(node)/version", payload: Array("5.8.6".utf8), retained: false, at: 1)
            for (name, number) in [("received", 7), ("sent", 20)] {
                let topic = "$SYS/brokers/\(node)/metrics/packets/publish/\(name)"
                values.take(topic: topic, payload: Array("\(number)".utf8), retained: false, at: 2)
            }
        }
        #expect(values.count == SysValues.Count(received: 14, sent: 40))
        #expect(values.record == ServerRecord(product: "emqx", version: "5.8.6", source: "$SYS/brokers/+/version"))
    }
}

@Suite("Books of the broker")
struct SysBooksTests {
    private static func server(_ product: String, _ version: String?) -> ServerRecord {
        ServerRecord(product: product, version: version, source: "$SYS/broker/version")
    }

    @Test(
        "there are books of mosquitto and of the embedded broker alone",
        arguments: [("mosquitto", true), ("clamor", true), ("emqx", false), ("nanomq", false), (nil, false)]
            as [(String?, Bool)]
    )
    func brokers(product: String?, hasBooks: Bool) {
        let server = product.map { Self.server($0, "1.0") }
        let first = SysValues.Count(received: 5, sent: 7)
        let last = SysValues.Count(received: 6, sent: 9)
        let books = SysBooks(from: first, to: last, isSettled: true, server)
        #expect(SysBooks.exist(for: server) == hasBooks)
        #expect(books?.received == (hasBooks ? 1 : nil))
        #expect(books?.sent == (hasBooks ? 2 : nil))
    }

    @Test("no line where both agree, or the broker does not tell")
    func agree() {
        #expect(SysBooks(received: 6, sent: 9).differences(sent: [1, 2, 3], received: 9).isEmpty)
        #expect(SysBooks(received: nil, sent: nil).differences(sent: [1, 2, 3], received: 9).isEmpty)
    }

    @Test("mosquitto up to 2.0 leaves QoS 2 out of what it received, and the line says so")
    func qos2() {
        var books = SysBooks(received: 3, sent: 9, server: Self.server("mosquitto", "2.0.11"))
        #expect(books.differences(sent: [1, 2, 3], received: 9).isEmpty)
        books.received = 6
        #expect(
            books.differences(sent: [1, 2, 3], received: 9) == [
                "$SYS: mosquitto received 6 PUBLISH, the run sent 3 without QoS 2, which mosquitto up to 2.0 leaves out"
            ]
        )
        books.server = Self.server("mosquitto", "2.1.0")
        #expect(books.differences(sent: [1, 2, 3], received: 9).isEmpty)
    }

    @Test(
        "which brokers leave QoS 2 out",
        arguments: [
            ("mosquitto", "1.6.9", true), ("mosquitto", "2.0.22", true), ("mosquitto", "2.1.0", false),
            ("mosquitto", "3.0", false), ("mosquitto", "x", false), ("mosquitto", nil, false), ("emqx", "1.0.0", false),
        ] as [(String, String?, Bool)]
    )
    func leavesOut(product: String, version: String?, leavesOut: Bool) {
        let books = SysBooks(received: 1, sent: 1, server: Self.server(product, version))
        #expect(books.leavesOutQoS2 == leavesOut)
    }

    @Test("lines name both figures, and why the broker's may be another")
    func lines() {
        let books = SysBooks(received: 5, sent: 8, isSettled: false, startsEarlier: true)
        #expect(
            books.differences(sent: [6], received: 9) == [
                "$SYS: the broker received 5 PUBLISH, the run sent 6; its count starts at its last update before the "
                    + "run; its count was still changing, or not reported in time",
                "$SYS: the broker sent 8 PUBLISH, the run received 9; its count starts at its last update before the "
                    + "run; its count was still changing, or not reported in time",
            ]
        )
    }
}
