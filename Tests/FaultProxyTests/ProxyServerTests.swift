import FaultInjection
import FaultProxy
import NIOCore
import Synchronization
import TestSupport
import Testing
import Transport

/// Runs `body` with a proxy before a server, and gives what the proxy has counted in the end.
@discardableResult
func withProxy(
    before port: Int,
    _ configure: (inout ProxyConfiguration) -> Void = { _ in },
    _ body: (ProxyServer) async throws -> Void
) async throws -> ProxyCounters {
    var configuration = ProxyConfiguration(target: Target(host: "127.0.0.1", port: port))
    configure(&configuration)
    let proxy = try await ProxyServer.start(configuration)
    do {
        try await body(proxy)
    } catch {
        await proxy.stop()
        throw error
    }
    let counters = await proxy.stop()
    #expect(counters.clientsNow == 0)
    return counters
}

/// The same with a server that is one end of each connection.
@discardableResult
func withRelay(
    _ configure: (inout ProxyConfiguration) -> Void = { _ in },
    _ body: (ProxyServer, WireServer) async throws -> Void
) async throws -> ProxyCounters {
    let server = try await WireServer()
    let counters = try await withProxy(before: server.port, configure) { try await body($0, server) }
    await server.close()
    return counters
}

extension ProxyCounters.Bytes {
    /// Bytes that were read and neither written nor discarded.
    var waiting: UInt64 { self.read - self.written - self.discarded }
}

@Suite("Bytes through the proxy", .timeLimit(.minutes(10)))
struct ProxyServerTests {
    struct Way: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let count: Int
        let faults: ProxyFaults

