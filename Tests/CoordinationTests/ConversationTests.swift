import Coordination
import LoadEngine
import MQTT
import MQTTCodec
import Measurement
import TestSupport
import Testing

/// The conversation over loopback sockets.
@Suite("The conversation of a coordinator with its segments", .timeLimit(.minutes(2)))
struct ConversationTests {
    private static func hello(_ segment: Int, of count: Int) -> SegmentHello {
        SegmentHello(version: "1", run: "r 1", plan: "p", segment: segment, segments: count, host: "h")
    }

    private static let credentials = CoordinationCredentials(password: "right")

    private static func server() async throws -> CoordinatorServer {
        try await CoordinatorServer.start(host: "127.0.0.1", port: 0, tls: nil, credentials: Self.credentials)
    }

    private static func link(
        _ server: CoordinatorServer,
        _ hello: SegmentHello = Self.hello(1, of: 1),
        credentials: CoordinationCredentials? = Self.credentials,
        ahead: Int64 = 0,
        joinTimeout: Duration = .seconds(60)
    ) -> SegmentLink {
        var settings = SegmentLink.Settings(host: "127.0.0.1", port: UInt16(server.port), joinTimeout: joinTimeout)
        settings.credentials = credentials
        return SegmentLink(settings, hello, clock: OwnClock(ahead: ahead)) { _ in }
    }

    /// A coordinator that welcomes every segment and answers its exchanges of times.
    private static func answer(
        _ server: CoordinatorServer,
        clock: OwnClock = OwnClock(),
        _ event: @escaping @Sendable (SegmentReport, Coordinator.Address) -> Void = { _, _ in }
    ) -> Task<Void, Never> {
        Task {
            for await read in server.events {
                guard case .report(let report, let address) = read else { continue }
                switch report {
                case .hello:
                    server.send(.welcome(SegmentWelcome(run: "r", seed: 3, clock: clock.identity)), to: address)
                case .echo(let sent):
                    server.send(.echo(sent: sent, received: clock.now, answered: clock.now), to: address)
                default: break
                }
                event(report, address)
            }
        }
    }

    @Test("reports and orders arrive as they were sent, in their order")
    func messages() async throws {
        let server = try await Self.server()
        let reports: [SegmentReport] = [
            .ready, .settled, .balance(DeliveryBalance(expected: 5, received: 3, uncertain: 1), group: 2), .line("a b"),
            .interval(TimelineInterval(second: 3, phase: "measure", seconds: 1, metrics: [], lanes: [])),
            .ended(
                SegmentEnding(status: 99, words: "w", files: [ResultFile(name: "run.json", length: 1, sha256: "f")])
            ),
        ]
        let orders: [SegmentOrder] = [
            .start(at: 5), .load(at: .max), .complete(group: 7), .stop(.ordered), .stop(.lost),
            .stop(.threshold("a < 5ms abort")),
        ]
        let (seen, see) = AsyncStream<SegmentReport>.makeStream()
        let answering = Self.answer(server) { report, address in
            if case .hello = report { for order in orders { server.send(order, to: address) } }
            see.yield(report)
        }
        let link = Self.link(server)
        let welcome = try await link.join()
        #expect(welcome.run == "r" && welcome.seed == 3)
        for report in reports { link.tell(report) }
        var came: [SegmentReport] = []
        // Where the host is slow, the greeting comes again before its answer is there.
        for await report in seen where report != came.last {
            came.append(report)
            if came.count == reports.count + 1 { break }
        }
        #expect(came == [.hello(Self.hello(1, of: 1))] + reports)
        var read: [SegmentOrder] = []
        for await order in link.orders {
            read.append(order)
            if read.count == orders.count { break }
        }
        #expect(read == orders)
        await link.close()
        answering.cancel()
        await server.close()
    }

