import MQTT
import NIOCore
import NIOPosix
import Synchronization
import TestSupport
import Testing
import Transport

@Suite("The address families of a client", .timeLimit(.minutes(10)))
struct AddressPreferenceTests {
    private final class Used: Sendable {
        let addresses = Mutex<[String?]>([])
    }

    /// Runs `body` with the port of a server on 127.0.0.1 and ::1.
    private func withBothFamilies(_ used: Used, _ body: (Int) async throws -> Void) async throws {
        func listen(_ host: String, _ port: Int) async throws -> any Channel {
            try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                .childChannelInitializer { channel in
                    used.addresses.withLock { $0.append(channel.localAddress?.ipAddress) }
                    return channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(SmallServer())
                    }
                }
                .bind(host: host, port: port)
                .get()
        }
        let ipv4 = try await listen("127.0.0.1", 0)
        let port = try #require(ipv4.localAddress?.port)
        let ipv6 = try await listen("::1", port)
        try await body(port)
        try await ipv4.close()
        try await ipv6.close()
    }

    @Test(
        "a client connects by the family that its configuration prefers, and only by one that it allows",
        arguments: zip(MQTTAddressPreference.allCases, ["::1", "127.0.0.1", "127.0.0.1", "::1"])
    )
    func families(_ preference: MQTTAddressPreference, _ expected: String) async throws {
        let used = Used()
        try await self.withBothFamilies(used) { port in
            var configuration = MQTTClientConfiguration(port: port)
            configuration.host = "both.test"
            configuration.addressPreference = preference
            let racing: [MQTTAddressPreference: AddressPreference] = [
                .ipv6First: .ipv6First, .ipv4First: .ipv4First, .ipv4Only: .ipv4Only, .ipv6Only: .ipv6Only,
            ]
            #expect(configuration.racing.preference == racing[preference])
            let client = MQTTClient(
                configuration,
                store: MQTTMemoryStore(),
                eventLoop: MultiThreadedEventLoopGroup.singleton.next(),
                lookup: { _ in
                    Result { try ["127.0.0.1", "::1"].map { try SocketAddress(ipAddress: $0, port: 0) } }
                        .mapError { LookupFailure("\($0)") }
                }
            )
            try await client.connect()
            let addresses = used.addresses.withLock(\.self)
            if preference == .ipv4Only || preference == .ipv6Only {
                #expect(addresses == [expected])
            } else {
                // On a host that stands still for 250 ms the other family is tried as well.
                #expect(addresses.contains(expected))
            }
            await client.shutDown()
        }
    }

    @Test("a family that the host does not have is refused, with the reason")
    func missing() async {
        var configuration = MQTTClientConfiguration(host: "127.0.0.1", port: 1)
        configuration.addressPreference = .ipv6Only
        let client = MQTTClient(configuration)
        let words = "cannot resolve 127.0.0.1:1: no IPv6 address, and no other is allowed"
        #expect(
            await failure { try await client.connect() }
                == .noConnection(MQTTConnectFailure(kind: "resolve", words: words))
        )
    }
}