        init(_ name: String, _ count: Int, _ change: (inout ProxyFaults) -> Void) {
            self.testDescription = name
            self.count = count
            var faults = ProxyFaults()
            change(&faults)
            self.faults = faults
        }
    }

    static let ways = [
        Way("no faults", 3_000_000) { _ in },
        Way("fragments", 30_000) { $0.fragment = 1...7 },
        Way("single bytes", 3_000) { $0.fragment = 1...1 },
        Way("a delay", 3_000_000) { $0.delay = .milliseconds(2) },
        Way("a delay of every 3rd", 3_000_000) {
            $0.delay = .milliseconds(3)
            $0.delayEvery = 3
        },
        Way("a rate", 300_000) { $0.rate = 2e6 },
        Way("all of them", 20_000) {
            $0.delay = .milliseconds(1)
            $0.rate = 1e6
            $0.fragment = 3...90
        },
    ]

    @Test("is what was sent, byte for byte, both ways at once, and both FINs", arguments: ways)
    func transparent(_ way: Way) async throws {
        var generator = SeededGenerator(seed: 11)
        let request = (0..<way.count).map { _ in UInt8.random(in: 0...255, using: &generator) }
        let response = (0..<way.count).map { _ in UInt8.random(in: 0...255, using: &generator) }
        let counters = try await withRelay({ $0.faults = way.faults }) { proxy, listener in
            let client = try await WireEnd.connect(to: proxy.port)
            let server = try await listener.accept()
            client.begin(request)
            server.begin(response)
            #expect(try await server.bytes(request.count) == request)
            #expect(try await client.bytes(response.count) == response)
            try await client.halfClose()
            #expect(try await server.ending() == .fin)
            try await server.halfClose()
            #expect(try await client.ending() == .fin)
        }
        for bytes in [counters.up, counters.down] {
            #expect(bytes.read == UInt64(way.count))
            #expect(bytes.written == UInt64(way.count))
            #expect(bytes.discarded == 0)
        }
        #expect(counters.connections == 1)
        #expect(counters.ends == ["client": 1])
        #expect(counters.turnedAway.isEmpty)
    }

    @Test("what a client says and ends before the server is reached is not lost", arguments: 0..<20)
    func early(_ round: Int) async throws {
        try await withRelay { proxy, listener in
            let client = try await WireEnd.connect(to: proxy.port)
            let hello = Array("hello \(round)".utf8)
            client.begin(hello)
            try await client.halfClose()
            let server = try await listener.accept()
            #expect(try await server.ending() == .fin)
            #expect(try await server.received == hello)
            // The other way is open still.
            try await server.send(Array("bye".utf8))
            try await server.halfClose()
            #expect(try await client.bytes(3) == Array("bye".utf8))
            #expect(try await client.ending() == .fin)
        }
    }

    @Test("clients that are gone before the server is reached leave nothing behind")
    func gone() async throws {
        let counters = try await withRelay { proxy, listener in
            for _ in 0..<50 {
                let client = try await WireEnd.connect(to: proxy.port)
                client.begin([1, 2, 3])
                try await client.reset()
            }
            // Later clients are served, and none of them remains.
            while await proxy.counters().clientsNow > 0 { await Task.yield() }
            let client = try await WireEnd.connect(to: proxy.port)
            try await client.send([9])
            while true {
                let server = try await listener.accept()
                if try await server.bytes(1) == [9] { break }
            }
        }
        #expect(counters.connections == 51)
    }

    @Test("the first reads of many connections do not get into each other", arguments: [false, true])
    func firstReads(_ isDelayed: Bool) async throws {
        try await withRelay({ if isDelayed { $0.faults.delay = .milliseconds(1) } }) { proxy, listener in
            var clients: [WireEnd] = []
            for number in 0..<50 {
                let client = try await WireEnd.connect(to: proxy.port)
                client.begin(Array(repeating: UInt8(number), count: 40 + number))
                clients.append(client)
            }
            var servers: [Int: WireEnd] = [:]
            for _ in clients {
                let server = try await listener.accept()
                let first = Int(try #require(try await server.bytes(1).first))
                #expect(try await server.bytes(40 + first) == Array(repeating: UInt8(first), count: 40 + first))
                servers[first] = server
            }
            for (number, server) in servers { server.begin(Array(repeating: UInt8(100 + number), count: 30)) }
            for (number, client) in clients.enumerated() {
                #expect(try await client.bytes(30) == Array(repeating: UInt8(100 + number), count: 30))
            }
        }
    }

    @Test("a server that ends first is heard to its end, and heard out")
    func serverEnds() async throws {
        let counters = try await withRelay { proxy, listener in
            let client = try await WireEnd.connect(to: proxy.port)
            let server = try await listener.accept()
            try await server.send([1, 2, 3])
            try await server.halfClose()
            #expect(try await client.ending() == .fin)
            #expect(try await client.received == [1, 2, 3])
            try await client.send([4, 5])
            #expect(try await server.bytes(2) == [4, 5])
            try await client.close()
            #expect(try await server.ending() == .fin)
        }
        #expect(counters.ends == ["server": 1])
    }

    @Test("a RST of the client is one for the server", arguments: [false, true])
    func clientResets(_ isDelayed: Bool) async throws {
        let counters = try await withRelay({ if isDelayed { $0.faults.delay = .milliseconds(5) } }) {
            proxy,
            listener in
            let client = try await WireEnd.connect(to: proxy.port)
            let server = try await listener.accept()
            try await client.send([1])
            #expect(try await server.bytes(1) == [1])
            try await client.reset()
            #expect(try await server.ending() == .rst)
        }
        #expect(counters.ends == ["clientReset": 1])
    }

    @Test("a RST of the server is one for the client, behind what the server said before", arguments: [false, true])
    func serverResets(_ isDelayed: Bool) async throws {
        let counters = try await withRelay({ if isDelayed { $0.faults.delay = .milliseconds(30) } }) {
            proxy,
            listener in
            let client = try await WireEnd.connect(to: proxy.port)
            let server = try await listener.accept()
            // The kernel accepts before the proxy knows that it is connected; a reset then fails its connect.
            try await client.send([1])
            #expect(try await server.bytes(1) == [1])
            try await server.send([7, 8, 9])
            // A delayed reset waits behind the bytes in the proxy, any other one must not overtake them in the kernel.
            if !isDelayed { #expect(try await client.bytes(3) == [7, 8, 9]) }
            try await server.reset()
            #expect(try await client.ending() == .rst)
            #expect(try await client.received == [7, 8, 9])
        }
        #expect(counters.ends == ["serverReset": 1])
    }

    @Test(
        "who does not read stops who sends, whatever they have to say",
        arguments: [true, false],
        [0, 20] as [Int64]
    )
    func backPressure(_ isUp: Bool, _ delay: Int64) async throws {
        let much = 48 << 20
        let most: UInt64 = isUp || delay == 0 ? 3 * 65_536 : 1 << 20 + 3 * 65_536
        let counters = try await withRelay({ if delay > 0 { $0.faults.delay = .milliseconds(delay) } }) {
            proxy,
            listener in
            let client = try await WireEnd.connect(to: proxy.port)
            let server = try await listener.accept()
            let (sender, receiver) = isUp ? (client, server) : (server, client)
            try await receiver.setReading(false)
            sender.begin([UInt8](repeating: 0x5A, count: much))
            while true {
                let counters = await proxy.counters()
                let bytes = isUp ? counters.up : counters.down
                #expect(bytes.waiting <= most)
                if bytes.pauses > 0 { break }
                await Task.yield()
            }
            // The other way is not held up.
            try await receiver.send([1, 2, 3])
            #expect(try await sender.bytes(3) == [1, 2, 3])
            try await receiver.setReading(true)
            #expect(try await receiver.bytes(much).count == much)
        }
        let bytes = isUp ? counters.up : counters.down
        #expect(bytes.written == UInt64(much))
        #expect(bytes.discarded == 0)
    }

    @Test("a server that is not there turns clients away, and one line says how many")
    func refused() async throws {
        let port = try ReservedPort()
        let lines = Mutex<[String]>([])
        let notice: @Sendable (String) -> Void = { line in lines.withLock { $0.append(line) } }
        let counters = try await withProxy(before: port.port, { $0.notice = notice }) { proxy in
            for _ in 0..<3 {
                let ending = try await WireEnd.ending(of: proxy.port)
                #expect(ending == .rst)
            }
        }
        #expect(counters.turnedAway == ["refused": 3])
        #expect(counters.ends.isEmpty)
        let told = lines.withLock { $0 }
        try #require(told.count == 1)
        #expect(told[0].hasSuffix(" turned away: 127.0.0.1:\(port.port) refused the connection"), "\(told)")
    }

    @Test("more clients than there is room for are reset, until one leaves")
    func limit() async throws {
        let lines = Mutex<[String]>([])
        let notice: @Sendable (String) -> Void = { line in lines.withLock { $0.append(line) } }
        let counters = try await withRelay {
            $0.maximumClients = 2
            $0.maximumClientsRemedy = "; bring more chairs"
            $0.notice = notice
        } _: { proxy, listener in
            let first = try await WireEnd.connect(to: proxy.port)
            let firstServer = try await listener.accept()
            let second = try await WireEnd.connect(to: proxy.port)
            let secondServer = try await listener.accept()
            #expect(try await WireEnd.ending(of: proxy.port) == .rst)
            try await second.send([2])
            #expect(try await secondServer.bytes(1) == [2])
            try await first.reset()
            #expect(try await firstServer.ending() == .rst)
            let fourth = try await WireEnd.connect(to: proxy.port)
            try await fourth.send([4])
            #expect(try await listener.accept().bytes(1) == [4])
        }
        #expect(counters.turnedAway == ["limit": 1])
        #expect(counters.connections == 4)
        #expect(counters.clientsMaximum == 2)
        #expect(counters.ends == ["clientReset": 1, "shutdown": 2])
        #expect(
            lines.withLock { $0 } == [
                "1 client was turned away: there is room for 2 at a time; bring more chairs"
            ]
        )
    }

    @Test("a port that is taken is named")
    func portTaken() async throws {
        try await withRelay { proxy, listener in
            var configuration = ProxyConfiguration(target: Target(host: "127.0.0.1", port: listener.port))
            configuration.port = proxy.port
            let error = await #expect(throws: ProxyStartError.self) { try await ProxyServer.start(configuration) }
            #expect(error?.description.hasPrefix("cannot listen on 127.0.0.1:\(proxy.port): ") == true)
        }
    }
}
