import Foundation
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

/// A listener on one address, which accepts and keeps its connections.
private func withListener<Answer>(
    _ host: String,
    port: Int = 0,
    _ body: (_ port: Int) async throws -> Answer
) async throws -> Answer {
    let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
        .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
        .bind(host: host, port: port)
        .get()
    let bound = try #require(server.localAddress?.port)
    do {
        let answer = try await body(bound)
        try await server.close()
        return answer
    } catch {
        try? await server.close()
        throw error
    }
}

private func names(_ addresses: [String]) -> NameLookup {
    { _ in
        Result { try AddressRaceTests.addresses(addresses) }.mapError { LookupFailure("\($0)") }
    }
}

/// Sockets of this process that are bound to an address, connected or not.
private func sockets(boundTo text: String) throws -> Int {
    let address = try SocketAddress(ipAddress: text, port: 0)
    let wanted = address.withSockAddr { raw, _ in Array(UnsafeRawBufferPointer(start: raw, count: 8)[4...]) }
    let descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap { CInt($0) }
    return descriptors.filter { descriptor in
        var name = [UInt8](repeating: 0, count: 128)
        var length = socklen_t(name.count)
        let failed = name.withUnsafeMutableBytes { bytes in
            bytes.withMemoryRebound(to: sockaddr.self) { getsockname(descriptor, $0.baseAddress, &length) }
        }
        // sockaddr_in: family, port, and the address from byte 4 on.
        return failed == 0 && name[0] == UInt8(AF_INET) && Array(name[4..<8]) == wanted
    }.count
}

@Suite("Happy Eyeballs", .timeLimit(.minutes(10)))
struct AddressRacingTests {
    private static let both = ["127.0.0.1", "::1"]

    @Test(
        "[RFC 8305 §4] a name with both families is connected to by the preferred one",
        arguments: [
            (.ipv6First, "::1"), (.ipv4First, "127.0.0.1"), (.ipv6Only, "::1"), (.ipv4Only, "127.0.0.1"),
        ] as [(AddressPreference, String)]
    )
    func preferred(_ preference: AddressPreference, _ expected: String) async throws {
        try await withListener("127.0.0.1") { port in
            try await withListener("::1", port: port) { _ in
                try await withTestLoop(
                    [Target(host: "broker.test", port: port)],
                    // At most: the first attempt has its time.
                    racing: AddressRacing(preference, delay: .seconds(2)),
                    lookup: names(Self.both)
                ) { loop in
                    var connection = try await loop.connect().get()
                    // On a host that stands still for two seconds the other family may be first.
                    for client in 1..<20 where connection.channel.remoteAddress?.ipAddress != expected {
                        connection = try await loop.connect(client: client).get()
                    }
                    try await connection.until { $0.events.contains("active") }
                    #expect(connection.channel.remoteAddress?.ipAddress == expected)
                    #expect(try await connection.ask(\.events) == ["done", "active"])
                    #expect(try await loop.run(\.connector.pending) == 0)
                    #expect(connection.phases.tcp != nil)
                }
            }
        }
    }

    @Test(
        "a server of one family is found, whichever is tried first",
        arguments: ["127.0.0.1", "::1"],
        [AddressPreference.ipv6First, .ipv4First]
    )
    func oneFamily(_ host: String, _ preference: AddressPreference) async throws {
        try await withListener(host) { port in
            try await withTestLoop(
                [Target(host: "broker.test", port: port)],
                racing: AddressRacing(preference),
                lookup: names(Self.both)
            ) { loop in
                let connection = try await loop.connect().get()
                #expect(connection.channel.remoteAddress?.ipAddress == host)
            }
        }
    }

    @Test("[RFC 8305 §5] an address that never answers is passed by, and its socket is closed")
    func blackHole() async throws {
        let full = try FullListener()
        defer { full.close() }
        let source = "127.11.0.1"
        let sources = try SourceAddresses(given: [source], targets: 1)
        try await withListener("127.0.0.2", port: full.port) { port in
            try await withTestLoop(
                [Target(host: "broker.test", port: port)],
                sources: sources,
                racing: AddressRacing(delay: .milliseconds(10)),
                lookup: names(["127.0.0.1", "127.0.0.2"])
            ) { loop in
                for client in 0..<5 {
                    let connection = try await loop.connect(client: client).get()
                    #expect(connection.channel.remoteAddress?.ipAddress == "127.0.0.2")
                }
                let open = try sockets(boundTo: source)
                #expect(open == 5, "one for each connection: the five that lost are closed")
            }
        }
    }