    /// A terminal and a live page show these names.
    @Test("an interval whose names have control characters, or no end, is not heard")
    func names() async throws {
        let server = try await Self.server()
        func interval(_ second: Int, _ phase: String, _ name: String, _ labels: Labels) -> SegmentReport {
            let metric = Metric(name: name, labels: labels, reading: .counter(CounterReading(value: 1, rate: nil)))
            return .interval(
                TimelineInterval(second: second, phase: phase, seconds: 1, metrics: [metric], lanes: [])
            )
        }
        let good = interval(9, "measure", "received", ["group": "a"])
        let (seen, see) = AsyncStream<SegmentReport>.makeStream()
        let answering = Self.answer(server) { report, _ in if case .interval = report { see.yield(report) } }
        let link = Self.link(server)
        _ = try await link.join()
        link.tell(interval(1, "measure\u{1B}[2J", "received", [:]))
        link.tell(interval(2, "measure", "received\n# forged", [:]))
        link.tell(interval(3, "measure", "received", ["group": "a\u{202E}"]))
        link.tell(interval(4, "measure", "received", ["gr\u{7}oup": "a"]))
        link.tell(interval(5, "measure", String(repeating: "a", count: 501), [:]))
        link.tell(good)
        #expect(await seen.first { _ in true } == good)
        await link.close()
        answering.cancel()
        await server.close()
    }

    @Test("a greeting that had no receiver, or found its index taken, is repeated until the segment is welcome")
    func greetsAgain() async throws {
        let server = try await Self.server()
        let answering = Task {
            var count = 0
            for await read in server.events {
                guard case .report(.hello, let address) = read else { continue }
                count += 1
                switch count {
                // As if it had come before the coordinator's own client had subscribed.
                case 1: break
                case 2: server.send(.taken("segment 1 is there already"), to: address)
                default: server.send(.welcome(SegmentWelcome(run: "r", seed: 3, clock: nil)), to: address)
                }
            }
        }
        let link = Self.link(server)
        #expect(try await link.join().run == "r")
        await link.close()
        answering.cancel()
        await server.close()
    }

    @Test("a segment with a wrong password, or none, does not join, and is named", arguments: [nil, "wrong"])
    func password(_ password: String?) async throws {
        let server = try await Self.server()
        let answering = Self.answer(server)
        #expect(await server.wrongLogins() == nil)
        let link = Self.link(server, credentials: password.map { CoordinationCredentials(password: $0) })
        await #expect(throws: SegmentLinkError.self) { try await link.join() }
        #expect(await server.wrongLogins() == "logins with a wrong user or password: 1 from 127.0.0.1")
        #expect(await server.wrongLogins() == nil)
        await link.close()
        let right = Self.link(server)
        #expect(try await right.join().run == "r")
        await right.close()
        answering.cancel()
        await server.close()
    }

