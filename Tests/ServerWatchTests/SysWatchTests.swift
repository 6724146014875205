import MQTT
import Measurement
import NIOCore
import NIOPosix
import ServerWatch
import Synchronization
import TestSupport
import Testing

/// Lines that a watch says to the user.
final class Lines: Sendable {
    private let lines = Mutex<[String]>([])

    var all: [String] { self.lines.withLock { $0 } }

    func add(_ line: String) { self.lines.withLock { $0.append(line) } }
}

@Suite("Watching a server", .enabled(if: Mosquitto.isInstalled, "\(Mosquitto.missing)"))
struct SysWatchTests {
    private static func configuration(_ port: Int) -> MQTTClientConfiguration {
        MQTTClientConfiguration(host: "127.0.0.1", port: UInt16(port))
    }

    private static func settings(_ port: Int) -> SysWatch.Settings {
        var settings = SysWatch.Settings(client: Self.configuration(port))
        settings.firstPatience = .seconds(60)
        settings.lastPatience = .seconds(60)
        return settings
    }

    @Test("books: PUBLISH at QoS 0 and 1 are received, at QoS 2 they are not; all are sent", arguments: [0, 1, 2])
    func books(qos: UInt8) async throws {
        try await Mosquitto.with { broker in
            let lines = Lines()
            let watch = SysWatch(Self.settings(broker.port), on: MultiThreadedEventLoopGroup.singleton) {
                lines.add($0)
            }
            await watch.begin()
            let level = try #require(QoS(rawValue: qos))
            let client = MQTTClient(Self.configuration(broker.port))
            try await client.connect()
            try await client.subscribe([Subscription(filter: "t", qos: level)])
            for _ in 0..<40 { try await client.publish(MQTTMessage(topic: "t", payload: [1], qos: level)) }
            var messages = client.messages.makeAsyncIterator()
            for _ in 0..<40 { _ = await messages.next() }
            await client.disconnect()
            let end = await watch.end()
            let books = try #require(end.books)
            #expect(books.isSettled)
            #expect(books.received == (qos == 2 ? 0 : 40))
            #expect(books.sent == 40)
            #expect(books.server?.product == "mosquitto")
            var sent: [UInt64] = [0, 0, 0]
            sent[Int(qos)] = 40
            #expect(books.differences(sent: sent, received: 40).isEmpty)
            #expect(books.differences(sent: sent, received: 41).count == 1)
            #expect(lines.all.isEmpty)
            // No interval was ended, so the last metrics have all of the run.
            let received = end.last.value("server_sys", ["topic": "broker/publish/messages/received"])
            #expect(received == (qos == 2 ? 0 : 40))
            #expect(end.last.value("server_sys", ["topic": "broker/clients/connected"]) != nil)
            #expect(watch.look().isEmpty)
        }
    }

