import EmbeddedBroker
import MQTT
import MQTTCodec
import NIOCore
import NIOPosix
import Synchronization
import TestSupport
import Testing

/// The packets that a client sent.
private final class Sent: Sendable {
    private let traces = Mutex<[MQTTPacketTrace]>([])

    var types: [PacketType] { self.traces.withLock { $0.map(\.type) } }
    var connects: [[UInt8]] { self.traces.withLock { $0.filter { $0.type == .connect }.map(\.bytes) } }

    func watch(_ configuration: inout MQTTClientConfiguration) {
        configuration.hooks.sending = { trace in self.traces.withLock { $0.append(trace) } }
    }
}

@Suite("A session manager and its configuration", .timeLimit(.minutes(10)))
struct ManagerConfigurationTests {
    private static let kept: @Sendable (inout MQTTClientConfiguration) -> Void = {
        $0.cleanStart = false
        $0.sessionExpiry = 1_000
    }

    /// Returns when the manager is connected anew.
    private static func reconnect(
        _ manager: MQTTSessionManager,
        _ change: (inout MQTTClientConfiguration) -> Void
    ) async -> MQTTConnectResult? {
        var events = manager.events.makeAsyncIterator()
        var configuration = manager.configuration
        change(&configuration)
        manager.connect(configuration)
        while let event = await events.next() {
            if case .connected(let result) = event {
                await manager.until(.connected)
                return result
            }
        }
        return nil
    }

    @Test("[SPEC A12] changed parameters: DISCONNECT, then CONNECT with all of them; equal ones: nothing")
    func changes() async throws {
        try await withBroker { broker in
            let sent = Sent()
            let manager = MQTTSessionManager(
                MQTTClientConfiguration(port: broker.port, .v311, id: "one") { sent.watch(&$0) },
                Waits()
            )
            manager.connect()
            await manager.until(.connected)
            let connection = manager.configuration
            manager.connect(connection)
            manager.connect(host: "127.0.0.1", port: UInt16(broker.port))
            _ = try await manager.ping()
            #expect(sent.types == [.connect, .pingReq])

            _ = await Self.reconnect(manager) {
                $0.version = .v5
                $0.keepAlive = 77
                $0.will = Will(topic: "gone", payload: [1])
                $0.credentials = .password(user: "u", [2])
                $0.cleanStart = false
                $0.sessionExpiry = 9
            }
            #expect(sent.types == [.connect, .pingReq, .disconnect, .connect])
            let configuration = manager.configuration
            #expect(configuration.keepAlive == 77 && configuration.clientID == "one")
            var properties = Properties()
            properties.append(.sessionExpiryInterval(9))
            properties.append(.maximumPacketSize(1_048_576))
            let expected = Connect(
                version: .v5,
                clientID: "one",
                cleanStart: false,
                keepAlive: 77,
                username: "u",
                password: [2],
                will: Will(topic: "gone", payload: [1]),
                properties: properties
            )
            #expect(sent.connects.last == wire(.connect(expected), version: .v5))
            await manager.shutDown()
        }
    }

    @Test("another transport, on another port: messages that wait go there, and their calls go on")
    func transport() async throws {
        try await withBroker { broker in
            let reserved = try ReservedPort()
            defer { reserved.release() }
            let waits = Waits()
            let manager = MQTTSessionManager(MQTTClientConfiguration(port: reserved.port, id: "c"), waits)
            let watcher = MQTTClient(MQTTClientConfiguration(port: broker.port))
            try await watcher.connect()
            try await watcher.subscribe([Subscription(filter: "#", qos: .atLeastOnce)])
            async let published = manager.publish(MQTTMessage(topic: "t", payload: [5], qos: .atLeastOnce))
            for await _ in waits.begun { break }
            let used = Counter()
            var configuration = manager.configuration
            configuration.port = UInt16(broker.port)
            configuration.version = .v311
            configuration.transport = .custom(defaultPort: 1) { request in
                used.add(1)
                return try await ClientBootstrap(group: request.eventLoop)
                    .connect(host: request.host, port: Int(request.port))
                    .get()
            }
            manager.connect(configuration)
            _ = try await published
            #expect(await watcher.take(1).map(\.payload) == [[5]])
            #expect(used.value == 1)
            await manager.shutDown()
            await watcher.shutDown()
        }
    }