    @Test(
        "a process that knows the password neither reports for another segment nor hears its orders",
        arguments: ["2-b", "1-b", "01-a", "1-", "+", "#", "1-a/x"]
    )
    func forged(_ clientID: String) async throws {
        let server = try await Self.server()
        var configuration = MQTTClientConfiguration(host: "127.0.0.1", port: UInt16(server.port))
        configuration.version = .v5
        configuration.clientID = clientID
        configuration.authentication = .scramSHA256(user: "segment", password: Self.credentials.password)
        let client = MQTTClient(configuration)
        try await client.connect()
        for topic in ["up", "file/run.json", "down"].map({ "clamor/2/r/1-a/\($0)" }) {
            let error = await #expect(throws: MQTTClientError.self) {
                try await client.publish(MQTTMessage(topic: topic, qos: .atLeastOnce))
            }
            guard case .rejected(let result)? = error else {
                Issue.record("\(topic): \(String(describing: error))")
                continue
            }
            #expect(result.reason == .notAuthorized)
        }
        let filters = [
            "#", "clamor/2/r/1-a/down", "clamor/2/+/1-a/down", "clamor/2/+/+/down", "clamor/2/+/1-a/#",
            "$share/s/clamor/2/+/1-a/down",
        ]
        let results = try await client.subscribe(filters.map { Subscription(filter: $0, qos: .atLeastOnce) })
        #expect(results.map(\.reason) == filters.map { _ in ReasonCode.notAuthorized })
        await client.shutDown()
        await server.close()
    }

    @Test("the sender of a report is the client id that its topic names", arguments: ["2-b", "02-b", "x-b", "2"])
    func sender(_ clientID: String) async throws {
        let server = try await Self.server()
        var configuration = MQTTClientConfiguration(host: "127.0.0.1", port: UInt16(server.port))
        configuration.version = .v5
        configuration.clientID = clientID
        configuration.authentication = .scramSHA256(user: "segment", password: Self.credentials.password)
        let client = MQTTClient(configuration)
        try await client.connect()
        let (addresses, seen) = AsyncStream<Coordinator.Address>.makeStream()
        let answering = Self.answer(server) { _, address in seen.yield(address) }
        let (topic, payload) = ("clamor/2/r/\(clientID)/up", #"{"told":{"ready":{}}}"#)
        try await client.publish(MQTTMessage(topic: topic, payload: payload.utf8, qos: .atLeastOnce))
        // It comes behind the other one.
        let link = Self.link(server, Self.hello(1, of: 2))
        _ = try await link.join()
        var read: [Int] = []
        for await address in addresses {
            read.append(address.index)
            if address.index == 0 { break }
        }
        #expect(read == (clientID == "2-b" ? [1, 0] : [0]))
        await link.close()
        await client.shutDown()
        answering.cancel()
        await server.close()
    }

    @Test("the coordinator's clock is measured within the stated error, and the same clock is not corrected")
    func clock() async throws {
        let server = try await Self.server()
        let clock = OwnClock()
        let answering = Self.answer(server, clock: clock)
        let ahead: Int64 = 3_600_000_000_000
        let link = Self.link(server, ahead: ahead)
        try await link.synchronize(try await link.join()) { _ in }
        let record = try #require(link.clockRecord)
        let (offset, error) = (try #require(record.correctionSeconds), try #require(record.errorSeconds))
        #expect(abs(offset + Double(ahead) / 1e9) <= error)
        #expect(record.host != clock.identity)
        await link.close()
        let same = Self.link(server)
        try await same.synchronize(try await same.join()) { _ in }
        #expect(same.clockRecord?.host == clock.identity && same.clockRecord?.correctionSeconds == nil)
        await same.close()
        answering.cancel()
        await server.close()
    }

    @Test("the coordinator fetches all files of a segment that has ended")
    func files() async throws {
        let (source, target) = (try ScratchFolder(), try ScratchFolder())
        for size in [0, 5, 600_000] { try source.write(String(repeating: "x", count: size), to: "\(size).csv") }
        let server = try await Self.server()
        let collecting = Task { await Self.collect(server, into: target.path) }
        let link = Self.link(server)
        let welcome = try await link.join()
        try await link.synchronize(welcome) { _ in }
        let files = ResultFile.all(in: source.path)
        let isFetched = await link.finish(SegmentEnding(status: 0, files: files), directory: source.path)
        #expect(isFetched)
        await collecting.value
        #expect(ResultFile.all(in: target.path) == files)
        await link.close()
        await server.close()
    }

    private static func collect(_ server: CoordinatorServer, into path: String) async {
        var collector: ResultCollector?
        for await event in server.events {
            switch event {
            case .report(.hello, let address):
                server.send(.welcome(SegmentWelcome(run: "r", seed: 3, clock: OwnClock().identity)), to: address)
            case .report(.ended(let ending), let address):
                let made = ResultCollector(ending.files, into: path)
                collector = made
                if Self.tell(made.begin(), address, server) { return }
            case .part(let file, let offset, let bytes, let address):
                if Self.tell(collector?.add(bytes, of: file, at: offset), address, server) { return }
            case .report: break
            }
        }
    }

    private static func tell(
        _ step: ResultCollector.Step?,
        _ address: Coordinator.Address,
        _ server: CoordinatorServer
    ) -> Bool {
        switch step {
        case .want(let file, let offset):
            server.send(.want(file: file, offset: offset), to: address)
            return false
        case .done:
            server.send(.done, to: address)
            return true
        case .failed, nil: return false
        }
    }
}