    @Test("an ended broker: a line, absent numbers, no books")
    func end() async throws {
        try await Mosquitto.with { broker in
            let lines = Lines()
            let watch = SysWatch(Self.settings(broker.port), on: MultiThreadedEventLoopGroup.singleton) {
                lines.add($0)
            }
            await watch.begin()
            #expect(watch.look().contains { $0.labels["topic"] == "broker/clients/connected" })
            broker.program.send(9)
            _ = try await broker.program.ended()
            while lines.all.isEmpty {
                _ = watch.look()
                await Task.yield()
            }
            for _ in 0..<3 { #expect(watch.look().isEmpty) }
            let end = await watch.end()
            #expect(end.books == nil && end.last.isEmpty)
            #expect(lines.all == ["the connection to the broker was lost: its numbers are absent"])
        }
    }

    @Test("no broker: one line, and the run goes on")
    func noBroker() async throws {
        let port = try ReservedPort()
        let lines = Lines()
        let watch = SysWatch(Self.settings(port.port), on: MultiThreadedEventLoopGroup.singleton) { lines.add($0) }
        await watch.begin()
        for _ in 0..<3 { #expect(watch.look().isEmpty) }
        let end = await watch.end()
        #expect(end.books == nil && end.last.isEmpty)
        #expect(lines.all.count == 1)
        #expect(lines.all.first?.hasSuffix(": its numbers are absent") == true)
    }

    @Test("every source together, over a run's intervals")
    func together() async throws {
        try await Mosquitto.with { broker in
            try await withScriptedPeer { peer in
                let lines = Lines()
                var settings = ServerWatch.Settings()
                settings.processes = ["\(broker.program.pid)"]
                // The broker is a child of the tests.
                settings.files.ownProcess = .max
                settings.sys = Self.settings(broker.port)
                let address = try #require(ExporterAddress("http://127.0.0.1:\(peer.port)/"))
                settings.exporters = [PrometheusSettings(address: address)]
                let watch = ServerWatch(settings) { lines.add($1) }
                async let begun = watch.begin(at: 0)
                try await peer.untilBytes(1)
                try await peer.send(Array("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ng 7\n".utf8))
                _ = try await begun
                let metrics = await watch.look(at: 1_000_000_000)
                #expect(metrics.value("server_cpu", ["process": "mosquitto"]) != nil)
                #expect((metrics.value("server_memory_bytes") ?? 0) > 0)
                #expect(metrics.value("server_metric", ["series": "g"]) == 7)
                #expect(metrics.value("server_sys", ["topic": "broker/clients/total"]) != nil)
                // The exporter answers no more, and delays nothing.
                let second = await watch.look(at: 2_000_000_000)
                #expect(second.value("server_metric") == nil)
                #expect(second.value("server_cpu") != nil)
                let result = await watch.end()
                #expect(result.server?.product == "mosquitto")
                #expect(result.books?.received == 0)
                #expect(result.last.value("server_sys", ["topic": "broker/publish/messages/received"]) == 0)
                #expect(Set(result.last.map(\.name)) == ["server_sys"])
                #expect(lines.all.isEmpty)
                #expect(await watch.look(at: 3_000_000_000).isEmpty)
            }
        }
    }

    @Test("an exporter that fails and answers again: a line each, and no value in between")
    func exporter() async throws {
        try await withScriptedPeer { peer in
            let lines = Lines()
            var settings = ServerWatch.Settings()
            let address = try #require(ExporterAddress("http://127.0.0.1:\(peer.port)/x"))
            settings.exporters = [PrometheusSettings(address: address)]
            let watch = ServerWatch(settings) { lines.add($1) }
            async let begun = watch.begin(at: 0)
            try await peer.untilBytes(1)
            let length = try await peer.received().count
            try await peer.send(Array("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n".utf8))
            _ = try await begun
            #expect(await watch.look(at: 1_000_000_000).isEmpty)
            try await peer.untilConnections(2)
            try await peer.untilBytes(length + 1)
            try await peer.send(Array("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ng 7\n".utf8), to: 1)
            var metrics: [Metric] = []
            var time: Int64 = 1_000_000_000
            while metrics.isEmpty {
                time += 1_000_000_000
                metrics = await watch.look(at: time)
            }
            #expect(metrics.value("server_metric", ["series": "g"]) == 7)
            _ = await watch.end()
            #expect(
                lines.all == [
                    "\(address): status 503; its metrics are absent until it answers",
                    "\(address): answers again",
                ]
            )
        }
    }

    @Test("a process that is not there is an error; an exporter that is not there is a line")
    func errors() async throws {
        let lines = Lines()
        var settings = ServerWatch.Settings()
        settings.processes = ["no-such-server"]
        let refused = ServerWatch(settings) { lines.add($1) }
        await #expect(throws: ServerWatchError.self) { try await refused.begin(at: 0) }
        _ = await refused.end()
        let port = try ReservedPort()
        settings.processes = []
        settings.exporters = [
            PrometheusSettings(address: try #require(ExporterAddress("http://127.0.0.1:\(port.port)")))
        ]
        let watch = ServerWatch(settings) { lines.add($1) }
        try await watch.begin(at: 0)
        #expect(await watch.look(at: 1_000_000_000).isEmpty)
        let result = await watch.end()
        #expect(result.books == nil && result.server == nil)
        #expect(
            lines.all == [
                "http://127.0.0.1:\(port.port)/metrics: connection refused; "
                    + "its metrics are absent until it answers"
            ]
        )
    }
}
