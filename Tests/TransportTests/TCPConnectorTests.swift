import LoopContext
import NIOCore
import NIOPosix
import Synchronization
import TestSupport
import Testing
import Transport

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

@Suite("Connecting")
struct TCPConnectorTests {
    @Test("a literal address has no dns phase; the handler is there before channelActive")
    func literal() async throws {
        try await withScriptedPeer { peer in
            try await withTestLoop([Target(host: "127.0.0.1", port: peer.port)]) { loop in
                let connection = try await loop.connect().get()
                try await connection.until { $0.events.contains("active") }
                #expect(connection.phases.dns == nil)
                #expect(connection.phases.tcp != nil)
                #expect(try await connection.ask(\.events) == ["done", "active"])
                #expect(try await loop.run(\.connector.pending) == 0)
            }
        }
    }

    @Test("one lookup for all who wait, none for those who come after, and only the waiting have a dns phase")
    func sharedLookup() async throws {
        let lookups = Counter()
        let lookup: NameLookup = { host in
            lookups.add(1)
            // A refused address first: the next one is tried.
            return Result { try ["127.0.0.1", "127.0.0.2"].map { try SocketAddress(ipAddress: $0, port: 0) } }
                .mapError { LookupFailure("\($0)") }
        }
        try await withScriptedPeer { peer in
            try await withTestLoop([Target(host: "broker.test", port: peer.port)], lookup: lookup) { loop in
                async let first = loop.connect(client: 0)
                async let second = loop.connect(client: 1)
                let waited = try await [first.get(), second.get()]
                #expect(lookups.value == 1)
                #expect(waited.contains { $0.phases.dns != nil })
                let later = try await loop.connect(client: 2).get()
                #expect(later.phases.dns == nil)
                #expect(lookups.value == 1)
            }
        }
    }

    @Test("tries all addresses of a name in turn")
    func triesAll() async throws {
        try await withScriptedPeer { peer in
            // No server listens on 127.0.0.2.
            let lookup: NameLookup = { _ in
                Result { try ["127.0.0.2", "127.0.0.1"].map { try SocketAddress(ipAddress: $0, port: 0) } }
                    .mapError { LookupFailure("\($0)") }
            }
            try await withTestLoop([Target(host: "broker.test", port: peer.port)], lookup: lookup) { loop in
                let connection = try await loop.connect().get()
                #expect(connection.channel.remoteAddress?.ipAddress == "127.0.0.1")
            }
        }
    }

    /// Notes which clients begin it, and is ready at once.
    private final class NotingLayer: ConnectLayer {
        let phase = ConnectError.Phase.tls
        private let clients: Noted

        init(_ clients: Noted) { self.clients = clients }

        func begin(
            _ channel: any Channel,
            client: Int,
            target: Target,
            done: @escaping (Result<Void, ConnectError.Reason>) -> Void
        ) {
            self.clients.all.withLock { $0.append(client) }
            done(.success(()))
        }
    }

    private final class Noted: Sendable {
        let all = Mutex<[Int]>([])
    }

    @Test("a route chooses the target, and layers keep the client's own number")
    func routes() async throws {
        let noted = Noted()
        try await withScriptedPeer { first in
            try await withScriptedPeer { second in
                let targets = [first, second].map { Target(host: "127.0.0.1", port: $0.port) }
                try await withTestLoop(
                    targets,
                    layers: { _ in [NotingLayer(noted)] },
                    route: { $0 * 2 + ($0 < 3 ? 0 : 1) }
                ) { loop in
                    for client in 0..<4 { _ = try await loop.connect(client: client).get() }
                    try await first.untilConnections(3)
                    try await second.untilConnections(1)
                }
            }
        }
        #expect(noted.all.withLock(\.self) == [0, 1, 2, 3])
    }