    @Test("the deadline and a cancellation end every attempt of a race, and close its sockets")
    func noWinner() async throws {
        let full = try FullListener()
        defer { full.close() }
        let source = "127.11.0.2"
        let sources = try SourceAddresses(given: [source], targets: 1)
        try await withTestLoop(
            [Target(host: "broker.test", port: full.port)],
            sources: sources,
            racing: AddressRacing(delay: .milliseconds(10)),
            lookup: names(["127.0.0.1", "127.0.0.1"])
        ) { loop in
            let result = try await loop.connect(within: .milliseconds(30))
            if case .failure(let error) = result {
                #expect(error.reason == .timedOut(.tcp))
            } else {
                Issue.record("up")
            }
            let left = try sockets(boundTo: source)
            #expect(left == 0)

            async let cancelled = loop.connect()
            while try sockets(boundTo: source) < 2 { await Task.yield() }
            try await loop.run { $0.connector.cancelAll() }
            if case .failure(let error) = try await cancelled {
                #expect(error.reason == .cancelled)
            } else {
                Issue.record("connected")
            }
            let leftAfter = try sockets(boundTo: source)
            #expect(leftAfter == 0)
            #expect(try await loop.run(\.connector.pending) == 0)
        }
    }

    @Test("without a listener the race ends with the last error, before its deadline")
    func allRefused() async throws {
        let reserved = try ReservedPort()
        defer { reserved.release() }
        try await withTestLoop(
            [Target(host: "broker.test", port: reserved.port)],
            racing: AddressRacing(),
            lookup: names(Self.both)
        ) { loop in
            let result = try await loop.connect(within: .hours(1))
            if case .failure(let error) = result { #expect(error.reason == .refused) } else { Issue.record("up") }
        }
    }

    @Test(
        "a host without an address of the only family allowed is refused, a literal one too",
        arguments: ["broker.test", "127.0.0.1"]
    )
    func missing(_ host: String) async throws {
        try await withTestLoop(
            [Target(host: host, port: 1)],
            racing: AddressRacing(.ipv6Only),
            lookup: names(["127.0.0.1"])
        ) { loop in
            let result = try await loop.connect()
            guard case .failure(let error) = result else {
                Issue.record("connected")
                return
            }
            #expect(error.reason == .resolve("no IPv6 address, and no other is allowed"))
        }
    }

    /// Knows one family at first, and both later.
    private final class SlowFamily: AddressResolver {
        private let first: [SocketAddress]
        private let later: [SocketAddress]
        private var questions = 0

        init(_ first: [SocketAddress], later: [SocketAddress]) {
            self.first = first
            self.later = later
        }

        func resolve(
            _ host: String,
            _ preference: AddressPreference,
            now: NIODeadline,
            completion: @escaping (Result<[SocketAddress], LookupFailure>) -> Void
        ) -> Result<[SocketAddress], LookupFailure>? {
            self.questions += 1
            return .success(self.questions == 1 ? self.first : self.first + self.later)
        }
    }

    @Test("[RFC 8305 §3] the family whose answer was late takes part")
    func lateFamily() async throws {
        let full = try FullListener()
        defer { full.close() }
        let first = try AddressRaceTests.addresses(["127.0.0.1"])
        let later = try AddressRaceTests.addresses(["::1"])
        try await withListener("::1", port: full.port) { port in
            try await withTestLoop(
                [Target(host: "broker.test", port: port)],
                racing: AddressRacing(.ipv4First, delay: .milliseconds(10)),
                resolver: { _ in SlowFamily(first, later: later) }
            ) { loop in
                let connection = try await loop.connect().get()
                #expect(connection.channel.remoteAddress?.ipAddress == "::1")
            }
        }
    }

    /// Answers the first question alone.
    private final class SilentResolver: AddressResolver {
        private var answer: [SocketAddress]?

        init(_ answer: [SocketAddress]) { self.answer = answer }

        func resolve(
            _ host: String,
            _ preference: AddressPreference,
            now: NIODeadline,
            completion: @escaping (Result<[SocketAddress], LookupFailure>) -> Void
        ) -> Result<[SocketAddress], LookupFailure>? {
            defer { self.answer = nil }
            return self.answer.map { .success($0) }
        }
    }

    @Test("[RFC 8305 §3] a refused connect does not wait for a second answer that never comes")
    func noSecondAnswer() async throws {
        let reserved = try ReservedPort()
        defer { reserved.release() }
        let addresses = try AddressRaceTests.addresses(["127.0.0.1"])
        try await withTestLoop(
            [Target(host: "broker.test", port: reserved.port)],
            racing: AddressRacing(),
            resolver: { _ in SilentResolver(addresses) }
        ) { loop in
            let result = try await loop.connect(within: .minutes(1))
            if case .failure(let error) = result { #expect(error.reason == .refused) } else { Issue.record("up") }
            #expect(try await loop.run(\.connector.pending) == 0)
        }
    }

    /// Counts who begins it, and refuses.
    private final class RefusingLayer: ConnectLayer {
        let phase = ConnectError.Phase.tls
        private let begun: Begun

        init(_ begun: Begun) { self.begun = begun }

        func begin(
            _ channel: any Channel,
            client: Int,
            target: Target,
            done: @escaping (Result<Void, ConnectError.Reason>) -> Void
        ) {
            self.begun.addresses.withLock { $0.append(channel.remoteAddress?.ipAddress) }
            done(.failure(.reset))
        }
    }

    private final class Begun: Sendable {
        let addresses = Mutex<[String?]>([])
    }

    @Test("the layers go up on the connection that won, and nowhere else")
    func layers() async throws {
        let begun = Begun()
        try await withListener("127.0.0.1") { port in
            try await withListener("::1", port: port) { _ in
                try await withTestLoop(
                    [Target(host: "broker.test", port: port)],
                    layers: { _ in [RefusingLayer(begun)] },
                    racing: AddressRacing(delay: .seconds(2)),
                    lookup: names(Self.both)
                ) { loop in
                    if case .failure(let error) = try await loop.connect() {
                        #expect(error.reason == .reset)
                    } else {
                        Issue.record("connected")
                    }
                }
            }
        }
        #expect(begun.addresses.withLock(\.self).count == 1)
    }

    @Test("a connector without the option opens one socket, IPv4 first as its resolver says, and waits for its answer")
    func notRaced() async throws {
        let full = try FullListener()
        defer { full.close() }
        try await withListener("::1", port: full.port) { port in
            try await withTestLoop([Target(host: "broker.test", port: port)], lookup: names(Self.both)) { loop in
                let result = try await loop.connect(within: .milliseconds(300))
                if case .failure(let error) = result {
                    #expect(error.reason == .timedOut(.tcp))
                } else {
                    Issue.record("up")
                }
            }
        }
    }

    @Test(
        "names of a real name server, with an A and an AAAA record, and a domain's targets",
        .enabled(if: Dnsmasq.isInstalled, "\(Dnsmasq.missing)"),
        arguments: ["127.0.0.1", "::1"]
    )
    func nameServer(_ host: String) async throws {
        try await withListener(host) { port in
            let refused = try ReservedPort()
            defer { refused.release() }
            let records = [
                "srv-host=_xmpp-client._tcp.x.test,first.x.test,\(refused.port),1,1",
                "srv-host=_xmpp-client._tcp.x.test,a.x.test,\(port),2,1",
                "host-record=first.x.test,127.0.0.1,::1", "host-record=a.x.test,127.0.0.1,::1",
            ]
            try await Dnsmasq.with(records) { server in
                let address = try SocketAddress(ipAddress: "127.0.0.1", port: server.port)
                for preference in [AddressPreference.ipv6First, .ipv4First] {
                    try await withTestLoop(
                        [Target(host: "a.x.test", port: port)],
                        racing: AddressRacing(preference),
                        resolver: { DNSClient(eventLoop: $0, servers: [address]) }
                    ) { loop in
                        let connection = try await loop.connect().get()
                        #expect(connection.channel.remoteAddress?.ipAddress == host)
                    }
                    try await withServiceLoop("x.test", servers: [address], racing: AddressRacing(preference)) { loop in
                        // Both addresses of the first target are refused, and the second target follows.
                        let result = try await loop.connect()
                        #expect(result.target == Target(host: "a.x.test", port: port))
                    }
                }
                try await withDNSLoop([address]) { loop in
                    let ipv6 = try await loop.resolve("a.x.test", .ipv6Only).get().map(\.ipAddress)
                    let asked = try await loop.questions()
                    let ipv4 = try await loop.resolve("a.x.test", .ipv4Only).get().map(\.ipAddress)
                    let askedBoth = try await loop.questions()
                    #expect(ipv6 == ["::1"] && asked == 1)
                    #expect(ipv4 == ["127.0.0.1"] && askedBoth == 2)
                }
            }
        }
    }
}