    @Test("other settings of a session that persists: it goes on, with what was in flight")
    func sessionGoesOn() async throws {
        try await withBroker { broker in
            let manager = MQTTSessionManager(MQTTClientConfiguration(port: broker.port, id: "c", Self.kept), Waits())
            manager.setSubscriptions([Subscription(filter: "t", qos: .atLeastOnce)])
            manager.connect()
            await manager.untilEffective(1)
            let result = await Self.reconnect(manager) { $0.keepAlive = 5 }
            #expect(result?.sessionPresent == true)
            // A clean start ends it, and what the server keeps of that session is not resumed either.
            let clean = await Self.reconnect(manager) { $0.cleanStart = true }
            #expect(clean?.sessionPresent == false)
            try await manager.publish(MQTTMessage(topic: "u", qos: .exactlyOnce))
            let back = await Self.reconnect(manager, Self.kept)
            #expect(back?.sessionPresent == false)
            try await manager.publish(MQTTMessage(topic: "u", qos: .exactlyOnce))
            await manager.shutDown()
        }
    }

    @Test(
        "another identifier: calls that wait end, their messages stay in the store under the old one, and go out with it"
    )
    func otherClient() async throws {
        try await withBroker { broker in
            let reserved = try ReservedPort()
            defer { reserved.release() }
            let (store, waits) = (MQTTMemoryStore(), Waits())
            var policy = MQTTReconnectPolicy()
            policy.hasJitter = false
            let first = MQTTClientConfiguration(port: reserved.port, id: "old", Self.kept)
            let manager = MQTTSessionManager(
                MQTTClient(first, store: store, eventLoop: MultiThreadedEventLoopGroup.singleton.next()),
                policy: policy,
                sleep: waits.sleep
            )
            let waiting = Task {
                await failure { try await manager.publish(MQTTMessage(topic: "t", payload: [1], qos: .atLeastOnce)) }
            }
            for await _ in waits.begun { break }
            while await store.load(client: "old").isEmpty { await Task.yield() }
            let watcher = MQTTClient(MQTTClientConfiguration(port: broker.port))
            try await watcher.connect()
            try await watcher.subscribe([Subscription(filter: "#", qos: .atLeastOnce)])

            let result = await Self.reconnect(manager) {
                $0.port = UInt16(broker.port)
                $0.clientID = "new"
            }
            #expect(result?.clientID == "new" && result?.sessionPresent == false)
            #expect(await waiting.value == .disconnected)
            try await manager.publish(MQTTMessage(topic: "t", payload: [2], qos: .atLeastOnce))
            #expect(await watcher.take(1).map(\.payload) == [[2]])
            #expect(await store.load(client: "old").map(\.message.payload) == [[1]])
            // The store forgets a message after its call has returned.
            while await !store.load(client: "new").isEmpty { await Task.yield() }

            _ = await Self.reconnect(manager) { $0.clientID = "old" }
            #expect(await watcher.take(1).map(\.payload) == [[1]])
            try await manager.publish(MQTTMessage(topic: "t", payload: [3], qos: .atLeastOnce))
            #expect(await watcher.take(1).map(\.payload) == [[3]])
            while await !store.load(client: "old").isEmpty { await Task.yield() }
            await manager.shutDown()
            await watcher.shutDown()
        }
    }

    @Test("another identifier waits for what the store owes the old one")
    func storeFirst() async throws {
        try await withBroker { broker in
            let store = GatedStore()
            let (waits, sent) = (Waits(), Sent())
            let configuration = MQTTClientConfiguration(port: broker.port, id: "old") {
                Self.kept(&$0)
                sent.watch(&$0)
            }
            let manager = MQTTSessionManager(
                MQTTClient(configuration, store: store, eventLoop: MultiThreadedEventLoopGroup.singleton.next()),
                policy: MQTTReconnectPolicy(),
                sleep: waits.sleep
            )
            manager.connect()
            await manager.until(.connected)
            let waiting = Task {
                await failure { try await manager.publish(MQTTMessage(topic: "t", qos: .atLeastOnce)) }
            }
            for await _ in store.begun { break }
            var other = manager.configuration
            other.clientID = "new"
            manager.connect(other)
            #expect(await waiting.value == .disconnected)
            await manager.until(.connecting)
            #expect(sent.connects.count == 1)
            store.open.yield(true)
            await manager.until(.connected)
            #expect(sent.connects.count == 2)
            #expect(await store.inner.load(client: "old").count == 1)
            #expect(await store.inner.load(client: "new").isEmpty)
            store.open.finish()
            await manager.shutDown()
        }
    }

    @Test("a configuration that cannot work ends in failed, and the next one heals it")
    func invalid() async throws {
        try await withBroker { broker in
            let manager = MQTTSessionManager(MQTTClientConfiguration(port: broker.port, id: "c"), Waits())
            manager.connect()
            await manager.until(.connected)
            var configuration = manager.configuration
            configuration.limits.window = 0
            manager.connect(configuration)
            await manager.until(.failed)
            #expect(manager.lastError == .invalid("a window holds 1 to 65,535 messages"))
            configuration.limits.window = 1
            manager.connect(configuration)
            await manager.until(.connected)
            await manager.shutDown()
        }
    }
}