    @Test("clients go to the targets in turn")
    func roundRobin() async throws {
        try await withScriptedPeer { first in
            try await withScriptedPeer { second in
                let targets = [first, second].map { Target(host: "127.0.0.1", port: $0.port) }
                try await withTestLoop(targets) { loop in
                    for client in 0..<5 { _ = try await loop.connect(client: client).get() }
                    try await first.untilConnections(3)
                    try await second.untilConnections(2)
                    #expect(try await first.connectionCount() == 3)
                    #expect(try await second.connectionCount() == 2)
                }
            }
        }
    }

    @Test("a closed port is refused, with host and port in the words")
    func refused() async throws {
        let reserved = try ReservedPort()
        let port = reserved.port
        defer { reserved.release() }
        try await withTestLoop([Target(host: "127.0.0.1", port: port)]) { loop in
            let error = try #require(try await failure(loop.connect()))
            #expect(error.reason == .refused)
            #expect(error.kind == "refused")
            #expect(!error.isLocal)
            #expect(error.description == "127.0.0.1:\(port) refused the connection")
        }
    }

    @Test("a name without an address is a resolve error")
    func unresolved() async throws {
        let lookup: NameLookup = { _ in .failure(LookupFailure("Name or service not known")) }
        try await withTestLoop([Target(host: "nowhere.test", port: 1883)], lookup: lookup) { loop in
            let error = try #require(try await failure(loop.connect()))
            #expect(error.kind == "resolve")
            #expect(error.description == "cannot resolve nowhere.test:1883: Name or service not known")
            #expect(error.phases.dns != nil)
        }
    }

    @Test("the deadline ends a lookup that hangs, once, and the late answer is ignored")
    func lookupTimeout() async throws {
        let gate = Gate()
        let lookup: NameLookup = { _ in
            gate.waitUntilOpen()
            return .failure(LookupFailure("late"))
        }
        try await withTestLoop([Target(host: "slow.test", port: 1883)], lookup: lookup) { loop in
            let error = try #require(try await failure(loop.connect(within: .milliseconds(5))))
            #expect(error.reason == .timedOut(.dns))
            #expect(error.kind == "timeout")
            gate.open()
            #expect(try await loop.run(\.connector.pending) == 0)
        }
    }

    @Test("the deadline ends an unanswered TCP connect")
    func connectTimeout() async throws {
        // A listener whose queue is full drops the SYNs of those that come after.
        let listener = try FullListener()
        defer { listener.close() }
        try await withTestLoop([Target(host: "127.0.0.1", port: listener.port)]) { loop in
            let error = try #require(try await failure(loop.connect(within: .milliseconds(20))))
            #expect(error.reason == .timedOut(.tcp))
            #expect(try await loop.run(\.connector.pending) == 0)
        }
    }

    @Test("a connect that finds the listener's queue full is up when there is room")
    func waitsForRoom() async throws {
        let listener = try FullListener()
        defer { listener.close() }
        try await withTestLoop([Target(host: "127.0.0.1", port: listener.port)]) { loop in
            async let result = loop.connect()
            while try await loop.run(\.connector.pending) == 0 { await Task.yield() }
            listener.makeRoom()
            let connection = try await result.get()
            #expect(connection.phases.tcp != nil)
            try await connection.until { $0.events.contains("active") }
            #expect(try await connection.ask(\.events) == ["done", "active"])
        }
    }

    @Test("binds to the source addresses given, each in turn, and leaves the port to connect")
    func sourceAddresses() async throws {
        try await withScriptedPeer { peer in
            let sources = try SourceAddresses(given: ["127.0.0.5", "127.0.0.6"], targets: 1)
            try await withTestLoop([Target(host: "127.0.0.1", port: peer.port)], sources: sources) { loop in
                var used: [String?] = []
                for client in 0..<4 {
                    used.append(try await loop.connect(client: client).get().channel.localAddress?.ipAddress)
                }
                #expect(used == ["127.0.0.5", "127.0.0.6", "127.0.0.5", "127.0.0.6"])
            }
        }
    }

    @Test("a source address that the host does not have is a local error", arguments: ["192.0.2.1", "::1"])
    func foreignSource(_ address: String) async throws {
        try await withScriptedPeer { peer in
            let sources = try SourceAddresses(given: [address], targets: 1)
            try await withTestLoop([Target(host: "127.0.0.1", port: peer.port)], sources: sources) { loop in
                let error = try #require(try await failure(loop.connect()))
                #expect(error.reason == .sourceAddress)
                #expect(error.isLocal)
            }
        }
    }

    @Test("what is under way when all is given up is reported as cancelled")
    func cancelAll() async throws {
        let listener = try FullListener()
        defer { listener.close() }
        try await withTestLoop([Target(host: "127.0.0.1", port: listener.port)]) { loop in
            async let result = loop.connect()
            while try await loop.run(\.connector.pending) == 0 { await Task.yield() }
            try await loop.run { $0.connector.cancelAll() }
            #expect(try await failure(result)?.reason == .cancelled)
        }
    }
}

@Suite("Connect errors")
struct ConnectErrorTests {
    static let target = Target(host: "::1", port: 1883)

    @Test(
        "an errno becomes a kind of the taxonomy, and local only if this host is to blame",
        arguments: [
            (ECONNREFUSED, false, "refused", false), (ETIMEDOUT, false, "timeout", false),
            (ECONNRESET, false, "reset", false), (ENETUNREACH, false, "unreachable", false),
            (EHOSTUNREACH, false, "unreachable", false), (EADDRNOTAVAIL, false, "ports", true),
            (EADDRNOTAVAIL, true, "source", true), (EMFILE, false, "descriptors", true),
            (ENFILE, false, "descriptors", true), (EACCES, false, "connect", false),
        ] as [(Int32, Bool, String, Bool)]
    )
    func kinds(code: Int32, isBinding: Bool, kind: String, isLocal: Bool) {
        let reason = ConnectError.Reason(IOError(errnoCode: code, reason: "connect"), isBinding: isBinding)
        let error = ConnectError(reason, target: Self.target)
        #expect(error.kind == kind)
        #expect(error.isLocal == isLocal)
        #expect(error.description.contains("[::1]:1883"))
        #expect(!error.description.contains("\n"))
    }
}

@Suite("Source addresses")
struct SourceAddressesTests {
    private static func spread(clients: Int, targets: Int, to remote: String = "127.0.0.1") throws -> [String: Int] {
        let sources = SourceAddresses(clients: clients, targets: targets)
        let remote = try SocketAddress(ipAddress: remote, port: 1883)
        var counts: [String: Int] = [:]
        for client in 0..<clients {
            let address = sources.address(forClient: client, to: remote)?.ipAddress ?? "kernel's"
            counts["\(address) to \(client % targets)", default: 0] += 1
        }
        return counts
    }

    @Test(
        "stays below 12,000 for each pair of source and target on loopback",
        arguments: [(12_000, 1, 1), (12_001, 1, 2), (24_000, 2, 2), (50_000, 2, 6), (100_000, 1, 9)]
    )
    func pairs(clients: Int, targets: Int, pairs: Int) throws {
        let counts = try Self.spread(clients: clients, targets: targets)
        #expect(counts.count == pairs)
        #expect(counts.values.allSatisfy { $0 <= 12_000 })
    }

    @Test("elsewhere the kernel chooses")
    func elsewhere() throws {
        #expect(try Self.spread(clients: 30_000, targets: 1, to: "192.0.2.1") == ["kernel's to 0": 30_000])
    }
}

private func failure(_ result: Result<Connection, ConnectError>) -> ConnectError? {
    guard case .failure(let error) = result else { return nil }
    return error
}

final class Counter: Sendable {
    private let count = Atomic(0)

    var value: Int { self.count.load(ordering: .relaxed) }

    func add(_ amount: Int) { self.count.add(amount, ordering: .relaxed) }
}
